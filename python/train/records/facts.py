"""What follows from a state, in words: the end of a compact document. Next-token prediction learns from it where a value stands, which
of several is larger and how long a list is, at many tokens a document, before the questions ask for it."""

import re

DATE = re.compile(r"\d{4}-\d\d-\d\d$")
TOLD = 6                                   # values of one sort, at most
LONGEST = 40                               # letters of a text that is told


def facts_of(draw, state):
    """state: JSON -> text, or None where it has nothing to tell. Values looked up, numbers and dates in order, lengths of lists."""
    values, lengths = flattened(state)
    if not values and not lengths:
        return None
    parts = [told(draw, values)] if values and draw.chance(0.6) else []
    ordered = [rising(draw, group) for group in comparable(values)]
    if ordered:
        parts.append(draw.choice(ordered))
    if lengths:
        parts.append(", ".join(f"{name} has {count}" for name, count in draw.sample(lengths, min(len(lengths), 3))))
    return ". ".join(parts) if parts else None


def told(draw, values):
    return ", ".join(f"{name} {written(value)}" for name, _, value in draw.sample(values, min(len(values), TOLD)))


def rising(draw, group):
    """Of some of the values in order, each with its name; as often from the top."""
    order = sorted(draw.sample(group, min(len(group), TOLD)), key=lambda item: item[2])
    falling = draw.chance(0.5)
    return ("falling: " if falling else "rising: ") + ", ".join(f"{name} {value}" for name, _, value in (order[::-1] if falling else order))


def written(value):
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def comparable(values):
    """Groups of two or more different numbers or dates: those of one key if several entries have it, else all of them."""
    groups = []
    for fits in (lambda value: isinstance(value, int | float) and not isinstance(value, bool),
                 lambda value: isinstance(value, str) and DATE.match(value)):
        found = [item for item in values if fits(item[2])]
        keys = {}
        for item in found:
            keys.setdefault(item[1], []).append(item)
        shared = [group for group in keys.values() if len(group) > 1]
        groups += shared or [found]
    return [group for group in groups if len(group) > 1 and len({item[2] for item in group}) == len(group)]


def flattened(state, owner=""):
    """-> ([(name, key, value)] of scalars, [(name, entries)] of arrays). Objects of which there are several name what they hold."""
    if isinstance(state, list):
        return entries(state)
    values, lengths = [], []
    members = state if isinstance(state, dict) else {}
    several = sum(isinstance(value, dict) for value in members.values()) > 1
    for key, value in members.items():
        name = f"{owner} {key}".strip().replace("_", " ")
        if isinstance(value, dict | list):
            inner = flattened(value, key if several else "")
            values, lengths = values + inner[0], lengths + inner[1] + ([(name, len(value))] if isinstance(value, list) else [])
        elif not isinstance(value, str) or len(value) <= LONGEST:
            values.append((name, key, value))
    return values, lengths


def entries(listed):
    """The same for the objects of a list, each named by its first text."""
    values, lengths = [], []
    for entry in listed:
        if isinstance(entry, dict):
            name_key = next((key for key, value in entry.items() if isinstance(value, str)), None)
            inner = flattened({key: value for key, value in entry.items() if key != name_key}, str(entry.get(name_key, "")))
            values, lengths = values + inner[0], lengths + inner[1]
    return values, lengths
