"""lists: named lists of people, places, things or tags; how many entries, which are on them, which comes first, what has a property."""

from dataclasses import dataclass

from .core import Choice, Family, Noul, Pool
from .facts import facts_of
from .vocabulary import COMPANIES, FIRST_NAMES, PLACES, PRODUCTS, code, day, entity_options, mirrored, person, words, write_date

TAGS = Pool("lists.tags", words(
    "urgent, draft, private, public, summer, winter, sale, new, legacy, backend, frontend, mobile, desktop, beta, stable, organic, vegan, handmade,"
    "vintage, outdoor, indoor, budget, premium, seasonal, family, travel, health, finance, legal, marketing, sports, music, film, history,"
    "science, nature, cooking, gardening, fashion, gaming, security, privacy, testing, design, research, remote, local, global, weekly, daily,"
    "monthly, archive, featured, popular, fragile, heavy, large, small, blue, green, red, yellow, spicy, sweet, frozen, fresh, recycled, digital"))
LISTS = Pool("lists.lists", [(name, pool) for pool, names in (
    (FIRST_NAMES, "members, guests, players, students, drivers, speakers, volunteers, authors, nurses, tenants, reviewers, "
                  "singers, candidates, actors, helpers, winners, editors, friends, owners, partners"),
    (PLACES, "stops, destinations, offices, stations, branches, cities, stages, regions, ports, venues"),
    (PRODUCTS, "items, products, gifts, supplies, spare parts, articles, purchases, tools, wishes, goods"),
    (TAGS, "tags, labels, keywords, topics, categories, groups, themes, filters, flags, subjects"),
    (COMPANIES, "suppliers, clients, sponsors, customers, vendors, bidders, competitors, agencies, shops, investors"))
    for name in words(names)])
PROPERTIES = {                             # what entries may have, and its values
    "color": words("red, blue, green, yellow, black, white, brown, grey"), "size": words("small, medium, large, tiny, huge"),
    "zone": words("north, south, east, west, center"), "shift": words("morning, day, evening, night"),
    "season": words("spring, summer, autumn, winter"), "level": words("basic, junior, senior, expert"),
    "grade": words("A, B, C, D, E"), "material": words("wood, steel, glass, plastic, paper, cotton"),
    "status": words("open, closed, active, inactive, new, done, waiting"), "priority": words("low, normal, high, urgent"),
    "city": PLACES, "contact": FIRST_NAMES, "manager": FIRST_NAMES, "group": TAGS, "supplier": COMPANIES, "home": PLACES}
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
           "thirteen", "fourteen", "fifteen"]

FEWER = {"more": "fewer", "longer": "shorter", "over": "under", "above": "below", "exceed": "stay below", "exceeds": "stays below",
         "larger": "smaller", "greater": "smaller"}
LAST = {"first": "last", "starts": "ends", "start": "end", "beginning": "end", "begins": "ends", "top": "bottom", "opens": "closes"}

