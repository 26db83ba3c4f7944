"""Times the preparing of a 12-megapixel JPEG beside torchvision, one core each, in alternating rounds.

    python3 bench/compare_media.py [--bench build/release/bench/treble_media_bench] [--rounds 7] [--python PATH]

--python names an interpreter that has torch, torchvision and transformers (bench/compare_transformers.py says how to
make one). Its side is torchvision.io.decode_jpeg and transformers' Qwen2VLImageProcessor, whose result is the same.
Processor time on both sides, so that other programs of the machine do not count. Prints one JSON line per round, then
medians and their ratio.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEER_PROGRAM = """
import json, sys, time
import numpy as np, torch
from torchvision.io import decode_jpeg, ImageReadMode
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
torch.set_num_threads(1)
processor = Qwen2VLImageProcessor(size={"shortest_edge": 65536, "longest_edge": 16777216}, patch_size=16,
                                  image_mean=[0.5] * 3, image_std=[0.5] * 3)
data = torch.from_numpy(np.fromfile(sys.argv[1], np.uint8))
times = []
for run in range(int(sys.argv[2]) + 1):
    begin = time.process_time()
    processor(images=[decode_jpeg(data, mode=ImageReadMode.RGB)], return_tensors="pt")
    if run:
        times.append((time.process_time() - begin) * 1e3)
print(json.dumps(sorted(times)[len(times) // 2]))
"""

PICTURE_PROGRAM = """
import sys
import numpy as np
from PIL import Image
y, x = np.mgrid[:3000, :4000]
noise = np.random.default_rng(0).normal(0, 6, (3000, 4000, 3))
levels = np.stack([np.sin(x / (40 + 9 * c)) * np.cos(y / (60 - 7 * c)) for c in range(3)], -1) * 90 + 128 + noise
Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8)).save(sys.argv[1], quality=90, subsampling=2)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/treble_media_bench")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        picture = str(Path(folder) / "picture.jpg")
        subprocess.run([args.python, "-c", PICTURE_PROGRAM, picture], check=True)
        pinned = ["taskset", "-c", "0"]
        rounds = []
        for _ in range(args.rounds):
            ours = subprocess.run([*pinned, args.bench, picture, "3"], check=True, capture_output=True, text=True)
            steps = {line["step"]: line["median_ms"] for line in map(json.loads, ours.stdout.splitlines())}
            peer = subprocess.run([*pinned, args.python, "-c", PEER_PROGRAM, picture, "3"], check=True,
                                  capture_output=True, text=True)
            rounds.append({"treble_ms": steps["prepare"], "of_which_decoding_ms": steps["decode"],
                           "torchvision_ms": json.loads(peer.stdout)})
            print(json.dumps(rounds[-1]), flush=True)
    for name in rounds[0]:
        values = sorted(round[name] for round in rounds)
        print(f"{name:22} median {statistics.median(values):8.1f}  ({values[0]:.1f} to {values[-1]:.1f})")
    print(f"ratio {statistics.median(r['treble_ms'] / r['torchvision_ms'] for r in rounds):.2f} (at most 1.5 wanted)")


if __name__ == "__main__":
    main()
