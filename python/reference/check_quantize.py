"""Holds what `treble quantize` writes against the libraries whose formats it writes.

usage: python3 check_quantize.py [--treble PROGRAM] [--linear PROGRAM] [RELEASE]

    python3 -m venv venv && venv/bin/pip install -r python/reference/requirements.txt
    ./test && venv/bin/python python/reference/check_quantize.py

RELEASE is a small BF16 release; the one in tests/data is the default. A copy of it gets weights that are hard to
quantise too: a row of zeros, one large outlier, equal numbers. What is checked, on a CPU:

NF4 against bitsandbytes, for every converted module
  - codes, tables and the text of the quant_state are equal byte for byte, but for `nested_offset`, the mean of the
    scales: torch sums in another order on every machine, so it may differ by a few units in the last place;
  - given that mean, 8-bit scales and nested scales are equal byte for byte to those of the library's own definition
    (its "default" kernel, which is also what its GPU kernel computes). Its CPU kernel looks codes up in a table of
    65,536 entries instead: bytes that differ from it must be within an entry's width of a border.
both directions
  - transformers loads our release with no key missing, unexpected or mismatched, and runs it; every weight that
    bitsandbytes decodes is the definition's, in bf16;
  - treble reads a release that transformers and bitsandbytes saved, and answers as with our own.
INT8 against comfy-kitchen's eager code
  - codes equal but for a few on the border between two, because its rotation is a matrix product with sums in another
    order; scales within rounding;
  - int8_linear on our file, and our Linear on it in the same mode, differ by no more than a flipped input code and the
    two bf16 roundings of its output allow.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bitsandbytes.functional as bnb
import numpy as np
import torch
import transformers
from comfy_kitchen.backends.eager import quantization as kitchen
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
STATE = ".weight.quant_state.bitsandbytes__nf4"
ROTATION_GROUP = 256


class Checks:
    """Counts what holds and remembers what does not."""

    def __init__(self):
        self.failed = []

    def check(self, holds, what):
        if not holds:
            self.failed.append(what)
            print(f"FAILED  {what}")

    def report(self, text):
        print(f"        {text}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treble", type=Path, default=ROOT / "build/release/apps/cli/treble")
    parser.add_argument("--linear", type=Path, default=ROOT / "build/release/tests/treble_linear")
    parser.add_argument("release", type=Path, nargs="?", default=ROOT / "tests/data/micro/release")
    return parser.parse_args()


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def make_source(release, folder):
    """A copy of the release with some weights that are hard to quantise."""
    shutil.copytree(release, folder, symlinks=False)
    tensors = load_file(folder / "model.safetensors")
    projections = [name for name in tensors if re.search(r"layers\.\d+\.mlp\.\w+_proj\.weight$", name)]
    tensors[projections[0]][3] = 0
    tensors[projections[1]][2, 5] = 900
    tensors[projections[2]][:] = 0.25
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors


def bytes_of(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def ulps(a, b):
    """Units in the last place between two fp32 numbers of the same sign."""
    return abs(int(np.float32(a).view(np.int32)) - int(np.float32(b).view(np.int32)))


def default_kernel(name, *arguments):
    """The device-neutral definition of one of the library's operations, whatever this machine has kernels for."""
    operation = getattr(torch.ops.bitsandbytes, name).default
    return operation._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *arguments)


def nf4_modules(tensors):
    return sorted(name.removesuffix(STATE) for name in tensors if name.endswith(STATE))