COUNT = [
    ["How many {list} are there?", "How many entries [are in|are on] [the list|] {list}?", "How many {list} [are listed|does it list]?",
     "How many {list} does the record [have|contain]?", "How many entries does {list} have?"],
    ["What is the number of {list}?", "What is the number of entries in {list}?", "What number of {list} is listed?",
     "What is the count of {list}?", "What is the length of the list {list}?"],
    ["[Pick|Choose|Select] the number of {list}.", "[Pick|Choose|Select] the number of entries in {list}.",
     "[Pick|Choose|Select] how many {list} there are.", "[Pick|Choose] the count of {list}.", "[Pick|Choose] the right count for {list}."],
    ["Count the {list}.", "Count the entries [in|of] {list}.", "Count the {list}: how many are there?", "Count how many {list} are listed.",
     "Count {list} and [pick|choose] the number."],
    ["Looking at {list}, how many entries are there?", "In the list {list}, how many entries are there?", "Of {list}, how many are listed?",
     "Going by the record, what is the number of {list}?", "Take the list {list}: how many entries does it have?"],
]
COUNT_WITH = [
    ["How many [of the|] {list} have {property} {value}?", "How many [of the|] {list} have the {property} {value}?",
     "How many entries have {value} as {property}?", "How many {list} are there with {property} {value}?", "How many have {property} {value}?"],
    ["What is the number of {list} with {property} {value}?", "What number of {list} has {property} {value}?",
     "What is the count of {list} with the {property} {value}?", "What is the number of entries with {value} as {property}?",
     "What is the number of entries whose {property} is {value}?"],
    ["[Pick|Choose|Select] the number of {list} with {property} {value}.", "[Pick|Choose|Select] how many have the {property} {value}.",
     "[Pick|Choose] the number of entries whose {property} is {value}.", "[Pick|Choose] how many {list} have {value} as {property}.",
     "[Pick|Choose] the count of {list} with {property} {value}."],
    ["Count the {list} with {property} {value}.", "Count the entries whose {property} is {value}.",
     "Count the {list} that have {value} as {property}.", "Count how many {list} have the {property} {value}.",
     "Count those with {property} {value}."],
    ["Looking at {property}, how many {list} have {value}?", "Of the {list}, how many have the {property} {value}?",
     "For how many {list} is the {property} {value}?", "Take {property} {value}: how many {list} have it?",
     "Among the {list}, how many have {property} {value}?"],
]
CONTAINS = [
    ["Is {entry} [in|on] the list [of|] {list}?", "Is {entry} [among|one of] the {list}?", "Is {entry} listed under {list}?",
     "Is there an entry {entry} in {list}?", "Is {entry} part of {list}?"],
    ["Does the list {list} [contain|include] {entry}?", "Does {entry} appear in {list}?", "Does {list} [include|contain] {entry}?",
     "Does the record list {entry} under {list}?", "Do the {list} include {entry}?"],
    ["{entry} is [among|one of] the {list}.", "{entry} is [in|on] the list {list}.", "The list {list} [contains|includes] {entry}.",
     "The {list} include {entry}.", "{entry} is listed under {list}."],
    ["Looking for {entry}: is it in {list}?", "Take {entry}: is it among the {list}?", "Look for {entry}. Does {list} include it?",
     "Concerning {entry}: is it on the list {list}?", "Look through the {list}. Is {entry} listed?"],
    ["[Check|Say|Decide] whether {entry} is [among|one of] the {list}.", "[Check|Say|Decide] whether {list} [contains|includes] {entry}.",
     "[Check|Say] if {entry} is [in|on] the list {list}.", "[Check|Decide] if {entry} appears in {list}.",
     "[Check|Decide]: is {entry} listed under {list}?"],
]
LONGER = [
    ["Are there more {list} than {other}?", "Is the list {list} longer than {other}?", "Are the {list} more than the {other}?",
     "Is the number of {list} [larger|greater] than that of {other}?", "Is {list} longer than {other}?"],
    ["Does {list} have more entries than {other}?", "Does the list {list} contain more entries than {other}?",
     "Does the number of {list} exceed that of {other}?", "Does the record list more {list} than {other}?",
     "Do the {list} come to more than the {other}?"],
    ["There are more {list} than {other}.", "The list {list} is longer than {other}.", "{list} has more entries than {other}.",
     "The number of {list} exceeds that of {other}.", "The record lists more {list} than {other}."],
    ["Compare {list} with {other}: is {list} longer?", "Comparing {list} with {other}: does {list} have more entries?",
     "Of {list} and {other}, does {list} have more entries?", "Take {list} and {other}. Is {list} the longer list?",
     "Compare the two lists {list} and {other}. Is {list} longer?"],
    ["[Check|Say|Decide] whether there are more {list} than {other}.", "[Check|Say|Decide] whether {list} is longer than {other}.",
     "[Check|Say] if {list} has more entries than {other}.", "[Check|Decide] if the number of {list} exceeds that of {other}.",
     "[Check|Decide]: are there more {list} than {other}?"],
]
MORE_THAN = [
    ["Are there more than {n} {list}?", "Are more than {n} entries in {list}?", "Is the number of {list} [above|over] {n}?",
     "Is the list {list} longer than {n} entries?", "Are more than {n} {list} listed?"],
    ["Does {list} have more than {n} entries?", "Does the number of {list} exceed {n}?", "Does the list {list} contain more than {n} entries?",
     "Does the record list more than {n} {list}?", "Does the count of {list} exceed {n}?"],
    ["There are more than {n} {list}.", "{list} has more than {n} entries.", "The number of {list} is [above|over] {n}.",
     "The list {list} is longer than {n} entries.", "The record lists more than {n} {list}."],
    ["Count the {list}: are there more than {n}?", "Take the list {list}: is it longer than {n} entries?",
     "Looking at {list}, are there more than {n} entries?", "Count the entries of {list}. Is the number [above|over] {n}?",
     "Count the {list}. Does the number exceed {n}?"],
    ["[Check|Say|Decide] whether there are more than {n} {list}.", "[Check|Say|Decide] whether {list} has more than {n} entries.",
     "[Check|Say] if the number of {list} is [above|over] {n}.", "[Check|Decide] if the list {list} is longer than {n} entries.",
     "[Check|Decide]: are there more than {n} {list}?"],
]
FIRST = [
    ["Which [entry|one] [of|in] {list} comes first?", "Which is the first [entry|one] in {list}?", "Which of the {list} is first?",
     "Which entry is first in the list {list}?", "Which of the {list} is listed first?"],
    ["What comes first in {list}?", "What is the first entry [of|in] {list}?", "What is first in the list {list}?",
     "What is listed first under {list}?", "What is the first of the {list}?"],
    ["[Pick|Choose|Select] the first entry of {list}.", "[Pick|Choose|Select] the first of the {list}.",
     "[Pick|Choose|Select] what comes first in {list}.", "[Pick|Choose] the entry that is first in {list}.",
     "[Pick|Choose] the one listed first under {list}."],
    ["[Name|Find] the first entry of {list}.", "[Name|Find] the first of the {list}.", "[Name|Find] what comes first in {list}.",
     "[Name|Find] the entry that is listed first in {list}.", "[Name|Find] the one that is first in {list}."],
    ["Of the {list}, which is first?", "Looking at {list}, which entry comes first?", "In the list {list}, which is the first?",
     "In the order given, which of the {list} is first?", "Take the list {list}: what comes first?"],
]
EMPTY = [
    ["Is the list {list} empty?", "Is {list} an empty list?", "Are there no {list}?", "Is {list} empty?", "Are no entries in {list}?"],
    ["Does {list} have no entries?", "Does the list {list} have no entries at all?", "Does the record list no {list}?",
     "Does the list {list} remain empty?", "Does {list} contain no entries?"],
    ["The list {list} is empty.", "There are no {list}.", "{list} has no entries.", "{list} is empty.", "No {list} are listed."],
    ["Look at {list}. Is it empty?", "Take the list {list}: is it empty?", "Looking at {list}, are there no entries?",
     "Looking at the {list}: are there none?", "Concerning {list}: is the list empty?"],
    ["[Check|Say|Decide] whether {list} is empty.", "[Check|Say|Decide] whether there are no {list}.", "[Check|Say] if the list {list} is empty.",
     "[Check|Decide] if {list} has no entries.", "[Check|Decide]: is the list {list} empty?"],
]


