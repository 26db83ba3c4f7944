"""What the picture families share: shapes and colours, their names and descriptions, drawing, and what stands beside a picture.

A shape is drawn by blending its colour into the picture through a mask; masks are kept, so that drawing one costs
microseconds. What a held-out value is here: PAIRS says which shapes come in which colours, and `fits_role` splits places.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from .core import Choice, Meanings, Pool, labelled, number_is_held_out

COLOURS = {"red": (215, 35, 40), "orange": (245, 135, 20), "yellow": (245, 220, 50), "green": (35, 150, 65), "blue": (35, 80, 210),
           "purple": (125, 45, 165), "pink": (250, 150, 195), "brown": (115, 70, 35), "black": (20, 20, 20), "white": (248, 248, 248)}
GROUNDS = COLOURS | {"gray": (145, 145, 145)}
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart")
TURNS = (-10, 0, 0, 10)                    # degrees
CONTRAST = 175                             # sum over the channels that a shape and its background differ by, at least
FINENESS = 4                               # masks are drawn this much larger and averaged down


class Pairs(Pool):
    """All (shape, colour) pairs, a fifth of them held out: of every shape two colours, of every colour one or two shapes.

    So every shape and every colour is known in most of its pairs, and only the combination is new in the role "values".
    """

    def __init__(self):
        self.key = "drawing.pairs"
        self.known, self.held_out = [], []
        for i, shape in enumerate(SHAPES):
            for j, colour in enumerate(COLOURS):
                (self.known if (2 * i + j) % 5 else self.held_out).append((shape, colour))

    def of_role(self, draw):
        return self.held_out if draw.role == "values" else self.known


PAIRS = Pairs()


def fits_role(draw, first, second):
    """Whether two coordinates or lengths, below 1024, may be used together: a fifth of all pairs is for the role "values"."""
    return number_is_held_out(first * 1024 + second) == (draw.role == "values")


# ---- names and descriptions ------------------------------------------------------------------------------------------

def named(pair):
    return f"{pair[1]} {pair[0]}"


def with_article(name):
    return ("an " if name[0] in "aeiou" else "a ") + name


def described(patterns, names):
    """{name: descriptions}; {} stands for the name, {a} for the name with its article."""
    return {name: [pattern.format(name, a=with_article(name)) for pattern in patterns] for name in names}


COLOUR_MEANINGS = Meanings("drawing.colours", described(
    ["{}", "it is {}", "{} in colour", "the colour {}", "{a} one", "the {} one", "coloured {}", "painted {}", "drawn in {}",
     "the color is {}"], GROUNDS))
SHAPE_MEANINGS = Meanings("drawing.shapes", described(
    ["{a}", "the {}", "it is {a}", "this is {a}", "the shape of {a}", "one {}", "{a} shape", "the outline of {a}", "something like {a}",
     "drawn as {a}"], SHAPES))
PAIR_MEANINGS = Meanings("drawing.pairs", {f"{colour} {shape}": [
    f"the {colour} {shape}", with_article(f"{colour} {shape}"), f"the {shape} in {colour}", f"a {shape} in {colour}",
    f"the {shape} that is {colour}", f"it is the {colour} {shape}", f"{colour} {shape}", f"a {shape}, coloured {colour}",
    f"the {shape} painted {colour}", f"the {colour} one, a {shape}"] for shape in SHAPES for colour in COLOURS})


def offered(draw, meanings, answer, near, others, slots, most=6):
    """A Choice with 2 to most options: the answer, preferably what is near it (wrong but in the picture), then others."""
    near = [item for item in dict.fromkeys(near) if item != answer]
    others = [item for item in others if item != answer and item not in near]
    count = draw.random.randint(2, most)
    wrong = (draw.sample(near, len(near)) + draw.sample(others, len(others)))[:count - 1]
    categories = draw.sample([answer, *wrong], len(wrong) + 1)
    labels, options = labelled(draw, meanings, categories)
    return Choice(labels[answer], options, slots)


# ---- drawing ---------------------------------------------------------------------------------------------------------

@dataclass
class Item:
    """One shape: its centre, its width and height (they are equal), its turn in degrees."""
    shape: str
    colour: str
    x: int
    y: int
    size: int
    turn: int

    @property
    def pair(self):
        return self.shape, self.colour

    @property
    def name(self):
        return named(self.pair)

    @property
    def area(self):
        return covered(self.shape) * self.size**2


def outline(shape):
    """Corners of a shape within a circle of radius 1; y points down."""
    def wheel(count, radii, start=-90):
        angles = [math.radians(start + 360 * i / count) for i in range(count)]
        return [(math.cos(a) * radii[i % len(radii)], math.sin(a) * radii[i % len(radii)]) for i, a in enumerate(angles)]

    match shape:
        case "circle" | "ring":
            return wheel(48, [0.9])
        case "square":
            return wheel(4, [1.12], start=-45)
        case "diamond":
            return wheel(4, [1.0, 0.66])
        case "triangle":
            return [(x, y + 0.15) for x, y in wheel(3, [1.0])]
        case "star":
            return wheel(10, [1.0, 0.42])
        case "cross":
            a, b = 0.3, 0.92
            return [(-a, -b), (a, -b), (a, -a), (b, -a), (b, a), (a, a), (a, b), (-a, b), (-a, a), (-b, a), (-b, -a), (-a, -a)]
        case "heart":
            turns = [2 * math.pi * i / 48 for i in range(48)]
            return [(math.sin(t)**3 * 0.95, -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 17 - 0.12)
                    for t in turns]


@lru_cache(maxsize=None)
def mask(shape, size, turn=0):
    """How much of every pixel a shape covers, uint8 [size, size, 1], 255 being all of it."""
    side = size * FINENESS
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))

    def placed(scale):
        return [((1 + scale * (x * cos - y * sin)) * side / 2, (1 + scale * (x * sin + y * cos)) * side / 2) for x, y in outline(shape)]

    image = Image.new("L", (side, side))
    pencil = ImageDraw.Draw(image)
    pencil.polygon(placed(1.0), fill=255)
    if shape == "ring":
        pencil.polygon(placed(0.55), fill=0)
    return np.asarray(image.reduce(FINENESS))[..., None]


@lru_cache(maxsize=None)
def covered(shape):
    """The part of its square that a shape takes up; a ring counts with its hole."""
    return float(mask("circle" if shape == "ring" else shape, 64).mean() / 255)


def contrast(a, b):
    return sum(abs(x - y) for x, y in zip(GROUNDS[a], GROUNDS[b]))


def background(draw, used):
    """A colour behind shapes of the colours used, plain ones more often."""
    def worst(ground):
        return min(contrast(ground, colour) for colour in used)
    grounds = ["white", "black", "gray", *draw.sample(GROUNDS, 3)]
    clear = [ground for ground in grounds if worst(ground) >= CONTRAST]
    return draw.choice(clear) if clear else max(GROUNDS, key=worst)


def shade(draw, colour):
    """A colour by name, slightly different every time."""
    return [min(max(level + draw.random.randint(-9, 9), 0), 255) for level in GROUNDS[colour]]


def ground(draw, width, height, colour):
    image = np.empty((height, width, 3), np.uint8)
    image[:] = shade(draw, colour)
    return image


def put(image, item, rgb):
    """Draws an item that lies wholly within the image."""
    top, left = item.y - item.size // 2, item.x - item.size // 2
    area = image[top:top + item.size, left:left + item.size]
    cover = mask(item.shape, item.size, item.turn) * np.float32(1 / 255)
    area[:] = area + cover * (np.asarray(rgb, np.float32) - area) + np.float32(0.5)


def with_noise(draw, pixels, strength):
    """Adds up to +-strength to every value, clipped to uint8; one byte of noise serves every pixel's three channels."""
    random = np.random.Generator(np.random.PCG64(draw.random.getrandbits(64)))
    noise = random.integers(-strength, strength + 1, pixels.shape[:-1] + (1,), np.int8)
    return np.clip(pixels.astype(np.int16) + noise, 0, 255).astype(np.uint8)


