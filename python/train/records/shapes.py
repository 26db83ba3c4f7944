"""shapes: pictures of one to six coloured shapes; colours, names, counts, sizes, places, presence, and which of two pictures.

Held out for the role "values", all at once: a fifth of the (shape, colour) pairs (drawing.Pairs: every shape and colour stays
known in other pairs, and training neither draws nor asks for a held-out pair), a fifth of the (width, height) of pictures and a
fifth of the (x, y) of a shape's centre, the last two by hash (drawing.fits_role).
"""

from collections import Counter
from dataclasses import dataclass

from . import drawing
from .core import Choice, Family, Meanings, Noul, Score, labelled
from .drawing import COLOURS, GROUNDS, PAIRS, SHAPES, Item, fits_role, named, offered, with_article
from .shapes_words import TEMPLATES

SIDES = (128, 256)
SIZES = {1: (0.3, 0.7), 2: (0.28, 0.5), 3: (0.25, 0.42), 4: (0.23, 0.36), 5: (0.21, 0.31), 6: (0.2, 0.28)}    # of the shorter side
SMALLEST = 16                              # pixels
GAP = 4
CLEARLY = 1.3                              # how much larger, in width and in area, a larger shape is

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven")
NUMBERS = Meanings("shapes.numbers", {str(n): [
    f"exactly {word}", f"exactly {n}", f"{word} in all", f"{n} in all", f"{word} of them", f"{n} of them", f"the count is {n}", f"a total of {n}",
    f"{word}, that is {n}", f"there {'is' if n == 1 else 'are'} {word}"] for n, word in enumerate(WORDS)})
AMOUNTS = Meanings("shapes.amounts", {level: [
    f"{a} or {b} shapes", f"{m} or {n} shapes", f"{a} or {b}", f"{m} or {n}", f"{m} to {n} shapes", f"{a} to {b} of them", f"{m} to {n} in all",
    f"the count is {m} or {n}", f"there are {a} or {b}", f"between {m} and {n}"]
    for level, (m, a, n, b) in {"few": (1, "one", 2, "two"), "some": (3, "three", 4, "four"), "many": (5, "five", 6, "six")}.items()})
RELATIONS = Meanings("shapes.relations", {
    side: [pattern.format(side) for pattern in patterns] for side, patterns in {
        side: ["to the {}", "on the {}", "{} of it", "to the {} of it", "further to the {}", "on the {} side", "it is to the {}", "at its {}",
               "more to the {}", "the {} side"] for side in ("left", "right")}.items()} | {
    side: [pattern.format(side) for pattern in ["{} it", "{} the other", "it is {}", "somewhere {}", "placed {} it", "located {}", "{} that one",
                                                "drawn {} it", "it lies {}", "the place {}"]] for side in ("above", "below")})
IMAGES = Meanings("shapes.images", {name: [pattern.format(name) for pattern in [
    "the {} image", "the {} picture", "the {} one", "it is the {}", "the {} of the two", "the image shown {}", "the {} one of two",
    "the {} image here", "the picture given {}", "only the {}"]] for name in ("first", "second")})
OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above"}
PHRASES = {"left": ("left of", "to the left of"), "right": ("right of", "to the right of"), "above": ("above",), "below": ("below",)}


@dataclass
class Picture:
    width: int
    height: int
    background: str
    items: list

    def unique(self):
        """The items whose pair occurs once."""
        counts = Counter(item.pair for item in self.items)
        return [item for item in self.items if counts[item.pair] == 1]

    def refer(self, draw, item):
        """A name that fits this item alone; its pair must be unique."""
        names = [item.name, item.name]
        if sum(other.shape == item.shape for other in self.items) == 1:
            names.append(item.shape)
        if sum(other.colour == item.colour for other in self.items) == 1:
            names.append(f"{item.colour} shape")
        return draw.choice(names)


@dataclass
class Scene:
    caption: object                        # the state of the request
    pictures: list
    expected: tuple | None = None          # (its key in the state, a pair)

    @property
    def state(self):
        return self                        # Shapes.record takes it out again

    @property
    def only(self):
        """The picture of a scene that has just one."""
        return self.pictures[0] if len(self.pictures) == 1 else None


