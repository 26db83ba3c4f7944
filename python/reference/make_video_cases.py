"""Makes the video files of tests/data/media: python3 python/reference/make_video_cases.py tests/data

Small clips of several containers and codecs, and what transformers' video processor makes of them through torchcodec,
its default decoder: frame counts and rates, grids, timestamps, and some of the pixel values, which depend on the
decoder's conversion to RGB by a level or two. Needs PyAV to write the clips; torch, transformers 5.17 and torchcodec.
"""

import json
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from torchcodec.decoders import VideoDecoder
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

SOME = 64


def frame_of(index, height, width):
    """A slowly changing picture with a bar that moves with each frame: a wrong frame shows."""
    y, x = np.mgrid[:height, :width]
    levels = np.stack([128 + 80 * np.sin(x / (9 + 3 * c) + index / 9) * np.cos(y / (11 - 2 * c)) for c in range(3)], -1)
    bar = (x // 4 == index % (width // 4)) & (y > height // 2)
    levels[bar] = (250, 30, 30) if index % 2 else (20, 220, 240)
    return np.clip(levels, 0, 255).astype(np.uint8)


def write_clip(path, codec, frames, rate, height=48, width=64, color=None, **options):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width, stream.pix_fmt = height, width, options.pop("pix_fmt", "yuv420p")
        stream.options = {key: str(value) for key, value in options.items()}
        if color:
            stream.codec_context.colorspace, stream.codec_context.color_range = color
        for index in range(frames):
            picture = av.VideoFrame.from_ndarray(frame_of(index, height, width), format="rgb24")
            if color:
                picture = picture.reformat(format="yuv420p", dst_colorspace=color[0], dst_color_range=color[1])
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


CLIPS = {
    "h264_25.mp4": dict(codec="libx264", frames=60, rate=25, bf=2, g=12, crf=20),
    "h264_ntsc.mov": dict(codec="libx264", frames=70, rate=Fraction(30000, 1001), g=100, crf=24),
    "h264_bt709.mp4": dict(codec="libx264", frames=12, rate=6, crf=18, color=(1, 1)),
    "h264_full_range.mp4": dict(codec="libx264", frames=12, rate=6, crf=18, color=(5, 2)),
    "h264.mkv": dict(codec="libx264", frames=31, rate=10, g=10, crf=22),
    "h264_slices.mp4": dict(codec="libx264", frames=10, rate=5, slices=3, crf=25),
    "h264_open_groups.mp4": dict(codec="libx264", frames=30, rate=10, g=10, bf=3, crf=28,
                                 **{"x264-params": "open-gop=1"}),
    "hevc.mp4": dict(codec="libx265", frames=20, rate=10, **{"x265-params": "log-level=none"}),
    "mpeg4.mp4": dict(codec="mpeg4", frames=24, rate=12, g=8),
    "vp8.webm": dict(codec="libvpx", frames=20, rate=10, crf=20),
    "vp9.webm": dict(codec="libvpx-vp9", frames=45, rate=15, g=20, crf=30),
    "av1.webm": dict(codec="libsvtav1", frames=10, rate=5, crf=35, preset=10, height=64, width=96),
    "animation.gif": dict(codec="gif", frames=12, rate=10, pix_fmt="rgb8"),
    "two_frames.mp4": dict(codec="libx264", frames=2, rate=1, crf=20),
    "one_frame.mp4": dict(codec="libx264", frames=1, rate=25, crf=20),
}


def summary(array):
    step = array.size // SOME | 1
    return {"shape": list(array.shape), "step": step, "values": array.reshape(-1)[::step].tolist()}


def clip_case(path, processor, **options):
    given = dict(options, fps=None) if "num_frames" in options else options
    values = processor(videos=[str(path)], return_metadata=True, return_tensors="np", **given)
    seen = values["video_metadata"][0]
    return {"file": path.name, "options": options, "num_frames": seen.total_num_frames, "fps": seen.fps,
            "grid": values["video_grid_thw"][0].tolist(),
            "timestamps": Qwen3VLProcessor._calculate_timestamps(None, [int(i) for i in seen.frames_indices], seen.fps),
            "pixel_values": summary(values["pixel_values_videos"])}


def main(data):
    warnings.simplefilter("ignore")
    data = Path(data)
    config = json.loads((data / "micro/release/processor_config.json").read_text(encoding="utf-8"))
    processor = Qwen3VLVideoProcessor(**config["video_processor"])
    clips = []
    for name, clip in CLIPS.items():
        path = data / "media" / name
        write_clip(path, **clip)
        if name == "one_frame.mp4":        # the reference refuses it as well
            decoder = VideoDecoder(str(path), seek_mode="exact")
            clips.append({"file": name, "num_frames": decoder.metadata.num_frames, "fps": decoder.metadata.average_fps})
            continue
        clips.append(clip_case(path, processor))
    first = data / "media" / "h264_25.mp4"
    clips += [clip_case(first, processor, fps=12), clip_case(first, processor, num_frames=7),
              clip_case(first, processor, size={"shortest_edge": 4096, "longest_edge": 16384})]
    (data / "media/expected_videos.json").write_text(json.dumps(clips, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