# ---- what stands beside a picture ------------------------------------------------------------------------------------

STEMS = Pool("drawing.stems", [
    "IMG", "DSC", "scan", "photo", "frame", "capture", "shot", "sample", "card", "sheet", "plate", "tile", "label", "panel", "figure", "upload",
    "snap", "view", "draft", "print", "page", "item", "test", "export", "cam", "clip", "slide", "board", "proof", "sketch"])
PLACES = Pool("drawing.places", [
    "Hall 3", "north gate", "Line 7", "packing table", "Room 12", "workshop", "front desk", "Studio B", "loading bay", "Lab 2", "east wing",
    "Belt 4", "mail room", "school hall", "kiosk", "warehouse", "print shop", "Gate 9", "reading room", "counter 5", "Dock 1", "archive",
    "museum", "main office", "garage", "Booth 6", "canteen", "sorting room", "Platform 2", "roof"])
PEOPLE = Pool("drawing.people", [
    "Mara", "Jonas", "Ines", "Tomas", "Aiko", "Rahul", "Selma", "Peter", "Lucia", "Oskar", "Noor", "Elif", "Ivan", "Grace", "Milan", "Hanna",
    "Diego", "Yara", "Felix", "Anya", "Kofi", "Leila", "Bruno", "Sofia", "Emil", "Chen", "Dana", "Viktor", "Amara", "Simon"])


def caption(draw, media, ending):
    """A state that says nothing about the picture: often empty or a file name, at most a few fields."""
    number = draw.integer(1, 9999)
    match draw.random.randrange(7):
        case 0:
            return {}
        case 1:
            return ""
        case 2:
            return draw.choice([f"See the {media}.", f"One {media} is attached.", f"The {media} is attached.", f"Please look at the {media}."])
        case 3:
            return f"{draw.pick(STEMS)}_{number}.{ending}"
        case 4:
            return {draw.choice(["file", "name", "attachment"]): f"{draw.pick(STEMS)}_{number}.{ending}"}
        case 5:
            return {draw.choice(["id", "number", "case"]): number, draw.choice(["place", "source", "camera"]): draw.pick(PLACES)}
        case _:
            return {draw.choice(["sent_by", "owner", "author"]): draw.pick(PEOPLE), draw.choice(["place", "source", "camera"]): draw.pick(PLACES),
                    "file": f"{draw.pick(STEMS)}_{number}.{ending}"}
