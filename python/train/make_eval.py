"""Writes the labelled records of data/eval: four held-out sets, calibration and selection.

Usage: python3 make_eval.py [OUT_DIR]
One JSON object a line: {"set", "family", "request", "answers"}. Pictures are PNG data URLs, a clip is {"frames": [data URL]}. No line is
ever trained on: train.py leaves out what it finds here. Together the files stay under 2 MB.
"""

import base64
import io
import json
import pathlib
import sys

from PIL import Image

from records import MEDIA, families, record_of
from records.core import HELD_OUT_ROLES

COUNTS = dict.fromkeys(HELD_OUT_ROLES, 30) | {"calibration": 15, "selection": 15}      # records a family
SEED = "eval 1"
LARGEST = 9_000                            # bytes a line: pictures with noise do not compress, so they are left to --fresh records
LIMIT = 2_000_000                          # bytes of all files


def data_url(image):
    """[H, W, 3] u8 -> a PNG data URL"""
    png = io.BytesIO()
    Image.fromarray(image).save(png, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()


def portable(request):
    """A request whose arrays have become data URLs."""
    request = dict(request)
    if "images" in request:
        request["images"] = [data_url(image) for image in request["images"]]
    if "videos" in request:
        request["videos"] = [{"frames": [data_url(frame) for frame in clip]} for clip in request["videos"]]
    return request


def lines(name, count):
    """Families in turn; of those with media a third as many."""
    for i in range(count):
        for family in families():
            if family in MEDIA and i % 3:
                continue
            tries = (line_of(name, family, i, again) for again in range(100))
            yield next(line for line in tries if len(line) <= LARGEST)


def line_of(name, family, *key):
    request, answers = record_of(family, name, SEED, *key)
    return json.dumps({"set": name, "family": family, "request": portable(request), "answers": answers}, ensure_ascii=False)


def main():
    here = pathlib.Path(__file__).resolve()
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent.parent.parent / "data" / "eval"
    out.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, count in COUNTS.items():
        text = "\n".join(lines(name, count)) + "\n"
        (out / f"{name}.jsonl").write_text(text)
        total += len(text.encode())
        print(f"{name}: {text.count(chr(10))} records, {len(text.encode())} bytes")
    if total > LIMIT:
        sys.exit(f"{total} bytes; {LIMIT} are the limit")


if __name__ == "__main__":
    main()
