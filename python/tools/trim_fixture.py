"""Makes tests/data/micro from the full fixtures: python3 python/tools/trim_fixture.py FIXTURE_DIR tests/data/micro
and those of quantised releases beside it:        python3 python/tools/trim_fixture.py FIXTURE_DIR tests/data/micro-nf4

Keeps the release, the requests with their media, the expected answers, digests and some of the expected pixel values,
and, of traced stages and hidden states, every 8th row: a wrong layer shows in any, and the full trace is 14 MB. Of a
quantised release it keeps the text model and the expected answers, and of the hidden states one request's; files that
are those of micro become links to them. Needs NumPy.
"""

import hashlib
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

ROW_STEP = 8
FIRST_ROWS = 2  # of hidden states, where no INT8 code has flipped yet
HIDDEN = ("card_example", "image_and_videos")  # requests whose hidden states are kept
SOME = 64  # pixel values that are kept of an array
NUMPY_TYPES = {"F32": "<f4", "I64": "<i8", "BF16": "<u2", "U8": "u1", "I8": "i1"}


def read_safetensors(path):
    data = Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        yield name, entry["dtype"], np.frombuffer(data[start + begin:start + end], np.dtype(
            NUMPY_TYPES[entry["dtype"]])).reshape(entry["shape"])


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, dtype, array in tensors:
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, _, array in tensors))


def summary(values):
    """Of fp32 values, which are exact: shape, SHA-256, and some of them to see by how much others differ."""
    step = values.size // SOME | 1
    return {"shape": list(values.shape), "sha256": hashlib.sha256(values.tobytes()).hexdigest(), "step": step,
            "values": values.reshape(-1)[::step].tolist()}


def every_eighth(array):
    return np.ascontiguousarray(array[::ROW_STEP])


def trim_quantised(source, target):
    release = target / "release"
    release.mkdir(parents=True, exist_ok=True)
    for file in (source / "release").iterdir():
        shared = target.parent / "micro" / "release" / file.name
        if file.name == "model.safetensors":
            write_safetensors(release / file.name, [t for t in read_safetensors(file) if ".visual." not in t[0]])
        elif shared.exists() and shared.read_bytes() == file.read_bytes():
            (release / file.name).unlink(missing_ok=True)
            (release / file.name).symlink_to(Path("../../micro/release") / file.name)
        else:
            shutil.copyfile(file, release / file.name)
    for file in source.glob("expected_*.json"):
        shutil.copyfile(file, target / file.name)
    for file in source.glob("expected_*.safetensors"):
        hidden = next(array for name, _, array in read_safetensors(file) if name == "card_example.hidden")
        write_safetensors(target / file.name, [("card_example.hidden", "F32", every_eighth(hidden)),
                                               ("card_example.first_hidden", "F32", hidden[:FIRST_ROWS])])


def main(source, target):
    source, target = Path(source), Path(target)
    if not (source / "requests.json").exists():
        return trim_quantised(source, target)
    target.mkdir(parents=True, exist_ok=True)
    for folder in ("release", "media"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for name in ("requests.json", "expected_fp32.json", "expected_bf16.json"):
        shutil.copyfile(source / name, target / name)
    write_safetensors(target / "expected_fp32.safetensors",
                      [(name, dtype, every_eighth(array) if name.endswith(".hidden") else array)
                       for name, dtype, array in read_safetensors(source / "expected_fp32.safetensors")
                       if name.endswith("_grid_thw") or name.endswith(".hidden") and name.split(".")[0] in HIDDEN])
    pixels = {name: summary(array) for name, _, array in read_safetensors(source / "expected_fp32.safetensors")
              if ".pixel_values" in name}
    (target / "pixel_values.json").write_text(json.dumps(pixels, indent=1) + "\n", encoding="utf-8")
    write_safetensors(target / "trace_fp32.safetensors",
                      [(name, dtype, every_eighth(array))
                       for name, dtype, array in read_safetensors(source / "trace_fp32.safetensors")
                       if name.startswith("card_example.") and not name.endswith(".mlp") or ".vision." in name])


if __name__ == "__main__":
    main(*sys.argv[1:])
