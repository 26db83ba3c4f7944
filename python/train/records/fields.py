"""fields: records of people, orders, devices and tickets; their status, and which fields are there, missing or of some value."""

from dataclasses import dataclass

from .core import Choice, Family, Noul, labelled
from .fields_words import EMPTY, FIELDS, MEANINGS, NOUNS, SORTS, STATUSES
from .pools import article
from .vocabulary import COMPANIES, PLACES, PRODUCTS, code, day, entity_options, people, person, write_date

STATUS = [
    ["[What|Which] is the status of {subject}?", "What status does {subject} have?", "What is the current status of {subject}?",
     "What is the state of {subject}?", "What does the status of {subject} say?"],
    ["Which status does {subject} have?", "Which of these [fits|describes] the status of {subject}?", "Which status fits {subject}?",
     "Which status [is given|is right] for {subject}?", "Which [state|status] is {subject} in?"],
    ["[Pick|Choose|Select] the status of {subject}.", "[Pick|Choose|Select] the status that fits {subject}.",
     "[Pick|Choose|Select] what fits the status of {subject}.", "[Pick|Choose] the [state|status] {subject} is in.",
     "[Pick|Choose] the right status for {subject}."],
    ["How do things stand with {subject}?", "How does it stand with {subject}?", "Where do things stand with {subject}, by status?",
     "How would you describe the status of {subject}?", "How does the status describe {subject}?"],
    ["Looking at the record, what is the status of {subject}?", "Going by the record, which status does {subject} have?",
     "According to the record, what is the state of {subject}?", "By the record, which status fits {subject}?",
     "As it stands, what is the status of {subject}?"],
]
STATUS_IS = [
    ["Is the status of {subject} \"{status}\"?", "Is {subject} listed as {status}?", "Is {status} the status of {subject}?",
     "Is the current status of {subject} {status}?", "Is {subject} marked as {status}?"],
    ["Does {subject} have the status {status}?", "Does the status of {subject} say {status}?", "Does the record [list|mark] {subject} as {status}?",
     "Does the status of {subject} equal \"{status}\"?", "Does {subject} have \"{status}\" as status?"],
    ["The status of {subject} is {status}.", "{Subject} has the status {status}.", "The record marks {subject} as {status}.",
     "{Subject} is [listed|marked] as {status}.", "The status of {subject} equals \"{status}\"."],
    ["Take {subject}: is the status {status}?", "Look at {subject}. Is the status {status}?", "Concerning {subject}: is it marked as {status}?",
     "Going by the record, is the status of {subject} {status}?", "By the record, does {subject} have the status {status}?"],
    ["[Check|Say|Decide] whether the status of {subject} is {status}.", "[Check|Say|Decide] whether {subject} is [listed|marked] as {status}.",
     "[Check|Say] if {subject} has the status {status}.", "[Check|Decide] if the status of {subject} equals {status}.",
     "[Check|Decide]: is {subject} marked as {status}?"],
]
MISSING = [
    ["Is the {field} {of} missing?", "Is the {field} {of} [empty|blank]?", "Is the {field} [missing|not given] for {subject}?",
     "Is the field {field} {of} [empty|missing|blank]?", "Is {subject} without {a_field}?"],
    ["Does {subject} lack [{a_field}|a value for the {field}]?", "Does the record lack the {field} of {subject}?", "Does {subject} have no {field}?",
     "Does the {field} of {subject} [have no value|remain empty|remain blank]?", "Does the record leave the {field} of {subject} [empty|blank]?"],
    ["The {field} {of} is [missing|empty|blank].", "{Subject} has no {field}.", "There is no {field} for {subject}.",
     "The record lacks the {field} of {subject}.", "The {field} of {subject} is not given."],
    ["Take {subject}: is the {field} [missing|empty]?", "Look at the {field} of {subject}. Is it [missing|empty|blank]?",
     "Looking for the {field} of {subject}: is it missing?", "Concerning the {field} of {subject}: is it [not given|blank]?",
     "Take the {field} of {subject}: is it [missing|empty]?"],
    ["[Check|Say|Decide] whether the {field} of {subject} is [missing|empty].", "[Check|Say|Decide] whether {subject} lacks {a_field}.",
     "[Check|Say] if there is no {field} for {subject}.", "[Check|Decide] if the {field} of {subject} is [blank|not given|missing].",
     "[Check|Decide]: is the {field} {of} [missing|empty|blank]?"],
]
PRESENT = [
    ["Is the {field} {of} [given|filled in|known]?", "Is there {a_field} for {subject}?",
     "Is the {field} of {subject} [filled in|present]?",
     "Is {a_field} [given|present] for {subject}?", "Is the field {field} {of} [filled in|given]?"],
    ["Does {subject} have {a_field}?", "Does the record [give|contain|have] the {field} of {subject}?", "Does {subject} have a value for {field}?",
     "Does the {field} of {subject} have a value?", "Does the record contain {a_field} for {subject}?"],
    ["The {field} {of} is [given|filled in|known].", "{Subject} has {a_field}.", "There is {a_field} for {subject}.",
     "The record [gives|contains] the {field} of {subject}.", "The {field} of {subject} has a value."],
    ["Take {subject}: is the {field} [given|present]?", "Look at the {field} of {subject}. Is it [given|filled in]?",
     "Looking for the {field} of {subject}: is it given?", "Concerning the {field} of {subject}: is it [known|present]?",
     "Take the {field} of {subject}: does it have a value?"],
    ["[Check|Say|Decide] whether the {field} of {subject} is [given|filled in].", "[Check|Say|Decide] whether {subject} has {a_field}.",
     "[Check|Say] if there is {a_field} for {subject}.", "[Check|Decide] if the record [gives|contains] the {field} of {subject}.",
     "[Check|Decide]: is the {field} {of} [given|present|known]?"],
]
WHICH_MISSING = [
    ["Which field {of} is [missing|empty|blank]?", "Which of these is missing [for {subject}|]?", "Which field has no value?",
     "Which [one|field] is [not given|empty]?", "Which of these fields is [missing|blank]?"],
    ["What is [missing|not given] for {subject}?", "What is [missing|blank|empty] in the record of {subject}?", "What does {subject} lack?",
     "What has been left [blank|empty] for {subject}?", "What does the record of {subject} lack?"],
    ["[Pick|Choose|Select] the [missing|empty|blank] field.", "[Pick|Choose|Select] the field that is [missing|not given].",
     "[Pick|Choose|Select] the field that has no value.", "[Pick|Choose] the field that {subject} lacks.",
     "[Pick|Choose] what is missing for {subject}."],
    ["[Name|Find] the [missing|empty|blank] field.", "[Name|Find] the field that is [missing|empty].", "[Name|Find] the field without a value.",
     "[Name|Find] what {subject} lacks.", "[Name|Find] the field that is not given."],
    ["To complete the record of {subject}, which field is [missing|empty]?", "Of these fields, which one is [missing|blank]?",
     "Looking at {subject}, what is [missing|not given]?", "Go through the fields: which one has no value?", "Of these, what does {subject} lack?"],
]
HOLDS = [
    ["Is the {field} {of} {value}?", "Is {value} the {field} of {subject}?", "Is the {field} of {subject} given as {value}?",
     "Is the {field} {of} equal to {value}?", "Is the {field} {of} \"{value}\"?"],
    ["Does {subject} have {value} as {field}?", "Does the record give {value} as the {field} {of}?", "Does the {field} of {subject} equal {value}?",
     "Does the {field} {of} say {value}?", "Does the field {field} {of} hold {value}?"],
    ["The {field} {of} is {value}.", "{value} is the {field} of {subject}.", "{Subject} has {value} as {field}.",
     "The record gives {value} as the {field} {of}.", "The {field} of {subject} equals \"{value}\"."],
    ["Take the {field} of {subject}: is it {value}?", "Look at the {field} of {subject}. Is it {value}?",
     "Concerning the {field} {of}: does it say {value}?",
     "Going by the record, is the {field} of {subject} {value}?", "Take {subject}: is the {field} {value}?"],
    ["[Check|Say|Decide] whether the {field} {of} is {value}.", "[Check|Say|Decide] whether {value} is the {field} of {subject}.",
     "[Check|Say] if the {field} {of} equals {value}.", "[Check|Decide] if {subject} has {value} as {field}.",
     "[Check|Decide]: is the {field} of {subject} {value}?"],
]
WHO = [
    ["Which {noun} is [listed|marked] as {status}?", "Which {noun} has the status {status}?", "Which of these is [marked as|] {status}?",
     "Which one has {status} as status?", "Which {noun} is {status}?"],
    ["For which {noun} is the status {status}?", "For which {noun} does the record say {status}?", "For which of these is {status} the status?",
     "For which one is the status given as {status}?", "For which {noun} is {status} listed?"],
    ["[Pick|Choose|Select] the {noun} with the status {status}.", "[Pick|Choose|Select] the {noun} that is {status}.",
     "[Pick|Choose|Select] the one [listed|marked] as {status}.", "[Pick|Choose] the {noun} whose status is {status}.",
     "[Pick|Choose] the one that has the status {status}."],
    ["[Name|Find] the {noun} [listed|marked] as {status}.", "[Name|Find] the {noun} whose status is {status}.",
     "[Name|Find] the one with the status {status}.", "[Name|Find] the {noun} that is {status}.", "[Name|Find] the one that is marked {status}."],
    ["Looking for status {status}: which {noun} has it?", "Of these, which {noun} is {status}?", "Look for {status}. Which {noun} has that status?",
     "Go through the list: which {noun} has the status {status}?", "The status {status} belongs to which {noun}?"],
]


