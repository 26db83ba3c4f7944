"""Generators of labelled decision records: one module per family, all built from core."""

import functools
import importlib

from .core import Draw, Family, seeded

MODULES = ("numbers", "invoices", "dates", "fields", "lists", "routing", "tone", "language", "moderation", "rules", "meanings",
           "passages", "people", "shapes", "motion")
MEDIA = ("shapes", "motion")


@functools.cache
def families():
    """{name: Family}, in the order of MODULES."""
    built = {}
    for module in MODULES:
        loaded = importlib.import_module(f"{__name__}.{module}")
        found = [value for value in vars(loaded).values()
                 if isinstance(value, type) and issubclass(value, Family) and value is not Family
                 and value.__module__ == loaded.__name__]
        built |= {family.name: family() for family in found}
    return built


def record_of(family, role, *key, count=None):
    """One record of a family -> (request, answers). The same arguments give the same record, always. count: questions to try."""
    return families()[family].record(Draw(role, family, *key), count)


def training_record(stream, index):
    """Record number `index` of a training stream, its family drawn as well."""
    names = list(families())
    return record_of(seeded("family", stream, index).choice(names), "train", stream, index)
