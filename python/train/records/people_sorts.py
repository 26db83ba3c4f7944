"""The sorts of things the family `people` lists: people, products, devices and flats, and how their attributes are spoken of."""

from dataclasses import dataclass

from .core import Pool
from .pools import CITIES, COLOURS, JOBS, OBJECTS, person, phrases

DEVICES = Pool("people.devices", [f"{word}-{number}" for number, word in enumerate(phrases("""
    alpha, beta, delta, sigma, omega, north, south, east, west, hall, roof, lab, gate, dock, yard, tower, cellar, pump, valve, fan, boiler,
    meter, camera, router, sensor, scanner, beacon, relay, drone, robot, heater, cooler, lamp, lock, switch, mixer, press, crane, belt,
    kiln, probe, panel, hub, node, server"""), 3)])
STREETS = Pool("people.streets", [f"{number} {name}" for number, name in enumerate(phrases("""
    Oak Street, Mill Lane, High Street, Park Road, Station Road, Church Lane, River Walk, Hill Road, Lake View, Garden Row, Bridge Street,
    Market Square, Harbour Road, Castle Street, Forest Lane, School Road, Meadow Way, Spring Street, Elm Avenue, Cedar Court, King Street,
    Queen Street, Bakers Row, Abbey Road, Canal Street, Tower Lane, Orchard Way, Victoria Road, Chapel Street, Ferry Lane, Long Lane,
    Short Street, Green Lane, Windmill Road, Rose Avenue, Maple Drive, Sunset Drive, Cliff Road, Beach Road, Field Lane"""), 5)])
BRANDS = Pool("people.brands", phrases("""
    Altura, Bellini, Corvo, Dynex, Everly, Fjord, Glanz, Halden, Iveta, Juno, Kestrel, Lumio, Mareno, Nordix, Orbis, Pallas, Quanta, Rivano,
    Solaro, Tavira, Umbra, Velano, Wexford, Xenia, Yarrow, Zephyr, Arcadia, Brava, Cirrus, Dorado, Elba, Falcon, Granit, Helio, Indigo, Krona,
    Larix, Monza, Nimbus, Opal"""))


HUMANS = "humans"                          # in the place of a pool: names drawn with pools.person


@dataclass
class Attribute:
    """keys: its names in a state, the first also in questions. Values: a span of integers, a Pool, or a list.

    predicates: (verb, rest) that say that something has the value {v}. For a number: more and less (comparative,
    superlative), and over and under (what is said of a value beyond {v}).
    """
    keys: list
    values: object
    predicates: list
    more: tuple = ()
    less: tuple = ()
    over: tuple = ()
    under: tuple = ()

    @property
    def is_number(self):
        return isinstance(self.values, tuple)

    @property
    def label(self):
        return self.keys[0].replace("_", " ")

    def value(self, draw):
        if self.is_number:
            return draw.integer(*self.values)
        if self.values is HUMANS:
            return person(draw)
        return draw.pick(self.values) if isinstance(self.values, Pool) else draw.choice(self.values)


def word(keys, values, *predicates):
    label = keys.split()[0].replace("_", " ")
    return Attribute(keys.split(), values, [tuple(text.split(" ", 1)) for text in (*predicates, f"has the {label} {{v}}")])


def number(keys, low, high, more="", less="", over="", under=""):
    """more: "older oldest" or nothing; over: "is over {v}" or nothing; the general forms ("a higher age") always exist."""
    return Attribute(keys.split(), (low, high), [], tuple(more.split(", ")) if more else (), tuple(less.split(", ")) if less else (),
                     tuple(over.split(", ")) if over else (), tuple(under.split(", ")) if under else ())


@dataclass
class Sort:
    """A sort of things: what one and several are called, the pool of names, the attributes."""
    nouns: list                            # [(one, several)]
    names: object
    attributes: list


