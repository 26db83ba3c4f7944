"""Trains treble-tiny on generated records, on one GPU, in as many commands as it takes.

Usage: python3 train.py --tokenizer DIR --checkpoint FILE --steps N [--seconds S] [--out DIR]

Runs until step N or until S seconds have passed, writes the checkpoint, and goes on from it when called again with the same
arguments. Batch number k is the same in every run. At step N it writes the release folder to --out.
"""

import argparse
import json
import pathlib
import time

import torch
from tokenizers import Tokenizer

import encode
import evaluate
import export
import release
import stacks
from batches import Shape, TrainingBatches, fingerprint
from model import Batch, TrebleTiny, decision_loss
from optimizer import Optimizers
from records import families, record_of, seeded

SEED = 20261130
WARMUP, DECAY = 300, 0.8                   # steps; the last part of the run, in which the rate falls to zero
MATRIX_RATE, OTHER_RATE, WEIGHT_DECAY = 4e-3, 3e-3, 0.05
SAID_WEIGHT, ANSWER_WEIGHT = 0.2, 1.0      # of next-token prediction at first
HELP = 0.65                                # the part of the run in which it falls to zero
COMPACT = ((0.12, 0.6), (0.4, 0.3), (HELP, 0.1))   # (part of the run, share of its tokens in compact documents until then); then none
SMOOTHING, BRIER = 0.02, 0.5
WORKERS = 15
SAVE_EVERY = 3000                          # steps
# How often a family is drawn, where not 1: more where learning is slow, less where words alone decide.
SHARES = {"invoices": 1.3, "dates": 2.0, "fields": 0.7, "language": 1.2, "rules": 2.0, "people": 2.0, "meanings": 1.3, "shapes": 2.5,
          "motion": 1.3, "routing": 0.5, "tone": 0.6, "moderation": 0.5}


def draw_record(stream, index, count=None):
    names = list(families())
    family = seeded("family", stream, index).choices(names, [SHARES.get(name, 1.0) for name in names])[0]
    return *record_of(family, "train", stream, index, count=count), names.index(family)


def rate_factor(step, steps):
    return min(1.0, (step + 1) / WARMUP, max(0.0, (steps - step) / (DECAY * steps)))


def compact_share(part):
    """Of the tokens of a batch, how many stand in compact documents. part: of the run that is over, 0 to 1"""
    return next((share for until, share in COMPACT if part < until), 0.0)


def evaluation_fingerprints(encoder):
    """Of every record of data/eval: training leaves them out."""
    records = evaluate.read_records(sorted(evaluate.EVAL.glob("*.jsonl")))
    return frozenset(fingerprint(encoder(stacks.with_arrays(record["request"]))) for record in records)


def one_thread(_):
    torch.set_num_threads(1)


def save(trainer, step, seconds, file):
    """Writes a checkpoint beside `file` and renames it, so that a stopped run leaves the last one whole."""
    beside = file.with_suffix(".part")
    torch.save({"model": trainer.model.state_dict(), "optimizers": trainer.optimizers.state(), "step": step, "seconds": seconds}, beside)
    beside.rename(file)


def loader(batches, first, last, workers):
    return torch.utils.data.DataLoader(batches, batch_size=None, sampler=range(first, last),
                                       num_workers=workers, prefetch_factor=4 if workers else None, pin_memory=torch.cuda.is_available(),
                                       worker_init_fn=one_thread)