@dataclass
class Record:
    subject: str                           # what a question calls it
    status: str                            # the category
    written: str                           # the status as the record writes it
    fields: dict                           # {field: value, or None where it is missing}


@dataclass
class Scene:
    state: object
    kind: str
    noun: str
    records: list


def at_start(text):
    """As a sentence begins."""
    return text[:1].upper() + text[1:]


class Fields(Family):
    name = "fields"
    alike = (("missing", "present"),)
    templates = {"status": STATUS, "status_is": STATUS_IS, "missing": MISSING, "present": PRESENT, "which_missing": WHICH_MISSING,
                 "holds": HOLDS, "who": WHO}

    def scene(self, draw):
        kind = draw.choice(list(STATUSES))
        noun = draw.choice(NOUNS[kind])
        count = draw.choice([1, 1, 2, 3, 3, 4, 5])
        fields = draw.picks(FIELDS, draw.choice([3, 4, 5, 6]) if count == 1 else draw.choice([1, 1, 2]))
        names = people(draw, count) if kind == "person" else self.codes(draw, noun, count)
        records = [self.one(draw, kind, name, fields) for name in names]
        if len(records) == 1:
            state = self.single(draw, noun, records[0])
            records[0].subject = draw.choice([f"the {noun}", f"the {noun}", f"this {noun}", names[0]])
        else:
            state = self.several(draw, noun, records)
        return Scene(state, kind, noun, records)

    @staticmethod
    def codes(draw, noun, count):
        """Different identifiers, all with the noun before them or all without."""
        pattern = draw.choice(["{noun} {code}", "{noun} {code}", "{code}"])
        return list(dict.fromkeys(pattern.format(noun=noun, code=code(draw)) for _ in range(count)))

    def one(self, draw, kind, name, fields):
        status = draw.choice(list(STATUSES[kind]))
        one_missing, missing = len(fields) > 2 and draw.chance(0.7), draw.choice(fields)[0]
        often = 0.3 if len(fields) > 2 else 0.5
        values = {field: None if (field == missing if one_missing else draw.chance(often)) else self.value(draw, sort) for field, sort in fields}
        return Record(name, status, draw.choice(STATUSES[kind][status][0]), values)

    @staticmethod
    def value(draw, sort):
        match sort:
            case "email":
                domain = draw.pick(COMPANIES).split()[0].lower() + draw.choice([".com", ".org", ".net"])
                return person(draw).lower().replace(" ", draw.choice([".", "_"])) + "@" + domain
            case "phone":
                return f"+{draw.integer(10, 99)} {draw.integer(100, 999)} {draw.integer(10000, 99999)}"
            case "place":
                return draw.pick(PLACES)
            case "address":
                return f"{draw.integer(1, 150)} {draw.choice(['Main', 'Park', 'Hill', 'Lake', 'Mill', 'Church'])} Street, {draw.pick(PLACES)}"
            case "person":
                return person(draw)
            case "company":
                return draw.pick(COMPANIES)
            case "product":
                return draw.pick(PRODUCTS)
            case "site":
                return f"www.{draw.pick(COMPANIES).split()[0].lower()}.com"
            case "date":
                return write_date(day(draw))
            case "room":
                return draw.choice("ABCDE") + str(draw.integer(100, 999))
        return code(draw)

    # ---- states ------------------------------------------------------------------------------------------------------

    @staticmethod
    def body(draw, record, empty, status_key):
        body = {status_key: record.written}
        for field, value in record.fields.items():
            key = field.replace(" ", "_")
            if value is not None:
                body[key] = value
            elif empty != "absent":
                body[key] = empty
        return body

    def single(self, draw, noun, record):
        if draw.chance(0.25):
            return self.text(draw, [record])
        body = self.body(draw, record, draw.choice(EMPTY), draw.choice(["status", "status", "state", "current_status"]))
        if draw.chance(0.25):
            body = {noun: body}
        return {draw.choice(["name", "id", "label"]): record.subject} | body

    def several(self, draw, noun, records):
        if draw.chance(0.25):
            return self.text(draw, records)
        empty, status_key = draw.choice(EMPTY), draw.choice(["status", "status", "state"])
        bodies = [(record.subject, self.body(draw, record, empty, status_key)) for record in records]
        if draw.chance(0.25):
            return dict(bodies)
        name_key = draw.choice(["name", "id", "label", "who" if noun in NOUNS["person"] else "title"])
        entries = [{name_key: name} | body for name, body in bodies]
        return entries if draw.chance(0.3) else {draw.choice([noun + "s", "records", "entries", "list"]): entries}

    @staticmethod
    def text(draw, records):
        """The state as short text; a missing field is left out or said to be missing."""
        status = draw.choice(["{} has the status {}.", "Status of {}: {}.", "{} is marked as {}.", "{}, status {}."])
        given = draw.choice(["The {} is {}.", "{}: {}.", "{} is {}."])
        lacking = draw.choice(["The {} is missing.", "{}: none.", "No {} is given.", "", ""])
        lines = []
        for record in records:
            sentences = [status.format(record.subject, record.written)]
            for field, value in record.fields.items():
                sentence = given.format(field, value) if value is not None else lacking.format(field)
                sentences.append(at_start(sentence))
            lines.append(" ".join(filter(None, sentences)))
        return "\n".join(map(at_start, lines))

    # ---- questions ---------------------------------------------------------------------------------------------------

    def status(self, draw, scene):
        record = draw.choice(scene.records)
        others = [status for status in STATUSES[scene.kind] if status != record.status]
        labels, options = labelled(draw, MEANINGS[scene.kind], [record.status, *draw.sample(others, draw.choice([1, 2, 3, 4, 4]))])
        return Choice(labels[record.status], options, {"subject": record.subject})

    def status_is(self, draw, scene):
        """Of the status as it is written, or of another, most often that of another record."""
        record = draw.choice(scene.records)
        status = record.written
        holds = draw.chance(0.5)
        if not holds:
            near = [other.written for other in scene.records if other.status != record.status]
            category = draw.choice([status for status in STATUSES[scene.kind] if status != record.status])
            status = draw.choice(near) if near and draw.chance(0.6) else draw.choice(STATUSES[scene.kind][category][0])
        return Noul(holds, {"subject": record.subject, "Subject": at_start(record.subject), "status": status})

    @staticmethod
    def slots(draw, scene, record, field, **others):
        """{of} names the record; where there is just one it may be left out."""
        of = f"of {record.subject}" if len(scene.records) > 1 or draw.chance(0.5) else ""
        return {"subject": record.subject, "Subject": at_start(record.subject), "of": of, "field": field, "a_field": article(field)} | others

    def missing(self, draw, scene):
        return self.presence(draw, scene, missing=True)

    def present(self, draw, scene):
        return self.presence(draw, scene, missing=False)

    def presence(self, draw, scene, missing):
        """A field drawn so that it is missing in half of all cases."""
        wanted = draw.chance(0.5)
        found = [(record, field) for record in scene.records for field, value in record.fields.items() if (value is None) == wanted]
        if not found:
            return None
        record, field = draw.choice(found)
        return Noul(wanted == missing, self.slots(draw, scene, record, field))

    def which_missing(self, draw, scene):
        record = scene.records[0]
        missing = [field for field, value in record.fields.items() if value is None]
        if len(scene.records) > 1 or len(missing) != 1 or len(record.fields) < 3:
            return None
        answer, options = entity_options(draw, record.fields, missing[0])
        return Choice(answer, options, self.slots(draw, scene, record, missing[0]))

    def holds(self, draw, scene):
        """The field's own value, or that of another field or record, or a new one of the same sort."""
        found = [(record, field) for record in scene.records for field, value in record.fields.items() if value is not None]
        if not found:
            return None
        record, field = draw.choice(found)
        own = value = record.fields[field]
        holds = draw.chance(0.5)
        if not holds:
            sort = SORTS[field]
            near = [other.fields[name] for other, name in found if SORTS[name] == sort and other.fields[name] != own]
            value = draw.choice(near) if near and draw.chance(0.6) else self.value(draw, sort)
        return None if not holds and value == own else Noul(holds, self.slots(draw, scene, record, field, value=value))

    def who(self, draw, scene):
        statuses = [record.status for record in scene.records]
        found = [record for record in scene.records if statuses.count(record.status) == 1]
        if len(scene.records) < 2 or not found:
            return None
        record = draw.choice(found)
        answer, options = entity_options(draw, [other.subject for other in scene.records], record.subject)
        return Choice(answer, options, {"noun": scene.noun, "status": record.written})
