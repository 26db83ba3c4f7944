"""dates: events and deadlines of a record; before and after, first and last, overdue or expired as of today, what follows."""

import datetime
from dataclasses import dataclass

from .core import Choice, Family, Meanings, Noul, Pool, labelled
from .vocabulary import MONTHS, NEAREST, PLACES, code, day, day_near, entity_options, mirrored, person, words, write_date

EVENTS = Pool("dates.events", words(
    "kickoff, review, launch, audit, training, inspection, interview, workshop, concert, delivery, election, exam, wedding, auction, lecture,"
    "opening, closing, demo, hearing, rehearsal, repair, survey, vaccination, surgery, checkup, flight, departure, arrival, pickup, handover,"
    "signing, meeting, conference, festival, marathon, match, tournament, excavation, harvest, planting, painting, cleaning, installation, migration,"
    "upgrade, backup, test run, pilot, release, webinar, photo shoot, premiere, broadcast, ceremony, parade, picnic, camp, tasting, fitting,"
    "move, renovation, demolition, boat trip, site visit, town hall, tax filing, stocktaking, recall, shipment, refund, booking, check-in"))
DUE = Pool("dates.due", words(
    "invoice, report, library book, tax return, rent, essay, application, task, payment, loan, assignment, bill, manuscript, proposal, thesis,"
    "timesheet, questionnaire, draft, translation, order, rental car, registration form, medical form, budget plan, expense claim, homework"))
EXPIRING = Pool("dates.expiring", words(
    "passport, license, contract, warranty, subscription, coupon, visa, membership, insurance, certificate, permit, ticket, gift card, voucher,"
    "offer, credit card, password, domain, lease, guarantee, parking pass, season ticket, quote, discount code, vaccine, bus pass"))
DUE_KEYS = ["due", "due_date", "deadline", "due_on", "due_by"]
EXPIRY_KEYS = ["valid_until", "expires", "expiry_date", "expires_on", "valid_to", "expiration"]
TODAY_KEYS = ["today", "today", "current_date", "today_is", "as_of"]

ACTIONS = Meanings("dates.actions", {
    "remind": ["It is overdue: send a reminder.", "The due date has passed and it is not done: remind.", "Send a reminder, it is late.",
               "Remind them, because it is overdue.", "Not done and past the deadline: send a reminder.", "Late: a reminder must go out.",
               "The deadline has passed and it is open: remind.", "It is late and still not done.", "Overdue, so it needs a reminder.",
               "Past the due date without being done."],
    "wait": ["It is not due yet: wait.", "There is still time, so wait.", "The due date is still to come.", "Wait until the deadline.",
             "Nothing to do yet, there is still time.", "Not due yet, just wait.", "The deadline is still to come: wait.",
             "Wait, there is time left before the due date.", "Leave it for now, the deadline has not come.", "Not done, but there is still time."],
    "close": ["It is done: close it.", "Close it, it has been done.", "Already done, nothing more to do.", "It is complete: close it.",
              "Done, so it can be closed.", "It is already complete.", "Complete: it can be closed.", "Close it, because it is complete.",
              "It was done, so no reminder.", "Already complete, so close it."],
    "renew": ["It has expired: renew it.", "Renew it, it is no longer valid.", "The expiry date has passed, so renew.", "No longer valid: renew.",
              "Expired, so it must be renewed.", "It ran out and must be renewed.", "It is past its expiry date: renew.",
              "Renew, because it ran out.", "It is expired and no longer valid.", "Get a new one, it has expired."],
    "keep": ["It is still valid: keep it.", "Keep it, it has not expired.", "The expiry date is still to come, so keep it.",
             "Still valid: no change.", "Not expired, so keep it.", "It has not run out: keep it.", "It is still valid, nothing to do.",
             "Keep it, because it is still valid.", "It has not expired yet, no change.", "Keep using it, it has not run out."]})


