"""Pictures and clips as the vision tower reads them: patches, grids, timestamps and M-RoPE positions.

Bit for bit what the release's processor (transformers with torchvision on a CPU) makes of uint8 RGB arrays; check_media.py
compares the two. A clip is an array without metadata, so the processor takes it for 24 frames a second and samples it down to
2 a second, never below 4 frames: a clip of 4 to 48 frames always becomes 4. Pixels are handled as planes [C, H, W], because a
patch stores one channel after the other.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, floor, sqrt

import numpy as np

UNKNOWN_FPS = 24.0                         # what the processor assumes of a clip without metadata
MOST_BITS = 22
TAP_LIMIT = 1 << 15                        # torchvision's resize keeps its taps in int16
OUTPUTS_PER_BAND = 16                      # per matrix product: wide enough for BLAS, narrow enough for a band


def processor_config(image_pixels=(16384, 65536), video_pixels=(4096, 131072)):
    """processor_config.json of the tiny release. The two limits count pixels, of an image and of a whole clip."""
    def block(kind, pixels, **extra):
        return {"do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5] * 3,
                "image_std": [0.5] * 3, "merge_size": 2, "patch_size": 16, "resample": 3, "rescale_factor": 1 / 255,
                "size": {"shortest_edge": pixels[0], "longest_edge": pixels[1]}, "temporal_patch_size": 2, **kind, **extra}
    return {"processor_class": "Qwen3VLProcessor",
            "image_processor": block({"image_processor_type": "Qwen2VLImageProcessor"}, image_pixels),
            "video_processor": block({"video_processor_type": "Qwen3VLVideoProcessor"}, video_pixels, do_sample_frames=True, fps=2,
                                     min_frames=4, max_frames=768, max_video_tokens=768, return_metadata=False)}


@dataclass
class Media:
    """One picture or clip. Row r of patches is a 16 x 16 patch of two frames; four rows in turn make one token."""
    kind: str                              # "image" or "video"
    patches: np.ndarray                    # [t*h*w, 1536] float32
    grid: tuple                            # (t, h, w) in patches
    seconds: list = field(default_factory=list)       # a video's: one timestamp per temporal patch

    @property
    def tokens(self):
        return len(self.patches) // 4


# ---- sizes -----------------------------------------------------------------------------------------------------------

def fitted_size(height, width, config, frames=None):
    """(height, width) after resizing; frames is None for an image, else how many frames share the budget of pixels."""
    factor = config["patch_size"] * config["merge_size"]
    least, most = config["size"]["shortest_edge"], config["size"]["longest_edge"]
    counted = 1
    if frames is not None:
        step = config["temporal_patch_size"]
        if frames < step:
            raise ValueError(f"media: a clip of {frames} frames; {step} are the fewest")
        counted = round(frames / step) * step
        if min(height, width) < factor:
            grow = max(factor / height, factor / width)
            height, width = int(height * grow), int(width * grow)
    if max(height, width) / min(height, width) > 200:
        raise ValueError(f"media: {height} x {width}; one side may be at most 200 times the other")

    area = (frames or 1) * height * width
    fitted = round(height / factor) * factor, round(width / factor) * factor
    if counted * fitted[0] * fitted[1] > most:
        shrink = sqrt(area / most)
        return tuple(max(factor, floor(side / shrink / factor) * factor) for side in (height, width))
    if counted * fitted[0] * fitted[1] < least:
        grow = sqrt(least / area)
        return tuple(ceil(side * grow / factor) * factor for side in (height, width))
    return fitted


def sampled_frames(total, config, fps=None):
    """Indices of the frames the processor keeps."""
    if not config["do_sample_frames"]:
        return np.arange(total)
    count = int(total / (fps or UNKNOWN_FPS) * config["fps"])
    count = min(max(count, config["min_frames"]), config["max_frames"], total)
    return np.linspace(0, total - 1, count).round().astype(int)


# ---- the resize filter -----------------------------------------------------------------------------------------------

def bicubic(t):
    t = np.abs(t)
    near = (1.5 * t - 2.5) * t * t + 1
    far = -0.5 * (((t - 5) * t + 8) * t - 4)
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


@lru_cache(maxsize=4096)
def tap_blocks(size_in, size_out):
    """The filter of one axis as bands [(outputs, inputs, taps)]: two slices and float64 [inputs, outputs].

    A tap is an integer of at most 15 bits over a power of two, and a pixel has 8 bits: the products and sums of one output
    are exact in float64, whatever their order.
    """
    scale = size_in / size_out
    stretch = max(scale, 1.0)
    centers = (np.arange(size_out) + 0.5) * scale
    first = np.maximum((centers - 2 * stretch + 0.5).astype(int), 0)
    last = np.minimum((centers + 2 * stretch + 0.5).astype(int), size_in)

    pixels = np.arange(size_in)[:, None]
    weights = bicubic((pixels - centers + 0.5) * (1 / stretch))
    weights[(pixels < first) | (pixels >= last)] = 0.0
    weights /= weights.cumsum(0)[-1]       # cumsum adds one after the other, as the original does
    bits = 0
    while bits < MOST_BITS and int(0.5 + weights.max() * (2 << bits)) < TAP_LIMIT:
        bits += 1
    taps = np.trunc(weights * (1 << bits) + np.copysign(0.5, weights)) / (1 << bits)

    blocks = []
    for begin in range(0, size_out, OUTPUTS_PER_BAND):
        end = min(begin + OUTPUTS_PER_BAND, size_out)
        inputs = slice(first[begin], last[end - 1])
        blocks.append((slice(begin, end), inputs, np.ascontiguousarray(taps[inputs, begin:end])))
    return blocks


def rounded(sums):
    """Filter sums -> whole levels 0..255, halves upwards, in place."""
    sums += 0.5
    np.floor(sums, out=sums)
    return np.clip(sums, 0.0, 255.0, out=sums)


def resized(planes, height, width):
    """uint8 [C, H, W] -> whole levels [C, height, width]: along rows, then along columns; a pass that changes nothing is left out."""
    count, height_in, width_in = planes.shape
    if width_in != width:
        rows = planes.reshape(-1, width_in).astype(np.float64)
        out = np.empty((len(rows), width))
        for outputs, inputs, taps in tap_blocks(width_in, width):
            np.matmul(rows[:, inputs], taps, out=out[:, outputs])
        planes = rounded(out).reshape(count, height_in, width)
    if height_in != height:
        planes = planes.astype(np.float64, copy=False)
        out = np.empty((count, height, width))
        for outputs, inputs, taps in tap_blocks(height_in, height):
            np.matmul(taps.T, planes[:, inputs], out=out[:, outputs])
        planes = rounded(out)
    return planes


# ---- patches ---------------------------------------------------------------------------------------------------------

def normalised(planes, config):
    """Levels [F*3, H, W] -> float32; mean and deviation are scaled to levels first, as the fused step does."""
    to_level = np.float32(1 / config["rescale_factor"])
    mean, deviation = (np.asarray(config[key], np.float32) * to_level for key in ("image_mean", "image_std"))
    values = planes.reshape(-1, 3, *planes.shape[1:]).astype(np.float32)
    values -= mean[:, None, None]
    values /= deviation[:, None, None]
    return values


def patched(frames, config):
    """float32 [F, 3, H, W] -> (patches, grid). The last frame is repeated until the temporal patches are full."""
    patch, merge, step = config["patch_size"], config["merge_size"], config["temporal_patch_size"]
    count, channels, height, width = frames.shape
    t, h, w = -(-count // step), height // patch, width // patch
    patches = np.empty((t, h // merge, w // merge, merge, merge, channels, step, patch, patch), np.float32)
    blocks = frames.reshape(count, channels, h // merge, merge, patch, w // merge, merge, patch).transpose(0, 2, 5, 3, 6, 1, 4, 7)
    for slot in range(t * step):
        patches[slot // step, ..., slot % step, :, :] = blocks[min(slot, count - 1)]
    return patches.reshape(t * h * w, -1), (t, h, w)


def planes_of(frames):
    """uint8 [F, H, W, 3] -> [F*3, H, W]"""
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2)).reshape(-1, *frames.shape[1:3])


def image_media(image, config):
    """uint8 [H, W, 3] and the config's image_processor -> Media. The picture fills both frames of its temporal patch."""
    planes = resized(planes_of(image[None]), *fitted_size(*image.shape[:2], config))
    return Media("image", *patched(normalised(planes, config), config))


