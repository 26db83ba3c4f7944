"""What happens in the family `passages`: actions, events and how they are put into words."""

from dataclasses import dataclass

from .core import Pool
from .pools import article, phrases

PLACES = Pool("passages.places", phrases("""
    in the garden, in the kitchen, in the cellar, in the attic, in the library, in the park, in the forest, in the museum, in the office,
    in the hall, in the market, in the cafe, in the church, in the school, in the hospital, in the hotel, in the theatre, in the stable, in the barn,
    in the garage, in the workshop, in the bakery, in the bank, in the lobby, in the canteen, in the courtyard, in the castle, in the tower,
    in the cabin, at the station, at the harbour, at the airport, at the beach, at the lake, at the bridge, at the bus stop,
    at the post office, at the fair, at the stadium, at the river, at the farm, at the fountain, at the gate, at the pool, at the zoo,
    at the mill, at the border, at the lighthouse, at the campsite"""))
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
FILLERS = ["It rained all day.", "The weather was fine.", "Nothing else was new.", "It was a quiet week.", "The streets were full of people.",
           "It was very cold.",
           "Everybody was in a good mood.", "The sun was shining.", "There was a lot of noise.", "Nobody was in a hurry.", "It was windy."]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


@dataclass
class Action:
    """A sort of event: verbs of one meaning as (past, base, participle), and what else it takes."""
    verbs: list
    takes: str                             # "object", "gift" (an object and a person), "person" or "city"


ACTIONS = [
    Action([("found", "find", "found"), ("discovered", "discover", "discovered")], "object"),
    Action([("lost", "lose", "lost")], "object"),
    Action([("bought", "buy", "bought"), ("purchased", "purchase", "purchased")], "object"),
    Action([("sold", "sell", "sold")], "object"),
    Action([("repaired", "repair", "repaired"), ("fixed", "fix", "fixed")], "object"),
    Action([("hid", "hide", "hidden")], "object"),
    Action([("cleaned", "clean", "cleaned")], "object"),
    Action([("broke", "break", "broken")], "object"),
    Action([("collected", "collect", "collected"), ("picked up", "pick up", "picked up")], "object"),
    Action([("gave", "give", "given"), ("handed", "hand", "handed")], "gift"),
    Action([("lent", "lend", "lent")], "gift"),
    Action([("sent", "send", "sent")], "gift"),
    Action([("showed", "show", "shown")], "gift"),
    Action([("met", "meet", "met")], "person"),
    Action([("helped", "help", "helped")], "person"),
    Action([("called", "call", "called"), ("phoned", "phone", "phoned")], "person"),
    Action([("visited", "visit", "visited")], "person"),
    Action([("went to", "go to", ""), ("travelled to", "travel to", "")], "city"),
    Action([("drove to", "drive to", "")], "city"),
    Action([("flew to", "fly to", "")], "city"),
]


@dataclass
class Event:
    action: Action
    who: str
    what: str = ""                         # the object's noun, or the city of a journey
    colour: str = ""
    other: str = ""                        # the person given to or met
    where: str = ""                        # "in the garden"; "" when it is not told
    when: str = ""                         # "on Monday"
    order: int = 0                         # the place in time

    @property
    def deed(self):
        return self.who, self.action.takes, self.action.verbs, self.what, self.other

    def rest(self, full=False):
        """What follows the verb; with `full`, at the first mention, the object has its colour and no "the"."""
        thing = (article(f"{self.colour} {self.what}".strip()) if full else f"the {self.what}") if self.what else ""
        return {"object": thing, "gift": f"{thing} to {self.other}", "person": self.other, "city": self.what}[self.action.takes]

    def clause(self, draw, part="past", where=False, when=False, who=True):
        verb = draw.choice(self.action.verbs)[0 if part == "past" else 1]
        words = [self.who if who else "", verb, self.rest(), self.where if where else "", self.when if when else ""]
        return " ".join(word for word in words if word)

    def question(self, draw, where=False, when=False):
        return f"did {self.who} {self.clause(draw, 'base', where, when, who=False)}"
