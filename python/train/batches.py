"""Packs encoded records into rows: the model's Batch, as torch tensors of fixed shapes."""

import functools
import hashlib
import math
from dataclasses import dataclass

import numpy as np
import torch

import encode
import release
from model import Batch

POSITIONS = math.isqrt(release.VISION["num_position_embeddings"])      # the position table is a square of this side


@dataclass(frozen=True)
class Shape:
    """Places of a batch. Records longer than a row, or with more questions or options than a row has, are left out."""
    rows: int = 32
    tokens: int = 1024
    questions: int = 20
    options: int = 128
    patch_rows: int = 12
    patches: int = 256
    learned: int = 192


class Packer:
    """One batch being filled."""

    def __init__(self, shape):
        self.shape = shape
        full = lambda *size, value=0, dtype=np.int32: np.full(size, value, dtype)
        b, t, q, o, v, w = shape.rows, shape.tokens, shape.questions, shape.options, shape.patch_rows, shape.patches
        self.arrays = dict(
            ids=full(b, t), segments=full(b, t, value=-1), positions=full(3, b, t), media_rows=full(b, t, value=-1),
            patches=full(v, w, 1536, dtype=np.uint8), patch_segments=full(v, w, value=-1), patch_places=full(v, w, 2),
            patch_taps=full(v, w, 4), patch_weights=full(v, w, 4, dtype=np.float32),
            question_spans=full(b, q, 2), question_types=full(b, q), question_last=full(b, q), option_spans=full(b, o, 2),
            option_owner=full(b, o, value=-1), answers=full(b, q, value=-1))
        self.used = {name: np.zeros(b, int) for name in ("tokens", "records", "questions", "options")}
        self.patches_used = np.zeros(v, int)
        self.targets = full(b, t, dtype=np.int8)

    def fits(self, row, record):
        options = sum(map(len, record.option_spans))
        return (self.used["tokens"][row] + len(record.ids) <= self.shape.tokens
                and self.used["questions"][row] + len(record.types) <= self.shape.questions
                and self.used["options"][row] + options <= self.shape.options)

    def add(self, record, answers):
        """Best fit: the fullest row that still holds the record. answers: [Q] option indexes -> [(row, question place)] or None."""
        order = np.argsort(-self.used["tokens"], kind="stable")
        row = next((row for row in order if self.fits(row, record)), None)
        if row is None:
            return None
        media_rows = self.place_media(record)
        if media_rows is None:
            return None
        a, at = self.arrays, self.used["tokens"][row]
        span = slice(at, at + len(record.ids))
        a["ids"][row, span], a["positions"][:, row, span] = record.ids, record.positions
        a["segments"][row, span] = self.used["records"][row]
        self.targets[row, span.start + 1:span.stop] = np.where(record.media_rows[1:] < 0, record.targets[1:], 0)
        if len(media_rows):
            a["media_rows"][row, span] = np.where(record.media_rows >= 0, media_rows[record.media_rows], -1)
        places = []
        for kind, question, options, answer in zip(record.types, record.question_spans, record.option_spans, answers):
            q, o = self.used["questions"][row], self.used["options"][row]
            a["question_spans"][row, q] = np.add(question, at)
            a["question_types"][row, q], a["question_last"][row, q] = kind, at + len(record.ids) - 1
            a["option_spans"][row, o:o + len(options)] = np.add(options, at)
            a["option_owner"][row, o:o + len(options)] = q
            a["answers"][row, q] = o + answer
            places.append((row, q, o))
            self.used["questions"][row] += 1
            self.used["options"][row] += len(options)
        self.used["tokens"][row] += len(record.ids)
        self.used["records"][row] += 1
        return places

    def place_media(self, record):
        """Puts each image and frame group of a record into a patch row -> rows of the tower's output, or None if there is no room."""
        groups = [group for item in record.media for group in frame_groups(item)]
        used, places = self.patches_used.copy(), []
        for patches, _ in groups:
            row = next((row for row in range(self.shape.patch_rows) if used[row] + len(patches) <= self.shape.patches), None)
            if row is None:
                return None
            places.append((row, used[row]))
            used[row] += len(patches)
        a, rows = self.arrays, []
        for (patches, grid), (row, at) in zip(groups, places):
            span = slice(at, at + len(patches))
            a["patches"][row, span], a["patch_segments"][row, span] = patches, at
            a["patch_places"][row, span], a["patch_taps"][row, span], a["patch_weights"][row, span] = patch_geometry(*grid)
            first = (row * self.shape.patches + at) // 4
            rows.append(np.arange(first, first + len(patches) // 4))
        self.patches_used = used
        return np.concatenate(rows) if rows else np.zeros(0, int)

    def tensors(self):
        """The finished batch. Of the tokens that next-token prediction could learn it takes answers first, then some of the rest."""
        scattered = np.arange(self.shape.tokens) * 2654435761 % 4294967296 / 4294967296           # a fixed shuffle
        order = np.argsort(-(self.targets + scattered), axis=1, kind="stable")
        learned = np.where(order == 0, 1, order)[:, :self.shape.learned]                          # nothing stands before token 0
        kinds = np.take_along_axis(self.targets, learned, 1)
        return Batch(**{name: torch.from_numpy(array) for name, array in self.arrays.items()},
                     learned=torch.from_numpy(learned.astype(np.int32)), learned_kinds=torch.from_numpy(kinds.astype(np.int32)))


def frame_groups(item):
    """media.Media -> [(u8 levels [h*w, 1536], (h, w))], one per temporal patch: what attends to itself in the tower."""
    levels = np.rint(item.patches * 127.5 + 127.5).astype(np.uint8)
    return [(group, item.grid[1:]) for group in np.split(levels, item.grid[0])]


@functools.cache
def patch_geometry(height, width):
    """Of each patch, in merge-block order: (row, column) [N, 2], rows of the position table [N, 4] and their weights [N, 4]."""
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    order = np.arange(height * width).reshape(height // 2, 2, width // 2, 2).transpose(0, 2, 1, 3).ravel()
    rows, columns = rows.ravel()[order], columns.ravel()[order]

    def taps(index, count):
        source = np.float32(index * (POSITIONS - 1)) / np.float32(max(count - 1, 1))
        low = np.floor(source).astype(np.int32)
        return (low, 1 - (source - low)), (np.minimum(low + 1, POSITIONS - 1), source - low)

    pairs = [(row * POSITIONS + column, row_weight * column_weight)
             for row, row_weight in taps(rows, height) for column, column_weight in taps(columns, width)]
    return (np.stack((rows, columns), -1), np.stack([tap for tap, _ in pairs], -1),
            np.stack([weight for _, weight in pairs], -1).astype(np.float32))


def pack(shape, records):
    """records: [(Encoded, [answer index])] -> (Batch, [places of each record or None])"""
    packer = Packer(shape)
    order = sorted(range(len(records)), key=lambda i: -len(records[i][0].ids))
    places = [None] * len(records)
    for i in order:
        places[i] = packer.add(*records[i])
    return packer.tensors(), places


class TrainingBatches(torch.utils.data.Dataset):
    """Batch number k of the training stream: always the same, whichever worker makes it.

    Some of its records are written as compact documents (encode.Encoder.compact), the fewer the later the batch.
    """
    COMPACT_QUESTIONS = (6, 8, 10, 12)
    QUESTIONS = (None, 8)                  # of records: as many as the family draws, or more by turns

    def __init__(self, encoder, shape, draw_record, compact_share, excluded=frozenset()):
        """draw_record(stream, index, count=None) -> (request, answers, family number); compact_share(k) -> share of the tokens of
        batch k; records in `excluded` (fingerprints) are left out."""
        self.encoder, self.shape, self.draw_record = encoder, shape, draw_record
        self.compact_share, self.excluded = compact_share, excluded

    def __len__(self):
        return 1 << 31

    def __getitem__(self, number):
        """-> (Batch, family numbers [B, Q] of its questions, -1 unused)"""
        wanted = self.shape.rows * self.shape.tokens * 0.98
        compact, records, families, index = wanted * self.compact_share(number), [], [], 0
        while wanted > 0:
            as_compact = compact > 0
            count = self.COMPACT_QUESTIONS[index % len(self.COMPACT_QUESTIONS)] if as_compact else self.QUESTIONS[index % len(self.QUESTIONS)]
            request, answers, family = self.draw_record(f"batch {number}", index, count)
            index += 1
            record = self.encoder.compact(request, answers) if as_compact else self.encoder(request)
            if len(record.ids) > self.shape.tokens or fingerprint(record) in self.excluded:
                continue
            records.append((record, [] if as_compact else label_indexes(record, answers)))
            families.append(family)
            wanted -= len(record.ids)
            compact -= len(record.ids)
        batch, places = pack(self.shape, records)
        asked = torch.full_like(batch.answers, -1)
        for family, taken in zip(families, places):
            for row, question, _ in taken or ():
                asked[row, question] = family
        return batch, asked


def label_indexes(record, answers):
    return [encode.label_index(record, i, answers[name]) for i, name in enumerate(record.question_ids)]


def fingerprint(record):
    """Equal for records with the same tokens and media."""
    digest = hashlib.blake2b(record.ids.tobytes(), digest_size=8)
    for item in record.media:
        digest.update(item.patches.tobytes())
    return digest.hexdigest()
