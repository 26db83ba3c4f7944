"""Three ways to answer a request with a release folder: this folder's PyTorch model, transformers, and the treble program.

Each stack has `logits(requests)` -> for every request a list of float arrays, one per question, options in the model's order; or
None for a request that the stack does not take. Media in requests are data URLs, as in data/eval.
"""

import base64
import io
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer

import encode
import export
import release
from batches import Shape, pack


def read_image(url):
    """data:image/...;base64,... -> [H, W, 3] u8"""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1]))).convert("RGB"))


def with_arrays(request):
    """A request whose media are arrays: an image is a data URL, a video {"frames": [data URL]}."""
    images = [read_image(image) if isinstance(image, str) else image for image in request.get("images", ())]
    videos = [np.stack([read_image(frame) for frame in video["frames"]]) if isinstance(video, dict) else video
              for video in request.get("videos", ())]
    return request | {"images": images, "videos": videos}


class Own:
    """model.py on packed rows."""
    SHAPE = dict(tokens=1024, questions=16, options=160)

    def __init__(self, folder, device="cpu", rows=None):
        self.model = export.read(folder).to(device).eval()
        self.encoder = encode.Encoder(Tokenizer.from_file(str(folder / "tokenizer.json")), release.PROCESSOR)
        self.device, self.rows = device, rows or (64 if device == "cuda" else 4)

    @torch.no_grad()
    def logits(self, requests):
        encoded = [self.encoder(with_arrays(request)) for request in requests]
        shape = Shape(rows=self.rows, patch_rows=max(2, self.rows // 2), **self.SHAPE)
        results, waiting = [None] * len(requests), sorted(range(len(requests)), key=lambda i: -len(encoded[i].ids))
        while waiting:
            taken, left, room = [], [], shape.rows * shape.tokens
            for i in waiting:
                room -= len(encoded[i].ids)
                (taken if room > 0 else left).append(i)
            batch, places = pack(shape, [(encoded[i], [0] * len(encoded[i].types)) for i in taken])
            scores = self.model(type(batch)(*(x.to(self.device) for x in batch))).cpu().numpy()
            for i, questions in zip(taken, places):
                if questions is None:
                    left.append(i)
                    continue
                results[i] = [scores[row, question, at:at + len(spans)]
                              for (row, question, at), spans in zip(questions, encoded[i].option_spans)]
            if len(left) == len(waiting):
                raise ValueError(f"{len(left)} records fit no row of {shape}")
            waiting = sorted(left, key=lambda i: -len(encoded[i].ids))
        return results


class Transformers:
    """transformers' model class and processor, fp32, one record at a time; the head is model.py's."""

    def __init__(self, folder, device="cpu"):
        from transformers import AutoProcessor, Qwen3_5ForConditionalGeneration
        self.model = Qwen3_5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).to(device).eval()
        self.processor = AutoProcessor.from_pretrained(folder)
        self.head = export.read(folder).head.to(device).eval()
        self.encoder = encode.Encoder(Tokenizer.from_file(str(folder / "tokenizer.json")), release.PROCESSOR)
        self.device = device

    @torch.no_grad()
    def logits(self, requests):
        return [self.one(with_arrays(request)) for request in requests]

    def one(self, request):
        encoded = self.encoder(request)
        batch, _ = self.without_media(encoded)
        batch = type(batch)(*(x.to(self.device) for x in batch))
        inputs = self.media_inputs(request, encoded)
        hidden = self.model.model(input_ids=batch.ids.long(), attention_mask=torch.ones_like(batch.ids), use_cache=False,
                                  **inputs).last_hidden_state
        scores = self.head(hidden, batch, self.model.lm_head.weight)[0].cpu().numpy()
        sizes = np.cumsum([0] + [len(spans) for spans in encoded.option_spans])
        return [scores[begin:end] for begin, end in zip(sizes, sizes[1:])]

    @staticmethod
    def without_media(encoded):
        """The head needs spans and ids only; the tower's input comes from the processor."""
        bare = encode.Encoded(encoded.ids, encoded.positions, encoded.types, encoded.question_ids, encoded.option_ids,
                              encoded.question_spans, encoded.option_spans, [], np.full_like(encoded.media_rows, -1), encoded.targets)
        return pack(Shape(rows=1, tokens=len(bare.ids), questions=len(bare.types), patch_rows=1,
                          options=sum(map(len, bare.option_spans))), [(bare, [0] * len(bare.types))])

    def media_inputs(self, request, encoded):
        """Pixel values, grids and type codes by the release's own processor, whose ids must be ours."""
        if not encoded.media:
            return {}
        images = [Image.fromarray(image) for image in request["images"]]
        videos = list(request["videos"])
        text = ("<|vision_start|><|image_pad|><|vision_end|>" * len(images)
                + "<|vision_start|><|video_pad|><|vision_end|>" * len(videos) + "\n")
        made = self.processor(text=[text], images=images or None, videos=videos or None, return_tensors="pt",
                              return_mm_token_type_ids=True)
        ids, kinds = made.pop("input_ids")[0], made.pop("mm_token_type_ids")[0]
        made.pop("attention_mask", None)
        begin = len(self.encoder.tokens(encode.PREFIX))
        if encoded.ids[begin:begin + len(ids)].tolist() != ids.tolist():
            raise ValueError("the processor's media tokens differ from ours")
        codes = torch.zeros(1, len(encoded.ids), dtype=torch.long)
        codes[0, begin:begin + len(ids)] = kinds
        return {name: value.to(self.device) for name, value in made.items()} | {"mm_token_type_ids": codes.to(self.device)}


class Native:
    """The treble program, its logits read from JSON lines."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, program

    def logits(self, requests):
        with tempfile.TemporaryDirectory() as scratch:
            lines = pathlib.Path(scratch) / "requests.jsonl"
            lines.write_text("".join(json.dumps(request, ensure_ascii=False) + "\n" for request in requests))
            answered = subprocess.run([self.program, "answer", "--model", self.folder, "--logits", "--format", "json", lines],
                                      check=True, capture_output=True, text=True).stdout.splitlines()
        results = []
        for request, line in zip(requests, answered, strict=True):
            by_question = json.loads(line)["x_logits"]
            results.append([np.asarray(by_question[name], np.float32) for name in request["questions"]])
        return results


def softmax(logits):
    shifted = np.exp(logits - logits.max())
    return shifted / shifted.sum()


def margin(logits):
    """Difference of the two largest logits."""
    first, second = np.sort(logits)[-1:-3:-1] if len(logits) > 1 else (math.inf, 0)
    return first - second
