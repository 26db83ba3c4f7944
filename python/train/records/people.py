"""people: lists of people, products, devices and the like with a few attributes each; who has what, the most, how many."""

import math
from dataclasses import dataclass

from .core import CLEARLY, Choice, Family, Noul, clearly_apart
from .facts import facts_of
from .people_sorts import HUMANS, SORTS
from .pools import OBJECTS, article, filled, person

COUNTED = {"points", "errors"}               # more and fewer of them, not higher and lower
BASES = {"has": "have", "lives": "live", "comes": "come", "works": "work", "uses": "use", "speaks": "speak", "belongs": "belong", "earns": "earn",
         "costs": "cost",
         "weighs": "weigh", "consists": "consist", "stands": "stand", "lies": "lie"}


@dataclass
class Scene:
    state: object
    one: str
    several: str
    attributes: list
    rows: dict                             # {name: {label: value}}
    the: str                               # "the " before a name in a sentence, or ""


def capital(text):
    return text[0].upper() + text[1:]


def plural(verb):
    return "are" if verb == "is" else BASES[verb]


def asked(verb, rest, subject, many=False):
    """("lives", "in Paris") of Anna -> "does Anna live in Paris"; with the plural verb, "do any of them live in Paris" """
    if verb == "is":
        return f"{'are' if many else 'is'} {subject} {rest}"
    return f"{'do' if many else 'does'} {subject} {BASES[verb]} {rest}"


