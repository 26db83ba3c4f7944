"""Measures a release on labelled records: accuracy and calibration, set by set and family by family.

Usage: python3 evaluate.py --model DIR                            every set of data/eval
       python3 evaluate.py --model DIR --fresh 2000                as many new records a set, drawn with --seed
       python3 evaluate.py --model DIR --stack transformers --against native --treble PATH
                                                                  also compares two stacks: logits and decisions

Accuracy counts questions. ECE is that of the top label in 15 equal bins of confidence.
"""

import argparse
import collections
import json
import pathlib
import sys

import numpy as np

import encode
import stacks
from records import MEDIA, families, record_of
from records.core import HELD_OUT_ROLES

HERE = pathlib.Path(__file__).resolve().parent
EVAL = HERE.parent.parent / "data" / "eval"
BINS = 15


def read_records(files):
    """JSON lines of data/eval -> [{"set", "family", "request", "answers"}]"""
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def fresh_records(count, seed, sets=HELD_OUT_ROLES):
    """`count` records a set, families in turn, none of them in data/eval unless seeds collide."""
    records = []
    for name in sets:
        for i in range(count):
            family = list(families())[i % len(families())]
            request, answers = record_of(family, name, "fresh", seed, i)
            records.append({"set": name, "family": family, "request": request, "answers": answers})
    return records


def answered(records, logits):
    """-> one row a question: set, family, type, right (0/1), confidence, Brier score, number of options"""
    rows = []
    for record, scores in zip(records, logits):
        if scores is None:
            continue
        questions = record["request"]["questions"]
        for (name, question), values in zip(questions.items(), scores, strict=True):
            options = [option for option, _ in encode.options_of(question)]
            label = options.index(encode.option_of(record["answers"][name]))
            p = stacks.softmax(np.asarray(values, np.float64))
            rows.append((record["set"], record["family"], question["type"], int(p.argmax() == label), p.max(),
                         ((p - np.eye(len(p))[label]) ** 2).sum(), len(p)))
    return rows


def calibration_error(right, confidence):
    """Top-label ECE: bins weighted by their share of the questions."""
    right, confidence = np.asarray(right, float), np.asarray(confidence)
    places = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return sum(abs(right[places == b].mean() - confidence[places == b].mean()) * (places == b).mean()
               for b in range(BINS) if (places == b).any())


def summary(rows):
    right, confidence = [row[3] for row in rows], [row[4] for row in rows]
    return {"questions": len(rows), "accuracy": round(float(np.mean(right)), 4),
            "ece": round(float(calibration_error(right, confidence)), 4), "confidence": round(float(np.mean(confidence)), 4),
            "brier": round(float(np.mean([row[5] for row in rows])), 4)}


def grouped(rows, *columns):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return {"/".join(key): summary(group) for key, group in sorted(groups.items())}


def report_of(rows):
    media = [row for row in rows if row[1] in MEDIA]
    return {"sets": grouped(rows, 0), "families": grouped(rows, 1), "types": grouped(rows, 2), "sets and families": grouped(rows, 0, 1),
            "media": grouped(media, 0)}


def print_report(report):
    for title, groups in report.items():
        print(f"\n{title:<32} questions  accuracy     ECE  confidence   Brier")
        for name, figures in groups.items():
            print(f"  {name:<30} {figures['questions']:>9}  {figures['accuracy']:>8.4f}  {figures['ece']:>6.4f}"
                  f"  {figures['confidence']:>10.4f}  {figures['brier']:>6.4f}")


def compare(records, ours, theirs, clear=1e-3):
    """Two stacks on the same records -> figures; a decision counts as clear when `theirs` has the two best further apart than that."""
    largest, decisions, differing, clear_differing = 0.0, 0, 0, 0
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            continue
        for left, right in zip(a, b, strict=True):
            largest = max(largest, float(np.abs(left - right).max()))
            decisions += 1
            if left.argmax() != right.argmax():
                differing += 1
                clear_differing += stacks.margin(right) > clear
    return {"decisions": decisions, "largest logit difference": largest, "decisions that differ": differing,
            f"of these with a margin above {clear}": int(clear_differing)}


def make_stack(name, arguments):
    match name:
        case "own":
            return stacks.Own(arguments.model, arguments.device)
        case "transformers":
            return stacks.Transformers(arguments.model, arguments.device)
        case "native":
            return stacks.Native(arguments.model, arguments.treble)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ("own", "transformers", "native")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--records", type=pathlib.Path, nargs="*", help="JSON lines (default: the held-out sets of data/eval)")
    parser.add_argument("--fresh", type=int, metavar="N", help="draw N new records a set instead")
    parser.add_argument("--seed", type=int, default=0, help="of --fresh")
    parser.add_argument("--stack", choices=names, default="own")
    parser.add_argument("--against", choices=names, help="a second stack to compare with")
    parser.add_argument("--treble", type=pathlib.Path, default=HERE.parent.parent / "build/release/apps/cli/treble")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    arguments = parser.parse_args()

    if arguments.fresh:
        records = fresh_records(arguments.fresh, arguments.seed)
    else:
        records = read_records(arguments.records or [EVAL / f"{name}.jsonl" for name in HELD_OUT_ROLES])
    requests = [record["request"] for record in records]
    logits = make_stack(arguments.stack, arguments).logits(requests)
    report = report_of(answered(records, logits))
    print_report(report)
    if arguments.against:
        report["comparison"] = compare(records, logits, make_stack(arguments.against, arguments).logits(requests))
        print("\n" + "\n".join(f"{name}: {value}" for name, value in report["comparison"].items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
