"""Writes a release folder of a real size with random bf16 weights, for timing, memory and comparison with transformers.

usage: python3 make_release.py [--size 27b] [--tokenizer RELEASE] [--no-vision] [--seed 0] [--device cuda|cpu] OUT

SIZE is 27b, 9b, 0.8b or LAYERSxHIDDEN. Tokenizer, processor and special ids are those of RELEASE, a small release
(default: models/tiny); the rows of its ids are the first ones of the vocabulary tables, which are as large as the
published ones (--vocab changes that). Weights are drawn on the GPU if there is one and written in pieces by several
threads, so no more than the pieces in flight is held beside the files; each piece has a seed of its own, so the same
arguments give the same files. Needs torch and transformers.

Matrices are normal with variance 1 / in_features, which keeps activations near one. Decay rates reach from heads that
remember hundreds of tokens to heads that forget at once, and norms of queries and keys are large enough that attention
is more than a mean: what a trained model has, and what numerical errors grow on.
"""

import argparse
import concurrent.futures
import json
import math
import os
import shutil
import struct
import sys
import threading
import time
from pathlib import Path

import torch
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

from model_sizes import HEAD, TOWERS, text_shape

ROOT = Path(__file__).resolve().parents[2]
SHARD_BYTES = 4 << 30
PIECE_ELEMENTS = 1 << 26  # 128 MiB
WRITERS = 8
# The first byte of a shard's data must be aligned for every element type.
HEADER_ALIGNMENT = 64


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="27b")
    parser.add_argument("--tokenizer", type=Path, default=ROOT / "models/tiny")
    parser.add_argument("--vocab", type=int, help="rows of the vocabulary tables (default: as published)")
    parser.add_argument("--no-vision", action="store_true", help="without a vision tower")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def make_config(arguments):
    """config.json: that of the tokenizer's release with other shapes."""
    config = json.loads((arguments.tokenizer / "config.json").read_text())
    smallest = config["text_config"]["vocab_size"]
    text = config["text_config"] | text_shape(arguments.size)
    if arguments.vocab:
        text["vocab_size"] = arguments.vocab
    if text["vocab_size"] < smallest:
        sys.exit(f"make_release: --vocab {text['vocab_size']} is less than the {smallest} ids of {arguments.tokenizer}")
    text["layer_types"] = ["linear_attention" if (i + 1) % 4 else "full_attention"
                           for i in range(text["num_hidden_layers"])]
    config["text_config"] = text
    if arguments.no_vision:
        config.pop("vision_config", None)
    else:
        tower = TOWERS.get(arguments.size, {})  # a small model keeps the tower of the tokenizer's release
        config["vision_config"] |= tower | dict(out_hidden_size=text["hidden_size"])
    return config


def backbone_shapes(config):
    """Published name -> shape, as transformers has them."""
    with torch.device("meta"):
        model = Qwen3_5ForConditionalGeneration(Qwen3_5Config.from_dict(config))
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()
            if "vision_config" in config or ".visual." not in name}


def head_shapes(hidden):
    width, inner = HEAD["width"], HEAD["feedforward"]
    shapes = {"type_embedding.weight": (3, width)}
    for scalar in ("prior_logit_scale", "joint_logit_scale", "residual_gate"):
        shapes[scalar] = ()

    def norm(name, size=width):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (size,)

    def linear(name, out_features, in_features):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out_features, in_features), (out_features,)

    def attention(name):
        shapes[f"{name}.in_proj_weight"], shapes[f"{name}.in_proj_bias"] = (3 * width, width), (3 * width,)
        linear(f"{name}.out_proj", width, width)

    norm("hidden_norm", hidden)
    for name in ("memory", "question", "option_question", "global", "option_context", "option_lexical"):
        shapes[f"{name}_projection.weight"] = (width, hidden)
    for i in range(HEAD["routing_layers"]):
        layer = f"evidence_layers.{i}"
        for name in ("query_norm", "memory_norm", "feedforward_norm"):
            norm(f"{layer}.{name}")
        attention(f"{layer}.attention")
        linear(f"{layer}.feedforward.0", inner, width)
        linear(f"{layer}.feedforward.3", width, inner)
    for name in ("option_summary_norm", "field_norm", "option_norm"):
        norm(name)
    for i in range(HEAD["layers"]):
        layer = f"layers.{i}"
        for name in ("norm1", "norm2", "norm3"):
            norm(f"{layer}.{name}")
        attention(f"{layer}.self_attn")
        attention(f"{layer}.multihead_attn")
        linear(f"{layer}.linear1", inner, width)
        linear(f"{layer}.linear2", width, inner)
    linear("residual_scorer.0", width, 4 * width)
    linear("residual_scorer.3", 1, width)
    return shapes