class People(Family):
    name = "people"
    harder = ("most", "compare", "count", "fact", "has")
    alike = (("has", "most"), ("compare", "fact"))
    templates = {
        "most": [
            ["Which {one} {pred}?", "Which of [them|the {several}] {pred}?", "Which one {pred}?", "Which of these {several} {pred}?",
             "Which {one} is it that {pred}?"],
            ["What is the name of the {one} that {pred}?", "What is the {one} called that {pred}?", "What is the name of the one that {pred}?",
             "What name has the {one} that {pred}?", "What is the right name: which {one} {pred}?"],
            ["[Pick|Choose|Select] the {one} that {pred}.", "[Pick|Choose|Select] the one that {pred}.", "[Pick|Choose] whichever {one} {pred}.",
             "[Pick|Select] the right {one}: the one that {pred}.", "[Choose|Select] which of them {pred}."],
            ["[Name|Find] the {one} that {pred}.", "[Name|Find] the one that {pred}.", "[Find|Say] which {one} {pred}.",
             "[Name|Find] the right {one}: the one that {pred}.", "Say which of the {several} {pred}."],
            ["[Of|Among] the {several}, which {pred}?", "[Of|Among] these {several}, which one {pred}?", "One of the {several} {pred}: which?",
             "[Of|Among] all {several}, which one {pred}?", "Compare the {several}: which {pred}?"]],
        "has": [
            ["Which {one} {pred}?", "Which of [them|the {several}] {pred}?", "Which one {pred}?", "Which of these {several} {pred}?",
             "Which {one} is it that {pred}?"],
            ["What is the name of the {one} that {pred}?", "What is the {one} called that {pred}?", "What is the name of the one that {pred}?",
             "What name has the {one} that {pred}?", "What is the right name: which {one} {pred}?"],
            ["[Pick|Choose|Select] the {one} that {pred}.", "[Pick|Choose|Select] the one that {pred}.", "[Pick|Choose] whichever {one} {pred}.",
             "[Pick|Select] the right {one}: the one that {pred}.", "[Choose|Select] which of them {pred}."],
            ["[Name|Find] the {one} that {pred}.", "[Name|Find] the one that {pred}.", "[Find|Say] which {one} {pred}.",
             "[Name|Find] the right {one}: the one that {pred}.", "Say which of the {several} {pred}."],
            ["Only one {one} {pred}: which?", "Just one of the {several} {pred}. Which one?", "One of the {several} {pred}: which?",
             "Only one of them {pred}. Which {one}?", "There is {a_one} that {pred}. Which?"]],
        "compare": [
            ["{Question}?", "{Question}, [going by|according to] the data?", "{Question}, as the list has it?", "{Question}, yes or no?",
             "{Question}, or not?"],
            ["Is it [true|right|so] that {clause}?", "Is this [true|right|so]: {clause}?", "Is it the case that {clause}?",
             "Is it correct that {clause}?", "Is it a fact that {clause}?"],
            ["{Clause}.", "It is [true|so] that {clause}.", "The list shows that {clause}.", "According to the data, {clause}.",
             "Compared, {clause}."],
            ["[Take|Compare] {a} and {b}: {question}?", "Comparing {a} with {b}: {question}?", "Between {a} and {b}: {question}?",
             "Look at {a} and {b}: {question}?", "Of {a} and {b}: {question}?"],
            ["[Say|Judge|Decide] whether {clause}.", "[Say|Judge] if it is [true|so] that {clause}.", "[Check|Judge] this: {clause}.",
             "[Check|Decide] whether it is true that {clause}.", "{Clause}. Is that [true|so|right]?"]],
        "fact": [
            ["{Question}?", "{Question}, [going by|according to] the data?", "{Question}, as the list has it?", "{Question}, yes or no?",
             "{Question}, or not?"],
            ["Is it [true|right|so] that {clause}?", "Is this [true|right|so]: {clause}?", "Is it the case that {clause}?",
             "Is it correct that {clause}?", "Is it a fact that {clause}?"],
            ["{Clause}.", "It is [true|so] that {clause}.", "The list shows that {clause}.", "According to the data, {clause}.",
             "As the list has it, {clause}."],
            ["Take {a}: {question}?", "About {a}: {question}?", "Look at {a}: {question}?", "Does the list say that {clause}?",
             "Does the data show that {clause}?"],
            ["[Say|Judge|Decide] whether {clause}.", "[Say|Judge] if it is [true|so] that {clause}.", "[Check|Judge] this: {clause}.",
             "[Check|Decide] whether it is true that {clause}.", "{Clause}. Is that [true|so|right]?"]],
        "attribute": [
            ["What is {attr}?", "What does the list say is {attr}?", "What is {attr}, [going by|according to] the data?",
             "What is given as {attr}?", "What is {attr} here?"],
            ["Which [of these|one] is {attr}?", "Which is {attr}?", "Which value is {attr}?", "Which is given as {attr}?",
             "Which one does the list give as {attr}?"],
            ["[Pick|Choose|Select] {attr}.", "[Pick|Choose|Select] what {attr} is.", "[Pick|Choose] the value that is {attr}.",
             "[Pick|Select] {attr} as the list has it.", "[Choose|Select] which one is {attr}."],
            ["[Name|Find] {attr}.", "[Name|Find] what {attr} is.", "[Say|Find] which one is {attr}.", "[Name|Find] {attr} in the list.",
             "Say what {attr} is."],
            ["{Attr}: which is it?", "{Attr}: what is it?", "Look up {attr}: what is it?", "{Attr}, which of these is it?",
             "{Attr} is one of these. Which?"]],
        "count": [
            ["How many {several} {preds}?", "How many of [them|the {several}] {preds}?", "How many of these {preds}?",
             "How many {several} are there that {preds}?", "How many {several} does the list have that {preds}?"],
            ["What is the number of {several} that {preds}?", "What number of {several} {preds}?", "What is the count of {several} that {preds}?",
             "What is the number of those that {preds}?", "What is the count of those that {preds}?"],
            ["Count the {several} that {preds}.", "Count those that {preds}.", "[Count|Say] how many {several} {preds}.",
             "Count how many of them {preds}.", "[Find|Say] how many of the {several} {preds}."],
            ["[Pick|Choose|Select] the number of {several} that {preds}.", "[Pick|Choose|Select] how many {several} {preds}.",
             "[Pick|Choose] the right count: {several} that {preds}.", "[Pick|Select] how many of them {preds}.",
             "[Choose|Select] the number of those that {preds}."],
            ["[Of|Among] the {several}, how many {preds}?", "[Of|Among] these, how many {preds}?",
             "[Of|Among] all {several}, what number {preds}?", "Go through the {several}: how many {preds}?",
             "Look at all {several}: how many of them {preds}?"]],
        "any": [
            ["Is there [{a_one}|any {one}] that {pred}?", "Is there one that {pred}?", "Is there a single {one} that {pred}?",
             "Is it [true|so] that any {one} {pred}?", "Is there at least one {one} that {pred}?"],
            ["{Many}?", "{Many}, [going by|according to] the data?", "{Many}, or none?", "{Many}, as the list has it?", "Tell me: {many}?"],
            ["There is {a_one} that {pred}.", "At least one {one} {pred}.", "One or more of the {several} {preds}.", "Some {one} {pred}.",
             "There is at least one that {pred}."],
            ["{Single}?", "{Single}, [going by|according to] the data?", "{Single}, or none?", "Look at the list: {single}?",
             "Go through the {several}: {single}?"],
            ["[Say|Judge|Decide] whether any {one} {pred}.", "[Say|Decide] whether there is {a_one} that {pred}.",
             "[Check|Look] whether at least one {one} {pred}.", "[Look|Check] for {a_one} that {pred}: is there any?",
             "[Say|Judge] if there is any {one} that {pred}."]],
    }

    # ---- the scene -------------------------------------------------------------------------------------------------------

    def scene(self, draw):
        sort = draw.choice(SORTS)
        one, several = draw.choice(sort.nouns)
        count = draw.choice([2, 3, 3, 4, 4, 5])
        names = filled([], count, lambda: person(draw) if sort.names is HUMANS else draw.pick(sort.names))
        count = len(names)
        attributes = draw.sample(sort.attributes, draw.choice([2, 3, 3, 4]))
        rows = {name: {} for name in names}
        for attribute in attributes:
            for name, value in zip(names, self.column(draw, attribute, count)):
                rows[name][attribute.label] = value
        return Scene(self.dress(draw, one, several, attributes, rows), one, several, attributes, rows, "the " * (sort.names is OBJECTS))

    @staticmethod
    def column(draw, attribute, count):
        """Values for all rows: numbers differ, words repeat now and then."""
        if attribute.is_number:
            values, refused = [], 0
            while len(values) < count:
                value = attribute.value(draw)
                apart = clearly_apart([*values, value]) if refused < 50 else value not in values
                values += [value] * apart
                refused += not apart
            return values
        few = [attribute.value(draw) for _ in range(draw.choice([2, 3, count, count]))]
        return [draw.choice(few) for _ in range(count)] if draw.chance(0.6) else (few * count)[:count]

    @staticmethod
    def dress(draw, one, several, attributes, rows):
        """The state: a list of objects, an object by name, sentences or a table."""
        keys = {attribute.label: draw.choice(attribute.keys) for attribute in attributes}
        named = {name: {keys[label]: value for label, value in row.items()} for name, row in rows.items()}
        style = draw.choice(["list", "list", "list", "by name", "text", "table"])
        if style == "by name":
            return named
        if style == "text":
            told = {name: [f"{key.replace('_', ' ')} {value}" for key, value in row.items()] for name, row in named.items()}
            return " ".join(f"{name}: {', '.join(facts)}." for name, facts in told.items())
        if style == "table":
            lines = [["name", *keys.values()]] + [[name, *map(str, row.values())] for name, row in named.items()]
            return "\n".join(", ".join(line) for line in lines)
        name_key = draw.choice(["name", "name", "id", one])
        entries = [{name_key: name} | row for name, row in named.items()]
        return entries if draw.chance(0.5) else {draw.choice([several, "list", "entries", "data"]): entries}

    # ---- what is said of a row -------------------------------------------------------------------------------------------

    def extreme(self, draw, attribute, high):
        """(verb, rest) of the row whose value is the highest (or lowest)."""
        special = attribute.more if high else attribute.less
        if special and draw.chance(0.6):
            return "is", special[1]
        if attribute.label in COUNTED:
            return "has", f"the {'most' if high else 'fewest'} {attribute.label}"
        return "has", f"the {draw.choice(['highest', 'greatest'] if high else ['lowest', 'smallest'])} {attribute.label}"

    def comparison(self, draw, attribute, more, other):
        special = attribute.more if more else attribute.less
        if special and draw.chance(0.6):
            return "is", f"{special[0]} than {other}"
        if attribute.label in COUNTED:
            return "has", f"{'more' if more else 'fewer'} {attribute.label} than {other}"
        return "has", f"a {draw.choice(['higher', 'greater'] if more else ['lower', 'smaller'])} {attribute.label} than {other}"

    def beyond(self, draw, attribute, over, limit):
        special = attribute.over if over else attribute.under
        if special and limit > 1 and draw.chance(0.6):
            return tuple(draw.choice(special).format(v=limit).split(" ", 1))
        thing = attribute.label if attribute.label in COUNTED else article(attribute.label)
        return "has", f"{thing} {draw.choice(['over', 'above'] if over else ['under', 'below'])} {limit}"

    def value_predicate(self, draw, attribute, value):
        verb, rest = draw.choice(attribute.predicates)
        return verb, rest.format(v=value, a=article(str(value)))

    def condition(self, draw, scene, wanted):
        """A condition and the rows that meet it -> ((verb, rest), names); wanted(number met) says which will do; or None."""
        for _ in range(12):
            attribute = draw.choice(scene.attributes)
            values = {name: row[attribute.label] for name, row in scene.rows.items()}
            if attribute.is_number:
                over = draw.chance(0.5)
                limit = self.limit(draw, sorted(values.values()))
                met = [name for name, value in values.items() if (value > limit if over else value < limit)]
                predicate = self.beyond(draw, attribute, over, limit)
            else:
                value = draw.choice(list(values.values()))
                if draw.chance(0.3):
                    value = attribute.value(draw)
                met = [name for name, own in values.items() if own == value]
                predicate = self.value_predicate(draw, attribute, value)
            if wanted(len(met)):
                return predicate, met
        return None

    @staticmethod
    def limit(draw, values):
        """A limit below, between or above some numbers, clearly apart from them."""
        place = draw.random.randint(0, len(values))
        low = values[place - 1] if place else max(0, values[0] - max(3, values[0] // 3))
        high = values[place] if place < len(values) else values[-1] + max(3, values[-1] // 3)
        least, most = math.ceil(low * CLEARLY) + (low == 0), math.floor(high / CLEARLY)
        return draw.random.randint(least, most) if least <= most else math.ceil(values[-1] * CLEARLY) + 1 + draw.random.randint(0, 9)

    def told(self, draw, scene):
        return facts_of(draw, scene.rows)

    # ---- the questions ---------------------------------------------------------------------------------------------------

    @staticmethod
    def nouns(draw, scene, predicate):
        verb, rest = predicate
        many = asked(verb, rest, draw.choice([f"any {scene.several}", f"any of the {scene.several}", "any of them", "any of these"]), many=True)
        single = asked(verb, rest, draw.choice([f"any {scene.one}", "any of them", f"at least one {scene.one}", f"one of the {scene.several}"]))
        return {"one": scene.one, "a_one": article(scene.one), "several": scene.several, "pred": f"{verb} {rest}", "preds": f"{plural(verb)} {rest}",
                "many": many, "Many": capital(many), "single": single, "Single": capital(single)}

    def most(self, draw, scene):
        numbers = [attribute for attribute in scene.attributes if attribute.is_number]
        if not numbers or len(scene.rows) < 3:
            return None
        attribute, high = draw.choice(numbers), draw.chance(0.5)
        names = draw.sample(scene.rows, len(scene.rows))
        answer = (max if high else min)(names, key=lambda name: scene.rows[name][attribute.label])
        return Choice(answer, dict.fromkeys(names), self.nouns(draw, scene, self.extreme(draw, attribute, high)))

    def has(self, draw, scene):
        found = self.condition(draw, scene, lambda met: met == 1)
        if found is None or len(scene.rows) < 2:
            return None
        predicate, met = found
        return Choice(met[0], dict.fromkeys(scene.rows), self.nouns(draw, scene, predicate))

    @staticmethod
    def stated(predicate, name, other=""):
        verb, rest = predicate
        clause, question = f"{name} {verb} {rest}", asked(verb, rest, name)
        return {"clause": clause, "Clause": capital(clause), "question": question, "Question": capital(question), "a": name, "b": other}

    def compare(self, draw, scene):
        numbers = [attribute for attribute in scene.attributes if attribute.is_number]
        if not numbers:
            return None
        attribute, more = draw.choice(numbers), draw.chance(0.5)
        name, other = draw.sample(scene.rows, 2)
        return Noul((scene.rows[name][attribute.label] > scene.rows[other][attribute.label]) == more,
                    self.stated(self.comparison(draw, attribute, more, scene.the + other), scene.the + name, scene.the + other))

    def fact(self, draw, scene):
        right = draw.chance(0.5)
        found = self.condition(draw, scene, lambda met: 0 < met < len(scene.rows))
        if found is None:
            return None
        predicate, met = found
        return Noul(right, self.stated(predicate, scene.the + draw.choice([name for name in scene.rows if (name in met) == right])))

    def attribute(self, draw, scene):
        attribute = draw.choice(scene.attributes)
        name = draw.choice(list(scene.rows))
        answer = scene.rows[name][attribute.label]
        options = list(dict.fromkeys([answer, *(row[attribute.label] for row in scene.rows.values())]))
        filled(options, draw.choice([2, 3, 4, 5]), lambda: attribute.value(draw))
        attr = draw.choice([f"the {attribute.label} of {scene.the}{name}", f"{scene.the}{name}'s {attribute.label}"])
        return Choice(str(answer), dict.fromkeys(map(str, options)), {"attr": attr, "Attr": capital(attr)})

    def count(self, draw, scene):
        target = draw.random.randint(0, min(5, len(scene.rows)))
        found = self.condition(draw, scene, lambda met: met == target) or self.condition(draw, scene, lambda met: met < 6)
        if found is None:
            return None
        predicate, met = found
        names = draw.choice([list("0123456"), list("0123456"), ["none", "one", "two", "three", "four", "five", "six"]])
        options = names[:max(len(scene.rows), 3) + 1]
        return Choice(names[len(met)], dict.fromkeys(options), self.nouns(draw, scene, predicate))

    def any(self, draw, scene):
        right = draw.chance(0.5)
        found = self.condition(draw, scene, lambda met: (met > 0) == right)
        if found is None:
            return None
        predicate, met = found
        return Noul(right, self.nouns(draw, scene, predicate))
