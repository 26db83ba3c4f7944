"""Measures, layer by layer, how far hidden states drift from transformers in fp32: the engine's and transformers' own
in bf16. Ours must not drift further.

usage: python3 check_drift.py [--device cuda] [--passes PROGRAM] [--lengths 1,6,10] [--json FILE] RELEASE [RECORDS]

    python3 python/reference/make_release.py --size 27b /dev/shm/27b
    python3 python/reference/check_drift.py --device cuda --passes build/cuda/tests/treble_passes /dev/shm/27b

Needs torch, transformers and safetensors, and no flash-linear-attention, whose kernels transformers would take instead
of its own. RELEASE is a folder of bf16 weights. The requests are made of RECORDS (a .jsonl file; default:
data/eval/templates.jsonl): one for each number in --lengths, whose state is so many records' states. The engine runs
them in bf16 and writes its hidden states to --scratch (27B: 1.3 MB a token). Both passes of transformers go through the
layers together: one layer's weights are on the device at a time, in bf16 and widened, so that 27B needs 10 GB there.

The figure of a layer is RMS(x - fp32) / RMS(fp32) over all rows and tokens of the residual stream after it. The verdict
is on the ratio of ours to transformers' bf16: at most 1 in every layer, plus twice the standard error of the ratio over
the requests, for two equally good ways of rounding differ by chance.
"""

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5 import modeling_qwen3_5 as reference

ROOT = Path(__file__).resolve().parents[2]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", type=Path)
    parser.add_argument("records", type=Path, nargs="?", default=ROOT / "data/eval/templates.jsonl")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--passes", default=ROOT / "build/release/tests/treble_passes", help="the engine's side")
    parser.add_argument("--precision", default="bf16", choices=("bf16", "f32"), help="of the engine")
    parser.add_argument("--kernels", help="of the engine: best or sm80")
    parser.add_argument("--lengths", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 6, 10])
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"), help="folder for the engine's hidden states")
    parser.add_argument("--json", type=Path, help="write all figures there")
    return parser.parse_args()


def make_requests(arguments, path):
    """One request for each length: the questions of one record, about the states of several."""
    lines = [json.loads(line) for line in arguments.records.read_text(encoding="utf-8").splitlines() if line.strip()]
    requests = [line.get("request", line) for line in lines]
    with path.open("w", encoding="utf-8") as file:
        begin = 0
        for length in arguments.lengths:
            part = [requests[(begin + i) % len(requests)] for i in range(length)]
            begin += length
            state = part[0]["state"] if length == 1 else [request["state"] for request in part]
            file.write(json.dumps({"state": state, "questions": part[0]["questions"]}, ensure_ascii=False) + "\n")


def run_engine(arguments, requests, out, *options):
    command = [arguments.passes, "--device", arguments.device, "--precision", arguments.precision, "--hidden",
               *options, arguments.release, out, requests]
    if arguments.kernels:
        command[1:1] = ["--kernels", arguments.kernels]
    subprocess.run(list(map(str, command)), check=True)


class Weights:
    """Tensors of a release folder, by published names."""

    def __init__(self, folder, device):
        index = folder / "model.safetensors.index.json"
        names = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else [
            "model.safetensors"]
        self.files = [safe_open(folder / name, framework="pt", device=device) for name in names]
        self.places = {name: file for file in self.files for name in file.keys()}

    def below(self, prefix):
        return {name.removeprefix(prefix): self.places[name].get_tensor(name)
                for name in self.places if name.startswith(prefix)}


