"""Compares our tokenizer with the `tokenizers` library on random and hostile text, with both split patterns:

    python3 python/tools/compare_tokenizer.py build/release/bench/treble_tokenizer_bench FOLDER [--count N] [--seed S]

FOLDER holds a tokenizer.json, e.g. made by tokenizer_from_tiktoken.py. Two things are set apart, counted and listed:
- The library normalises with the tables of an old Unicode, in which marks assigned since do not combine. We follow the
  standard. Random texts do without these characters.
- Every single code point is tried in a context that shows its class. Characters assigned after the version that one of
  the two knows may differ; those that Python's Unicode knows may not.
Needs PyPI's tokenizers.
"""

import argparse
import json
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, normalizers
from tokenizer_from_tiktoken import ADDED, PATTERNS

SPACES = [chr(c) for c in (*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                           0x205F, 0x3000)]
RANGES = {
    "ascii": (0x20, 0x7F), "latin": (0xA0, 0x250), "greek": (0x370, 0x400), "cyrillic": (0x400, 0x530),
    "hebrew": (0x591, 0x5F5), "arabic": (0x600, 0x700), "devanagari": (0x900, 0x980), "bengali": (0x980, 0xA00),
    "tamil": (0xB80, 0xC00), "thai": (0xE00, 0xE60), "tibetan": (0xF00, 0xFE0), "jamo": (0x1100, 0x1200),
    "vietnamese": (0x1E00, 0x1F00), "greek extended": (0x1F00, 0x2000), "punctuation": (0x2000, 0x2070),
    "symbols": (0x2100, 0x2800), "kana": (0x3040, 0x3100), "han": (0x4E00, 0x9FA6), "hangul": (0xAC00, 0xD7A4),
    "compatibility": (0xF900, 0xFAFF), "presentation": (0xFB00, 0xFE10), "emoji": (0x1F300, 0x1F700),
    "mathematical": (0x1D400, 0x1D800), "musical": (0x1D100, 0x1D200), "marks": (0x300, 0x370),
}


def is_known(c):
    return unicodedata.category(chr(c)) not in ("Cn", "Cs")


def normalises_by_old_tables(c):
    """Whether the library differs from the standard on this character, alone or among marks of other classes."""
    old, texts = normalizers.NFC(), [unicodedata.normalize("NFD", chr(c))]
    if unicodedata.combining(chr(c)):
        texts += [f"e\u0345{chr(c)}", f"e{chr(c)}\u0334"]
    return any(old.normalize_str(text) != unicodedata.normalize("NFC", text) for text in texts)


KNOWN = [c for c in range(0x110000) if is_known(c) and unicodedata.category(chr(c)) != "Co"]
OLD = {c for c in KNOWN if normalises_by_old_tables(c)}
ANY = [chr(c) for c in KNOWN if c not in OLD]
ALPHABETS = {name: [c for c in ANY if first <= ord(c) < end] for name, (first, end) in RANGES.items()}
MARKS = [c for c in ANY if unicodedata.combining(c)]
NUMBERS = [c for c in ANY if unicodedata.category(c)[0] == "N"]
CONTRACTIONS = ["'s", "'T", "'re", "'Ve", "'m", "'LL", "'d", "'\u017f", "'l", "'r", "'v", "''", "'", "\u2019s"]
WORDS = """the Hello world don't tokenizer naïve Straße функция слово हिन्दी भाषा বাংলা العربية עברית ภาษาไทย 中文测试 こんにちは
한국어 Việt 1234 3.14 foo_bar(x); {"a":1} https://example.com/?q=1 \U0001F469\u200d\U0001F4BB \u2b50\ufe0f
1\ufe0f\u20e3 e\u0301
\u1112\u1161\u11ab o\u0323\u0302 \u0958 \u2126 \u212b""".split()


def random_text(rng):
    """One text: a few stretches, each from one kind of character."""
    def stretch():
        kind = rng.randrange(12)
        length = min(int(rng.expovariate(0.25)) + 1, 40)
        if kind < 3:
            return "".join(rng.choices(ALPHABETS[rng.choice(list(ALPHABETS))], k=length))
        if kind == 3:
            return "".join(rng.choices(SPACES, k=min(length, 6)))
        if kind == 4:
            return rng.choice([" ", "  ", "\n", "\r\n", " \n ", "\t", "\n\n", "    "])
        if kind == 5:
            return rng.choice(CONTRACTIONS)
        if kind == 6:
            return "".join(rng.choices(MARKS, k=min(length, 8)))
        if kind == 7:
            return "".join(rng.choices(NUMBERS, k=min(length, 5)))
        if kind == 8:
            token = rng.choice(ADDED)
            return token if rng.random() < 0.6 else token[:rng.randrange(1, len(token))]
        if kind == 9:
            return "".join(rng.choices(ANY, k=length))
        word = " ".join(rng.choices(WORDS, k=min(length, 6)))
        return unicodedata.normalize("NFD", word) if kind == 10 else word
    return "".join(stretch() for _ in range(rng.randrange(1, 9)))


def long_text(rng):
    """One text of one or two units repeated: one long piece, or very many short ones."""
    unit = lambda: random_text(rng)[:rng.randrange(1, 9)]
    return (unit() * rng.randrange(1, 600) + unit() * rng.randrange(1, 600))[:6000]


def our_ids(program, folder, pattern, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    out = subprocess.run([program, "--pattern", pattern, "--ids", folder], input=lines, capture_output=True, text=True,
                         check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    texts = [random_text(rng) for _ in range(args.count)]
    texts += [long_text(rng) for _ in range(args.count // 100)]
    code_points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    # LF, blank, LF become one token, unless a symbol before them takes the first LF.
    around = [f"{chr(c)}\n \na {chr(c)}a'{chr(c)}s" for c in code_points]
    print(f"{len(OLD)} characters left out of random texts:", " ".join(f"{c:X}" for c in sorted(OLD)))

    failed = False
    spec = json.loads((Path(args.folder) / "tokenizer.json").read_text(encoding="utf-8"))
    for pattern, regex in PATTERNS.items():
        spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = regex
        library = Tokenizer.from_str(json.dumps(spec))
        library_ids = lambda batch: [e.ids for e in library.encode_batch_fast(batch, add_special_tokens=False)]

        ours, theirs = our_ids(args.program, args.folder, pattern, texts), library_ids(texts)
        unequal = [i for i in range(len(texts)) if ours[i] != theirs[i]]
        print(f"{pattern}: {len(texts)} texts, {sum(map(len, texts))} characters, {sum(map(len, theirs))} ids; "
              f"{len(unequal)} texts differ")
        for i in unequal[:5]:
            print("  ", ascii(texts[i])[:300], ours[i][:40], theirs[i][:40], sep="\n   ")

        ours, theirs = our_ids(args.program, args.folder, pattern, around), library_ids(around)
        unequal_points = [c for c, a, b in zip(code_points, ours, theirs) if a != b]
        known = [c for c in unequal_points if is_known(c)]
        print(f"{pattern}: {len(code_points)} code points; {len(unequal_points)} differ, {len(known)} of them known to "
              f"Unicode {unicodedata.unidata_version}:", " ".join(f"{c:X}" for c in (known or unequal_points)[:50]))
        failed |= bool(unequal or known)
    sys.exit(failed)


if __name__ == "__main__":
    main()