def video_media(frames, config, fps=None):
    """uint8 [F, H, W, 3] and the config's video_processor -> Media. fps: the clip's own rate, when it is known."""
    indices = sampled_frames(len(frames), config, fps)
    size = fitted_size(*frames.shape[1:3], config, frames=len(indices))
    planes = resized(planes_of(frames[indices]), *size)
    patches, grid = patched(normalised(planes, config), config)
    step = config["temporal_patch_size"]
    times = np.pad(indices, (0, -len(indices) % step), "edge").reshape(-1, step) / (fps or UNKNOWN_FPS)
    return Media("video", patches, grid, ((times[:, 0] + times[:, -1]) / 2).tolist())


def request_media(request, config):
    """The arrays of request["images"] and request["videos"] -> [Media], images first, as the prompt has them."""
    return ([image_media(image, config["image_processor"]) for image in request.get("images", ())]
            + [video_media(clip, config["video_processor"]) for clip in request.get("videos", ())])


# ---- positions -------------------------------------------------------------------------------------------------------

def rope_positions(token_types, media, merge=2):
    """Token types [T] (0 text, 1 image, 2 video) and the Media in prompt order -> int64 [3, T]: time, row, column.

    Text counts on along all three axes. A run of media tokens is one picture or one temporal patch of a clip: all its tokens
    share the time, rows and columns count from it, and the text behind it goes on past the longer side.
    """
    token_types = np.asarray(token_types)
    grids = {1: [], 2: []}
    for item in media:
        grids[1 if item.kind == "image" else 2] += [item.grid[1:]] * item.grid[0]
    grids = {kind: iter(sizes) for kind, sizes in grids.items()}

    positions = np.empty((3, len(token_types)), np.int64)
    borders = [0, *(np.flatnonzero(np.diff(token_types)) + 1), len(token_types)] if len(token_types) else []
    current = 0
    for begin, end in zip(borders, borders[1:]):
        kind = token_types[begin]
        if kind == 0:
            positions[:, begin:end] = current + np.arange(end - begin)
            current += end - begin
            continue
        rows, columns = (side // merge for side in next(grids[kind]))
        if end - begin != rows * columns:
            raise ValueError(f"media: {end - begin} tokens in a run of type {kind}; its grid has {rows * columns}")
        positions[0, begin:end] = current
        positions[1, begin:end] = current + np.repeat(np.arange(rows), columns)
        positions[2, begin:end] = current + np.tile(np.arange(columns), rows)
        current += max(rows, columns)
    return positions
