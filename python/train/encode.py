"""From a request to token ids and spans, as docs/model.md defines it: every piece is tokenised on its own."""

import json
from dataclasses import dataclass

import numpy as np

import media

SYSTEM = ("Read the complete state and schema. Decide every field jointly. "
          "Each answer must be exactly one of that field's allowed options.")
PREFIX = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nSTATE:\n"
SUFFIX = "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:"
TYPES = ("noul", "choice", "score")        # the index is the head's type code
NOUL_DESCRIPTIONS = {"true": "The proposition is true or the answer is yes.",
                     "false": "The proposition is false or the answer is no."}


SAID, ANSWER = 1, 2                        # tokens of a prompt; tokens of an answer in a compact document


@dataclass
class Encoded:
    """One record as the model reads it. Spans are half-open and count from the record's first token."""
    ids: np.ndarray                        # [T] int32
    positions: np.ndarray                  # [3, T] int32: temporal, row, column
    types: list                            # [Q] type codes
    question_ids: list                     # [Q]
    option_ids: list                       # [Q] lists, in the model's order
    question_spans: list                   # [Q] (begin, end)
    option_spans: list                     # [Q] lists of (begin, end)
    media: list                            # media.Media, images before videos
    media_rows: np.ndarray                 # [T] int32: row of the vision tower's output placed at a token, or -1
    targets: np.ndarray                    # [T] int8: what next-token prediction learns, SAID or ANSWER, or 0


VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"


def media_text(prepared):
    """The expanded placeholders: an image is a block of pads; a video's frame groups are blocks behind their timestamps."""
    def block(pad, item):
        return VISION_START + pad * (item.grid[1] * item.grid[2] // 4) + VISION_END

    text = ""
    for item in prepared:
        if item.kind == "image":
            text += block(IMAGE_PAD, item)
        else:
            text += VISION_START + "".join(f"<{seconds:.1f} seconds>" + block(VIDEO_PAD, item) for seconds in item.seconds) + VISION_END
    return text + "\n" if prepared else ""


def render(value):
    """Text as it is, anything else as compact JSON with sorted keys."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def options_of(question):
    """-> [(option id, description or None)] in the model's order."""
    criteria = question.get("criteria")
    if question["type"] == "noul":
        return [(key, (criteria or {}).get(key, text)) for key, text in NOUL_DESCRIPTIONS.items()]
    if question["type"] == "choice":
        return sorted(criteria.items())
    return [(str(level), text) for level, text in enumerate(criteria)]


class Encoder:
    """Encodes requests with one tokenizer. Pieces repeat a lot, so their ids are remembered."""
    REMEMBERED = 200_000

    def __init__(self, tokenizer, processor):
        self.tokenizer, self.processor, self.known = tokenizer, processor, {}

    def tokens(self, text):
        ids = self.known.get(text)
        if ids is None:
            ids = self.tokenizer.encode(text, add_special_tokens=False).ids
            if len(self.known) < self.REMEMBERED:
                self.known[text] = ids
        return ids

    def __call__(self, request):
        """request {"state", "questions", "images"?, "videos"?} with media as arrays (media.py) -> Encoded"""
        ids, prepared, media_span = self.opening(request, PREFIX)

        types, question_spans, option_ids, option_spans = [], [], [], []

        def add(text):
            begin = len(ids)
            ids.extend(self.tokens(text))
            return begin, len(ids)

        add("\n\nSCHEMA FIELDS:\n")
        for number, (question_id, question) in enumerate(request["questions"].items(), 1):
            add(f"\nFIELD {number}\nID: {question_id}\nTYPE: {question['type']}\nINSTRUCTION: ")
            instructions = question.get("instructions")
            question_spans.append(add(question_id if instructions in (None, "") else render(instructions)))
            add("\nALLOWED OPTIONS:\n")
            spans = []
            for index, (option_id, description) in enumerate(options_of(question), 1):
                add(f"OPTION {index}: ")
                option = {"option_id": option_id} | ({} if description is None else {"description": description})
                spans.append(add(render(option)))
                add("\n")
            add("END FIELD\n")
            types.append(TYPES.index(question["type"]))
            option_ids.append([option_id for option_id, _ in options_of(question)])
            option_spans.append(spans)
        ids += self.tokens(SUFFIX)
        ids, positions, rows = self.placed(ids, prepared, media_span)
        return Encoded(ids, positions, types, list(request["questions"]), option_ids, question_spans, option_spans, prepared, rows,
                       np.full(len(ids), SAID, np.int8))

    def compact(self, request, answers):
        """The same questions with their answers as a short text without the schema's frame: a helper in training, in which next-token
        prediction learns the answers. It holds several times as many decisions a token as a record."""
        ids, prepared, media_span = self.opening(request, "")
        spans = []
        for question_id, question in request["questions"].items():
            ids += self.tokens("\n" + render(question["instructions"]))
            if question["type"] != "noul":
                ids += self.tokens(" (" + "; ".join(label if text is None else f"{label}: {text}" for label, text in options_of(question)) + ")")
            begin = len(ids)
            answer = answers[question_id]
            ids += self.tokens({True: " yes", False: " no"}[answer] if isinstance(answer, bool) else f" {answer}")
            spans.append((begin, len(ids)))
        if request.get("told"):
            begin = len(ids)
            ids += self.tokens("\n" + request["told"])
            spans.append((begin + 1, len(ids)))
        ids, positions, rows = self.placed(ids, prepared, media_span)
        targets = np.zeros(len(ids), np.int8)
        for begin, end in spans:
            targets[begin:end] = ANSWER
        return Encoded(ids, positions, [], [], [], [], [], prepared, rows, targets)

    def opening(self, request, prefix):
        """-> (ids up to the state's end, prepared media, the media piece's span)"""
        has_media = request.get("images") or request.get("videos")
        prepared = media.request_media(request, self.processor) if has_media else []
        ids = list(self.tokens(prefix))
        begin = len(ids)
        ids += self.tokens(media_text(prepared))
        end = len(ids)
        return ids + self.tokens(render(request["state"])), prepared, (begin, end)

    def placed(self, ids, prepared, media_span):
        """-> ids as an array, M-RoPE positions [3, T], rows of the vision tower's output [T]"""
        ids, span = np.asarray(ids, np.int32), slice(*media_span)
        kinds = np.zeros(len(ids), np.int32)                   # 1 at image tokens, 2 at video tokens of the media piece
        for code, token in ((1, IMAGE_PAD), (2, VIDEO_PAD)):
            kinds[span][ids[span] == self.tokens(token)[0]] = code
        rows = np.where(kinds > 0, np.cumsum(kinds > 0) - 1, -1).astype(np.int32)
        positions = media.rope_positions(kinds, prepared) if prepared else np.tile(np.arange(len(ids)), (3, 1))
        return ids, positions.astype(np.int32), rows


def option_of(answer):
    """The option id that a label names: true or false, a choice's label, a level."""
    return str(answer).lower() if isinstance(answer, bool) else str(answer)


def label_index(encoded, number, answer):
    """Where the answer stands among the options of question `number`, in the model's order."""
    return encoded.option_ids[number].index(option_of(answer))