class Trainer:
    """The model, its optimizers and one training step, recorded as a CUDA graph where there is a GPU."""

    def __init__(self, example, families_count, device, matrix_rate=MATRIX_RATE):
        """example: (Batch, family numbers) of the shapes that every batch will have"""
        self.device = device
        self.model = TrebleTiny(release.CONFIG, release.HEAD).to(device)
        self.optimizers = Optimizers(self.model, matrix_rate, OTHER_RATE, WEIGHT_DECAY)
        self.batch, self.kinds = Batch(*(x.to(device) for x in example[0])), example[1].to(device)
        self.language_weight = torch.zeros((), device=device)
        self.sums = torch.zeros(4, device=device)                      # losses of decisions, prompts and compact answers; steps
        self.right, self.asked = (torch.zeros(families_count, device=device) for _ in range(2))
        self.graph = None
        if device == "cuda":
            self.record()

    def record(self):
        """Compiles the layers one by one (equal layers share their code) and records a step; the rates are zero meanwhile."""
        for layer in self.model.backbone.model.language_model.layers:
            layer.compile(dynamic=False)
        self.model.backbone.model.visual.compile(dynamic=False)
        self.model.head.compile(dynamic=False)
        saved = [x.clone() for x in self.optimizers.state()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        self.model.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.compute()
        self.optimizers.restore(saved)
        self.clear()

    def compute(self):
        self.model.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            logits, language = self.model(self.batch, with_language_losses=True)
        loss, correct = decision_loss(logits, self.batch.answers, SMOOTHING, BRIER)
        (loss + self.language_weight * (SAID_WEIGHT * language[0] + ANSWER_WEIGHT * language[1])).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizers.step()
        with torch.no_grad():
            used, kinds = (self.kinds >= 0).float().flatten(), self.kinds.clamp(min=0).flatten()
            self.right.index_add_(0, kinds, correct.float().flatten() * used)
            self.asked.index_add_(0, kinds, used)
            self.sums += torch.stack((loss, *language, torch.ones_like(loss)))

    def step(self, batch, kinds, factor, language_weight):
        for kept, given in zip((*self.batch, self.kinds), (*batch, kinds)):
            kept.copy_(given, non_blocking=True)
        self.optimizers.factor.fill_(factor)
        self.language_weight.fill_(language_weight)
        self.graph.replay() if self.graph else self.compute()

    def clear(self):
        for tensor in (self.sums, self.right, self.asked):
            tensor.zero_()

    def report(self, step, elapsed):
        """One line: losses and, family by family, the share of right answers since the last one."""
        loss, said, answer, count = self.sums.tolist()
        right, asked = self.right.tolist(), self.asked.tolist()
        tokens = count * self.batch.ids.numel()
        print(f"step {step} {elapsed:.0f} s {tokens / 1e6 / elapsed:.2f} M tokens/s loss {loss / count:.4f} "
              f"said {said / count:.3f} compact {answer / count:.3f} right {sum(right) / max(1, sum(asked)):.4f} "
              + " ".join(f"{name}={r / max(1, a):.3f}" for name, r, a in zip(families(), right, asked)), flush=True)
        self.clear()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True, help="folder with tokenizer.json")
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long and write the checkpoint")
    parser.add_argument("--out", type=pathlib.Path, help="release folder to write")
    parser.add_argument("--rows", type=int, default=64, help="of a batch, each 1,024 tokens")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--every", type=int, default=500, help="steps between two reports")
    arguments = parser.parse_args()

    begin = time.monotonic()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    encoder = encode.Encoder(Tokenizer.from_file(str(arguments.tokenizer / "tokenizer.json")), release.PROCESSOR)
    shape = Shape(rows=arguments.rows, patch_rows=max(1, arguments.rows // 2))
    batches = TrainingBatches(encoder, shape, draw_record, lambda number: compact_share(number / arguments.steps),
                              evaluation_fingerprints(encoder))
    trainer = Trainer(batches[0], len(families()), device)
    step, spent = 0, 0.0
    if arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint, map_location=device, weights_only=True)
        trainer.model.load_state_dict(saved["model"])
        trainer.optimizers.restore(saved["optimizers"])
        step, spent = saved["step"], saved["seconds"]
    print(f"ready after {time.monotonic() - begin:.0f} s", flush=True)

    since = time.monotonic()
    for batch, kinds in loader(batches, step, arguments.steps, arguments.workers):
        trainer.step(batch, kinds, rate_factor(step, arguments.steps), max(0.0, 1 - step / (HELP * arguments.steps)))
        step += 1
        if step % arguments.every == 0:
            trainer.report(step, time.monotonic() - since)
            since = time.monotonic()
        if step % SAVE_EVERY == 0:
            save(trainer, step, spent + time.monotonic() - begin, arguments.checkpoint)
        if time.monotonic() - begin > arguments.seconds:
            break
    if device == "cuda":
        torch.cuda.synchronize()
    spent += time.monotonic() - begin
    save(trainer, step, spent, arguments.checkpoint)
    print(f"stopped at step {step} of {arguments.steps} after {spent:.0f} s in all", flush=True)
    if arguments.out:
        export.write(trainer.model, arguments.tokenizer, arguments.out)
        (arguments.out / "training.json").write_text(json.dumps({"steps": step, "seconds": round(spent), "seed": SEED}) + "\n")


if __name__ == "__main__":
    main()