SORTS = [
    Sort([("person", "people"), ("customer", "customers"), ("employee", "employees"), ("member", "members")], HUMANS, [
        number("age", 18, 90, "older, the oldest", "younger, the youngest", "is over {v}, is older than {v}", "is under {v}, is younger than {v}"),
        number("salary pay", 1200, 9000, "better paid, the best paid", "", "earns more than {v}, earns over {v}",
               "earns less than {v}, earns under {v}"),
        number("points score", 3, 900, "", "", "has more than {v} points", "has fewer than {v} points"),
        word("city town home_town", CITIES, "lives in {v}", "is from {v}", "comes from {v}"),
        word("job profession occupation", JOBS, "works as {a}", "is {a}"),
        word("plan tariff", ["free", "basic", "plus", "premium", "gold", "silver", "starter", "business"], "is on the plan {v}",
             "uses the plan {v}"),
        word("language", ["English", "French", "German", "Spanish", "Italian", "Polish", "Turkish", "Arabic"], "speaks {v}"),
        word("level", ["beginner", "junior", "middle", "senior", "expert"], "is at the level {v}"),
        word("department team", ["sales", "support", "finance", "legal", "research", "design", "logistics"], "works in {v}", "belongs to {v}")]),
    Sort([("product", "products"), ("item", "items"), ("article", "articles")], OBJECTS, [
        number("price cost", 4, 900, "more expensive, the most expensive", "cheaper, the cheapest", "costs more than {v}, costs over {v}",
               "costs less than {v}, costs under {v}"),
        number("weight weight_g", 50, 5000, "heavier, the heaviest", "lighter, the lightest", "weighs more than {v}, weighs over {v}",
               "weighs less than {v}, weighs under {v}"),
        number("stock in_stock", 0, 400, "", "", "", ""),
        number("rating stars", 10, 99, "better rated, the best rated", "", "", ""),
        word("colour color", COLOURS, "is {v}", "comes in {v}"),
        word("brand maker", BRANDS, "is made by {v}", "comes from {v}"),
        word("material", ["wood", "steel", "glass", "plastic", "leather", "cotton", "paper", "clay"], "is made of {v}", "consists of {v}"),
        word("size", ["small", "medium", "large", "huge", "tiny"], "is {v}")]),
    Sort([("device", "devices"), ("machine", "machines"), ("unit", "units")], DEVICES, [
        number("temperature temp", 10, 99, "hotter, the hottest", "colder, the coldest", "is hotter than {v}, is over {v} degrees",
               "is colder than {v}, is under {v} degrees"),
        number("charge battery", 1, 100, "", "", "", ""),
        number("errors error_count", 0, 300, "", "", "has more than {v} errors", "has fewer than {v} errors"),
        number("age age_days", 2, 900, "older, the oldest", "newer, the newest", "is older than {v} days, is over {v} days old",
               "is under {v} days old"),
        word("status state", ["online", "offline", "idle", "blocked", "paused", "running"], "is {v}"),
        word("owner user", HUMANS, "belongs to {v}", "is owned by {v}"),
        word("city site", CITIES, "stands in {v}", "is in {v}"),
        word("maker brand", BRANDS, "is made by {v}", "comes from {v}")]),
    Sort([("flat", "flats"), ("home", "homes"), ("house", "houses")], STREETS, [
        number("rent price", 300, 4000, "more expensive, the most expensive", "cheaper, the cheapest", "costs more than {v}, costs over {v}",
               "costs less than {v}, costs under {v}"),
        number("size area", 18, 190, "larger, the largest", "smaller, the smallest", "is larger than {v}", "is smaller than {v}"),
        number("age age_years", 1, 99, "older, the oldest", "newer, the newest", "is older than {v} years, is over {v} years old",
               "is under {v} years old"),
        word("city town", CITIES, "is in {v}", "lies in {v}"),
        word("owner landlord", HUMANS, "belongs to {v}", "is owned by {v}"),
        word("heating", ["gas", "oil", "wood", "electric", "solar"], "is heated by {v}"),
        word("colour color", COLOURS, "is {v}", "is painted {v}")]),
]