def check_nf4(checks, source, ours):
    flipped = scales = different_means = 0
    for module in nf4_modules(ours):
        weight = module + ".weight"
        state = json.loads(bytes(ours[module + STATE].tolist()))
        codes, theirs = bnb.quantize_4bit(source[weight], blocksize=64, compress_statistics=True, quant_type="nf4")
        parts = theirs.as_dict(packed=True)
        checks.check(bytes_of(ours[weight]) == bytes_of(codes), f"{weight}: codes")
        for part in ("quant_map", "nested_quant_map"):
            checks.check(bytes_of(ours[f"{weight}.{part}"]) == bytes_of(parts[part]), f"{weight}: {part}")

        text, theirs_text = (bytes(t.tolist()).decode() for t in (ours[module + STATE], parts[STATE[8:]]))
        checks.check(re.sub(r"[-\de.]+}$", "}", text) == re.sub(r"[-\de.]+}$", "}", theirs_text), f"{weight}: {text}")
        offset = torch.tensor(state["nested_offset"], dtype=torch.float32)
        different_means += offset != theirs.offset
        checks.check(ulps(offset, theirs.offset) <= 8, f"{weight}: the mean {offset} is not {theirs.offset}")

        _, single = bnb.quantize_4bit(source[weight], blocksize=64, compress_statistics=False, quant_type="nf4")
        centred = single.absmax - offset
        table = parts["nested_quant_map"]
        expected, expected_absmax = default_kernel("quantize_blockwise", centred, table, 256)
        checks.check(bytes_of(ours[weight + ".absmax"]) == bytes_of(expected), f"{weight}: absmax")
        checks.check(bytes_of(ours[weight + ".nested_absmax"]) == bytes_of(expected_absmax), f"{weight}: nested_absmax")

        looked_up, nested = bnb.quantize_blockwise(centred, blocksize=256)
        span = nested.absmax.repeat_interleave(256)[: centred.numel()]
        differ = (ours[weight + ".absmax"] != looked_up) & (span > 0)  # where all scales are equal, any code will do
        normalised = centred / span
        borders = (table[:-1] + table[1:]) / 2
        distance = (normalised[differ, None] - borders).abs().amin(1) if differ.any() else torch.zeros(1)
        checks.check(float(distance.max()) <= 1 / 65536, f"{weight}: an 8-bit scale is not the library's")
        flipped += int(differ.sum())
        scales += differ.numel()
    checks.report(f"nf4: {len(nf4_modules(ours))} modules; the CPU kernel's table gives {flipped} of {scales} 8-bit "
                  f"scales another code; {int(different_means)} means end in other digits")


def decode(ours, module):
    """The definition: fp32 products, one rounding to the stored dtype."""
    weight = module + ".weight"
    state = json.loads(bytes(ours[module + STATE].tolist()))
    packed = ours[weight].flatten()
    codes = torch.stack([packed >> 4, packed & 15], 1).flatten().long()
    absmax = ours[weight + ".nested_quant_map"][ours[weight + ".absmax"].long()]
    absmax = absmax * ours[weight + ".nested_absmax"].repeat_interleave(256)[: absmax.numel()]
    absmax = absmax + torch.tensor(state["nested_offset"], dtype=torch.float32)
    count = state["shape"][0] * state["shape"][1]
    values = ours[weight + ".quant_map"][codes[:count]] * absmax.repeat_interleave(state["blocksize"])[:count]
    return values.to(getattr(torch, state["dtype"])).reshape(state["shape"])


def load(folder, **options):
    return transformers.Qwen3_5ForConditionalGeneration.from_pretrained(
        folder, dtype=torch.bfloat16, output_loading_info=True, **options)


def check_loads(checks, folder, ours):
    model, info = load(folder)
    for kind, keys in info.items():
        checks.check(not keys, f"transformers: {kind} {sorted(keys)[:3]}")
    linears = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    quantised = {name for name, module in linears.items() if type(module).__name__ == "Linear4bit"}
    checks.check(quantised == set(nf4_modules(ours)), "transformers: other modules are 4-bit than those of the file")
    for name in sorted(quantised):
        weight = linears[name].weight
        decoded = bnb.dequantize_4bit(weight.data, weight.quant_state).to(torch.bfloat16)
        checks.check(torch.equal(decoded, decode(ours, name)), f"{name}: bitsandbytes decodes it otherwise")
    with torch.no_grad():
        hidden = model.model.language_model(input_ids=torch.arange(1, 40)[None]).last_hidden_state
    checks.check(bool(torch.isfinite(hidden).all()), "transformers: the hidden states are not finite")
    checks.report(f"transformers loads {len(quantised)} 4-bit Linears of our release and runs it")


