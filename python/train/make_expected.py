"""Writes what the original stack says of a release: logits of transformers in fp32, for the tests of the program.

Usage: python3 make_expected.py MODEL_DIR OUT.jsonl [--sets values templates]
One line a record: the first of every family in each set of data/eval, by file and line (from 0), and the logits of its questions in the
model's order of options.
"""

import argparse
import json
import pathlib

import evaluate
import stacks
from records import families


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--sets", nargs="+", default=["values"])
    arguments = parser.parse_args()
    stack = stacks.Transformers(arguments.model)
    with arguments.out.open("w") as out:
        for name in arguments.sets:
            file = evaluate.EVAL / f"{name}.jsonl"
            records = evaluate.read_records([file])
            for family in families():
                line = next(i for i, record in enumerate(records) if record["family"] == family)
                logits, = stack.logits([records[line]["request"]])
                rounded = [[round(float(value), 6) for value in scores] for scores in logits]
                out.write(json.dumps({"file": file.name, "line": line, "logits": rounded}) + "\n")


if __name__ == "__main__":
    main()
