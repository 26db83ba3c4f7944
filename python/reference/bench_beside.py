"""Times Treble beside the reference stack on one GPU, one after another in one call.

usage: python3 bench_beside.py [--treble PROGRAM] [--sizes 27b,9b] [--weights bf16,int8-convrot,nf4]
                               [--tokens 298,1502,2270] [--batch 16x1502] [--json FILE]

Several sides, each a process of its own that ends before the next begins, on random weights of the same shapes, bf16
where --weights names no others:
  reference   transformers' text model, backbone alone, with flash-linear-attention where it can be imported (which the
              output says); one record, or a batch of equal ones
  gemm        the backbone's matrix products alone, as torch.matmul (cuBLAS): those that share an input as one
  treble      `treble bench`: backbone and joint head, 8 questions of 4 options; once for each of --weights
Times are of whole calls on the host's clock, the device idle before and after: medians of --repeats warm runs with the
10th and 90th percentile. The comparison favours the reference, which answers nothing. --skip leaves sides out.

Needs torch and transformers; flash-linear-attention and fla-core on PYTHONPATH for the reference that people run.
"""

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from pathlib import Path

from model_sizes import products, text_shape

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("reference", "gemm")
QUESTIONS = 8
WARM_RUNS = 3


def parse_arguments():
    numbers = lambda text: [int(n) for n in text.split(",")]
    names = lambda text: [name for name in text.split(",") if name]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treble", default=ROOT / "build/cuda/apps/cli/treble")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try this script")
    parser.add_argument("--sizes", type=names, default=["27b", "9b"])
    parser.add_argument("--weights", type=names, default=["bf16"], help="of treble: bf16, int8-convrot, int8, nf4")
    parser.add_argument("--tokens", type=numbers, default=[298, 1502, 2270], help="of single records")
    parser.add_argument("--batch", type=lambda text: tuple(int(n) for n in text.split("x")), default=(16, 1502),
                        metavar="RECORDSxTOKENS", help="0x0: none")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--batch-repeats", type=int, default=20)
    parser.add_argument("--skip", type=names, default=[], help=f"of {', '.join(PEERS)}")
    parser.add_argument("--treble-options", type=str.split, default=[], help="more options of `treble bench`")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--side", choices=PEERS, help=argparse.SUPPRESS)  # what a process of our own measures
    return parser.parse_args()


def cases(arguments):
    """(records, tokens of each, timed runs)."""
    listed = [(1, tokens, arguments.repeats) for tokens in arguments.tokens]
    records, tokens = arguments.batch
    return listed + ([(records, tokens, arguments.batch_repeats)] if records else [])


def quantile(values, share):
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1) + 0.5)]


def figures(samples_ms):
    return dict(median=quantile(samples_ms, 0.5), p10=quantile(samples_ms, 0.1), p90=quantile(samples_ms, 0.9),
                runs=len(samples_ms))


def time_calls(call, synchronize, runs):
    """Milliseconds of each call."""
    samples = []
    for run in range(WARM_RUNS + runs):
        synchronize()
        begin = time.perf_counter()
        call()
        synchronize()
        if run >= WARM_RUNS:
            samples.append((time.perf_counter() - begin) * 1e3)
    return samples


def measure_reference(arguments, size):
    import torch
    import transformers
    from transformers import Qwen3_5TextConfig, Qwen3_5TextModel

    torch.manual_seed(0)
    synchronize = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(arguments.device):
        model = Qwen3_5TextModel(Qwen3_5TextConfig(**text_shape(size))).eval()
    torch.set_default_dtype(torch.float32)
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "transformers", "fla")}
    print(json.dumps(dict(versions=versions, parameters=sum(p.numel() for p in model.parameters()))), flush=True)
    with torch.inference_mode():
        for records, tokens, runs in cases(arguments):
            ids = torch.randint(0, model.config.vocab_size, (records, tokens), device=arguments.device)
            mask = torch.ones_like(ids)
            samples = time_calls(lambda: model(input_ids=ids, attention_mask=mask, use_cache=False), synchronize, runs)
            print(json.dumps(dict(records=records, tokens=tokens, ms=figures(samples))), flush=True)


def measure_products(arguments, size):
    import torch

    synchronize = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None
    for records, tokens, runs in cases(arguments):
        rows, total = records * tokens, dict(median=0.0, p10=0.0, p90=0.0, runs=runs)
        flops = 0
        for _, inputs, outputs, layers in products(text_shape(size)):
            x = torch.randn(rows, inputs, device=arguments.device, dtype=torch.bfloat16)
            # Two weights in turn, too large for the cache together; a run is several products, so that the launch of
            # one hides behind the one before, as in a pass.
            weights = [torch.randn(outputs, inputs, device=arguments.device, dtype=torch.bfloat16) for _ in range(2)]
            count = 4
            one = figures([ms / count for ms in time_calls(
                lambda: [torch.matmul(x, weights[i % 2].t()) for i in range(count)], synchronize, runs)])
            for name in ("median", "p10", "p90"):
                total[name] += one[name] * layers
            flops += 2 * rows * inputs * outputs * layers
        print(json.dumps(dict(records=records, tokens=tokens, ms=total, tflops=flops / total["median"] / 1e9)),
              flush=True)


