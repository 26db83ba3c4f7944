"""What every family of decision records is built from: seeded draws, held-out parts, wordings, answers.

A *family* draws a scene (a state and the facts behind it) and asks about it. What it draws from is split once, by a seeded
draw that depends on names alone, into a part for training and a fifth that training never sees:

    values      names, words and numbers of the state            Pool, Draw.integer, Draw.money
    phrasing    wordings of a template that is itself known       Template.wordings
    templates   whole templates, every wording of them            Family.templates
    options     descriptions of the options                       Meanings

A record has a *role*. "train" takes the training part of everything; each of the four names above takes the held-out part
of that one thing, so a held-out set measures one kind of novelty. "calibration" and "selection" draw like "train" from
streams of their own.
"""

import hashlib
import math
import random
import re
from dataclasses import dataclass, field

from .facts import facts_of

HELD_OUT_ROLES = ("values", "phrasing", "templates", "options")
ROLES = ("train", "calibration", "selection") + HELD_OUT_ROLES
SPLIT_SEED = "treble-tiny 1"
APART = (math.log(1.2), math.log(3))       # of numbers that are compared: logarithms of their ratio
CLEARLY = 1.2                              # the ratio of two numbers from which on one is clearly larger
LARGE_RANGE = 200                          # numbers from ranges at least this wide are split into known and held out


# ---- what is held out ------------------------------------------------------------------------------------------------

def seeded(*parts):
    """A random.Random that depends on the parts alone (not on the process, unlike hash())."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))


def split(items, *key):
    """items -> (training part, held-out part): a fifth, rounded, is held out; at least one of two or more."""
    items = list(items)
    order = sorted(range(len(items)), key=lambda _, source=seeded(SPLIT_SEED, *key): source.random())
    held = set(order[:max(round(len(items) / 5), 1 if len(items) > 1 else 0)])
    return [item for i, item in enumerate(items) if i not in held], [item for i, item in enumerate(items) if i in held]


def number_is_held_out(n):
    """A fifth of all integers, scattered."""
    return (n * 2654435761 + 12345 >> 9) % 5 == 0


def clearly_apart(numbers):
    """Whether no two of some positive numbers are nearly equal."""
    order = sorted(numbers)
    return all(b > a and b >= a * CLEARLY for a, b in zip(order, order[1:]))


class Pool:
    """Values of one sort, a fifth of them held out: those whose own text hashes lowest, so that pools which share values share what is
    held out. `key` names the pool."""

    def __init__(self, key, items):
        self.key = key
        order = sorted(items, key=lambda item: seeded(SPLIT_SEED, "value", str(item).lower()).random())
        count = max(round(len(order) / 5), 1)
        self.held_out, self.known = order[:count], order[count:]

    def __repr__(self):
        """The same in every process: items that hold a pool are split by it."""
        return f"Pool({self.key})"


class Meanings:
    """Descriptions of the categories of one sort: {category: [descriptions]}, a fifth of each category's held out."""

    def __init__(self, key, descriptions):
        self.key = key
        self.known, self.held_out = {}, {}
        for category, texts in descriptions.items():
            self.known[category], self.held_out[category] = split(texts, "meanings", key, category)
        self.categories = list(descriptions)


class Draw:
    """The random choices of one record. Everything a family draws comes from here, so that roles are respected."""

    def __init__(self, role, *key):
        assert role in ROLES, role
        self.role = role
        self.random = seeded("draw", role, *key)

    def chance(self, probability):
        return self.random.random() < probability

    def choice(self, items):
        """One of items that are not split (field names, months, ...)."""
        return self.random.choice(items)

    def sample(self, items, count):
        """count different ones of items that are not split, in random order."""
        return self.random.sample(list(items), count)

    def pick(self, pool):
        """One value of a Pool."""
        return self.random.choice(pool.held_out if self.role == "values" else pool.known)

    def picks(self, pool, count):
        """count different values of a Pool, in random order; the pool's two parts must each hold that many."""
        return self.random.sample(pool.held_out if self.role == "values" else pool.known, count)

    def describe(self, meanings, category):
        """One description of a category."""
        return self.random.choice((meanings.held_out if self.role == "options" else meanings.known)[category])

    def integer(self, low, high):
        """An integer of low..high, both included. Wide ranges are split like pools; narrow ones are not."""
        while True:
            n = self.random.randint(low, high)
            if high - low < LARGE_RANGE or number_is_held_out(n) == (self.role == "values"):
                return n

    def limit_near(self, value):
        """A whole number below or above value by turns, a fifth to three times as far, half of them round; never equal to it."""
        while True:
            factor = math.exp(self.random.uniform(*APART))
            limit = max(1, round(value * factor if self.chance(0.5) else value / factor))
            if self.chance(0.5):
                digits = 10 ** max(0, len(str(limit)) - 2)
                limit = max(1, round(limit / digits) * digits)
            if limit != value:
                return limit

    def money(self, low, high):
        """An amount with two decimals in low..high (whole units), as a float that prints exactly."""
        return self.integer(low * 100, high * 100) / 100


# ---- questions and answers -------------------------------------------------------------------------------------------

@dataclass
class Noul:
    """A proposition, true or not. criteria: descriptions for "true" and "false", or None for the defaults."""
    answer: bool
    slots: dict = field(default_factory=dict)
    criteria: dict | None = None


@dataclass
class Choice:
    """One of options {label: description or None}."""
    answer: str
    options: dict
    slots: dict = field(default_factory=dict)


@dataclass
class Score:
    """One of levels (descriptions, lowest first)."""
    answer: int
    levels: list
    slots: dict = field(default_factory=dict)


