"""passages: short stories and reports of who did what, where and when; questions about what they say and do not say."""

from dataclasses import dataclass, field

from .core import Choice, Family, Noul, Pool
from .passages_events import ACTIONS, FILLERS, MONTHS, PLACES, WEEKDAYS, Event
from .pools import CITIES, COLOURS, JOBS, MEN, OBJECTS, WOMEN, article, filled


@dataclass
class Scene:
    state: object
    events: list
    people: dict                           # {name: woman or not}
    jobs: dict = field(default_factory=dict)
    homes: dict = field(default_factory=dict)
    timing: str = ""                       # "clock", "days", "dates" or "sequence"
    backwards: bool = False                # a sequence told from its end


def capital(text):
    return text[0].upper() + text[1:]


def bare(place):
    """ "in the garden" -> "the garden", "on Monday" -> "Monday" """
    return place.split(" ", 1)[1] if place.split(" ", 1)[0] in ("in", "at", "on") else place


class Passages(Family):
    name = "passages"
    templates = {
        "who": [
            ["Who {did}?", "Who was it that {did}?", "Who is it that {did}?", "Who, [by|according to] the text, {did}?", "Who of them {did}?"],
            ["Which person {did}?", "Which of [them|these people] {did}?", "Which one {did}?", "Which name is that of the person who {did}?",
             "Which of the people {did}?"],
            ["[Pick|Choose|Select] the [person|one] who {did}.", "[Pick|Choose|Select] who {did}.",
             "[Pick|Choose|Select] the name of the one who {did}.", "[Pick|Choose] whoever {did}.",
             "[Pick|Select] the right person: who {did}?"],
            ["[Name|Find] the [person|one] who {did}.", "[Name|Find] who {did}.", "[Name|Say] who it is that {did}.",
             "[Name|Find] the name of the person who {did}.", "Say who {did}."],
            ["One of them {did}. Who?", "Someone {did}: who was it?", "Someone {did}. Which person?", "One person {did}: which one?",
             "Somebody {did}. Who is it?"]],
        "where": [
            ["Where {did_who}?", "Where was it that {clause}?", "Where, [by|according to] the text, {did_who}?", "Where exactly {did_who}?",
             "Where did it happen that {clause}?"],
            ["[In which|At which] place {did_who}?", "Which place is it where {clause}?", "Which is the place where {clause}?",
             "In what place {did_who}?", "Which of these is where {clause}?"],
            ["[Pick|Choose|Select] the place where {clause}.", "[Pick|Choose|Select] where {clause}.",
             "[Pick|Choose] the right place: where {did_who}?", "[Pick|Select] the place in which {clause}.",
             "[Choose|Select] where it was that {clause}."],
            ["[Name|Find] the place where {clause}.", "[Name|Find] where {clause}.", "[Name|Say] where it was that {clause}.",
             "[Name|Find] the place of this: {clause}.", "Say where {clause}."],
            ["{Clause}. Where [was that|did that happen]?", "{Clause}: where?", "{Clause}. In which place?", "{Clause}: at which place was that?",
             "{Clause}. Where?"]],
        "when": [
            ["When {did_who}?", "When was it that {clause}?", "When, [by|according to] the text, {did_who}?", "When exactly {did_who}?",
             "When did it happen that {clause}?"],
            ["At what time {did_who}?", "Which time is it when {clause}?", "Which is the time when {clause}?", "At which time {did_who}?",
             "Which of these is when {clause}?"],
            ["[Pick|Choose|Select] the time when {clause}.", "[Pick|Choose|Select] when {clause}.",
             "[Pick|Choose] the right time: when {did_who}?", "[Pick|Select] the time at which {clause}.",
             "[Choose|Select] when it was that {clause}."],
            ["[Name|Find] the time when {clause}.", "[Name|Find] when {clause}.", "[Name|Say] when it was that {clause}.",
             "[Name|Find] the time of this: {clause}.", "Say when {clause}."],
            ["{Clause}. When [was that|did that happen]?", "{Clause}: when?", "{Clause}. At what time?", "{Clause}: at which time was that?",
             "{Clause}. When?"]],
        "what": [
            ["What {did_what}?", "What was it that {who_did}?", "What is it that {who_did}?", "What thing {did_what}?",
             "What, [by|according to] the text, {did_what}?"],
            ["Which thing {did_what}?", "Which of these {did_what}?", "Which is the thing that {who_did}?", "Which one was it that {who_did}?",
             "Which thing is it that {who_did}?"],
            ["[Pick|Choose|Select] what {who_did}.", "[Pick|Choose|Select] the thing that {who_did}.",
             "[Pick|Choose] the right thing: what {did_what}?", "[Pick|Select] the one thing that {who_did}.",
             "[Choose|Select] what it was that {who_did}."],
            ["[Name|Find] what {who_did}.", "[Name|Find] the thing that {who_did}.", "[Name|Say] what it was that {who_did}.",
             "Say what {who_did}.", "[Name|Find] the one thing that {who_did}."],
            ["{Who_did} something: what?", "{Who_did} something. What was it?", "There is something that {who_did}: what?",
             "{Who_did} one of these. Which?", "{Who_did} a thing: which one?"]],
        "detail": [
            ["What is {detail}?", "What is {detail}, [by|according to] the text?", "What does the text say is {detail}?",
             "What is said to be {detail}?", "What, in the text, is {detail}?"],
            ["Which of these is {detail}?", "Which is {detail}?", "Which one is {detail}?", "Which one is said to be {detail}?",
             "Which is {detail} in the text?"],
            ["[Pick|Choose|Select] {detail}.", "[Pick|Choose|Select] what {detail} is.", "[Pick|Choose] the one that is {detail}.",
             "[Pick|Select] {detail} as the text has it.", "[Choose|Select] which one is {detail}."],
            ["[Name|Find] {detail}.", "[Name|Find] what {detail} is.", "[Say|Find] which one is {detail}.", "[Name|Find] {detail} in the text.",
             "Say what {detail} is."],
            ["{Detail}: which is it?", "{Detail}: what is it?", "{Detail} is told in the text: what is it?", "{Detail}, which of these is it?",
             "{Detail} is one of these. Which?"]],
        "fact": [
            ["Is it [true|right|so] that {clause}?", "Is this [true|right|so]: {clause}?", "Is it the case that {clause}?",
             "Is it a fact that {clause}?", "Is this what happened: {clause}?"],
            ["Does the text say that {clause}?", "Does it say that {clause}?", "Does the text show that {clause}?",
             "Does it follow from the text that {clause}?", "Does the text tell that {clause}?"],
            ["{Clause}.", "It is [true|so] that {clause}.", "The text says that {clause}.", "According to the text, {clause}.",
             "As told, {clause}."],
            ["According to the text, {question}?", "{Question}?", "By what is told, {question}?", "Tell me: {question}?",
             "Going by the text, {question}?"],
            ["[Say|Judge|Decide] whether {clause}.", "[Say|Judge] if it is [true|so] that {clause}.", "[Check|Judge] this: {clause}.",
             "[Check|Decide] whether it is true that {clause}.", "{Clause}. Is that [true|so|right]?"]],
        "said": [
            ["Does the text [say|tell] {wh}?", "Does it [say|tell] anywhere {wh}?", "Does one learn {wh}?", "Does the reader learn {wh}?",
             "Does the text make known {wh}?"],
            ["Is it [said|told|stated] {wh}?", "Is it known from the text {wh}?", "Is there a word on {wh}?", "Is it [said|told] anywhere {wh}?",
             "Is anything said about {wh}?"],
            ["The text [says|tells|states] {wh}.", "It is [said|told|stated] {wh}.", "We [learn|are told] {wh}.", "The reader learns {wh}.",
             "There is a word on {wh}."],
            ["[Do|Can] we learn {wh}?", "[Do|Can] you tell from the text {wh}?", "Can one say {wh}?", "Can one know from the text {wh}?",
             "Do we know from this {wh}?"],
            ["[Check|Look|See] whether it is said {wh}.", "[Check|Say] whether the text tells {wh}.", "[Check|See] if one learns {wh}.",
             "{Wh}: is that said?", "{Wh}: does the text say it?"]],
        "order": [
            ["{Question} {rel} {second}?", "{Question}, and was it {rel} {second}?", "{Question} {rel} the time when {second}?",
             "{Question}, and did that come {rel} {second}?", "{Question}, and did it happen {rel} {second}?"],
            ["Was it {rel} {second} that {first}?", "Was that {rel} {second}: {first}?", "Is it {rel} {second} that {first}?",
             "Did it happen {rel} {second} that {first}?", "Did this come {rel} {second}: {first}?"],
            ["{First} {rel} {second}.", "It was {rel} {second} that {first}.", "{First}, and that was {rel} {second}.",
             "It is told that {first} {rel} {second}.", "{Rel} {second}, {first}."],
            ["Is it [true|so|right] that {first} {rel} {second}?", "Is this [true|so]: {first} {rel} {second}?",
             "Is it the case that {first} {rel} {second}?", "Is this right: {rel} {second}, {first}?", "Is it told that {first} {rel} {second}?"],
            ["[Say|Judge|Decide] whether {first} {rel} {second}.", "[Check|Judge] this: {first} {rel} {second}.",
             "[Say|Judge] if {first} {rel} {second}.", "[Check|Judge] the order: {first} {rel} {second}.",
             "[Check|Say] whether it was {rel} {second} that {first}."]],
        "first": [
            ["What [happened|came] {end}?", "What was {end}?", "What took place {end}?", "What was the {end} thing to happen?",
             "What is the {end} thing told in time?"],
            ["Which [of these|event] [happened|came] {end}?", "Which of these was {end}?", "Which event was the {end}?",
             "Which one took place {end}?", "Which thing happened {end}?"],
            ["[Pick|Choose|Select] what [happened|came] {end}.", "[Pick|Choose|Select] the {end} event.",
             "[Pick|Choose] the thing that happened {end}.", "[Pick|Select] the one that was {end}.", "[Choose|Select] what took place {end}."],
            ["[Name|Find] what [happened|came] {end}.", "[Name|Find] the {end} event.", "[Name|Find] the thing that happened {end}.",
             "[Name|Find] the one that was {end}.", "Say what came {end}."],
            ["In time, what came {end}?", "In order of time, which was {end}?", "[Put|Bring] them in order: which is {end}?",
             "In the order of time, which event is {end}?", "[Look|Check] at the times: what happened {end}?"]],
    }

    # ---- the scene -------------------------------------------------------------------------------------------------------

    def scene(self, draw):
        count = draw.choice([2, 2, 3, 3, 4])
        women = draw.random.randint(0, count)
        people = dict.fromkeys(draw.picks(WOMEN, women), True) | dict.fromkeys(draw.picks(MEN, count - women), False)
        names = draw.sample(people, count)
        scene = Scene("", [], people, timing=draw.choice(["clock", "days", "dates", "sequence"]))
        for name in names:
            if draw.chance(0.3):
                scene.jobs[name] = draw.pick(JOBS)
            elif draw.chance(0.15):
                scene.homes[name] = draw.pick(CITIES)
        scene.events = self.events(draw, scene, names, draw.choice([2, 3, 3, 4]))
        scene.backwards = scene.timing == "sequence" and draw.chance(0.2)
        sentences = self.tell(draw, scene)
        text = " ".join(sentences)
        scene.state = draw.choice([text, text, {draw.choice(["text", "story", "report", "note", "message"]): text}, sentences])
        return scene

    def events(self, draw, scene, names, count):
        objects, cities, places = draw.picks(OBJECTS, count), draw.picks(CITIES, count), draw.picks(PLACES, count)
        times = self.times(draw, scene.timing, count)
        events = []
        for i, action in enumerate(draw.sample(ACTIONS, count)):
            who = names[i % len(names)] if draw.chance(0.7) else draw.choice(names)
            event = Event(action, who, when=times[i][1], order=times[i][0])
            event.what = cities[i] if action.takes == "city" else objects[i] if action.takes in ("object", "gift") else ""
            if action.takes in ("object", "gift") and draw.chance(0.45):
                event.colour = draw.pick(COLOURS)
            if action.takes in ("gift", "person"):
                event.other = draw.choice([name for name in names if name != who])
            if action.takes != "city" and draw.chance(0.6):
                event.where = places[i]
            if scene.timing == "sequence" or draw.chance(0.25):
                event.when = ""
            events.append(event)
        return events

    @staticmethod
    def times(draw, timing, count):
        """[(place in time, text)] in random order; a sequence's is the order of telling."""
        if timing == "sequence":
            return [(i, "") for i in range(count)]
        if timing == "days":
            return [(day, f"on {WEEKDAYS[day]}") for day in draw.sample(range(len(WEEKDAYS)), count)]
        if timing == "dates":
            month = draw.choice(MONTHS)
            return [(day, f"on {day} {month}") for day in draw.sample(range(1, 29), count)]
        minutes = draw.sample(range(6 * 60, 22 * 60), count)
        return [(minute, f"at {minute // 60:02}:{minute % 60:02}") for minute in minutes]

    def tell(self, draw, scene):
        sentences, known, last = [], set(), None
        told = scene.events[::-1] if scene.backwards else scene.events
        for i, event in enumerate(told):
            name = event.who
            if last and last.who == name and not last.other and draw.chance(0.6):
                name = "she" if scene.people[name] else "he"
            elif name not in known and name in scene.jobs and draw.chance(0.4):
                name = f"{name}, {article(scene.jobs[name])}," if draw.chance(0.5) else f"{name} the {scene.jobs[name]}"
                known.add(event.who)
            sentence = self.sentence(draw, event, name)
            if scene.timing == "sequence" and (i or draw.chance(0.6)):
                sentence = self.connect(draw, sentence, i, len(told), scene.backwards)
            sentences.append(" ".join(capital(sentence).split()) + ".")
            last = event
        for name in scene.people:
            if name in scene.jobs and name not in known:
                sentences.append(draw.choice(["{0} is {1}.", "{0} works as {1}.",
                                              "The job of {0} is that of {1}."]).format(name, article(scene.jobs[name])))
            elif name in scene.homes:
                sentences.append(draw.choice(["{0} lives in {1}.", "{0}'s home is in {1}.",
                                              "The home of {0} is {1}."]).format(name, scene.homes[name]))
        if draw.chance(0.3):
            sentences.insert(draw.choice([0, len(sentences)]), draw.choice(FILLERS))
        return sentences

    @staticmethod
    def sentence(draw, event, name):
        past, _, participle = draw.choice(event.action.verbs)
        tail = " ".join(part for part in draw.sample([event.where, event.when], 2) if part)
        rest = event.rest(full=True)
        if event.action.takes == "gift" and draw.chance(0.5):
            thing = rest.rsplit(" to ", 1)[0]
            rest = f"{event.other} {thing}"
        if event.action.takes in ("object", "gift") and name == event.who and draw.chance(0.15):
            thing, _, other = event.rest(full=True).partition(" to ")
            return f"{thing} was {participle} {'to' * bool(other)} {other} by {name} {tail}"
        if event.when and draw.chance(0.3):
            return f"{event.when}, {name} {past} {rest} {event.where}"
        if event.where and draw.chance(0.15):
            return f"{event.where}, {name} {past} {rest} {event.when}"
        return f"{name} {past} {rest} {tail}"

    @staticmethod
    def connect(draw, sentence, place, count, backwards):
        if backwards:
            return f"{draw.choice(['before that', 'earlier'])}, {sentence}" if place else sentence
        if place == 0:
            return f"first, {sentence}"
        return f"{draw.choice(['then', 'after that', 'later'] + ['finally'] * (place == count - 1))}, {sentence}"

    def told(self, draw, scene):
        timed = sorted(self.timed(scene), key=lambda event: event.order)
        return "; ".join(event.clause(draw, when=True) for event in timed or scene.events)

    # ---- the questions ---------------------------------------------------------------------------------------------------

    @staticmethod
    def options(draw, answer, others, pool):
        """{option: None} for the answer, what else of the sort the text has, and a stranger now and then."""
        options = filled(list(dict.fromkeys([answer, *others])), draw.choice([2, 3, 3, 4, 5]),
                         lambda: bare(draw.pick(pool)) if isinstance(pool, Pool) else draw.choice(pool))
        return Choice(answer, dict.fromkeys(options))

    def who(self, draw, scene):
        facts = [(event.who, event.clause(draw, who=False, where=bool(event.where) and draw.chance(0.3)))
                 for event in scene.events if event.action.takes != "person" or sum(e.other == event.other for e in scene.events) == 1]
        facts += [(event.other, f"{draw.choice(['got', 'received'])} the {event.what} from {event.who}") for event in scene.events
                  if event.action.verbs[0][0] in ("gave", "sent")]
        facts += [(name, f"{draw.choice(['is', 'works as'])} {article(job)}") for name, job in scene.jobs.items()
                  if list(scene.jobs.values()).count(job) == 1]
        facts += [(name, f"lives in {city}") for name, city in scene.homes.items() if list(scene.homes.values()).count(city) == 1]
        if not facts:
            return None
        answer, did = draw.choice(facts)
        asked = self.options(draw, answer, scene.people, draw.choice([WOMEN, MEN]))
        asked.slots = {"did": did}
        return asked

    def where(self, draw, scene):
        return self.circumstance(draw, scene, "where", PLACES)

    def when(self, draw, scene):
        if scene.timing == "sequence":
            return None
        month = max((event.when for event in scene.events), key=len).split()[-1:]
        others = {"days": WEEKDAYS, "dates": [f"{day} {month[0]}" for day in range(1, 29) if month],
                  "clock": [f"{hour:02}:{minute:02}" for hour in range(6, 22) for minute in range(60)]}
        return self.circumstance(draw, scene, "when", others[scene.timing])

    def circumstance(self, draw, scene, part, pool):
        told = [event for event in scene.events if getattr(event, part)]
        if not told:
            return None
        event = draw.choice(told)
        asked = self.options(draw, bare(getattr(event, part)), [bare(getattr(other, part)) for other in told], pool)
        clause = event.clause(draw)
        asked.slots = {"did_who": event.question(draw), "clause": clause, "Clause": capital(clause)}
        return asked

    def what(self, draw, scene):
        things = [event for event in scene.events if event.action.takes in ("object", "gift")]
        single = [event for event in things if sum(other.who == event.who and other.action is event.action for other in things) == 1]
        if not single:
            return None
        event = draw.choice(single)
        past, base, _ = draw.choice(event.action.verbs)
        to = f" {event.other}" if event.other else ""
        asked = self.options(draw, event.what, [other.what for other in things], OBJECTS)
        asked.slots = {"did_what": f"did {event.who} {base}{to}", "who_did": f"{event.who} {past}{to}", "Who_did": f"{event.who} {past}{to}"}
        return asked

    def detail(self, draw, scene):
        coloured = [event for event in scene.events if event.colour]
        facts = [("colour", event.colour, f"the {event.what}", [other.colour for other in coloured], COLOURS) for event in coloured]
        facts += [("job", job, name, list(scene.jobs.values()), JOBS) for name, job in scene.jobs.items()]
        facts += [("home", city, name, list(scene.homes.values()), CITIES) for name, city in scene.homes.items()]
        if not facts:
            return None
        sort, answer, owner, others, pool = draw.choice(facts)
        detail = draw.choice([f"the {sort} of {owner}"] + [f"{owner}'s {sort}"] * (sort != "colour"))
        asked = self.options(draw, answer, others, pool)
        asked.slots = {"detail": detail, "Detail": capital(detail)}
        return asked

    def fact(self, draw, scene):
        event = draw.choice(scene.events)
        right = draw.chance(0.45)          # an event does not always allow a change
        changed = event if right else self.changed(draw, scene, event)
        if changed is None:
            return None
        where, when = bool(event.where) and changed.where != event.where, bool(event.when) and changed.when != event.when
        where, when = where or (bool(event.where) and draw.chance(0.4)), when or (bool(event.when) and draw.chance(0.4))
        clause = changed.clause(draw, where=where, when=when)
        question = changed.question(draw, where, when)
        return Noul(right, {"clause": clause, "Clause": capital(clause), "question": question, "Question": capital(question)})

    @staticmethod
    def changed(draw, scene, event):
        """The event with one part exchanged, mostly for one that the text has elsewhere; never another event of the text."""
        parts = ["who", "who"] + [part for part in ("what", "other", "where", "when") if getattr(event, part)]
        part = draw.choice(parts)
        if part in ("who", "other"):
            values = [name for name in scene.people if name not in (event.who, event.other)]
        elif part == "what":
            values = [other.what for other in scene.events if other.what and (other.action.takes == "city") == (event.action.takes == "city")]
            values = values + [draw.pick(CITIES if event.action.takes == "city" else OBJECTS)]
        elif part == "where":
            values = [other.where for other in scene.events if other.where] + [draw.pick(PLACES)]
        else:
            values = [other.when for other in scene.events if other.when]
        values = [value for value in values if value and value != getattr(event, part)]
        if not values:
            return None
        changed = Event(**(vars(event) | {part: draw.choice(values)}))
        return changed if part in ("where", "when") or not any(other.deed == changed.deed for other in scene.events) else None

    def said(self, draw, scene):
        right = draw.chance(0.5)
        part = draw.choice(["where", "when", "colour", "job"] if scene.timing != "sequence" else ["where", "colour", "job"])
        if part == "job":
            names = [name for name in scene.people if (name in scene.jobs) == right]
            wh = f"what {draw.choice(['the job of {0} is', 'work {0} does', 'job {0} has'])}".format(draw.choice(names)) if names else None
        elif part == "colour":
            events = [event for event in scene.events if event.action.takes in ("object", "gift") and bool(event.colour) == right]
            wh = f"what colour the {draw.choice(events).what} is" if events else None
        else:
            events = [event for event in scene.events if event.action.takes != "city" and bool(getattr(event, part)) == right]
            wh = f"{part} {draw.choice(events).clause(draw)}" if events else None
        return Noul(right, {"wh": wh, "Wh": capital(wh)}) if wh else None

    @staticmethod
    def timed(scene):
        """The events whose place in time is told."""
        return scene.events if scene.timing == "sequence" else [event for event in scene.events if event.when]

    def order(self, draw, scene):
        timed = self.timed(scene)
        if len(timed) < 2:
            return None
        first, second = draw.sample(timed, 2)
        rel = draw.choice(["before", "after"])
        clause, question, other = first.clause(draw), first.question(draw), second.clause(draw)
        return Noul((first.order < second.order) == (rel == "before"),
                    {"rel": rel, "Rel": capital(rel), "first": clause, "First": capital(clause), "second": other,
                     "question": question, "Question": capital(question)})

    def first(self, draw, scene):
        timed = self.timed(scene)
        if len(timed) < 2:
            return None
        end = draw.choice(["first", "last"])
        timed = sorted(timed, key=lambda event: event.order)
        clauses = [f"{capital(event.clause(draw))}." for event in timed]
        answer = clauses[0 if end == "first" else -1]
        if draw.chance(0.5):
            return Choice(answer, dict.fromkeys(clauses), {"end": end})
        labels = dict(zip(draw.sample(clauses, len(clauses)), "ABCDE"))
        return Choice(labels[answer], {labels[clause]: clause for clause in clauses}, {"end": end})