def answers(treble, folder, request):
    return json.loads(run(treble, "answer", "--precision", "f32", "--logits", "--model", folder, request))


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, float) else []


def check_reads_theirs(checks, arguments, folder, source, ours):
    config = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                             bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16,
                                             llm_int8_skip_modules=["lm_head"])
    model, _ = load(source, quantization_config=config)
    model.save_pretrained(folder)
    for path in source.iterdir():
        if not (folder / path.name).exists():
            shutil.copy(path, folder / path.name)
    mine = numbers(answers(arguments.treble, ours, ROOT / "examples/request.json"))
    theirs = numbers(answers(arguments.treble, folder, ROOT / "examples/request.json"))
    difference = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
    # Codes are equal; 8-bit scales that differ by one step move a few blocks of 64 weights by under 1 %.
    checks.check(difference < 0.02, f"answers with a release that bitsandbytes saved differ by {difference}")
    checks.report(f"treble reads a release that transformers saved; answers differ by at most {difference:.1e}")


def check_int8(checks, arguments, folder, source, ours, scratch, group):
    flipped = codes = 0
    largest = 0.0
    for name in sorted(ours):
        if ours[name].dtype != torch.int8:
            continue
        module = name.removesuffix(".weight")
        weight = source[name].float()
        if group > 1:
            expected, scale = kitchen.quantize_int8_convrot_weight(weight, group)
        else:
            expected, scale = kitchen.quantize_int8_rowwise(weight)
        scales = ours[module + ".weight_scale"]
        differ = ours[name] != expected
        # Sums in another order: a few units in the last place of the row's largest weight.
        checks.check(float(((scales - scale).abs() / scale).max()) < 1e-6, f"{module}: scales")
        if differ.any():
            checks.check(int((ours[name].int() - expected.int()).abs().max()) == 1, f"{module}: codes far apart")
        flipped += int(differ.sum())
        codes += differ.numel()

        torch.manual_seed(1)
        x = torch.randn(40, weight.shape[1]).to(torch.bfloat16)
        theirs = kitchen.int8_linear(x, ours[name], scales, None, torch.bfloat16, convrot=group > 1,
                                     convrot_groupsize=group).float()
        save_file({"x": x}, scratch / "x.safetensors")
        canonical = module.replace("model.language_model.", "text.")
        run(arguments.linear, folder, canonical, scratch / "x.safetensors", scratch / "y.safetensors",
            "comfy-fallback")
        y = load_file(scratch / "y.safetensors")["y"].float()
        # One unit of a bf16 output, and an input code that falls to the other side of a border by the order of sums.
        rounding = 2 ** -8 * theirs.abs()
        code = (x.float().norm(dim=1, keepdim=True) / 64) * (scales.flatten() * 127)
        largest = max(largest, float(((y - theirs).abs() / theirs.norm(dim=1, keepdim=True)).max()))
        checks.check(bool(((y - theirs).abs() <= rounding + code).all()), f"{module}: outputs of the Linear")
    checks.check(flipped <= 1e-4 * codes, f"int8: {flipped} of {codes} codes differ")
    checks.report(f"int8, groups of {group}: {flipped} of {codes} codes differ; outputs of a Linear differ by at most "
                  f"{largest:.1e} of their row's norm")


def main():
    arguments = parse_arguments()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        source = make_source(arguments.release, scratch / "bf16")
        for form in ("nf4", "int8-convrot", "int8"):
            run(arguments.treble, "quantize", "--format", form, "--out", scratch / form, scratch / "bf16")
        nf4 = load_file(scratch / "nf4/model.safetensors")
        check_nf4(checks, source, nf4)
        check_loads(checks, scratch / "nf4", nf4)
        check_reads_theirs(checks, arguments, scratch / "theirs", scratch / "bf16", scratch / "nf4")
        for form, group in (("int8-convrot", ROTATION_GROUP), ("int8", 1)):
            check_int8(checks, arguments, scratch / form, source, load_file(scratch / form / "model.safetensors"),
                       scratch, group)
    if checks.failed:
        sys.exit(f"{len(checks.failed)} checks failed")
    print("All checks hold.")


if __name__ == "__main__":
    main()