class Template:
    """One way of asking: a few wordings that mean the same. `[a|b|]` in a wording is a free alternative, {name} a slot."""

    def __init__(self, kind, wordings, *key):
        self.kind = kind
        self.key = "/".join(map(str, key))
        self.known, self.held_out = split(wordings, "wordings", *key)

    def word(self, draw, slots):
        wording = draw.random.choice(self.held_out if draw.role == "phrasing" else self.known)
        while "[" in wording:              # innermost first, so alternatives may nest
            wording = re.sub(r"\[([^\[\]]*)\]", lambda match: draw.random.choice(match[1].split("|")), wording)
        text = re.sub(r"\s+", " ", wording.format_map(slots)).strip()
        return re.sub(r"\s+([?.,!])", r"\1", text)


class Family:
    """A kind of decision record.

    A subclass has `name`, `templates` {kind: [templates]}, a template being a list of wordings, `scene(draw)` and for every
    kind a method of that name, `kind(draw, scene)` -> Noul, Choice, Score, or None when the scene does not allow the
    question. `scene` returns anything with an attribute `state`.
    """
    name = ""
    templates = {}
    harder = ()                            # kinds that training asks twice as often
    alike = ()                             # groups of kinds whose templates, one by one, are the same sentences but for a word or two
    questions = (1, 2, 3, 5)               # how many a record asks
    weights = (2, 3, 4, 3)

    def __init__(self):
        self.known, self.held_out = {}, {}
        for kind, templates in self.templates.items():
            first = next((group[0] for group in self.alike if kind in group), kind)          # what is held out is held out for all
            assert len(templates) == len(self.templates[first]), (self.name, kind)
            built = [Template(kind, wordings, self.name, first, i) for i, wordings in enumerate(templates)]
            self.known[kind], self.held_out[kind] = split(built, "templates", self.name, first)
        self.kinds = list(self.templates)

    def scene(self, draw):
        raise NotImplementedError

    def told(self, draw, scene):
        """What follows from the scene, in words, or None; compact documents teach it after their questions."""
        return facts_of(draw, scene.state)

    def record(self, draw, count=None):
        """-> (request, answers {question id: true | false | label | level}). count: how many questions to try, else drawn.

        With a count the request is meant for a compact document and holds "told" as well, see told().
        """
        while True:
            scene = self.scene(draw)
            questions, answers, seen = {}, {}, set()
            wanted = count or draw.random.choices(self.questions, self.weights)[0]
            every = [*self.kinds, *self.harder] if draw.role == "train" else self.kinds
            kinds = draw.sample(every, min(wanted, len(every)))
            kinds += [draw.choice(every) for _ in range(wanted - len(kinds))]
            for kind in kinds:
                templates = (self.held_out if draw.role == "templates" else self.known)[kind]
                asked = getattr(self, kind)(draw, scene) if templates else None
                if asked is None:
                    continue
                text = draw.choice(templates).word(draw, asked.slots)
                if text in seen:
                    continue
                seen.add(text)
                question_id = name_question(draw, kind, len(questions) + 1, questions)
                questions[question_id], answers[question_id] = self.question(draw, asked, text)
            if questions:
                request = {"state": scene.state, "questions": questions}
                return request | ({"told": self.told(draw, scene)} if count else {}), answers

    @staticmethod
    def question(draw, asked, text):
        match asked:
            case Noul():
                question = {"type": "noul", "instructions": text}
                criteria = asked.criteria or (noul_criteria(draw) if draw.chance(0.4) else None)
                return question | ({"criteria": criteria} if criteria else {}), asked.answer
            case Choice():
                labels = list(asked.options)
                draw.random.shuffle(labels)
                assert asked.answer in asked.options, (text, asked)
                return {"type": "choice", "instructions": text,
                        "criteria": {label: asked.options[label] for label in labels}}, asked.answer
            case Score():
                assert 0 <= asked.answer < len(asked.levels), (text, asked)
                return {"type": "score", "instructions": text, "criteria": list(asked.levels)}, asked.answer


NOUL_MEANINGS = Meanings("noul", {
    "true": ["Yes.", "Yes, it is so.", "The statement holds.", "It is true.", "Correct.", "The answer is yes.", "This is the case.",
             "yes", "True: the data supports it.", "It holds for this record."],
    "false": ["No.", "No, it is not so.", "The statement does not hold.", "It is false.", "Not correct.", "The answer is no.",
              "This is not the case.", "no", "False: the data does not support it.", "It does not hold for this record."]})


def noul_criteria(draw):
    return {key: draw.describe(NOUL_MEANINGS, key) for key in ("true", "false")}


def name_question(draw, kind, number, taken):
    """An id for the question; the model reads it, so it varies: the kind's name, a counter, a letter."""
    name = draw.choice([kind, f"q{number}", f"question_{number}", chr(96 + number), f"{kind}_{number}", "answer", "check",
                        "decision", "result"])
    return name if name not in taken else f"{name}_{number}"


def labelled(draw, meanings, categories, plain=0.25, bare=0.1):
    """Options for categories -> ({category: label}, {label: description}).

    Mostly the category's own name with a description; sometimes (plain) a label without meaning, so that the description
    must be read; sometimes (bare) no description, so that the label must be.
    """
    if draw.chance(plain):
        style = draw.choice(["letter", "number", "code"])
        names = {"letter": [chr(65 + i) for i in range(len(categories))],
                 "number": [f"option_{i + 1}" for i in range(len(categories))],
                 "code": [f"{draw.choice('abcdefghkmnprstuvwxyz')}{i + 1}" for i in range(len(categories))]}[style]
        draw.random.shuffle(names)
        labels = dict(zip(categories, names))
        return labels, {labels[category]: draw.describe(meanings, category) for category in categories}
    labels = {category: category for category in categories}
    without = draw.chance(bare) and draw.role != "options"
    return labels, {category: None if without else draw.describe(meanings, category) for category in categories}
