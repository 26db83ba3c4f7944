"""Compares media.py with the processor of transformers and torchvision on random pictures and clips.

    python3 python/train/check_media.py [--cases 200]

Pixel values, grids, timestamps and positions must be equal, bit for bit. Needs torch, torchvision and transformers; without
them it says so and checks nothing. torchvision's uint8 resize needs a CPU with AVX2 (or an Arm one).
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import media

SIDES = [(96, 96), (256, 256), (97, 131), (255, 255), (32, 32), (2, 2), (33, 100), (16, 16), (720, 400), (300, 20)]


def load_processors(config):
    """The two processors that transformers builds from a processor_config.json."""
    from transformers import AutoImageProcessor, AutoVideoProcessor
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "processor_config.json").write_text(json.dumps(config))
        return AutoImageProcessor.from_pretrained(folder), AutoVideoProcessor.from_pretrained(folder)


def picture(random, *shape):
    """Noise, or blocks with sharp edges, so that both small and overshooting sums occur."""
    if random.random() < 0.5:
        return random.integers(0, 256, shape, np.uint8)
    coarse = random.integers(0, 2, (*shape[:-3], shape[-3] // 7 + 1, shape[-2] // 7 + 1, 3), np.uint8) * 255
    return np.ascontiguousarray(coarse.repeat(7, -3).repeat(7, -2)[..., :shape[-3], :shape[-2], :])


def differences(name, ours, values, grid):
    values, grid = values.numpy(), tuple(grid[0].tolist())
    if ours.grid != grid:
        return [f"{name}: grid {ours.grid}, theirs {grid}"]
    if not np.array_equal(ours.patches, values):
        wrong = ours.patches != values
        return [f"{name}: {wrong.sum()} of {wrong.size} values differ, by at most {np.abs(ours.patches - values).max()}"]
    return []


def check_images(config, processor, sides, random):
    from PIL import Image
    found = []
    for height, width in sides:
        image = picture(random, height, width, 3)
        theirs = processor(images=[Image.fromarray(image)], return_tensors="pt")
        found += differences(f"image {height}x{width}", media.image_media(image, config["image_processor"]),
                             theirs["pixel_values"], theirs["image_grid_thw"])
    return found


def check_videos(config, processor, sides, random):
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    found = []
    for height, width in sides:
        frames = picture(random, int(random.integers(2, 60)), height, width, 3)
        name = f"video {len(frames)}x{height}x{width}"
        theirs = processor(videos=[frames], return_tensors="pt", return_metadata=True)
        ours = media.video_media(frames, config["video_processor"])
        found += differences(name, ours, theirs["pixel_values_videos"], theirs["video_grid_thw"])
        metadata = theirs["video_metadata"][0]
        seconds = Qwen3VLProcessor._calculate_timestamps(None, metadata.frames_indices, metadata.fps or media.UNKNOWN_FPS, 2)
        if ours.seconds != seconds:
            found.append(f"{name}: timestamps {ours.seconds}, theirs {seconds}")
    return found


def check_positions(cases, random):
    """Random token types in the order of the prompt: pictures, then clips."""
    import torch
    from transformers import Qwen3_5Config
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5Model
    model = SimpleNamespace(config=Qwen3_5Config())
    model.get_vision_position_ids = lambda *args, **kwargs: Qwen3_5Model.get_vision_position_ids(model, *args, **kwargs)
    found = []
    for case in range(cases):
        items, types = [], [0] * int(random.integers(1, 9))
        for kind, count in (("image", random.integers(0, 3)), ("video", random.integers(0, 3))):
            for _ in range(count):
                t, h, w = (1 if kind == "image" else int(random.integers(1, 4))), *(2 * random.integers(1, 7, 2)).tolist()
                items.append(SimpleNamespace(kind=kind, grid=(t, h, w)))
                types += ([1 if kind == "image" else 2] * (h * w // 4) + [0] * int(random.integers(1, 9))) * t
        grids = [torch.tensor([item.grid for item in items if item.kind == kind]) for kind in ("image", "video")]
        theirs, _ = Qwen3_5Model.get_rope_index(
            model, torch.zeros(1, len(types), dtype=torch.long), torch.tensor([types]),
            *(grid if len(grid) else None for grid in grids), attention_mask=torch.ones(1, len(types), dtype=torch.long))
        if not np.array_equal(media.rope_positions(types, items), theirs[:, 0].numpy()):
            found.append(f"positions, case {case}: grids {[item.grid for item in items]}")
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=200)
    cases = options.parse_args().cases
    try:
        import torchvision                                      # noqa: F401  transformers falls back to Pillow without it
        import transformers
    except ImportError as error:
        print(f"check_media: skipped, {error.name} is not installed")
        return 0
    transformers.logging.set_verbosity_error()

    random = np.random.default_rng(7)
    sides = SIDES + [tuple(random.integers(20, 300, 2).tolist()) for _ in range(cases)]
    found = []
    for config in (media.processor_config(), media.processor_config((65536, 16777216), (4096, 25165824))):
        images, videos = load_processors(config)
        found += check_images(config, images, sides, random)
        found += check_videos(config, videos, sides[:len(sides) // 4], random)
    found += check_positions(cases, random)
    print("\n".join(found) or f"check_media: {cases} cases equal, transformers {transformers.__version__}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
