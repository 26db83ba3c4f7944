"""Makes the test vocabulary: python3 python/tools/trim_tokenizer.py FOLDER VECTORS.json TARGET

FOLDER holds a full tokenizer.json, VECTORS.json a list of {"text": ..., "ids": ...}. TARGET gets a tokenizer.json in
which every text has the same ids: the single bytes, every token that some substring of a text's bytes spells, their
merges in the same order, and all added tokens. Ids stay, so they have gaps. A merge that could act on a text acts as
in the full file.
"""

import json
import shutil
import sys
import unicodedata
from pathlib import Path

from tokenizer_from_tiktoken import byte_alphabet


def main(source, vectors, target):
    source, target = Path(source), Path(target)
    spec = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    texts = [vector["text"] for vector in json.loads(Path(vectors).read_text(encoding="utf-8"))]
    alphabet = byte_alphabet()
    vocab, merges = spec["model"]["vocab"], spec["model"]["merges"]
    longest = max(map(len, vocab))
    reachable = set(alphabet)
    for text in texts:
        spelled = "".join(alphabet[byte] for byte in unicodedata.normalize("NFC", text).encode())
        for begin in range(len(spelled)):
            reachable.update(spelled[begin:end] for end in range(begin + 1, min(begin + longest, len(spelled)) + 1))
    spec["model"]["vocab"] = {token: id for token, id in vocab.items() if token in reachable}
    spec["model"]["merges"] = [merge for merge in merges if "".join(merge) in reachable]

    target.mkdir(parents=True, exist_ok=True)
    (target / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    shutil.copyfile(source / "tokenizer_config.json", target / "tokenizer_config.json")
    print(len(spec["model"]["vocab"]), "tokens,", len(spec["model"]["merges"]), "merges")


if __name__ == "__main__":
    main(*sys.argv[1:])