def plural(shape):
    return shape + ("es" if shape.endswith("s") else "s")


def larger(a, b):
    return a.size >= CLEARLY * b.size and a.area >= CLEARLY * b.area


def relations(a, b):
    """On which sides of b all of a lies."""
    apart = (a.size + b.size) / 2
    return {name for name, distance in (("left", b.x - a.x), ("right", a.x - b.x), ("above", b.y - a.y), ("below", a.y - b.y))
            if distance >= apart}


class Shapes(Family):
    name = "shapes"
    templates = TEMPLATES
    harder = ("present", "count_of", "side", "where", "larger", "largest", "expected")
    questions = (2, 3, 4, 5)               # more than usual: many kinds do not fit a picture, and a picture is costly to read
    weights = (2, 3, 3, 2)

    def record(self, draw, count=None):
        """-> (request whose images are uint8 arrays [H, W, 3], answers)"""
        request, answers = super().record(draw, count)
        scene = request["state"]
        images = [self.paint(draw, picture) for picture in scene.pictures]
        return request | {"state": scene.caption, "images": images}, answers

    def told(self, draw, scene):
        return ". ".join(self.told_of(picture) for picture in scene.pictures)

    @staticmethod
    def told_of(picture):
        """Background, number and shapes from left to right, each with its size and third of the picture."""
        words = []
        for item in sorted(picture.items, key=lambda item: item.x):
            part = item.size / min(picture.width, picture.height)
            size = "large" if part > 0.33 else "small" if part < 0.22 else "middle"
            row = ("above", "middle", "below")[min(3 * item.y // picture.height, 2)]
            column = ("left", "middle", "right")[min(3 * item.x // picture.width, 2)]
            words.append(f"{item.colour} {item.shape} {size} {column} {row}")
        return f"{picture.background}, {len(picture.items)} shapes: " + ", ".join(words)

    @staticmethod
    def paint(draw, picture):
        image = drawing.ground(draw, picture.width, picture.height, picture.background)
        for item in picture.items:
            drawing.put(image, item, drawing.shade(draw, item.colour))
        return drawing.with_noise(draw, image, draw.choice([3, 6, 10])) if draw.chance(0.3) else image

    # ---- scenes ----

    def scene(self, draw):
        if draw.chance(0.35):
            return Scene(drawing.caption(draw, "pictures", "png"), [self.picture(draw), self.picture(draw)])
        picture = self.picture(draw)
        if draw.chance(0.4):
            return self.with_expectation(draw, picture)
        return Scene(drawing.caption(draw, "picture", "png"), [picture])

    def with_expectation(self, draw, picture):
        """The state names shapes under keys: the one that "expected" asks for and often a second, both with an even chance to be there."""
        key, other = draw.sample(["expected", "wanted", "required", "listed", "ordered"], 2)
        pair = draw.choice(picture.items).pair if draw.chance(0.5) else self.absent(draw, picture)
        fields = {key: named(pair)}
        if draw.chance(0.5):
            fields[other] = named(draw.choice(picture.items).pair if draw.chance(0.5) else self.absent(draw, picture))
        match draw.random.randrange(3):
            case 0:
                state = fields
            case 1:
                state = {f"{name}_shape": value for name, value in fields.items()} | {"place": draw.pick(drawing.PLACES)}
            case _:
                lines = [f"The {name} shape is {with_article(value)}." for name, value in fields.items()]
                state = " ".join(draw.sample(lines, len(lines)))
        return Scene(state, [picture], (key, pair))

    def picture(self, draw):
        while True:
            width, height = draw.random.randint(*SIDES), draw.random.randint(*SIDES)
            if fits_role(draw, width, height):
                break
        count = draw.choice([1, 2, 2, 3, 3, 4, 4, 5, 6])
        items = []
        for (shape, colour), part in zip(self.cast(draw, count), self.sizes(draw, count)):
            size = max(int(part * min(width, height)) // 2 * 2, SMALLEST)
            place = self.free_place(draw, width, height, size, items)
            if place:
                items.append(Item(shape, colour, *place, draw.choice(drawing.TURNS)))
        return Picture(width, height, drawing.background(draw, {item.colour for item in items}), items)

    @staticmethod
    def cast(draw, count):
        """The pairs of a picture: all different, or drawn so that one colour or one shape comes up often."""
        pairs = PAIRS.of_role(draw)
        if draw.chance(0.45):
            return draw.sample(pairs, count)
        part = draw.choice([0, 1])
        common = draw.choice(pairs)[part]
        group = [pair for pair in pairs if pair[part] == common]
        return [draw.choice(group if draw.chance(0.6) else pairs) for _ in range(count)]

    @staticmethod
    def sizes(draw, count):
        """Of the shorter side: anything within SIZES, or near its two ends, either one against all others or a mixture."""
        low, high = SIZES[count]
        near = {True: (high - (high - low) / 4, high), False: (low, low + (high - low) / 4)}
        match draw.random.randrange(3):
            case 0:
                return [draw.random.uniform(low, high) for _ in range(count)]
            case 1:
                odd, large = draw.random.randrange(count), draw.chance(0.5)
                return [draw.random.uniform(*near[large == (i == odd)]) for i in range(count)]
            case _:
                return [draw.random.uniform(*near[draw.chance(0.5)]) for _ in range(count)]

    @staticmethod
    def free_place(draw, width, height, size, items):
        """(x, y, size) where a shape of that size touches no other, or None."""
        half = size // 2
        for _ in range(150):
            x, y = draw.random.randint(half, width - half), draw.random.randint(half, height - half)
            if fits_role(draw, x, y) and all(max(abs(x - item.x), abs(y - item.y)) >= (size + item.size) / 2 + GAP for item in items):
                return x, y, size

    @staticmethod
    def absent(draw, picture):
        """A pair that the picture lacks; mostly its colour and its shape are there, but not together."""
        there = {item.pair for item in picture.items}
        shapes, colours = {shape for shape, _ in there}, {colour for _, colour in there}
        away = [pair for pair in PAIRS.of_role(draw) if pair not in there]
        near = [pair for pair in away if pair[0] in shapes and pair[1] in colours]
        half = [pair for pair in away if pair[0] in shapes or pair[1] in colours]
        return draw.choice(next(pairs for pairs in ((near, half) if draw.chance(0.8) else (half,)) + (away,) if pairs))

    # ---- questions ----

    def colour(self, draw, scene):
        if not scene.only:
            return None
        counts = Counter(item.shape for item in scene.only.items)
        single = [item for item in scene.only.items if counts[item.shape] == 1]
        if not single:
            return None
        item = draw.choice(single)
        near = [other.colour for other in scene.only.items] + [scene.only.background]
        return offered(draw, drawing.COLOUR_MEANINGS, item.colour, near, COLOURS, {"shape": item.shape}, most=draw.choice([3, 4, 6, 9]))

    def shape(self, draw, scene):
        if not scene.only:
            return None
        counts = Counter(item.colour for item in scene.only.items)
        single = [item for item in scene.only.items if counts[item.colour] == 1]
        if not single:
            return None
        item = draw.choice(single)
        return offered(draw, drawing.SHAPE_MEANINGS, item.shape, [other.shape for other in scene.only.items], SHAPES, {"colour": item.colour},
                       most=draw.choice([3, 4, 6, 8]))

    def count(self, draw, scene):
        return self.numbers(draw, len(scene.only.items), {}) if scene.only else None

    def count_of(self, draw, scene):
        if not scene.only:
            return None
        things = Counter()
        for item in scene.only.items:
            things.update([f"{item.colour} shapes", plural(item.shape), f"{item.colour} {plural(item.shape)}"])
        if draw.chance(0.15):
            shape, colour = self.absent(draw, scene.only)
            things[f"{colour} {plural(shape)}"] = wanted = 0
        else:
            several = sorted(set(things.values()) - {1})
            wanted = draw.choice(several) if several and draw.chance(0.75) else min(things.values())
        return self.numbers(draw, wanted, {"things": draw.choice([name for name, count in things.items() if count == wanted])})

    @staticmethod
    def numbers(draw, answer, slots):
        """A choice of consecutive numbers within 0 to 7."""
        low = draw.random.randint(max(0, answer - 4), answer)
        high = draw.random.randint(max(answer, low + 1), min(7, low + 6))
        labels, options = labelled(draw, NUMBERS, [str(n) for n in range(low, high + 1)])
        return Choice(labels[str(answer)], options, slots)

    def amount(self, draw, scene):
        if not scene.only:
            return None
        return Score((len(scene.only.items) - 1) // 2, [draw.describe(AMOUNTS, level) for level in AMOUNTS.categories])

    def present(self, draw, scene):
        if not scene.only:
            return None
        there = draw.chance(0.5)
        pair = draw.choice(scene.only.items).pair if there else self.absent(draw, scene.only)
        return Noul(there, self.pair_slots(pair))

    @staticmethod
    def pair_slots(pair):
        name = with_article(named(pair))
        return {"pair": name, "Pair": name.capitalize()}

    def two(self, draw, scene):
        """Two items of the one picture that can be told apart by name, or None."""
        unique = scene.only.unique() if scene.only else []
        return draw.sample(unique, 2) if len(unique) > 1 else None

    def side(self, draw, scene):
        two = self.two(draw, scene)
        clear = sorted(relations(*two)) if two else []
        if not clear:
            return None
        relation, answer = draw.choice(clear), draw.chance(0.5)
        phrase = draw.choice(PHRASES[relation if answer else OPPOSITE[relation]])
        return Noul(answer, {"a": scene.only.refer(draw, two[0]), "b": scene.only.refer(draw, two[1]), "relation": phrase})

    def where(self, draw, scene):
        two = self.two(draw, scene)
        clear = relations(*two) if two else ()
        if len(clear) != 1:
            return None
        a, b = two
        across, down = abs(a.x - b.x), abs(a.y - b.y)
        if max(across, down) < 1.5 * min(across, down):
            return None
        labels, options = labelled(draw, RELATIONS, RELATIONS.categories)
        return Choice(labels[clear.pop()], options, {"a": scene.only.refer(draw, a), "b": scene.only.refer(draw, b)})

    def larger(self, draw, scene):
        two = self.two(draw, scene)
        if not two or not (larger(*two) or larger(*two[::-1])):
            return None
        comparison = draw.choice(["larger", "bigger", "smaller", "smaller"])
        return Noul(larger(*two) == (comparison != "smaller"),
                    {"a": scene.only.refer(draw, two[0]), "b": scene.only.refer(draw, two[1]), "comparison": comparison})

    def largest(self, draw, scene):
        if not scene.only or len(scene.only.items) < 2:
            return None
        extreme = draw.choice(["largest", "biggest", "smallest", "smallest"])
        ranked = sorted(scene.only.items, key=lambda item: item.size, reverse=extreme != "smallest")
        first, rest = ranked[0], ranked[1:]
        clear = all(larger(item, first) if extreme == "smallest" else larger(first, item) for item in rest)
        if not clear or first not in scene.only.unique():
            return None
        return offered(draw, drawing.PAIR_MEANINGS, first.name, [item.name for item in rest], map(named, PAIRS.of_role(draw)),
                       {"extreme": extreme})

    def background(self, draw, scene):
        if not scene.only:
            return None
        near = [item.colour for item in scene.only.items]
        return offered(draw, drawing.COLOUR_MEANINGS, scene.only.background, near, GROUNDS, {}, most=draw.choice([3, 4, 6, 9]))

    def more_shapes(self, draw, scene):
        if scene.only:
            return None
        first, second = (len(picture.items) for picture in scene.pictures)
        if abs(first - second) < 2 and max(first, second) > 3 or first == second:
            return None
        more = draw.choice(["more", "fewer"])
        return self.which(draw, (first > second) == (more == "more"), {"more": more})

    def which_image(self, draw, scene):
        if scene.only:
            return None
        first, second = ({item.pair for item in picture.items} for picture in scene.pictures)
        if not first ^ second:
            return None
        pair = draw.choice(sorted(first ^ second))
        return self.which(draw, pair in first, self.pair_slots(pair))

    @staticmethod
    def which(draw, first, slots):
        labels, options = labelled(draw, IMAGES, IMAGES.categories)
        return Choice(labels["first" if first else "second"], options, slots)

    def expected(self, draw, scene):
        if not scene.expected:
            return None
        key, pair = scene.expected
        return Noul(pair in {item.pair for item in scene.only.items}, {"key": key})
