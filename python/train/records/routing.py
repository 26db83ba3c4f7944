"""routing: a message to customer support; which team it goes to, what it is about, what the customer wants and mentions."""

from dataclasses import dataclass

from . import messages
from . import routing_words as words
from .core import Choice, Family, Noul, labelled
from .messages import fill


@dataclass
class Scene:
    state: object
    topic: str
    wish: str | None
    about_refund: bool
    order: str | None
    product: str | None
    team: Choice | None = None


class Routing(Family):
    name = "routing"
    templates = {
        "team": [
            ["Which [team|department] [should|must] [handle|answer] this [message|request]?", "Which team is responsible for this message?",
             "Which [team|department] does this [message|request] belong to?", "Which team deals with this?",
             "Which department takes care of this [message|request]?"],
            ["Where [should|must] this [message|request] go?", "Where does this [message|request] belong?", "Where do we send this message?",
             "To which [team|department] [should|do] we send this?", "To whom does this message go?"],
            ["[Pick|Choose|Select] the [team|department] for this [message|request].",
             "[Pick|Choose|Select] the team that should [handle|answer] it.",
             "[Pick|Choose|Select] who is responsible.", "[Pick|Choose|Select] the right department.", "[Pick|Choose|Select] where it belongs."],
            ["Who [should|must] [handle|answer] this [message|request]?", "Who is responsible for this message?", "Who deals with this?",
             "Who takes care of this [message|request]?", "Who should get this message?"],
            ["[Send|Route] this [message|request] to the right [team|department].", "[Send|Route] it to the team responsible.",
             "[Find|Name] the [team|department] that handles this.", "[Find|Name] the right team for this [message|request].",
             "[Find|Name] the department it belongs to."],
            ["The [message|request] should go to which [team|department]?", "This belongs to which team?",
             "This [message|request] is for which department?",
             "The customer needs which team?", "The right [team|department] for this is which one?"],
        ],
        "topic": [
            ["Is [the|this] message about {topic}?", "Is this about {topic}?", "Is {topic} the topic of [the|this] message?",
             "Is the customer writing about {topic}?", "Is the topic of this {topic}?"],
            ["Does [the|this] message [concern|deal with] {topic}?", "Does the customer write about {topic}?", "Does this have to do with {topic}?",
             "Does the topic of the message concern {topic}?", "Does the request deal with {topic}?"],
            ["The message is about {topic}.", "The customer writes about {topic}.", "This concerns {topic}.",
             "The topic [of the message|] is: {topic}.",
             "This has to do with {topic}."],
            ["Topic: {topic}. Is that [right|correct]?", "Someone filed this under: {topic}. Is that [right|correct]?",
             "Would you file this message under {topic}?", "Is it [right|correct] to say that the message is about {topic}?",
             "Can this be filed under {topic}?"],
            ["What the customer writes about is {topic}.", "It is a message about {topic}.", "The request deals with {topic}.",
             "It concerns {topic}.", "What this is about: {topic}."],
        ],
        "refund": [
            ["Does the customer [want|ask for] [a refund|money back]?", "Does the message ask for [a refund|money back]?",
             "Does the [customer|writer] want to be paid back?",
             "Does the [customer|writer] want the money back?", "Does this message ask us to pay money back?"],
            ["Is a refund [asked for|wanted] [here|]?", "Is the customer asking for [a refund|money back]?",
             "Is it money back that is asked for?",
             "Is this a request for a refund?", "Is the [customer|writer] asking to be paid back?"],
            ["The customer [wants|asks for] [a refund|money back].", "The message asks for a refund.",
             "The [customer|writer] wants to be paid back.",
             "The [customer|writer] wants the money back.", "This is a request for a refund."],
            ["[Should|Must] we note a request for a refund?", "Can we say that the customer [wants|asks for] money back?",
             "Would a refund be what the customer asks for?",
             "Can we say that a refund is wanted?", "Should we note that the customer wants to be paid back?"],
            ["Refund wanted?", "Money back asked for?", "A request for [a refund|money back]?", "Refund: does the customer ask for it?",
             "Money back: does the customer want it?"],
        ],
        "order_number": [
            ["Is an order number [mentioned|given] [in the message|here|]?", "Is there an order number in the message?",
             "Is the order number [given|mentioned]?",
             "Is the number of the order mentioned?", "Is the number of an order given?"],
            ["Does the [message|customer] [mention|give] an order number?", "Does the message contain an order number?",
             "Does the customer [give|mention] the number of an order?",
             "Does the text contain the number of an order?", "Does the customer name an order number?"],
            ["An order number is [mentioned|given].", "The [message|text] contains an order number.",
             "The customer [gives|mentions] an order number.",
             "The number of the order is given.", "The message mentions the number of an order."],
            ["Do we [know|learn] the order number from the message?", "Can we find the order number in the message?",
             "Do we find an order number here?",
             "Can we see the number of the order [in the text|here]?", "Has the customer given an order number?"],
            ["[Check|Look]: is an order number given?", "[Check|Look]: does the text contain an order number?",
             "[Check|See] whether an order number is mentioned.",
             "[Check|See] whether the customer gives the number of the order.", "[Check|See] whether the message contains an order number."],
        ],
        "mention": [
            ["Is {thing} mentioned [in the message|here|]?", "Is {thing} named in the message?", "Is {thing} spoken of in the message?",
             "Is {thing} in the text?",
             "Is there a mention of {thing}?"],
            ["Does the [message|customer] mention {thing}?", "Does the message name {thing}?", "Does the text mention {thing}?",
             "Does the customer speak of {thing}?", "Does {thing} come up in the message?"],
            ["The [message|customer] mentions {thing}.", "In the message, {thing} is mentioned.", "The customer names {thing}.",
             "The text contains {thing}.",
             "In the text, {thing} comes up."],
            ["[Check|Look]: is {thing} mentioned?", "[Check|Look]: does the text name {thing}?", "[Check|See] whether {thing} is mentioned.",
             "[Check|See] whether the customer mentions {thing}.", "[Check|See] whether {thing} comes up."],
            ["Can we find {thing} in the message?", "Has the customer mentioned {thing}?", "Do we find {thing} in the text?",
             "Do we find a mention of {thing} here?",
             "Can {thing} be found in the text?"],
        ],
        "wish": [
            ["What does the [customer|writer] [want|ask for]?", "What does the [customer|writer] wish for?", "What is it that the customer wants?",
             "What is asked for [here|in the message]?", "What should we do for the customer?"],
            ["Which of these does the [customer|writer] want?", "Which [wish|request] does the message express?", "Which of these is asked for?",
             "Which wish does the customer have?", "Which request is it?"],
            ["[Pick|Choose|Select] what the [customer|writer] [wants|asks for].", "[Pick|Choose|Select] the wish of the customer.",
             "[Pick|Choose|Select] the request.",
             "[Pick|Choose|Select] what we should do for the customer.", "[Pick|Choose|Select] what is asked for."],
            ["[Name|Find] what the [customer|writer] [wants|asks for].", "[Name|Find] the wish of the [customer|writer].",
             "[Name|Find] the request in the message.",
             "[Name|Find] what is asked for.", "[Name|Find] what the customer wishes for."],
            ["The [customer|writer] [wants|asks for] which of these?", "The message asks for what?", "The wish of the customer is which of these?",
             "The request in the message is which one?", "The customer asks us to do what?"],
        ],
    }

    def scene(self, draw):
        topic = draw.choice(list(words.SENTENCES))
        wish = draw.choice(words.WISHES_OF.get(topic, [None]))
        slots = self.slots(draw)
        patterns = draw.sample(words.SENTENCES[topic], draw.choice([1, 1, 2]))
        if wish:
            patterns.append(draw.choice(words.WISHES[wish]))
        extras = draw.sample(words.FILLERS, draw.choice([0, 0, 1, 2]))
        with_order = draw.chance(0.5)
        if with_order or draw.chance(0.5):
            extras.append(draw.choice(words.ORDER_SENTENCES if with_order else words.NO_ORDER_SENTENCES))
        if draw.chance(0.25) and not any("{product}" in pattern for pattern in patterns):
            extras.append(draw.choice(words.PRODUCT_SENTENCES))
        declined = wish != "refund" and topic != "billing" and draw.chance(0.25)
        if declined:
            extras.append(draw.choice(words.NO_REFUND))
        used = sprinkle_and_frame(draw, patterns, extras)
        text = draw.choice([" ", " ", " ", "\n"]).join(fill(draw, pattern, slots) for pattern in used)
        scene = Scene(None, topic, wish, about_refund=declined or wish == "refund", order=slots["order"] if with_order else None,
                      product=slots["product"] if any("{product}" in pattern for pattern in used) else None)
        subject = draw.choice(words.SUBJECTS[topic] if draw.chance(0.35) else words.PLAIN_SUBJECTS)
        scene.state = messages.envelope(draw, text, subject, extras=[("channel", draw.choice(["email", "chat", "form", "letter"])),
                                                                     ("id", draw.integer(1000, 99999)), ("received", draw.choice(messages.DAYS))])
        scene.team = self.teams(draw, scene)
        return scene

    @staticmethod
    def slots(draw):
        digits = draw.integer(10000, 999999)
        return {"product": messages.product(draw), "app": draw.pick(messages.APPS), "amount": draw.integer(5, 900), "n": draw.integer(3, 40),
                "month": draw.choice(messages.MONTHS), "day": draw.choice(messages.DAYS), "city": draw.pick(messages.CITIES),
                "name": draw.pick(messages.FIRST_NAMES), "me": messages.full_name(draw), "digits": draw.integer(10000, 999999),
                "order": draw.choice(["{}", "{}", "A-{}", "#{}", "N{}"]).format(digits)}

    def team(self, draw, scene):
        return scene.team

    @staticmethod
    def unclear(scene):
        """Topics that the message touches without being about them."""
        unclear = {"billing"} if scene.about_refund else set()
        if scene.wish == "discount":
            unclear |= {"sales"}
        if scene.wish in ("repair", "replacement"):
            unclear |= {"warranty", "delivery"}
        if scene.wish == "apology":
            unclear |= {"complaint"}
        return unclear - {scene.topic}

    def teams(self, draw, scene):
        """The choice of a team; now and then the teams are listed in the state and the options are names alone."""
        others = [topic for topic in words.SENTENCES if topic != scene.topic and topic not in self.unclear(scene)]
        answer = scene.topic
        if draw.chance(0.08):
            others = [topic for topic in others if topic not in words.NEAR.get(scene.topic, ())]
            answer = "other"
        elif draw.chance(0.15):
            others.append("other")
        categories = draw.sample(others, min(draw.choice([1, 2, 3, 3, 4, 4, 5, 6, 8, 10]), len(others))) + [answer]
        draw.random.shuffle(categories)
        handles = draw.choice(words.HANDLES)
        if draw.chance(0.2):
            categories = categories if len(categories) <= 8 else [answer] + [category for category in categories if category != answer][:6]
            names = draw.picks(messages.FIRST_NAMES if draw.chance(0.5) else messages.CITIES, len(categories))
            teams = {name: handles + draw.describe(words.TOPICS, category) for name, category in zip(names, categories)}
            scene.state = {"message": scene.state, draw.choice(["teams", "departments", "desks"]): teams}
            return Choice(names[categories.index(answer)], dict.fromkeys(names))
        labels, options = labelled(draw, words.TOPICS, categories)
        return Choice(labels[answer], {label: text and handles + text for label, text in options.items()})

    def topic(self, draw, scene):
        answer = draw.chance(0.5)
        others = [topic for topic in words.SENTENCES if topic != scene.topic and topic not in self.unclear(scene)]
        return Noul(answer, {"topic": draw.describe(words.SUBJECT_MATTERS, scene.topic if answer else draw.choice(others))})

    def refund(self, draw, scene):
        answer = scene.wish == "refund"
        if not answer and draw.chance(0.68 if scene.about_refund else 0.94):
            return None
        return Noul(answer)

    def order_number(self, draw, scene):
        return Noul(scene.order is not None)

    def mention(self, draw, scene):
        answer = draw.chance(0.5)
        if scene.product and (not scene.order or draw.chance(0.5)):
            return Noul(answer, {"thing": f"the {scene.product if answer else self.other_product(draw, scene.product)}"})
        if not scene.order:
            return None
        order = scene.order if answer else self.other_order(draw, scene.order)
        return Noul(answer, {"thing": draw.choice(["order {}", "order number {}", "the order {}"]).format(order)})

    @staticmethod
    def other_product(draw, known):
        brand, good = known.split()
        while True:
            other = draw.choice([f"{brand} {draw.pick(messages.GOODS)}", f"{draw.pick(messages.BRANDS)} {good}", messages.product(draw)])
            if other != known:
                return other

    @staticmethod
    def other_order(draw, known):
        while True:
            at = draw.random.randrange(len(known) - 5, len(known))
            other = known[:at] + str(draw.random.randint(0, 9)) + known[at + 1:] if draw.chance(0.5) else str(draw.integer(10000, 999999))
            if other != known:
                return other

    def wish(self, draw, scene):
        answer = "cancellation" if scene.topic == "cancellation" else scene.wish
        if answer is None:
            return None
        others = [want for want in words.WANTS.categories if want != answer and want not in words.IMPLIED.get(scene.topic, ())]
        labels, options = labelled(draw, words.WANTS, draw.sample(others, draw.choice([1, 2, 2, 3, 3, 4])) + [answer])
        return Choice(labels[answer], options)


def sprinkle_and_frame(draw, patterns, extras):
    """The patterns of a whole message: greeting, sentences with the extras among them, closing."""
    body = messages.sprinkle(draw, patterns, extras)
    greeting = [draw.choice(words.GREETINGS)] if draw.chance(0.5) else []
    closing = [draw.choice(words.CLOSINGS)] if draw.chance(0.5) else []
    return greeting + body + closing