class Stream:
    """The residual streams of all requests, as transformers computes them in one precision."""

    def __init__(self, config, dtype, rows, device):
        self.config, self.dtype = config, dtype
        self.rows = [x.to(dtype) for x in rows]
        rotary = reference.Qwen3_5TextRotaryEmbedding(config).to(device)
        self.rotary = [rotary(x, torch.arange(x.shape[1], device=device).expand(3, 1, -1)) for x in self.rows]

    def load(self, make_module, weights):
        with torch.device("meta"):
            module = make_module()
        module.load_state_dict({name: value.to(self.dtype) for name, value in weights.items()}, assign=True)
        return module.eval()

    def run_layer(self, number, weights):
        layer = self.load(lambda: reference.Qwen3_5DecoderLayer(self.config, number), weights)
        # In fp32 the plain products: the fused kernels may use narrower ones inside.
        backends = [SDPBackend.MATH] if self.dtype == torch.float32 else [
            SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        with sdpa_kernel(backends):
            for i, x in enumerate(self.rows):
                y = layer(x, position_embeddings=self.rotary[i], attention_mask=None)
                self.rows[i] = y[0] if isinstance(y, tuple) else y

    def final_norm(self, weights):
        norm = self.load(lambda: reference.Qwen3_5RMSNorm(self.config.hidden_size, eps=self.config.rms_norm_eps),
                         weights)
        return [norm(x) for x in self.rows]


class Drift:
    """Sums of one stage: squares of the fp32 rows, and of what ours and transformers' bf16 rows are off."""

    def __init__(self, stage):
        self.stage = stage
        self.requests = []  # (squares, ours, theirs)

    def add(self, exact, ours, theirs):
        exact, ours, theirs = (x.reshape(exact.shape).double() for x in (exact, ours, theirs))
        self.requests.append((float(exact.square().sum()), float((ours - exact).square().sum()),
                              float((theirs - exact).square().sum())))

    def figures(self):
        squares, ours, theirs = (sum(column) for column in zip(*self.requests))
        ratios = [math.sqrt(o / t) if t else 1.0 if o == 0 else math.inf for _, o, t in self.requests]
        mean = sum(ratios) / len(ratios)
        spread = math.sqrt(sum((r - mean) ** 2 for r in ratios) / max(1, len(ratios) - 1))
        return dict(stage=self.stage, ours=math.sqrt(ours / squares), transformers=math.sqrt(theirs / squares),
                    ratio=math.sqrt(ours / theirs) if theirs else 1.0 if ours == 0 else math.inf, ratios=ratios,
                    noise=2 * spread / math.sqrt(len(ratios)))


@torch.inference_mode()
def measure(arguments, config, dump):
    """Yields the figures of each stage, in the order of computation."""
    device = arguments.device
    weights = Weights(arguments.release, device)
    count = len(arguments.lengths)
    table = weights.below("model.language_model.embed_tokens.")["weight"]
    embedded = [table[dump.get_tensor(f"{i}.input_ids").long().to(device)][None] for i in range(count)]
    del table
    exact, theirs = (Stream(config, dtype, embedded, device) for dtype in (torch.float32, torch.bfloat16))

    def compare(stage, exact_rows, their_rows):
        drift = Drift(stage)
        for i in range(count):
            drift.add(exact_rows[i], dump.get_tensor(f"{i}.{stage}").to(device), their_rows[i])
        return drift.figures()

    embed = compare("embed", exact.rows, theirs.rows)
    if embed["ours"] > 0:
        sys.exit("check_drift: the engine's embeddings are not the release's rows; do program and release belong "
                 "together?")
    for number in range(config.num_hidden_layers):
        of_layer = weights.below(f"model.language_model.layers.{number}.")
        theirs.run_layer(number, of_layer)
        exact.run_layer(number, of_layer)
        yield compare(f"layer{number:02}.out", exact.rows, theirs.rows)
    norm = weights.below("model.language_model.norm.")
    yield compare("hidden", exact.final_norm(norm), theirs.final_norm(norm))


def print_table(stages, step):
    print(f"{'stage':<12} {'ours':>10} {'transformers':>13} {'ratio':>7} {'noise':>7}")
    for number, stage in enumerate(stages):
        if (number + 1) % step == 0 or number + 2 >= len(stages):
            print(f"{stage['stage']:<12} {stage['ours']:>10.3e} {stage['transformers']:>13.3e} {stage['ratio']:>7.3f} "
                  f"{stage['noise']:>7.3f}")


def main():
    arguments = parse_arguments()
    if importlib.util.find_spec("fla"):
        sys.exit("check_drift: flash-linear-attention can be imported, and transformers would take its kernels in fp32 "
                 "too; run without it")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config = Qwen3_5TextConfig(**json.loads((arguments.release / "config.json").read_text())["text_config"])
    config._attn_implementation = "sdpa"
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        requests, out = Path(name) / "requests.jsonl", Path(name) / "hidden.safetensors"
        make_requests(arguments, requests)
        run_engine(arguments, requests, out, "--repeats", "2")
        with safe_open(out, framework="pt") as dump:
            tokens = [dump.get_slice(f"{i}.input_ids").get_shape()[0] for i in range(len(arguments.lengths))]
            repeat_error = max(float(dump.get_tensor(f"{i}.repeat_error")) for i in range(len(arguments.lengths)))
            stages = list(measure(arguments, config, dump))

    failed = [stage["stage"] for stage in stages if not stage["ratio"] <= 1 + stage["noise"]]
    above = sum(stage["ratio"] > 1 for stage in stages)
    if arguments.json:
        report = dict(release=str(arguments.release), device=arguments.device, precision=arguments.precision,
                      tokens=tokens, repeat_error=repeat_error, stages=stages, failed=failed)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    print_table(stages, max(1, len(stages) // 16))
    worst = max(stages, key=lambda stage: stage["ratio"])
    print(f"requests of {', '.join(map(str, tokens))} tokens; a repeated pass moves a logit by {repeat_error:.1e}")
    print(f"worst: {worst['stage']}, ratio {worst['ratio']:.3f}; {above} of {len(stages)} stages above 1, "
          f"{len(failed)} beyond the noise: {'FAILED' if failed else 'passed'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
