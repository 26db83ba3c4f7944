"""Times Treble beside the reference stack (transformers on PyTorch) on this machine's processor.

    python3 bench/compare_transformers.py [--treble build/release/apps/cli/treble] [--size 0.8b] [--tokens 298,1502]
                                          [--precision bf16] [--threads N] [--rounds 3] [--python PATH | --venv DIR]

The peer is installed from PyPI into a virtual environment outside the tree (--venv, default
~/.cache/treble/peer-venv): torch and transformers at the versions below. --python names an interpreter that has them.
Both sides run random weights of the same shapes with the same number of threads, one record, in alternating rounds.
Treble is timed whole: backbone and joint head; the peer only its backbone, so the comparison favours the peer.
Prints one JSON line per figure, then a table of medians with their spread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PEER = ("torch==2.11.0", "transformers==5.17.0", "numpy")

# As published in the config.json of each size.
SIZES = {
    "0.8b": dict(hidden_size=1024, intermediate_size=3584, num_hidden_layers=24, num_attention_heads=8,
                 num_key_value_heads=2, linear_num_value_heads=16),
    "2b": dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=24, num_attention_heads=8,
               num_key_value_heads=2, linear_num_value_heads=16),
    "4b": dict(hidden_size=2560, intermediate_size=9216, num_hidden_layers=32, num_attention_heads=16,
               num_key_value_heads=4, linear_num_value_heads=32),
}

PEER_PROGRAM = """
import json, statistics, sys, time
import torch
from transformers import Qwen3_5TextConfig, Qwen3_5TextModel
options = json.loads(sys.argv[1])
torch.set_num_threads(options["threads"])
torch.manual_seed(0)
torch.set_default_dtype({"bf16": torch.bfloat16, "f32": torch.float32}[options["precision"]])
net = Qwen3_5TextModel(Qwen3_5TextConfig(vocab_size=248320, head_dim=256, linear_num_key_heads=16,
    linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, **options["shape"])).eval()
torch.set_default_dtype(torch.float32)
out = {}
with torch.inference_mode():
    for tokens in options["tokens"]:
        ids = torch.randint(0, 248000, (1, tokens))
        times = []
        for i in range(options["repeats"] + 1):
            start = time.perf_counter()
            net(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
            if i:
                times.append((time.perf_counter() - start) * 1e3)
        out[str(tokens)] = times
print(json.dumps(out))
"""


def peer_python(args):
    if args.python:
        return args.python
    venv = args.venv
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"installing {', '.join(PEER)} into {venv}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
    return python


def time_peer(python, args):
    options = dict(threads=args.threads, precision=args.precision, shape=SIZES[args.size], tokens=args.tokens,
                   repeats=args.repeats)
    done = subprocess.run([python, "-c", PEER_PROGRAM, json.dumps(options)], check=True, stdout=subprocess.PIPE)
    return {int(tokens): times for tokens, times in json.loads(done.stdout).items()}


def time_treble(args):
    command = [args.treble, "bench", "--synthetic", args.size, "--tokens", ",".join(map(str, args.tokens)), "--json",
               "--precision", args.precision, "--threads", str(args.threads), "--repeats", str(args.repeats)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    rows = json.loads(done.stdout)["rows"]
    return {tokens: [row["total_ms"]["median"]] for tokens, row in zip(args.tokens, rows)}


def processor():
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{names[0]}, {len(names)} logical processors" if names else "unknown processor"


def describe(times):
    return f"{statistics.median(times):9.0f} ms ({min(times):.0f} to {max(times):.0f})"


def main():
    parser = argparse.ArgumentParser(description="Time Treble beside transformers on this processor.")
    parser.add_argument("--treble", default="build/release/apps/cli/treble")
    parser.add_argument("--venv", type=Path, default=Path.home() / ".cache" / "treble" / "peer-venv")
    parser.add_argument("--python", help="an interpreter that has torch and transformers; nothing is installed then")
    parser.add_argument("--size", choices=SIZES, default="0.8b")
    parser.add_argument("--tokens", type=lambda text: [int(n) for n in text.split(",")], default=[298, 1502])
    parser.add_argument("--precision", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3, help="timed passes of each side in a round")
    parser.add_argument("--rounds", type=int, default=3, help="alternations")
    args = parser.parse_args()

    python = peer_python(args)
    peer, ours = {n: [] for n in args.tokens}, {n: [] for n in args.tokens}
    for _ in range(args.rounds):
        for name, into, run in (("treble", ours, lambda: time_treble(args)),
                                ("transformers", peer, lambda: time_peer(python, args))):
            measured = run()
            print(json.dumps({"what": name, "size": args.size, "precision": args.precision, "threads": args.threads,
                              "ms": measured}), flush=True)
            for tokens, times in measured.items():
                into[tokens] += times

    print(f"\n{processor()}\n{args.size}, {args.precision}, {args.threads} threads, one record: "
          "median (fastest to slowest)")
    print(f"{'tokens':>7} {'treble, head included':>32} {'transformers, backbone':>32} {'ratio':>7}")
    for tokens in args.tokens:
        ratio = statistics.median(peer[tokens]) / statistics.median(ours[tokens])
        print(f"{tokens:>7} {describe(ours[tokens]):>32} {describe(peer[tokens]):>32} {ratio:>6.1f}x")


if __name__ == "__main__":
    main()
