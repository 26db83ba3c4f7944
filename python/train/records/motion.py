"""motion: short clips of one moving, growing or recoloured shape, sometimes beside others that stand still.

The processor keeps 4 frames of a clip, spread evenly (media.sampled_frames). So whatever happens shows in these: a way is at
least 0.3 of the picture, and a shape that stops or starts late does so between the second and the third kept frame.

Held out for the role "values", all at once: a fifth of the (shape, colour) pairs (drawing.Pairs), a fifth of the (width, height)
of clips and a fifth of the (x, y) where the acting shape begins, the last two by hash (drawing.fits_role).
"""

from dataclasses import dataclass, replace

import numpy as np

from . import drawing
from .core import Choice, Family, Meanings, Noul, Score, labelled
from .drawing import COLOURS, PAIRS, SHAPES, Item, described, fits_role, offered
from .motion_words import TEMPLATES

SIDES = (64, 128)
FRAMES = (4, 8)
SMALLEST = 14                              # pixels
GROWTH = (1.7, 2.4)
FAR = 0.5                                  # of the side along the way: from here on a way is far, below SHORT it is short
SHORT = 0.4
LEAST_WAY = 0.3

STRAIGHT = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
DIAGONAL = {"up_left": (-1, -1), "up_right": (1, -1), "down_left": (-1, 1), "down_right": (1, 1)}
DIRECTIONS = Meanings("motion.directions", described(
    ["{}", "it moves {}", "moving {}", "it goes {}", "a move {}", "the direction is {}", "the way {}", "heading {}", "{} in the picture",
     "it travels {}"],
    ("left", "right", "up", "down")) | {f"{y}_{x}": [pattern.format(x=x, y=y) for pattern in [
        "{y} and {x}", "it moves {y} and {x}", "moving {y} and to the {x}", "it goes {y} and {x}", "a move {x} and {y}", "both {y} and {x}",
        "the way {x} and {y}", "heading {y} and {x}", "{x} and {y} at once", "it travels {y} and {x}"]]
        for y in ("up", "down") for x in ("left", "right")})
CHANGES = Meanings("motion.changes", {
    "grows": ["it grows", "the shape grows", "it becomes larger", "larger at the end", "it gets larger", "it gets bigger", "bigger at the end",
              "it grows in size", "its size goes up", "it becomes bigger", "from small to large", "the size grows"],
    "shrinks": ["it shrinks", "the shape shrinks", "it becomes smaller", "smaller at the end", "it gets smaller", "it shrinks in size",
                "its size goes down", "from large to small", "the size shrinks", "it becomes smaller in size"],
    "same": ["it keeps its size", "the same size", "no change of size", "the size stays the same", "it stays the same size",
             "its size does not change", "the size is kept", "no change in size", "it keeps the same size", "its size stays"]})
WAYS = Meanings("motion.ways", {
    "none": ["it does not move", "no move at all", "it stays in place", "it keeps its place", "not moving at all", "it does not move at all",
             "it stays where it is", "no way at all", "it stays in its place", "no move"],
    "short": ["a short way", "it moves a short way", "less than half of the picture", "a short move", "it moves less than half the picture",
              "moving a short way", "a way of less than half", "a short way only", "it goes a short way", "less than half of the way across"],
    "far": ["a long way", "it moves a long way", "half of the picture or more", "a long move", "it moves half the picture or more",
            "moving a long way", "a way of half or more", "a long way across", "it goes a long way", "half of the way across or more"]})


@dataclass
class Scene:
    caption: object                        # the state of the request
    width: int
    height: int
    background: str
    frames: int
    actor: Item                            # as it is in the first frame
    others: list                           # items that stand still
    direction: str | None                  # in which the actor moves
    way: float                             # how far: part of the picture's side, 0.0 when it does not move
    steps: tuple                           # (first, last): the frames between which it moves
    grown: float                           # size at the end / size at the start
    recoloured: str | None                 # its other colour
    recolour_at: int                       # the first frame in it

    @property
    def state(self):
        return self                        # Motion.record takes it out again

    @property
    def last_colour(self):
        return self.recoloured or self.actor.colour

    @property
    def stops(self):
        return bool(self.direction) and self.steps[1] < self.frames - 1

    def at(self, frame):
        """The actor in a frame."""
        first, last = self.steps
        moved = min(max((frame - first) / (last - first), 0.0), 1.0) * self.way
        dx, dy = (STRAIGHT | DIAGONAL)[self.direction] if self.direction else (0, 0)
        size = round(self.actor.size * self.grown**(frame / (self.frames - 1))) // 2 * 2
        return replace(self.actor, x=round(self.actor.x + dx * moved * self.width), y=round(self.actor.y + dy * moved * self.height), size=size)


