"""Checks that neither the choice of kernels nor what else is in a pass changes decisions, and that digits repeat.

usage: python3 check_kernels.py [--device cuda] [--passes PROGRAM] [--kernels best,sm80] [--model models/tiny]
                                [--weights int8-convrot] [--precision bf16] [--against-cpu] [--repeats 100]
                                [--digits 16] [--json FILE] [RECORDS.jsonl...]

RECORDS are those of data/eval unless given. Needs numpy and safetensors. What is compared comes from treble_passes:

kernels   all records, one a pass, with both sets of kernels: every decision (the most probable option) is equal, but
          where the first set's two best options are closer than 0.01 in probability; the largest difference of a
          probability is reported. With --against-cpu the second side is the CPU instead of a second set: with
          --precision f32, for bf16 activations add up otherwise there, and of INT8 weights a rounding that falls the
          other way changes codes, which alone decides a few questions otherwise
digits    the first --digits records (of the first file), --repeats times alone and --repeats times packed together: the
          repeats give the same digits. Alone against together may differ, for products of other sizes may add up in
          another order: reported are how many records differ, by how much, and the first stage of the pass that does
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[2]
CLOSE_MARGIN = 0.01


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="*", default=sorted((ROOT / "data/eval").glob("*.jsonl")))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--passes", default=ROOT / "build/release/tests/treble_passes")
    parser.add_argument("--model", type=Path, default=ROOT / "models/tiny")
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=["best", "sm80"],
                        help="two sets to compare, or one: digits alone")
    parser.add_argument("--weights", default="as-stored", help="quantise while loading: int8-convrot, int8 or nf4")
    parser.add_argument("--precision", default="bf16", choices=("bf16", "f32"), help="of activations")
    parser.add_argument("--against-cpu", action="store_true", help="compare the first set with the CPU")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--digits", type=int, default=16, help="records whose digits are compared")
    parser.add_argument("--most", type=int, help="of all records, only so many")
    parser.add_argument("--scratch", type=Path, help="folder for what the passes give (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser.parse_args()


class Passes:
    """What treble_passes gives."""

    def __init__(self, arguments, records, *options, device=None):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
            out = Path(name) / "passes.safetensors"
            command = [arguments.passes, "--device", device or arguments.device, "--precision",
                       arguments.precision, "--weights", arguments.weights, *options, arguments.model, out, *records]
            subprocess.run(list(map(str, command)), check=True)
            self.tensors = load_file(out)
        self.count = sum(name.endswith(".logits") for name in self.tensors)

    def of(self, record, name):
        return self.tensors[f"{record}.{name}"]

    def probabilities(self, record):
        """[question][option]"""
        borders = self.of(record, "cu_options")
        logits = np.split(self.of(record, "logits").astype(np.float64), borders[1:-1])
        shifted = [np.exp(question - question.max()) for question in logits]
        return [question / question.sum() for question in shifted]

    def stages(self, record):
        """Names of the hidden states, in the order of computation."""
        prefix = f"{record}."
        names = [name.removeprefix(prefix) for name in self.tensors if name.startswith(prefix)]
        return ["embed", *sorted(name for name in names if name.startswith("layer")), "hidden"]


def compare_probabilities(one, other):
    """(questions, those decided otherwise, of them those that are not close, largest difference)"""
    questions = changed = far = 0
    largest = 0.0
    for record in range(one.count):
        for a, b in zip(one.probabilities(record), other.probabilities(record), strict=True):
            questions += 1
            difference = np.abs(a - b).max()
            if not difference <= largest:  # a NaN stays
                largest = float(difference)
            if a.argmax() != b.argmax():
                changed += 1
                best, second = np.sort(a)[::-1][:2]
                far += best - second >= CLOSE_MARGIN
    return questions, changed, int(far), largest


def check_choice(arguments):
    limit = ["--records", arguments.most] if arguments.most else []
    sides = [(arguments.device, arguments.kernels[0]),
             ("cpu", "best") if arguments.against_cpu else (arguments.device, arguments.kernels[-1])]
    names = [f"{kernels} on {device}" for device, kernels in sides]
    first, second = (Passes(arguments, arguments.records, "--kernels", kernels, *limit, device=device)
                     for device, kernels in sides)
    questions, changed, far, largest = compare_probabilities(first, second)
    passed = far == 0 and largest == largest
    print(f"kernels {' against '.join(names)}, weights {arguments.weights}, {arguments.precision}: {first.count} "
          f"records, {questions} questions; {changed} decided otherwise, {far} of them with a margin of {CLOSE_MARGIN} "
          f"or more; largest difference of a probability {largest:.2e}: {'passed' if passed else 'FAILED'}")
    return dict(check="kernels", kernels=names, weights=arguments.weights, precision=arguments.precision,
                records=first.count, questions=questions, changed=changed, changed_beyond_margin=far,
                largest_difference=largest, passed=passed)


def check_digits(arguments, kernels):
    options = ["--kernels", kernels, "--hidden", "--records", arguments.digits, "--repeats", arguments.repeats]
    alone = Passes(arguments, arguments.records[:1], *options)
    together = Passes(arguments, arguments.records[:1], *options, "--records-per-pass", arguments.digits)
    repeat_errors = {name: max(float(passes.of(record, "repeat_error")[0]) for record in range(passes.count))
                     for name, passes in (("alone", alone), ("together", together))}
    questions, changed, far, largest = compare_probabilities(alone, together)
    first_stages, largest_logit = {}, 0.0
    for record in range(alone.count):
        largest_logit = max(largest_logit, float(np.abs(alone.of(record, "logits") -
                                                        together.of(record, "logits")).max()))
        differing = (stage for stage in alone.stages(record)
                     if not np.array_equal(alone.of(record, stage), together.of(record, stage)))
        stage = next(differing, None)
        if stage is None and not np.array_equal(alone.of(record, "logits"), together.of(record, "logits")):
            stage = "head"
        if stage:
            first_stages[stage] = first_stages.get(stage, 0) + 1
    passed = all(error == 0 for error in repeat_errors.values()) and far == 0
    print(f"digits, kernels {kernels}: {alone.count} records, {arguments.repeats} times; repeats differ by "
          f"{repeat_errors['alone']:.1e} alone and {repeat_errors['together']:.1e} together; alone against together: "
          f"{sum(first_stages.values())} records differ, first in {first_stages or 'no stage'}, a logit by "
          f"{largest_logit:.2e}, a probability by {largest:.2e}, {changed} of {questions} decisions "
          f"({far} beyond the margin): {'passed' if passed else 'FAILED'}")
    return dict(check="digits", kernels=kernels, records=alone.count, repeats=arguments.repeats,
                repeat_errors=repeat_errors, first_stages=first_stages, largest_logit=largest_logit,
                largest_difference=largest, changed=changed, changed_beyond_margin=far, passed=passed)


def main():
    arguments = parse_arguments()
    results = [check_choice(arguments)] if len(arguments.kernels) > 1 or arguments.against_cpu else []
    results += [check_digits(arguments, kernels) for kernels in arguments.kernels]
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(not all(result["passed"] for result in results))


if __name__ == "__main__":
    main()
