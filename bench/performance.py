"""Measures how fast a build answers on this machine, and draws what was measured.

    python3 bench/performance.py run NAME --size 27b [--treble PATH] [--device cuda] [--weights int8-convrot]
    python3 bench/performance.py draw

`run` starts `treble bench` anew for each length and each batch size and writes bench/results/NAME.json: the commands
and what they reported. `draw` reads all of bench/results and writes docs/performance.md with curves: milliseconds over
the tokens of one record, decisions a second over the records of a call, and device memory over the longest pass.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b5ea7", "#b8860b", "#4a4a4a")


# ---------------------------------------------------------------------------------------------------------------- run

def output_of(*command):
    """What a command prints, or "" where there is no such program."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def bench(args, *more):
    model = ["--synthetic", args.size] if args.size else ["--model", args.model]
    command = [args.treble, "bench", *model, "--device", args.device, "--precision", args.precision, "--weights",
               args.weights, *more, "--json"]
    print(" ".join(map(str, command)), file=sys.stderr, flush=True)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"performance: {args.treble} cannot be run: {error}; build it, or name it with --treble")
    if done.returncode != 0:
        return None  # it has said why; a length that does not fit leaves a gap in the curve
    return {"arguments": [str(part) for part in command[1:]], "report": json.loads(done.stdout)}


def run(args):
    if Path(args.name).name != args.name:
        sys.exit(f'performance: the name "{args.name}" is a path; give one for a file in {RESULTS}')
    longest = lambda tokens: str(max(64, tokens))
    lengths = [bench(args, "--tokens", str(tokens), "--repeats", str(args.repeats), "--pass-tokens", longest(tokens))
               for tokens in args.tokens]
    batches = [bench(args, "--tokens", str(args.batch_tokens), "--batch", str(batch), "--repeats", str(args.repeats),
                     "--pass-tokens", longest(batch * math.ceil(args.batch_tokens / 64) * 64))
               for batch in args.batch]
    result = {
        "machine": output_of("nvidia-smi", "--query-gpu=name,driver_version,power.limit,clocks.max.sm",
                             "--format=csv,noheader").splitlines(),
        "commit": output_of("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "version": output_of(args.treble, "--version"),
        "lengths": [one for one in lengths if one],
        "batches": [one for one in batches if one],
    }
    if not result["lengths"] and not result["batches"]:
        sys.exit("performance: nothing was measured; see the messages above")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{args.name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path)


# --------------------------------------------------------------------------------------------------------------- draw

def ticks(low, high, is_log):
    """Round numbers from low to high."""
    if is_log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        marks = [m * 10.0 ** e for e in range(first, last + 1) for m in (1, 2, 5)]
    else:
        step = 10 ** math.floor(math.log10(high / 4)) if high > 0 else 1
        step *= next((m for m in (1, 2, 5, 10) if high / (step * m) <= 6), 10)
        marks = [step * i for i in range(int(high / step) + 2)]
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]


def number(value):
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def plot(title, x_label, y_label, series, y_is_log=False):
    """An SVG of lines with marks. series: {name: [(x, y), ...]}; x is logarithmic."""
    width, height, left, right, top, bottom = 720, 400, 70, 16, 40, 50
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_low, x_high = min(xs), max(max(xs), min(xs) * 1.01)
    y_low, y_high = (min(ys) / 1.3, max(ys) * 1.3) if y_is_log else (0, max(ys) * 1.08)

    def to_x(x):
        return left + (width - left - right) * math.log(x / x_low) / math.log(x_high / x_low)

    def to_y(y):
        share = math.log(y / y_low) / math.log(y_high / y_low) if y_is_log else (y - y_low) / (y_high - y_low)
        return height - bottom - (height - top - bottom) * share

    def text(x, y, content, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(content)}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="12" fill="#222">', f'<rect width="{width}" height="{height}" fill="#fff"/>',
           text(width / 2, 20, title, more='font-size="14" font-weight="bold"')]
    for mark in ticks(y_low, y_high, y_is_log):
        y = to_y(mark)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(left - 6, y + 4, number(mark), "end"))
    for mark in sorted(set(xs)):
        out.append(text(to_x(mark), height - bottom + 18, number(mark)))
    out.append(text((left + width - right) / 2, height - 12, x_label))
    out.append(text(0, 0, y_label, more=f'transform="translate(16 {(top + height - bottom) / 2:.0f}) rotate(-90)"'))
    for i, (name, points) in enumerate(series.items()):
        colour, points = COLOURS[i % len(COLOURS)], sorted(points)
        path = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        out.append(text(left + 10, top + 14 + 16 * i, name, "start", f'style="fill:{colour}"'))
    return "\n".join([*out, "</svg>"]) + "\n"