class Motion(Family):
    name = "motion"
    harder = ("stops",)
    templates = TEMPLATES
    questions = (2, 3, 4, 5)               # more than usual: many kinds do not fit a clip, and a clip is costly to read
    weights = (2, 3, 3, 2)

    def record(self, draw, count=None):
        """-> (request whose video is a uint8 array [T, H, W, 3], answers)"""
        request, answers = super().record(draw, count)
        scene = request["state"]
        return request | {"state": scene.caption, "videos": [self.paint(draw, scene)]}, answers

    def told(self, draw, scene):
        """Background, the acting shape, its direction and way, its change of size and colour."""
        actor = scene.actor
        way = "far" if scene.way >= FAR else "short"
        move = f"moves {scene.direction.replace('_', ' ')} {way}" if scene.direction else "stays in place"
        size = "grows" if scene.grown > 1 else "shrinks" if scene.grown < 1 else "keeps its size"
        colour = f"becomes {scene.recoloured}" if scene.recoloured else "keeps its colour"
        return f"{scene.background}: {actor.colour} {actor.shape} {move}, {size}, {colour}, {len(scene.others)} others"

    @staticmethod
    def paint(draw, scene):
        still = drawing.ground(draw, scene.width, scene.height, scene.background)
        for item in scene.others:
            drawing.put(still, item, drawing.shade(draw, item.colour))
        clip = np.repeat(still[None], scene.frames, 0)
        before, after = drawing.shade(draw, scene.actor.colour), drawing.shade(draw, scene.last_colour)
        for frame, image in enumerate(clip):
            drawing.put(image, scene.at(frame), after if scene.recoloured and frame >= scene.recolour_at else before)
        return drawing.with_noise(draw, clip, draw.choice([3, 6, 10])) if draw.chance(0.3) else clip

    # ---- scenes ----

    def scene(self, draw):
        while True:
            scene = self.attempt(draw)
            if scene:
                return scene

    def attempt(self, draw):
        """A scene, or None when the drawn parts do not fit into the picture."""
        width, height = draw.random.randint(*SIDES), draw.random.randint(*SIDES)
        if not fits_role(draw, width, height):
            return None
        frames = draw.random.randint(*FRAMES)
        moves, grows = draw.choice([(True, False)] * 5 + [(False, True)] * 2 + [(False, False)] * 2 + [(True, True)])
        direction = draw.choice(list(STRAIGHT if draw.chance(0.7) else DIAGONAL)) if moves else None
        way = draw.random.uniform(*draw.choice([(LEAST_WAY, SHORT), (FAR, 0.65)])) if moves else 0.0
        grown = draw.random.uniform(*GROWTH) if grows else 1.0

        *pairs, (shape, colour) = draw.sample(PAIRS.of_role(draw), draw.choice([1, 1, 2, 2, 3]))
        other_colours = [other for kind, other in PAIRS.of_role(draw) if kind == shape and other != colour]
        recoloured = draw.choice(other_colours) if draw.chance(0.3) else None
        size = max(int(draw.random.uniform(0.2, 0.36 / grown**0.5) * min(width, height)), SMALLEST) // 2 * 2
        scene = Scene(None, width, height, "", frames, Item(shape, colour, width // 2, height // 2, size, draw.choice(drawing.TURNS)), [],
                      direction, way, self.steps(draw, frames), grown, recoloured, draw.random.randint(1, frames - 1))
        if grown != 1.0 and draw.chance(0.5):
            scene.actor.size, scene.grown = scene.at(frames - 1).size, 1 / grown
        if not self.place_actor(draw, scene):
            return None
        scene.others = self.bystanders(draw, scene, pairs)
        scene.background = drawing.background(draw, {item.colour for item in scene.others} | {colour, scene.last_colour})
        scene.caption = self.caption(draw)
        return scene

    @staticmethod
    def steps(draw, frames):
        """The whole clip; or only up to, or only from, a frame between the second and the third that the processor keeps."""
        last = frames - 1
        turn = draw.random.randint(round(last / 3), round(2 * last / 3))
        return draw.choice([(0, last), (0, last), (0, turn), (0, turn), (turn, last)])

    @staticmethod
    def caption(draw):
        return drawing.caption(draw, draw.choice(["video", "clip"]), "mp4")

    @staticmethod
    def place_actor(draw, scene):
        """Moves the actor to a start from which it stays within the picture; False when there is none."""
        first, last = scene.actor, scene.at(scene.frames - 1)
        largest = max(first.size, last.size)
        dx, dy = last.x - first.x, last.y - first.y
        low_x, high_x = largest // 2 - min(dx, 0) + 1, scene.width - largest // 2 - max(dx, 0) - 1
        low_y, high_y = largest // 2 - min(dy, 0) + 1, scene.height - largest // 2 - max(dy, 0) - 1
        if low_x > high_x or low_y > high_y:
            return False
        for _ in range(60):
            x, y = draw.random.randint(low_x, high_x), draw.random.randint(low_y, high_y)
            if fits_role(draw, x, y):
                first.x, first.y = x, y
                return True
        return False

    @staticmethod
    def bystanders(draw, scene, pairs):
        """Items beside the actor's way that touch neither it nor each other; those of other shapes and colours than all the rest."""
        ends = [scene.at(0), scene.at(scene.frames - 1)]
        reach = max(end.size for end in ends) / 2 + 2
        left, right = min(end.x for end in ends) - reach, max(end.x for end in ends) + reach
        top, bottom = min(end.y for end in ends) - reach, max(end.y for end in ends) + reach
        items, colours, shapes = [], {scene.actor.colour, scene.last_colour}, {scene.actor.shape}
        for shape, colour in pairs:
            if shape in shapes or colour in colours:
                continue
            size = max(int(draw.random.uniform(0.18, 0.3) * min(scene.width, scene.height)), SMALLEST) // 2 * 2
            half = size // 2
            for _ in range(30):
                x, y = draw.random.randint(half, scene.width - half), draw.random.randint(half, scene.height - half)
                beside = x + half < left or x - half > right or y + half < top or y - half > bottom
                if beside and all(max(abs(x - item.x), abs(y - item.y)) > (size + item.size) / 2 + 2 for item in items):
                    items.append(Item(shape, colour, x, y, size, draw.choice(drawing.TURNS)))
                    colours.add(colour)
                    shapes.add(shape)
                    break
        return items

    # ---- questions ----

    @staticmethod
    def it(draw, scene, colour=True):
        """The slots it and It: a name of the actor. With colour=False, or when it is recoloured, one that tells no colour."""
        names = [f"the {scene.actor.shape}"]
        if colour and not scene.recoloured:
            names += [f"the {scene.actor.name}", f"the {scene.actor.colour} shape"]
        if not scene.others:
            names += ["the shape", "it"]
        name = draw.choice(names)
        return {"it": name, "It": name[0].upper() + name[1:]}

    @staticmethod
    def wrong_directions(scene):
        return [other for other in (STRAIGHT if scene.direction in STRAIGHT else DIAGONAL) if other != scene.direction]

    def direction(self, draw, scene):
        if not scene.direction:
            return None
        wrong = draw.sample(self.wrong_directions(scene), draw.random.randint(1, 3))
        if scene.direction in DIAGONAL and draw.chance(0.3):
            wrong += [side for side in STRAIGHT if side not in scene.direction.split("_")]
        categories = [scene.direction, *wrong]
        labels, options = labelled(draw, DIRECTIONS, draw.sample(categories, len(categories)))
        return Choice(labels[scene.direction], options, self.it(draw, scene))

    def moves_to(self, draw, scene):
        if not scene.direction:
            return None
        answer = draw.chance(0.5)
        asked = scene.direction if answer else draw.choice(self.wrong_directions(scene))
        return Noul(answer, self.it(draw, scene) | {"direction": asked.replace("_", " and ")})

    def moves(self, draw, scene):
        """Asked about any shape of the clip, but not about one that only grows: its border does move."""
        if scene.grown != 1.0:
            return None
        if scene.others and draw.chance(0.6 if scene.direction else 0.1):
            name = f"the {draw.choice(scene.others).name}"
            return Noul(False, {"it": name, "It": name.capitalize()})
        return Noul(bool(scene.direction), self.it(draw, scene))

    def which_shape(self, draw, scene):
        if not scene.direction or not scene.others:
            return None
        near = [item.shape for item in scene.others]
        return offered(draw, drawing.SHAPE_MEANINGS, scene.actor.shape, near, SHAPES, {}, most=draw.choice([3, 4, 6]))

    def which_colour(self, draw, scene):
        if not scene.direction or not scene.others or scene.recoloured:
            return None
        near = [item.colour for item in scene.others]
        return offered(draw, drawing.COLOUR_MEANINGS, scene.actor.colour, near, COLOURS, {}, most=draw.choice([3, 4, 6]))

    def size(self, draw, scene):
        if scene.grown == 1.0 and draw.chance(0.6):
            return None
        change = "same" if scene.grown == 1.0 else "grows" if scene.grown > 1 else "shrinks"
        labels, options = labelled(draw, CHANGES, draw.sample(CHANGES.categories, 3))
        return Choice(labels[change], options, self.it(draw, scene))

    def recolours(self, draw, scene):
        if not scene.recoloured and draw.chance(0.55):
            return None
        return Noul(bool(scene.recoloured), self.it(draw, scene, colour=False))

    def end_colour(self, draw, scene):
        """The colour at the end or at the start of the clip; mostly of a shape that changes it."""
        if not scene.recoloured and draw.chance(0.8):
            return None
        at_end = draw.chance(0.5)
        answer = scene.last_colour if at_end else scene.actor.colour
        near = [scene.actor.colour, scene.last_colour] + [item.colour for item in scene.others]
        slots = self.it(draw, scene, colour=False) | {"when": "end" if at_end else "start"}
        return offered(draw, drawing.COLOUR_MEANINGS, answer, near, COLOURS, slots, most=draw.choice([3, 4, 6]))

    def stops(self, draw, scene):
        return Noul(scene.stops, self.it(draw, scene)) if scene.direction and (scene.stops or draw.chance(0.67)) else None

    def how_far(self, draw, scene):
        if scene.grown != 1.0 or scene.direction in DIAGONAL:
            return None
        level = "none" if not scene.direction else "short" if scene.way <= SHORT else "far"
        if level == "none" and draw.chance(0.4):
            return None
        return Score(WAYS.categories.index(level), [draw.describe(WAYS, name) for name in WAYS.categories], self.it(draw, scene))
