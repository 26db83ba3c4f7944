"""Compares model.py with transformers on random weights, and the delta rule with its definition, token by token.

Usage: python3 check_model.py --tokenizer DIR                    (a folder with tokenizer.json and tokenizer_config.json)
Needs transformers 5.17 and torchvision; says so and ends with status 0 where they are missing.
"""

import argparse
import pathlib
import sys
import tempfile

import torch

import delta_rule
import evaluate
import export
import release
import stacks
from model import TrebleTiny

TOLERANCE = 5e-5                           # of a logit, fp32


def by_definition(query, key, value, decay, beta, segments):
    """The recurrence of docs/model.md, one token at a time."""
    rows, length, heads, width = value.shape
    out = torch.empty_like(value)
    for row in range(rows):
        for t in range(length):
            if t == 0 or segments[row, t] != segments[row, t - 1]:
                state = value.new_zeros(heads, width, width)
            state = state * decay[row, t].exp()[:, None, None]
            read = torch.einsum("hde,hd->he", state, key[row, t])
            change = beta[row, t][:, None] * (value[row, t] - read)
            state = state + key[row, t][:, :, None] * change[:, None]
            out[row, t] = torch.einsum("hde,hd->he", state, query[row, t])
    return out


def check_delta_rule():
    torch.manual_seed(0)
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    query, key, value = (torch.randn(2, 192, 2, 16, dtype=torch.float64) for _ in range(3))
    decay, beta = -torch.rand(2, 192, 2, dtype=torch.float64) / 4, torch.rand(2, 192, 2, dtype=torch.float64)
    segments = torch.zeros(2, 192, dtype=torch.int)
    segments[0, 50:], segments[0, 64:], segments[1, 100:], segments[1, 150:] = 1, 2, 1, -1
    inputs = (unit(query), unit(key), value, decay, beta, segments)
    error = (delta_rule.gated_delta_rule(*inputs) - by_definition(*inputs)).abs().max().item()
    print(f"delta rule: largest difference {error:.1e}")
    return error < 1e-12


def check_stacks(tokenizer):
    torch.manual_seed(0)
    model = TrebleTiny(release.CONFIG, release.HEAD)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight) * 0.1)            # biases and gains that are not all alike
    requests = [record["request"] for record in evaluate.fresh_records(30, 0, ("values",))]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        export.write(model, tokenizer, folder)
        ours, theirs = stacks.Own(folder).logits(requests), stacks.Transformers(folder).logits(requests)
    figures = evaluate.compare(requests, ours, theirs)
    print(f"model: {figures}")
    return figures["largest logit difference"] < TOLERANCE


def check_temperature(tokenizer):
    torch.manual_seed(1)
    requests = [record["request"] for record in evaluate.fresh_records(4, 1, ("values",))]
    model = TrebleTiny(release.CONFIG, release.HEAD)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        export.write(model, tokenizer, folder)
        before = stacks.Own(folder)
        after = stacks.Own(folder)
        export.divide_logits(after.model, 1.7)
        error = max(float(abs(a / 1.7 - b).max()) for x, y in zip(before.logits(requests), after.logits(requests)) for a, b in zip(x, y))
    print(f"temperature: largest difference {error:.1e}")
    return error < TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    try:
        import torchvision  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"nothing checked: {error}")
        return 0
    return 0 if check_delta_rule() and check_temperature(arguments.tokenizer) and check_stacks(arguments.tokenizer) else 1


if __name__ == "__main__":
    sys.exit(main())