def rows_of(result, part):
    return [(one["report"], row) for one in result[part] for row in one["report"]["rows"]]


def curves(results):
    """File name, plot and the sentence under it, of each plot that there are figures for."""
    latency, rate, memory = {}, {}, {}
    for name, result in results.items():
        for report, row in rows_of(result, "lengths"):
            latency.setdefault(name, []).append((row["total_tokens"], row["total_ms"]["median"]))
            if report.get("peak_device_bytes"):
                memory.setdefault(name, []).append((report["pass_tokens"], report["peak_device_bytes"] / 2**30))
        for _, row in rows_of(result, "batches"):
            rate.setdefault(name, []).append((row["batch"], row["decisions_per_s"]))
    if latency:
        yield ("latency.svg", plot("One record, decision head included", "tokens of the record", "ms", latency, True),
               "Milliseconds from token ids to logits, median of the timed passes.")
    if rate:
        yield ("decisions.svg", plot("Decisions a second", "records of a call", "decisions/s", rate),
               "Questions answered a second over the records that are answered together.")
    if memory:
        yield ("memory.svg", plot("Device memory", "tokens of the longest pass (--pass-tokens)", "GiB", memory),
               "The most that the driver saw; where it could not tell the process apart, the device's use less its use "
               "before.")


def table(name, result):
    lines = [f"## {name}", "", "; ".join([*result["machine"], f"commit {result['commit']}", result["version"]]), "",
             "| run | median ms | p10 | p90 | backbone | head | decisions/s | TFLOP/s | of products alone | other "
             "decisions than alone |", "|---|---|---|---|---|---|---|---|---|---|"]
    for _, row in rows_of(result, "lengths") + rows_of(result, "batches"):
        total, other = row["total_ms"], row.get("against_batch_1")
        share = f"{100 * row['tflops'] / row['product_tflops']:.0f} %" if row.get("product_tflops") else ""
        lines.append(f"| {row['name']} | {total['median']:.1f} | {total['p10']:.1f} | {total['p90']:.1f} | "
                     f"{row['backbone_ms']['median']:.1f} | {row['head_ms']['median']:.2f} | "
                     f"{row['decisions_per_s']:.1f} | {row.get('tflops', 0):.0f} | {share} | " +
                     (f"{other['differing']} of {other['decisions']}" if other else "") + " |")
    return lines + [""]


def draw(args):
    results = {path.stem: json.loads(path.read_text()) for path in sorted(args.results.glob("*.json"))}
    if not results:
        sys.exit(f"{args.results} has no results; make some with `bench/performance.py run`")
    pictures = args.docs / "performance"
    pictures.mkdir(parents=True, exist_ok=True)
    lines = ["# Performance", "",
             "Drawn by `python3 bench/performance.py draw` from `bench/results`; made-up records of 8 questions with 4 "
             "options.", ""]
    for file, svg, sentence in curves(results):
        (pictures / file).write_text(svg)
        lines += [f"![{sentence}](performance/{file})", "", sentence, ""]
    for name, result in results.items():
        lines += table(name, result)
    (args.docs / "performance.md").write_text("\n".join(lines).rstrip() + "\n")


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description="Measure Treble on this machine, and draw what was measured.")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run", help="write bench/results/NAME.json")
    measure.add_argument("name", help='of the machine and the model: "h200-27b-bf16"')
    model = measure.add_mutually_exclusive_group(required=True)
    model.add_argument("--size", help="of a synthetic model: 27b, 9b, ...")
    model.add_argument("--model", help="release folder")
    measure.add_argument("--treble", default=ROOT / "build/cuda/apps/cli/treble")
    measure.add_argument("--device", default="cuda")
    measure.add_argument("--precision", default="auto")
    measure.add_argument("--weights", default="as-stored", help="quantise while loading: int8-convrot, ...")
    measure.add_argument("--tokens", type=numbers, default=[128, 298, 512, 1024, 1502, 2270, 4096, 8192, 16384])
    measure.add_argument("--batch", type=numbers, default=[1, 2, 4, 8, 16])
    measure.add_argument("--batch-tokens", type=int, default=1502)
    measure.add_argument("--repeats", type=int, default=20)
    drawing = commands.add_parser("draw", help="write docs/performance.md and its curves")
    drawing.add_argument("--results", type=Path, default=RESULTS)
    drawing.add_argument("--docs", type=Path, default=DOCS)
    args = parser.parse_args()
    run(args) if args.command == "run" else draw(args)


if __name__ == "__main__":
    main()