@dataclass
class Scene:
    state: object
    events: dict                           # {event: date}
    style: str                             # how dates are written
    today: datetime.date
    thing: str                             # what is due or expires; "" for nothing
    sort: str                              # "due" or "expiry"
    deadline: datetime.date                # of the thing
    late: bool                             # it is overdue or has expired
    done: bool


LATER = {"before": "after", "earlier": "later", "precede": "follow", "precedes": "follows"}
LAST = {"first": "last", "earliest": "latest", "begins": "ends", "before": "after"}

BEFORE = [
    ["[Is|Was] the {event} before {point}?", "[Is|Was] the {event} earlier than {point}?", "Is the date of the {event} before {point}?",
     "Is the {event} [dated|set] before {point}?", "Is {event} [earlier than|before] {point}?"],
    ["Does the {event} [come|fall] before {point}?", "Did the {event} take place before {point}?",
     "Does the {event} [come|fall] earlier than {point}?", "Does the date of the {event} lie before {point}?",
     "Does the {event} happen [earlier than|before] {point}?"],
    ["The {event} [is|was] before {point}.", "The {event} [comes|falls] before {point}.", "The {event} is earlier than {point}.",
     "The date of the {event} is [before|earlier than] {point}.", "The record shows the {event} before {point}."],
    ["Compare the {event} with {point}. Is it [earlier|before that]?", "Take the {event}: is it before {point}?",
     "Take {point}: does the {event} come before it?", "Comparing the {event} with {point}: is it earlier?",
     "Look at the date of the {event}. Is it [before|earlier than] {point}?"],
    ["[Check|Say|Decide] whether the {event} is before {point}.", "[Check|Say|Decide] whether the {event} is earlier than {point}.",
     "[Check|Say] if the {event} comes before {point}.", "[Check|Decide] if the date of the {event} is [earlier than|before] {point}.",
     "[Check|Decide]: is the {event} [before|earlier than] {point}?"],
]
FIRST = [
    ["Which [event|date] [is|was] [the first|the earliest]?", "Which of these [is|was] [first|earliest]?", "Which event comes first?",
     "Which event has the earliest date?", "Which one [happens|takes place] first?"],
    ["What [comes|came] first?", "What is the [first|earliest] event?", "What has the earliest date?", "What [happens|takes place] first?",
     "What is the [earliest|first] of these?"],
    ["[Pick|Choose|Select] the event with the earliest date.", "[Pick|Choose|Select] the [first|earliest] event.",
     "[Pick|Choose|Select] the earliest.", "[Pick|Choose|Select] what comes first.", "[Pick|Choose] whichever [is earliest|comes first]."],
    ["[Name|Find] the [earliest|first] event.", "[Name|Find] the event that comes first.", "[Name|Find] the one with the earliest date.",
     "[Name|Find] the event whose date is earliest.", "[Name|Find] what [happens|takes place] first."],
    ["Of these events, which is [first|the earliest]?", "Compare the dates: which event is earliest?", "Looking at the dates, what comes first?",
     "In order of date, which event is first?", "Compare the events by date. Which is [first|the earliest]?"],
]
OVERDUE = [
    ["Is the {thing} [overdue|late]?", "Is the {thing} past its [due date|deadline] and still not done?", "Is it overdue [as of today|today|now]?",
     "As of today, is the {thing} overdue?", "Is the {thing} [overdue|late] [by now|today]?"],
    ["Has the {thing} become overdue?", "Has the {thing} passed its [deadline|due date] without being done?",
     "Has it gone past its [deadline|due date] without being done?", "Has it become overdue by now?", "Has the {thing} become [late|overdue]?"],
    ["The {thing} is [overdue|late].", "The {thing} is past its [due date|deadline] and not done.", "As of today, it is overdue.",
     "The {thing} has passed its [deadline|due date] without being done.", "It is [overdue|late] by now."],
    ["Going by today's date, is the {thing} [overdue|late]?", "Given the date today, is it overdue?", "Compare with today: is it overdue?",
     "Looking at today and the deadline, is the {thing} overdue?", "Given the [deadline|due date], is the {thing} late today?"],
    ["[Check|Say|Decide] whether the {thing} is overdue.", "[Check|Say|Decide] whether it is [late|overdue] today.",
     "[Check|Say] if the {thing} has passed its [deadline|due date] without being done.", "[Check|Decide] if it is overdue as of today.",
     "[Check|Decide]: is the {thing} [late|overdue]?"],
]
VALID = [
    ["Is the {thing} [still valid|valid today]?", "Is the {thing} valid [as of today|now]?", "Is it still valid?",
     "As of today, is the {thing} valid?", "Is the date until which the {thing} is valid still to come?"],
    ["Does the {thing} remain valid [today|as of today]?", "Does it [remain|stay] valid?", "Does the {thing} still count as valid?",
     "Does the {thing} stay valid beyond today?", "Does the expiry date of the {thing} still lie in the future?"],
    ["The {thing} is still valid.", "It is valid [today|as of today].", "As of today, the {thing} is valid.", "The {thing} has not expired.",
     "It has not run out and is still valid."],
    ["Going by today's date, is the {thing} [still|] valid?", "Given the date today, is it still valid?", "Compare with today: is the {thing} valid?",
     "Looking at today and the expiry date, is it valid?", "Given its expiry date, is the {thing} still valid today?"],
    ["[Check|Say|Decide] whether the {thing} is still valid.", "[Check|Say|Decide] whether it is valid today.",
     "[Check|Say] if the {thing} is valid.", "[Check|Decide] if it is still valid as of today.", "[Check|Decide]: is the {thing} still valid?"],
]
EXPIRED = [
    ["Is the {thing} expired [by now|today|]?", "Is the {thing} no longer valid?", "Is the {thing} past its expiry date?",
     "As of today, is it expired?", "Is it [out of date|expired] [today|now]?"],
    ["Has the {thing} [expired|run out]?", "Has it already [expired|run out]?", "Has the expiry date of the {thing} passed?",
     "Has the {thing} expired as of today?", "Has it [expired|run out] by now?"],
    ["The {thing} has [expired|run out].", "It is [expired|no longer valid].", "As of today, the {thing} is expired.",
     "The expiry date of the {thing} has passed.", "The {thing} is no longer valid."],
    ["Going by today's date, has the {thing} [expired|run out]?", "Given the date today, is it expired?",
     "Compare with today: is the {thing} expired?", "Looking at today and the expiry date, is it no longer valid?",
     "Given its expiry date, is the {thing} expired today?"],
    ["[Check|Say|Decide] whether the {thing} has expired.", "[Check|Say|Decide] whether it is no longer valid.",
     "[Check|Say] if the {thing} is expired.", "[Check|Decide] if it has [expired|run out] as of today.", "[Check|Decide]: has the {thing} expired?"],
]
PAST = [
    ["Is the {event} [already over|in the past]?", "Is the {event} before today?", "As of today, is the {event} in the past?",
     "Is the date of the {event} [in the past|before today]?", "Is the {event} [over|past] by now?"],
    ["Has the {event} already [happened|taken place]?", "Has the {event} happened [by today|by now]?", "Has the date of the {event} already passed?",
     "Has the {event} taken place before today?", "Has the {event} passed [already|by now]?"],
    ["The {event} [is already over|has already happened].", "The {event} is in the past.", "The {event} [was|took place] before today.",
     "The date of the {event} has already passed.", "As of today, the {event} has taken place."],
    ["Going by today's date, is the {event} [over|in the past]?", "Given the date today, has the {event} already happened?",
     "Compare with today: is the {event} in the past?", "Looking at today, has the {event} already taken place?",
     "Given today's date, has the {event} already passed?"],
    ["[Check|Say|Decide] whether the {event} is in the past.", "[Check|Say|Decide] whether the {event} has already [happened|passed].",
     "[Check|Say] if the {event} is before today.", "[Check|Decide] if the {event} has taken place already.",
     "[Check|Decide]: is the {event} already over?"],
]
PERIOD = [
    ["In which {period} [is|was] the {event}?", "Which {period} is the {event} in?", "In which {period} does the {event} fall?",
     "Which {period} does the date of the {event} fall in?", "Which is the {period} of the {event}?"],
    ["What is the {period} of the {event}?", "What {period} [is|was] the {event} in?", "What {period} does the {event} fall in?",
     "What {period} is given for the {event}?", "What {period} does the {event} take place in?"],
    ["[Pick|Choose|Select] the {period} of the {event}.", "[Pick|Choose|Select] the {period} in which the {event} falls.",
     "[Pick|Choose|Select] the {period} the {event} is in.", "[Pick|Choose] the right {period} for the {event}.",
     "[Pick|Choose] the {period} in the date of the {event}."],
    ["[Name|Find] the {period} of the {event}.", "[Name|Find] the {period} in which the {event} takes place.",
     "[Name|Find] the {period} the {event} falls in.", "[Name|Find] the {period} given for the {event}.",
     "[Name|Find] the {period} in the date of the {event}."],
    ["When is the {event}? Give the {period}.", "The {event} falls in which {period}?", "The {event} [is|was] in which {period}?",
     "Look at the date of the {event}: which {period} is it?", "When does the {event} take place, by {period}?"],
]
ACTION = [
    ["What should be done [with|about] the {thing}?", "What should happen with the {thing} [today|now]?", "What should be done [today|now]?",
     "What should we do [with|about] the {thing}?", "What should be the next step?"],
    ["What is the [right|next] step for the {thing}?", "What is to be done [with|about] the {thing}?", "What is the right [action|step] today?",
     "What is the next step [with|for] the {thing}?", "What is the right thing to do with the {thing}?"],
    ["[Pick|Choose|Select] the [right|next] step for the {thing}.", "[Pick|Choose|Select] what should be done with the {thing}.",
     "[Pick|Choose|Select] the right [action|step].", "[Pick|Choose|Select] the action for the {thing}.",
     "[Pick|Choose] what should happen with the {thing} today."],
    ["Which [step|action] is right for the {thing}?", "Which [step|action] fits the {thing} today?", "Which [step|action] should be next?",
     "Which of these should be done with the {thing}?", "Which is the right [step|action] as of today?"],
    ["Given today's date, what should be done with the {thing}?", "Given the dates, which [step|action] is right?",
     "Going by today's date, what is the next step for the {thing}?", "Looking at the dates, what should happen with the {thing}?",
     "Going by the record, what is the right step?"],
]