def fill(values, name, shape, generator):
    """Draws a piece of the tensor: values [n], bf16."""
    module, _, parameter = name.rpartition(".")
    leaf = module.rpartition(".")[2]
    if name.endswith("A_log"):  # rates from 0.01 to 16 a unit of softplus, evenly in the logarithm
        values.uniform_(math.log(0.01), math.log(16), generator=generator)
    elif name.endswith("dt_bias"):
        values.uniform_(-1, 1, generator=generator)
    elif len(shape) > 1:
        values.normal_(0, 1 / math.sqrt(math.prod(shape[1:])), generator=generator)
    elif leaf in ("q_norm", "k_norm"):  # zero-centred: gains from 1 to 2
        values.uniform_(0, 1, generator=generator)
    else:
        values.uniform_(-0.1, 0.1, generator=generator)
        # Of the text model's norms, only that of the delta net's output is not zero-centred; of the others, all.
        is_text = name.startswith("model.language_model.")
        if parameter == "weight" and "norm" in leaf and (not is_text or "linear_attn.norm" in name):
            values += 1


class Writer:
    """Pieces of tensors into files, from several threads."""

    def __init__(self, device, seed):
        self.device = torch.device(device)
        self.seed = seed
        self.staging = threading.local()

    def write_piece(self, descriptor, position, name, shape, number, count):
        generator = torch.Generator(self.device).manual_seed(hash_seed(self.seed, name, number))
        values = torch.empty(count, dtype=torch.bfloat16, device=self.device)
        fill(values, name, shape, generator)
        if self.device.type == "cuda":
            if not hasattr(self.staging, "values"):
                self.staging.values = torch.empty(PIECE_ELEMENTS, dtype=torch.bfloat16, pin_memory=True)
            values = self.staging.values[:count].copy_(values)
        data = memoryview(values.view(torch.uint8).numpy())
        while data:
            written = os.pwrite(descriptor, data, position)
            data, position = data[written:], position + written

    def write_files(self, files):
        """files: path -> {name: shape}."""
        descriptors, jobs = [], []
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            for path, shapes in files.items():
                descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
                descriptors.append(descriptor)
                header, offsets = make_header(shapes)
                os.pwrite(descriptor, header, 0)
                for name, shape in shapes.items():
                    total = math.prod(shape)
                    for number, begin in enumerate(range(0, total, PIECE_ELEMENTS)):
                        jobs.append(pool.submit(self.write_piece, descriptor, len(header) + offsets[name] + 2 * begin,
                                                name, shape, number, min(PIECE_ELEMENTS, total - begin)))
            for job in jobs:
                job.result()
        for descriptor in descriptors:
            os.close(descriptor)


def hash_seed(seed, name, number):
    """A seed for a piece, the same in every process."""
    value = 0xcbf29ce484222325  # FNV-1a
    for byte in f"{seed} {name} {number}".encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return value >> 1


def make_header(shapes):
    """The bytes before the data of a safetensors file of bf16 tensors, and where each tensor's begin after them."""
    entries, offsets, end = {"__metadata__": {"format": "pt"}}, {}, 0
    for name, shape in shapes.items():
        offsets[name], end = end, end + 2 * math.prod(shape)
        entries[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offsets[name], end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % HEADER_ALIGNMENT)
    return struct.pack("<Q", len(text)) + text, offsets


def split_shards(shapes):
    """In the order of loading, at most SHARD_BYTES each but for a larger tensor."""
    shards, size = [{}], 0
    for name, shape in shapes.items():
        size += 2 * math.prod(shape)
        if size > SHARD_BYTES and shards[-1]:
            shards.append({})
            size = 2 * math.prod(shape)
        shards[-1][name] = shape
    return {f"model-{i:05}-of-{len(shards):05}.safetensors": shard for i, shard in enumerate(shards, 1)}


def main():
    arguments = parse_arguments()
    try:
        config = make_config(arguments)
    except ValueError as error:
        sys.exit(f"make_release: {error}")
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    backbone, head = backbone_shapes(config), head_shapes(config["text_config"]["hidden_size"])
    total = sum(2 * math.prod(shape) for shape in (*backbone.values(), *head.values()))
    free = shutil.disk_usage(out).free
    if total > free:
        sys.exit(f"make_release: {out} has {free / 1e9:.1f} GB free, the release takes {total / 1e9:.1f}; "
                 "give another folder, or as root mount -o remount,size=90G /dev/shm")
    begin = time.monotonic()
    shards = split_shards(backbone)
    Writer(arguments.device, arguments.seed).write_files(
        {out / name: shapes for name, shapes in (shards | {"joint_head.safetensors": head}).items()})
    seconds = time.monotonic() - begin

    for name in ("tokenizer.json", "tokenizer_config.json", "processor_config.json"):
        shutil.copyfile(arguments.tokenizer / name, out / name)
    index = {"metadata": {"total_size": sum(2 * math.prod(shape) for shape in backbone.values())},
             "weight_map": {name: shard for shard, shapes in shards.items() for name in shapes}}
    head_config = dict(hidden_size=config["text_config"]["hidden_size"]) | HEAD
    for name, content in (("config.json", config), ("model.safetensors.index.json", index),
                          ("joint_head_config.json", head_config)):
        (out / name).write_text(json.dumps(content, indent=2) + "\n")
    print(f"{out}: {len(backbone) + len(head)} tensors, {total / 1e9:.2f} GB in {seconds:.1f} s, "
          f"{total / 1e9 / seconds:.2f} GB/s, on {arguments.device}")


if __name__ == "__main__":
    main()