def measure_treble(arguments, size, weights):
    """Lines as the other sides print them."""
    lines = []
    for records, tokens, runs in cases(arguments):
        command = [arguments.treble, "bench", "--device", arguments.device, "--precision", "bf16", "--synthetic", size,
                   "--tokens", tokens, "--batch", records, "--questions", QUESTIONS, "--options", 4, "--repeats", runs,
                   "--weights", "as-stored" if weights == "bf16" else weights, "--json", *arguments.treble_options]
        longest = max(arguments.tokens) if records == 1 else tokens
        if arguments.device == "cuda":
            command += ["--pass-tokens", records * math.ceil(longest / 64) * 64]
        if records == 1:  # all lengths in one process
            command[command.index("--tokens") + 1] = ",".join(map(str, arguments.tokens))
        if records == 1 and tokens != arguments.tokens[0]:
            continue
        done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
        report = json.loads(done.stdout)
        lines.append(dict(device=report["device"], weight_bytes=report["weight_bytes"],
                          activation_bytes=report["activation_bytes"]))
        lengths = arguments.tokens if records == 1 else [tokens]
        for row, length in zip(report["rows"], lengths, strict=True):
            lines.append(dict(records=records, tokens=length, ms=row["total_ms"] | dict(runs=runs),
                              backbone_ms=row["backbone_ms"], head_ms=row["head_ms"]))
    return lines


def run_side(arguments, side, size):
    """The lines of one side, or one with the error."""
    try:
        if side not in PEERS:
            return measure_treble(arguments, size, side.removeprefix("treble "))
        command = [sys.executable, __file__, "--side", side, "--sizes", size, "--device", arguments.device, "--tokens",
                   ",".join(map(str, arguments.tokens)), "--batch", "x".join(map(str, arguments.batch)), "--repeats",
                   str(arguments.repeats), "--batch-repeats", str(arguments.batch_repeats)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    except (subprocess.CalledProcessError, OSError) as error:
        return [dict(error=str(error)[:300])]


def describe(line):
    if not line:
        return "-"
    ms = line["ms"]
    return f"{ms['median']:.2f} ({ms['p10']:.2f} to {ms['p90']:.2f})"


def print_table(results, arguments):
    print(f"\nmilliseconds: median (p10 to p90); how many times as long the reference's backbone and the products "
          f"alone take; decisions at {QUESTIONS} questions a record")
    print(f"{'size':<6} {'tokens':>9} {'side':<20} {'ms':>27} {'reference':>9} {'products':>8} {'dec/s':>7}")
    for size, sides in results.items():
        for records, tokens, _ in cases(arguments):
            found = {side: next((line for line in lines if (line.get("records"), line.get("tokens")) ==
                                 (records, tokens)), None) for side, lines in sides.items()}
            medians = {side: line["ms"]["median"] for side, line in found.items() if line}
            name = f"{records}x{tokens}" if records > 1 else str(tokens)
            for side, line in found.items():
                ratios = [f"{medians[peer] / medians[side]:.2f}x" if peer in medians and side in medians else "-"
                          for peer in PEERS]
                decisions = "-"
                if side not in PEERS and side in medians:
                    decisions = f"{records * QUESTIONS / medians[side] * 1e3:.1f}"
                print(f"{size:<6} {name:>9} {side:<20} {describe(line):>27} {ratios[0]:>9} {ratios[1]:>8} "
                      f"{decisions:>7}")
        for side, lines in sides.items():
            for line in lines:
                if "error" in line:
                    print(f"{size} {side}: FAILED: {line['error']}")


def main():
    arguments = parse_arguments()
    if arguments.side:
        measure = {"reference": measure_reference, "gemm": measure_products}[arguments.side]
        return measure(arguments, arguments.sizes[0])
    if not importlib.util.find_spec("fla"):
        print("bench_beside: flash-linear-attention is missing; the reference runs its plain kernels", flush=True)
    sides = [peer for peer in PEERS if peer not in arguments.skip]
    sides += [f"treble {weights}" for weights in arguments.weights]
    results, failed = {}, False
    for size in arguments.sizes:
        results[size] = {}
        for side in sides:
            begin = time.monotonic()
            lines = results[size][side] = run_side(arguments, side, size)
            failed = failed or any("error" in line for line in lines)
            for line in lines:
                print(json.dumps(dict(size=size, side=side) | line), flush=True)
            print(f"{size} {side}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
            if arguments.json:  # what is measured is kept, whatever comes
                arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    print_table(results, arguments)
    sys.exit(failed)


if __name__ == "__main__":
    main()