class Dates(Family):
    name = "dates"
    harder = ("before", "after", "first", "last")
    alike = (("before", "after"), ("first", "last"), ("month", "year"), ("expired", "valid"))
    templates = {
        "before": BEFORE, "after": mirrored(BEFORE, LATER), "first": FIRST, "last": mirrored(FIRST, LAST), "past": PAST,
        "overdue": OVERDUE, "expired": EXPIRED, "valid": VALID, "action": ACTION, "year": PERIOD, "month": PERIOD,
    }

    def scene(self, draw):
        today = day(draw)
        sort = draw.choice(["due", "expiry"])
        thing = draw.pick(DUE if sort == "due" else EXPIRING) if draw.chance(0.75) else ""
        late = draw.chance(0.5)
        done = bool(thing) and sort == "due" and not late and draw.chance(0.45)
        deadline = day_near(draw, today, -1 if late or done and draw.chance(0.6) else 1)
        count = draw.choice([0, 1, 2, 3]) if thing else draw.choice([2, 3, 3, 4, 5, 6])
        scene = Scene(None, self.events(draw, today, count), draw.choice(["iso"] * 10 + ["long", "us"]), today, thing, sort, deadline,
                      late, done)
        scene.state = self.text(draw, scene, deadline) if draw.chance(0.3) else self.document(draw, scene, deadline)
        return scene

    @staticmethod
    def events(draw, today, count):
        """Events before and after today, by turns close together and far apart."""
        names = draw.picks(EVENTS, count)
        dates = []
        while len(dates) < count:
            origin = draw.choice(dates) if dates and draw.chance(0.5) else today
            date = day_near(draw, origin, draw.choice([-1, 1]))
            if all(abs(date - other).days >= NEAREST for other in [*dates, today]):
                dates.append(date)
        return dict(zip(names, dates))

    @staticmethod
    def document(draw, scene, deadline):
        """The state as JSON."""
        write = {name: write_date(date, scene.style) for name, date in scene.events.items()}
        document = {draw.choice(TODAY_KEYS): write_date(scene.today, scene.style)}
        match draw.choice(["keys", "keys", "nested", "list"]) if write else "":
            case "keys":
                document |= {name.replace(" ", "_"): date for name, date in write.items()}
            case "nested":
                document[draw.choice(["dates", "events", "schedule", "calendar"])] = write
            case "list":
                name_key, date_key = draw.choice(["event", "name", "what", "title"]), draw.choice(["date", "on", "day", "when"])
                document[draw.choice(["events", "schedule", "steps", "entries"])] = [
                    {name_key: name, date_key: date} for name, date in write.items()]
        if scene.thing:
            body = {draw.choice(DUE_KEYS if scene.sort == "due" else EXPIRY_KEYS): write_date(deadline, scene.style)}
            if scene.sort == "due":
                done_on = day_near(draw, min(deadline, scene.today), -1)
                body |= draw.choice([{"done": scene.done}, {"status": "done" if scene.done else draw.choice(["not done", "open", "in progress"])},
                                     {"complete": scene.done}, {"done_on": write_date(done_on, scene.style) if scene.done else None},
                                     {"status": "complete" if scene.done else "open"}] + [{}] * (0 if scene.done else 2))
            for key, value in (("id", code(draw)), ("owner", person(draw)), ("place", draw.pick(PLACES))):
                if draw.chance(0.25):
                    body[key] = value
            if draw.chance(0.5):
                document[scene.thing.replace(" ", "_")] = body
            else:
                document |= body | {draw.choice(["item", "type", "subject", "name"]): scene.thing}
        return document

    @staticmethod
    def text(draw, scene, deadline):
        """The state as a short text."""
        sentences = [draw.choice(["The {} is on {}.", "{}: {}.", "The date of the {} is {}.", "The {} is set for {}."]).format(
            name, write_date(date, scene.style)) for name, date in scene.events.items()]
        if scene.thing:
            patterns = (["The {} is due on {}.", "The {} is due by {}.", "The deadline for the {} is {}.", "The due date of the {} is {}."]
                        if scene.sort == "due" else
                        ["The {} is valid until {}.", "The {} expires on {}.", "The expiry date of the {} is {}.", "The {} runs out on {}."])
            sentence = draw.choice(patterns).format(scene.thing, write_date(deadline, scene.style))
            if scene.done:
                sentence += draw.choice([" It is already done.", " It has been done.", " It is complete.", " Status: done."])
            elif scene.sort == "due" and draw.chance(0.6):
                sentence += draw.choice([" It is not done yet.", " It has not been done.", " It is not complete.", " Status: not done."])
            sentences.append(sentence)
        if draw.chance(0.3):
            sentences.append(draw.choice(["Contact: {}.", "Owner: {}.", "{} is in charge."]).format(person(draw)))
        draw.random.shuffle(sentences)
        today = draw.choice(["Today is {}.", "Today: {}.", "Today's date is {}.", "It is {} today."]).format(write_date(scene.today, scene.style))
        sentences.insert(draw.choice([0, len(sentences)]), today)
        return draw.choice([" ", " ", "\n"]).join(sentence[0].upper() + sentence[1:] for sentence in sentences)

    def told(self, draw, scene):
        """The dates in order, or which of them are over."""
        dates = scene.events | ({scene.thing: scene.deadline} if scene.thing else {})
        if draw.chance(0.5):
            past = [name for name in dates if dates[name] < scene.today]
            return f"past: {', '.join(past) or 'none'}; to come: {', '.join(name for name in dates if name not in past) or 'none'}"
        dates["today"] = scene.today
        return ", ".join(f"{name} {write_date(dates[name], scene.style)}" for name in sorted(dates, key=dates.get))

    # ---- questions ---------------------------------------------------------------------------------------------------

    def before(self, draw, scene):
        return self.compare(draw, scene, before=True)

    def after(self, draw, scene):
        return self.compare(draw, scene, before=False)

    @staticmethod
    def compare(draw, scene, before):
        """An event with a date of the question's own, or with another event."""
        if not scene.events:
            return None
        if len(scene.events) > 1 and draw.chance(0.4):
            event, other = draw.sample(scene.events, 2)
            date, point = scene.events[other], f"the {other}"
        else:
            event = draw.choice(list(scene.events))
            date = day_near(draw, scene.events[event], draw.choice([-1, 1]))
            point = write_date(date, scene.style)
        return Noul((scene.events[event] < date) == before, {"event": event, "point": point})

    def first(self, draw, scene):
        return self.extreme(draw, scene, min)

    def last(self, draw, scene):
        return self.extreme(draw, scene, max)

    @staticmethod
    def extreme(draw, scene, pick):
        if len(scene.events) < 2:
            return None
        return Choice(*entity_options(draw, scene.events, pick(scene.events, key=scene.events.get)))

    def past(self, draw, scene):
        if not scene.events:
            return None
        event = draw.choice(list(scene.events))
        return Noul(scene.events[event] < scene.today, {"event": event})

    def overdue(self, draw, scene):
        return Noul(scene.late, {"thing": scene.thing}) if scene.thing and scene.sort == "due" else None

    def expired(self, draw, scene):
        return Noul(scene.late, {"thing": scene.thing}) if scene.thing and scene.sort == "expiry" else None

    def valid(self, draw, scene):
        return Noul(not scene.late, {"thing": scene.thing}) if scene.thing and scene.sort == "expiry" else None

    def action(self, draw, scene):
        if not scene.thing:
            return None
        if scene.sort == "due":
            categories, answer = ["remind", "wait", "close"], "remind" if scene.late else "close" if scene.done else "wait"
        else:
            categories, answer = ["renew", "keep"], "renew" if scene.late else "keep"
        labels, options = labelled(draw, ACTIONS, categories)
        return Choice(labels[answer], options, {"thing": scene.thing})

    def year(self, draw, scene):
        return self.period(draw, scene, "year", lambda date: str(date.year))

    def month(self, draw, scene):
        return self.period(draw, scene, "month", lambda date: MONTHS[date.month - 1])

    @staticmethod
    def period(draw, scene, name, of):
        """The year or the month of an event among others, those of the other dates first."""
        if not scene.events:
            return None
        event = draw.choice(list(scene.events))
        answer = of(scene.events[event])
        year = scene.events[event].year
        every = MONTHS if name == "month" else [str(other) for other in range(year - 5, year + 6)]
        others = [of(date) for date in [*scene.events.values(), scene.today]] + draw.sample(every, len(every))
        others = [period for period in dict.fromkeys(others) if period != answer]
        count = 11 if name == "month" and draw.chance(0.15) else draw.choice([1, 2, 3, 4, 5])
        return Choice(answer, {period: None for period in [answer, *others[:count]]}, {"event": event, "period": name})
