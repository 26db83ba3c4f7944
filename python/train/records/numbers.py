"""numbers: a JSON record of amounts and counts; comparisons with a limit, between fields, and the largest of several."""

from dataclasses import dataclass

from .core import Choice, Family, Noul, Pool, clearly_apart

THINGS = Pool("numbers.things", [
    "tank", "warehouse", "route", "server", "battery", "parcel", "bridge", "reactor", "pump", "greenhouse", "truck", "printer",
    "account", "campaign", "branch", "team", "clinic", "machine", "factory", "vessel", "elevator", "kiln", "turbine", "silo", "depot"])
FIELDS = Pool("numbers.fields", [
    "total", "weight", "height", "price", "cost", "distance", "balance", "revenue", "budget", "fee", "speed", "pressure", "capacity",
    "volume", "stock", "orders", "visits", "errors", "age", "score", "width", "length", "mileage", "debt", "salary", "power", "load",
    "profit", "discount", "output"])


@dataclass
class Scene:
    state: dict
    values: dict                           # {field: number}


class Numbers(Family):
    name = "numbers"
    alike = (("above", "below", "between_fields"), ("largest", "smallest"))
    templates = {
        "above": [
            ["[Is|Was] the {field} [above|over] {limit}?", "[Is|Was] the {field} more than {limit}?", "[Is|Was] {field} higher than {limit}?",
             "[Is|Was] the value of {field} greater than {limit}?", "Is {field} > {limit}?"],
            ["Does the {field} exceed {limit}?", "Does {field} go [above|over] {limit}?", "Does the {field} come to more than {limit}?",
             "Does the value of {field} lie above {limit}?", "Does {field} pass {limit}?"],
            ["The {field} [is|was] [higher|greater|more] than {limit}.", "The {field} [is|was] [above|over] {limit}.", "{field} exceeds {limit}.",
             "{field} is larger than {limit}.", "The record shows a {field} above {limit}."],
            ["[The limit|The maximum] for {field} is {limit}. [Is|Was] it exceeded?",
             "With a [limit|maximum] of {limit}, is the {field} over the limit?",
             "Is the {field} over the limit of {limit}?", "Has the {field} passed the limit of {limit}?",
             "Does the {field} exceed the maximum of {limit}?"],
        ],
        "below": [
            ["[Is|Was] the {field} [below|under] {limit}?", "[Is|Was] the {field} less than {limit}?", "[Is|Was] {field} lower than {limit}?",
             "[Is|Was] the value of {field} smaller than {limit}?", "Is {field} < {limit}?"],
            ["Does the {field} fall [below|under] {limit}?", "Does {field} stay [below|under] {limit}?",
             "Does the {field} come to less than {limit}?",
             "Does the value of {field} lie below {limit}?", "Does {field} fall short of {limit}?"],
            ["The {field} [is|was] [lower|smaller|less] than {limit}.", "The {field} [is|was] [below|under] {limit}.",
             "{field} falls short of {limit}.",
             "{field} is smaller than {limit}.", "The record shows a {field} below {limit}."],
            ["[The minimum|The least allowed] for {field} is {limit}. Does it fall short?",
             "With a minimum of {limit}, is the {field} under the minimum?",
             "Is the {field} under the minimum of {limit}?", "Has the {field} fallen below the minimum of {limit}?",
             "Does the {field} fall short of the minimum of {limit}?"],
        ],
        "between_fields": [
            ["Is the {field} [higher|greater|larger] than the {other}?", "Is {field} [above|over] {other}?", "Is the {field} more than the {other}?",
             "Is {field} > {other}?", "Is the value of {field} greater than that of {other}?"],
            ["Does the {field} exceed the {other}?", "Does {field} go over {other}?", "Does the {field} come to more than the {other}?",
             "Does the value of {field} exceed that of {other}?", "Does {field} pass {other}?"],
            ["The {field} [is|was] [higher|greater|larger] than the {other}.", "{field} exceeds {other}.", "{field} is above {other}.",
             "The record shows a {field} above the {other}.", "The {field} is more than the {other}."],
            ["Of {field} and {other}, is {field} the [larger|higher|greater]?", "Comparing {field} with {other}: is {field} [larger|higher|greater]?",
             "Take {field} and {other}: is {field} the [larger|greater] one?", "Between {field} and {other}, is {field} more?",
             "Compare {field} and {other}. Is {field} higher?"],
        ],
        "largest": [
            ["Which [field|value] is [the largest|the highest|the greatest]?", "Which of these is [largest|highest|greatest]?",
             "Which [number|field] is the biggest?",
             "Which field has the [largest|highest|greatest] value?", "Which one is the maximum?"],
            ["What is the [largest|highest|biggest] [value|field] here?", "What has the [highest|greatest|largest] value?",
             "What is the maximum of these?",
             "What is the field with the greatest value?", "What is the biggest of these?"],
            ["[Pick|Choose|Select] the field with the [largest|highest|greatest] value.", "[Pick|Choose|Select] the largest.",
             "[Pick|Choose|Select] the maximum.",
             "[Pick|Choose|Select] the biggest [value|number].", "[Pick|Choose|Select] whichever is highest."],
            ["[Name|Find] the [largest|greatest|highest] [value|field].", "[Name|Find] the maximum.", "[Name|Find] the field whose value is largest.",
             "[Name|Find] the biggest [number|field].", "[Name|Find] the one with the greatest value."],
        ],
        "smallest": [
            ["Which [field|value] is [the smallest|the lowest|the least]?", "Which of these is [smallest|lowest|least]?",
             "Which [number|field] is the smallest?",
             "Which field has the [smallest|lowest|least] value?", "Which one is the minimum?"],
            ["What is the [smallest|lowest|least] [value|field] here?", "What has the [lowest|least|smallest] value?",
             "What is the minimum of these?",
             "What is the field with the least value?", "What is the smallest of these?"],
            ["[Pick|Choose|Select] the field with the [smallest|lowest|least] value.", "[Pick|Choose|Select] the smallest.",
             "[Pick|Choose|Select] the minimum.",
             "[Pick|Choose|Select] the lowest [value|number].", "[Pick|Choose|Select] whichever is lowest."],
            ["[Name|Find] the [smallest|least|lowest] [value|field].", "[Name|Find] the minimum.", "[Name|Find] the field whose value is smallest.",
             "[Name|Find] the lowest [number|field].", "[Name|Find] the one with the least value."],
        ],
    }

    def scene(self, draw):
        fields = draw.picks(FIELDS, draw.choice([2, 3, 3, 4, 5]))
        size = draw.choice([1, 2, 3, 3, 4])                     # digits: every record has a magnitude of its own
        low, high = 10**size, 10**(size + 1) - 1
        while True:
            values = {name: draw.money(low, high) if draw.chance(0.2) else draw.integer(low, high) for name in fields}
            if clearly_apart(values.values()):
                break
        state = dict(values)
        if draw.chance(0.5):
            state[draw.choice(["name", "item", "kind", "subject"])] = draw.pick(THINGS)
        return Scene(state, values)

    def above(self, draw, scene):
        return self.limit(draw, scene, above=True)

    def below(self, draw, scene):
        return self.limit(draw, scene, above=False)

    def limit(self, draw, scene, above):
        name, value = draw.choice(list(scene.values.items()))
        limit = draw.limit_near(value)
        return Noul((value > limit) == above, {"field": name, "limit": limit})

    def between_fields(self, draw, scene):
        name, other = draw.sample(scene.values, 2)
        return Noul(scene.values[name] > scene.values[other], {"field": name, "other": other})

    def largest(self, draw, scene):
        return self.extreme(draw, scene, max)

    def smallest(self, draw, scene):
        return self.extreme(draw, scene, min)

    def extreme(self, draw, scene, pick):
        if len(scene.values) < 3:
            return None
        names = draw.sample(scene.values, len(scene.values))
        return Choice(pick(names, key=scene.values.get), {name: None for name in names})
