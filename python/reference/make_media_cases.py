"""Makes tests/data/media: python3 python/reference/make_media_cases.py tests/data

Small picture files of every kind, and what the original stack makes of them and of the clips of tests/data/micro: the
RGB levels of Pillow's convert("RGB"), grids, timestamps and pixel values of transformers' processors (torchvision's
resize, on a CPU). Arrays are kept as a SHA-256 and some of their values. Needs torch, torchvision, transformers 5.17
and Pillow; written with Pillow 13.0 and libjpeg-turbo 3.2.
"""

import hashlib
import io
import json
import struct
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

SOME = 64                                  # values of an array that are kept


# ---- files ----------------------------------------------------------------------------------------------------

def picture(height, width, channels, seed, top=255):
    """Waves and noise, so that neither a swapped axis nor a wrong filter goes unnoticed. uint8 or uint16 [H, W, C]"""
    noise = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (3 + c) + c) * np.cos(y / (5 - c)) for c in range(channels)]
    levels = np.stack(waves, -1) * 0.35 + 0.5 + noise.normal(0, 0.08, (height, width, channels))
    return (np.clip(levels, 0, 1) * top).round().astype(np.uint8 if top < 256 else np.uint16)


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed_rows(samples, depth):
    """Samples [H, W, C] -> PNG rows without filter."""
    height = samples.shape[0]
    flat = samples.reshape(height, -1)
    if depth == 16:
        rows = flat.astype(">u2").view(np.uint8).reshape(height, -1)
    elif depth == 8:
        rows = flat.astype(np.uint8)
    else:
        bits = (flat[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
        rows = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in rows)


def png(samples, depth, color, palette=None, interlaced=False, size=None):
    """A PNG file of any depth and colour type; size replaces what the header says."""
    height, width = size or samples.shape[:2]
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    data = b"".join(packed_rows(part, depth) for y, x, dy, dx in passes
                    if (part := samples[y::dy, x::dx]).size)
    chunks = [png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced)))]
    if palette is not None:
        chunks.append(png_chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
    chunks += [png_chunk(b"IDAT", zlib.compress(data, 9)), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def patched(data, offset, replacement):
    return data[:offset] + replacement + data[offset + len(replacement):]


def image_files():
    """{name: bytes} of readable files."""
    rgb = Image.fromarray(picture(29, 37, 3, 1))
    rgba = Image.fromarray(picture(31, 23, 4, 2), "RGBA")
    gray = Image.fromarray(picture(40, 33, 1, 3)[:, :, 0])
    cmyk = Image.fromarray(picture(35, 41, 4, 4), "CMYK")
    colors = np.random.default_rng(5).integers(0, 256, (256, 3))
    few = picture(21, 27, 1, 6, 15).astype(np.int64)
    wide = picture(19, 25, 4, 7, 65535)
    exif = Image.Exif()
    exif[0x0112] = 6                       # orientation: turn clockwise
    stripes = np.where((np.mgrid[:3000, :4000][0] // 7 + np.mgrid[:3000, :4000][1] // 11) % 3 == 0, 1, 0)[:, :, None]
    frames = [Image.fromarray(picture(24, 30, 3, 20 + i)) for i in range(3)]
    gif_frames = [frame.quantize(31) for frame in frames]
    still_gif = saved(gif_frames[0], "GIF", interlace=False)
    return {
        "rgb8.png": saved(rgb, "PNG"),
        "rgba8.png": saved(rgba, "PNG"),
        "gray8.png": saved(gray, "PNG"),
        "gray_alpha8.png": saved(rgba.convert("LA"), "PNG"),
        "gray1.png": png(few % 2, 1, 0),
        "gray2.png": png(few % 4, 2, 0),
        "gray4.png": png(few, 4, 0),
        "gray16.png": png((wide[:, :, :1].astype(np.int64) // 150), 16, 0),
        "gray_alpha16.png": png(wide[:, :, :2], 16, 4),
        "rgb16.png": png(wide[:, :, :3], 16, 2),
        "rgba16.png": png(wide, 16, 6),
        "palette1.png": png(few % 2, 1, 3, colors[:2]),
        "palette4.png": png(few, 4, 3, colors[:16]),
        "palette8.png": png(few * 16 + few[::-1], 8, 3, colors),
        "palette_short.png": png(few, 4, 3, colors[:5]),
        "palette_transparent.png": saved(rgb.quantize(40), "PNG", transparency=3),
        "interlaced.png": png(picture(29, 37, 3, 8), 8, 2, interlaced=True),
        "interlaced_gray1.png": png(few % 2, 1, 0, interlaced=True),
        "one_pixel.png": png(np.array([[[200, 10, 90]]]), 8, 2),
        "ten_by_2000.png": png(np.tile(picture(10, 50, 1, 9), (1, 40, 1)), 8, 0),
        "large_4000_by_3000.png": png(stripes, 1, 3, colors[40:42]),
        "baseline_420.jpg": saved(rgb, "JPEG", quality=90, subsampling=2),
        "baseline_422.jpg": saved(rgb, "JPEG", quality=80, subsampling=1),
        "baseline_444.jpg": saved(rgb, "JPEG", quality=90, subsampling=0),
        "progressive.jpg": saved(rgb, "JPEG", quality=85, progressive=True),
        "gray.jpg": saved(gray, "JPEG", quality=85),
        "cmyk.jpg": saved(cmyk, "JPEG", quality=90),
        "turned_by_exif.jpg": saved(rgb, "JPEG", quality=90, exif=exif),
        "restarts.jpg": saved(rgb, "JPEG", quality=90, restart_marker_blocks=2),
        "lossy.webp": saved(rgb, "WEBP", quality=80),
        "lossy_alpha.webp": saved(rgba, "WEBP", quality=80),
        "lossless.webp": saved(rgb, "WEBP", lossless=True),
        "lossless_alpha.webp": saved(rgba, "WEBP", lossless=True, exact=True),
        "animated.webp": saved(frames[0], "WEBP", lossless=True, save_all=True, append_images=frames[1:]),
        "still.gif": still_gif,
        "interlaced.gif": saved(gif_frames[0], "GIF", interlace=True),
        "animated.gif": saved(gif_frames[0], "GIF", save_all=True, append_images=gif_frames[1:], duration=100),
        "transparent.gif": saved(gif_frames[1], "GIF", transparency=7, interlace=False),
        "small_on_canvas.gif": patched(still_gif, 6, struct.pack("<HH", 50, 45)),
        "small_on_transparent.gif": patched(saved(gif_frames[1], "GIF", transparency=7, interlace=False), 6,
                                            struct.pack("<HH", 50, 45)),
        "no_palette.gif": still_gif[:10] + bytes([still_gif[10] & 0x78]) + still_gif[11:13] + still_gif[13 + 3 * 32:],
        "short_palette.gif": still_gif[:10] + bytes([still_gif[10] & 0xf8 | 2]) + still_gif[11:13 + 3 * 8]
        + still_gif[13 + 3 * 32:],
        "beyond_canvas.gif": patched(still_gif, 6, struct.pack("<HH", 9, 8)),
    }


def broken_files():
    """{name: bytes} of files that must be refused from their headers."""
    rgb = Image.fromarray(picture(16, 16, 3, 30))
    jpeg = saved(rgb, "JPEG")
    frame = next(at for at in range(len(jpeg)) if jpeg[at:at + 2] == b"\xff\xc0")
    lossless = saved(rgb, "WEBP", lossless=True)
    animated = saved(rgb, "WEBP", lossless=True, save_all=True, append_images=[rgb.rotate(90)])
    gif = saved(rgb.quantize(8), "GIF", interlace=False)
    descriptor = gif.index(b"\x2c\0\0\0\0")
    samples = np.zeros((1, 1, 1), np.int64)
    return {
        "huge.png": png(samples, 8, 0, size=(100000, 100000)),
        "huge_sides.png": png(samples, 8, 0, size=(2 ** 31 - 1, 2 ** 31 - 1)),
        "huge.jpg": patched(jpeg, frame + 5, struct.pack(">HH", 65500, 65500)),
        "huge_lossless.webp": patched(lossless, 21, struct.pack("<I", 0x3fff | 0x3fff << 14)),
        "huge_animated.webp": patched(animated, 24, b"\x1f\x4e\0\x1f\x4e\0"),
        "huge_canvas.gif": patched(gif, 6, struct.pack("<HH", 65535, 65535)),
        "huge_frame.gif": patched(gif, descriptor + 5, struct.pack("<HH", 65535, 65535)),
        "no_frames.gif": gif[:6] + struct.pack("<HHBBB", 16, 16, 0, 0, 0) + b";",
        "no_pixels.png": png(samples, 8, 0, size=(0, 7)),
        "no_palette.png": png(samples, 8, 3),
        "bad_checksum.png": patched(saved(rgb, "PNG"), 60, b"\x55"),
    }


# ---- expectations ----------------------------------------------------------------------------------------------------

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def summary(array):
    """Shape, SHA-256 of the little-endian values, and some of them to see by how much others differ."""
    step = array.size // SOME | 1
    return {"shape": list(array.shape), "sha256": digest(array), "step": step,
            "values": array.reshape(-1)[::step].tolist()}


def image_case(data, processor, **options):
    with Image.open(io.BytesIO(data)) as image:
        rgb = image.convert("RGB")
    values = processor(images=[rgb], return_tensors="np", **options)
    return {"rgb": summary(np.asarray(rgb)), "grid": values["image_grid_thw"][0].tolist(),
            "pixel_values": summary(values["pixel_values"])}


def clip_case(frames, processor, source_fps=None, **options):
    metadata = [{"total_num_frames": len(frames), "fps": source_fps}] if source_fps else None
    given = dict(options, fps=None) if "num_frames" in options else options
    values = processor(videos=[frames], video_metadata=metadata, return_metadata=True, return_tensors="np", **given)
    seen = values["video_metadata"][0]
    indices = list(seen.frames_indices) if seen.frames_indices is not None else list(range(len(frames)))
    seconds = Qwen3VLProcessor._calculate_timestamps(None, [int(index) for index in indices], seen.fps or 24)
    return {"grid": values["video_grid_thw"][0].tolist(), "timestamps": seconds,
            "pixel_values": summary(values["pixel_values_videos"])}


def clip_cases(micro, processor):
    for name, folder, count, source_fps, options in (
            ("unknown rate", "video0", 8, None, {}),
            ("rate 6", "video0", 8, 6, {}),
            ("rate 1.5", "video0", 8, 1.5, {}),
            ("rate 30, 3 frames", "video0", 3, 30, {}),
            ("every frame", "video1", 5, None, {"do_sample_frames": False}),
            ("every frame, rate 10", "video1", 5, 10, {"do_sample_frames": False}),
            ("fps 12", "video0", 8, 24, {"fps": 12}),
            ("fps 60", "video0", 8, 24, {"fps": 60}),
            ("5 of 8", "video0", 8, 24, {"num_frames": 5}),
            ("11 of 8", "video0", 8, 24, {"num_frames": 11}),
            ("few pixels", "video1", 5, 2, {"size": {"shortest_edge": 1024, "longest_edge": 20000}}),
            ("many pixels", "video0", 8, 2, {"size": {"shortest_edge": 300000, "longest_edge": 500000}})):
        frames = np.stack([np.asarray(Image.open(path).convert("RGB"))
                           for path in sorted((micro / "media" / folder).iterdir())[:count]])
        yield {"name": name, "folder": folder, "frames": count, "source_fps": source_fps, "options": options,
               **clip_case(frames, processor, source_fps, **options)}


def main(data):
    warnings.simplefilter("ignore")
    data = Path(data)
    target = data / "media"
    target.mkdir(exist_ok=True)
    config = json.loads((data / "micro/release/processor_config.json").read_text(encoding="utf-8"))
    # The tiny limits keep the cases small; the large picture is read with the release's own.
    limits = {"shortest_edge": 4096, "longest_edge": 65536}
    images = Qwen2VLImageProcessor(**dict(config["image_processor"], size=limits))
    large = Qwen2VLImageProcessor(**config["image_processor"])
    cases = {}
    for name, file in image_files().items():
        (target / name).write_bytes(file)
        is_large = name.startswith(("large", "one_pixel", "ten_by"))
        cases[name] = {"release_limits": is_large, **image_case(file, large if is_large else images)}
    for name, file in broken_files().items():
        (target / name).write_bytes(file)
    clips = list(clip_cases(data / "micro", Qwen3VLVideoProcessor(**config["video_processor"])))
    expected = {"images": cases, "broken": sorted(broken_files()), "clips": clips}
    (target / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