@dataclass
class Scene:
    state: object
    lists: dict                            # {name: entries}
    pools: dict                            # {name: Pool}
    property: str = ""                     # of the entries of the first list; "" for none
    values: dict | None = None             # {entry: value of the property}


class Lists(Family):
    name = "lists"
    harder = ("count_with",)
    alike = (("longer", "shorter", "more_than", "fewer_than"), ("first", "last"))
    templates = {
        "count": COUNT, "count_with": COUNT_WITH, "contains": CONTAINS, "longer": LONGER, "shorter": mirrored(LONGER, FEWER),
        "more_than": MORE_THAN, "fewer_than": mirrored(MORE_THAN, FEWER), "first": FIRST, "last": mirrored(FIRST, LAST), "empty": EMPTY,
    }

    def scene(self, draw):
        named = draw.picks(LISTS, draw.choice([1, 1, 2, 2, 3]))
        lists = {}
        for i, (name, pool) in enumerate(named):
            size = 0 if draw.chance(0.22) else draw.choice([1, 2, 3, 4, 5, 6, 7, 8, 9] if i == 0 else [1, 2, 3, 4, 5, 6])
            lists[name] = draw.picks(pool, size)
        scene = Scene(None, lists, dict(named))
        first = named[0][0]
        if draw.chance(0.45) and 2 <= len(lists[first]):
            scene.property = draw.choice([name for name in PROPERTIES if PROPERTIES[name] is not scene.pools[first]])
            values = self.property_values(draw, scene.property, draw.choice([2, 2, 3]))
            scene.values = {entry: draw.choice(values) for entry in lists[first]}
        scene.state = self.text(draw, scene) if draw.chance(0.25) else self.document(draw, scene)
        return scene

    @staticmethod
    def property_values(draw, name, count):
        values = PROPERTIES[name]
        return draw.picks(values, count) if isinstance(values, Pool) else draw.sample(values, count)

    @staticmethod
    def document(draw, scene):
        """The state as JSON."""
        document = {}
        for name, entries in scene.lists.items():
            key = name.replace(" ", "_")
            if scene.values and name == next(iter(scene.lists)):
                name_key = draw.choice(["name", "name", "title", "label"])
                document[key] = [{name_key: entry, scene.property: scene.values[entry]} for entry in entries]
            else:
                document[key] = list(entries)
        if draw.chance(0.2):
            document = {draw.choice(["lists", "data", "record", "content"]): document}
        for key, value in (("name|title", draw.pick(COMPANIES)), ("id|number", code(draw)), ("owner|author", person(draw)),
                           ("date|updated", write_date(day(draw))), ("limit|version|page", draw.random.randint(1, 12))):
            if draw.chance(0.2):
                document[draw.choice(key.split("|"))] = value
        return document

    @staticmethod
    def text(draw, scene):
        """The state as text, a paragraph a list."""
        style = draw.choice(["line", "line", "bullets", "numbers", "sentence"])
        none = draw.choice(["none", "(empty)", "no entries", "-"])
        paragraphs = []
        for name, entries in scene.lists.items():
            shown = [f"{entry} ({scene.property} {scene.values[entry]})" if scene.values and entry in scene.values else entry for entry in entries]
            title = name[0].upper() + name[1:]
            if not entries:
                paragraphs.append(f"{title}: {none}")
            elif style == "bullets":
                paragraphs.append("\n".join([f"{title}:", *(f"- {entry}" for entry in shown)]))
            elif style == "numbers":
                paragraphs.append("\n".join([f"{title}:", *(f"{i + 1}. {entry}" for i, entry in enumerate(shown))]))
            elif style == "sentence":
                paragraphs.append(f"The {name} are {', '.join(shown)}." if len(shown) > 1 else f"{title}: only {shown[0]}.")
            else:
                paragraphs.append(f"{title}: {', '.join(shown)}")
        return "\n".join(paragraphs)

    def told(self, draw, scene):
        first = next(iter(scene.lists))
        valued = {first: [{"name": entry, scene.property: scene.values[entry]} for entry in scene.lists[first]]} if scene.values else {}
        return facts_of(draw, scene.lists | valued)

    # ---- questions ---------------------------------------------------------------------------------------------------

    def count(self, draw, scene):
        name = draw.choice(list(scene.lists))
        return self.number(draw, len(scene.lists[name]), {"list": name})

    @staticmethod
    def number(draw, answer, slots):
        """A number among its neighbours, in digits or words, now and then as the description of a bare label."""
        low = max(0, answer - draw.choice([0, 1, 1, 2, 3]))
        numbers = range(low, max(low + draw.choice([2, 3, 4, 5]), answer + draw.choice([1, 1, 2])))
        write = (lambda n: NUMBERS[n]) if draw.chance(0.25) else str
        return Choice(*entity_options(draw, [write(n) for n in numbers], write(answer)), slots)

    def count_with(self, draw, scene):
        if not scene.values:
            return None
        asked = list(dict.fromkeys(scene.values.values()))
        if draw.chance(0.15):
            asked = self.property_values(draw, scene.property, 1)
        value = draw.choice(asked)
        count = list(scene.values.values()).count(value)
        if count > 6:
            return None
        return self.number(draw, count, {"list": next(iter(scene.lists)), "property": scene.property, "value": value})

    def contains(self, draw, scene):
        """An entry of the list; or an entry of another list, or one of the same sort that is on none."""
        name = draw.choice([name for name in scene.lists if scene.lists[name]] or [""])
        if not name:
            return None
        entries, pool = scene.lists[name], scene.pools[name]
        if draw.chance(0.5):
            return Noul(True, {"entry": draw.choice(entries), "list": name})
        others = [entry for other in scene.lists for entry in scene.lists[other] if entry not in entries]
        entry = draw.choice(others) if others and draw.chance(0.4) else draw.pick(pool)
        return None if entry in entries else Noul(False, {"entry": entry, "list": name})

    def longer(self, draw, scene):
        return self.compare(draw, scene, longer=True)

    def shorter(self, draw, scene):
        return self.compare(draw, scene, longer=False)

    @staticmethod
    def compare(draw, scene, longer):
        if len(scene.lists) < 2:
            return None
        name, other = draw.sample(scene.lists, 2)
        size, others = len(scene.lists[name]), len(scene.lists[other])
        return None if size == others else Noul((size > others) == longer, {"list": name, "other": other})

    def more_than(self, draw, scene):
        return self.limit(draw, scene, more=True)

    def fewer_than(self, draw, scene):
        return self.limit(draw, scene, more=False)

    @staticmethod
    def limit(draw, scene, more):
        """A limit within three of the size: equal to it in some of the cases where the answer is no."""
        names = [name for name in scene.lists if len(scene.lists[name]) > 2]
        if not names:
            return None
        name = draw.choice(names)
        size = len(scene.lists[name])
        holds = draw.chance(0.5)
        distance = draw.choice([1, 1, 2, 3] if holds else [0, 0, 1, 2, 3])
        n = max(2, size - distance) if more == holds else size + distance
        return Noul(holds, {"list": name, "n": n if draw.chance(0.8) else NUMBERS[n]})

    def first(self, draw, scene):
        return self.position(draw, scene, 0)

    def last(self, draw, scene):
        return self.position(draw, scene, -1)

    @staticmethod
    def position(draw, scene, index):
        names = [name for name in scene.lists if len(scene.lists[name]) > 1]
        if not names:
            return None
        name = draw.choice(names)
        return Choice(*entity_options(draw, scene.lists[name], scene.lists[name][index]), {"list": name})

    def empty(self, draw, scene):
        """Where no list is empty, asked so rarely that the answers come out even."""
        empty = [name for name in scene.lists if not scene.lists[name]]
        full = [name for name in scene.lists if scene.lists[name]]
        if not empty and not draw.chance([0.28, 0.09, 0][len(scene.lists) - 1]):
            return None
        holds = bool(empty) and (not full or draw.chance(0.5))
        return Noul(holds, {"list": draw.choice(empty if holds else full)})
