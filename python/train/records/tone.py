"""tone: reviews and requests; whether the opinion is good or bad and about what, how urgent it is, what the writer feels."""

from dataclasses import dataclass, field

from . import messages
from . import tone_words as words
from .core import Choice, Family, Noul, Score, labelled
from .messages import fill


@dataclass
class Scene:
    state: object
    aspects: list = field(default_factory=list)       # of the thing reviewed
    opinions: dict = field(default_factory=dict)      # {aspect: 1, -1 or 0}, empty in requests
    strength: int | None = None                       # 1 mild, 2 strong, None unclear
    recommended: bool | None = None
    urgency: str | None = None
    mood: str | None = None

    @property
    def is_review(self):
        return bool(self.aspects)

    @property
    def sentiment(self):
        signs = set(self.opinions.values()) - {0}
        return "mixed" if len(signs) == 2 else {1: "positive", -1: "negative"}[signs.pop()] if signs else "neutral"


class Tone(Family):
    name = "tone"
    questions = (2, 3, 4, 6)
    weights = (3, 3, 3, 2)
    templates = {
        "sentiment": [
            ["What is the [opinion|sentiment] of the [writer|text]?", "What is the sentiment of this [review|text]?",
             "What kind of opinion is this?",
             "What does the writer think of it?", "What is the [opinion|sentiment] here?"],
            ["Which [opinion|sentiment] does the [writer|text] express?", "Which of these [describes|fits] the opinion of the writer?",
             "Which [opinion|sentiment] fits this [review|text]?", "Which sentiment does this [review|text] have?",
             "Which of these fits the [review|text]?"],
            ["[Pick|Choose|Select] the [opinion|sentiment] of the [writer|text].", "[Pick|Choose|Select] what the writer thinks of it.",
             "[Pick|Choose|Select] the sentiment [that fits|here].", "[Pick|Choose|Select] the opinion [that fits|expressed].",
             "[Pick|Choose|Select] what describes the opinion."],
            ["[Name|Find] the [opinion|sentiment] of the [writer|text].", "[Name|Find] what the writer thinks of it.",
             "[Name|Find] the sentiment [of this review|here].", "[Name|Find] the opinion expressed here.", "[Name|Find] the sentiment that fits."],
            ["The [opinion|sentiment] of the [writer|text] is which of these?", "The [writer|text] expresses which [opinion|sentiment]?",
             "This [review|text] has which sentiment?", "The writer thinks what of it?", "The opinion is which of these?"],
        ],
        "stars": [
            ["How good or bad is the [opinion|review]?", "How good does the writer find it?", "How good or bad does the writer find it?",
             "How happy is the writer with it?", "How happy or unhappy is the [writer|review]?"],
            ["[Rate|Grade] the opinion of the writer.", "[Rate|Grade] how good the writer finds it.", "[Rate|Grade] the review.",
             "[Rate|Grade] how happy the writer is.", "[Rate|Grade] how good or bad the review is."],
            ["Which [rating|grade] fits the [opinion|review]?", "Which rating would the writer give?",
             "Which level [fits|describes] how happy the writer is?",
             "Which [rating|grade] says how good the writer finds it?", "Which level fits the opinion?"],
            ["On this scale, how good is the opinion?", "On this scale, how happy is the writer?", "On this scale, where is the review?",
             "On this scale, how good does the writer find it?", "On this scale, how good or bad is the review?"],
            ["What [rating|grade] would the writer give?", "What is the [rating|grade] for this review?", "What level describes the opinion?",
             "What [rating|level] says how happy the writer is?", "What [rating|grade] fits the opinion?"],
        ],
        "praised": [
            ["What does the writer [praise|like]?", "What is praised [here|]?", "What did the writer like?", "What is the writer happy with?",
             "What was good?"],
            ["Which of these does the writer [praise|like]?", "Which of these is praised?", "Which [one|point] was liked?",
             "Which of these was good?",
             "Which [one|point] is the writer happy with?"],
            ["[Pick|Choose|Select] what the writer [praises|likes].", "[Pick|Choose|Select] what is praised.",
             "[Pick|Choose|Select] what was good.",
             "[Pick|Choose|Select] what the writer is happy with.", "[Pick|Choose|Select] the point that is praised."],
            ["[Name|Find] what the writer [praises|likes].", "[Name|Find] what is praised.", "[Name|Find] what was good.",
             "[Name|Find] what the writer is happy with.", "[Name|Find] the point that is liked."],
            ["The writer [praises|likes] which of these?", "The praise is for what?", "The writer is happy with which of these?",
             "The good opinion is about what?", "The review praises which point?"],
        ],
        "criticised": [
            ["What does the writer [criticise|dislike]?", "What is criticised [here|]?", "What did the writer dislike?",
             "What is the writer unhappy with?",
             "What was bad?"],
            ["Which of these does the writer [criticise|dislike]?", "Which of these is criticised?", "Which [one|point] was disliked?",
             "Which of these was bad?", "Which [one|point] is the writer unhappy with?"],
            ["[Pick|Choose|Select] what the writer [criticises|dislikes].", "[Pick|Choose|Select] what is criticised.",
             "[Pick|Choose|Select] what was bad.",
             "[Pick|Choose|Select] what the writer is unhappy with.", "[Pick|Choose|Select] the point that is criticised."],
            ["[Name|Find] what the writer [criticises|dislikes].", "[Name|Find] what is criticised.", "[Name|Find] what was bad.",
             "[Name|Find] what the writer is unhappy with.", "[Name|Find] the point that is disliked."],
            ["The writer [criticises|dislikes] which of these?", "The criticism is about what?", "The writer is unhappy with which of these?",
             "The bad opinion is about what?", "The review criticises which point?"],
        ],
        "good_point": [
            ["Is {aspect} [praised|liked]?", "Is the writer happy with {aspect}?", "Is the opinion about {aspect} good?",
             "Is {aspect} something the writer likes?",
             "Is {aspect} praised in the review?"],
            ["Does the writer [praise|like] {aspect}?", "Does the review praise {aspect}?", "Does the writer find {aspect} good?",
             "Does the writer say [something|] good [things|] about {aspect}?", "Does {aspect} get praise?"],
            ["The writer [praises|likes] {aspect}.", "The writer is happy with {aspect}.", "The review praises {aspect}.",
             "The opinion about {aspect} is good.", "There is praise for {aspect}."],
            ["Take {aspect}: is it praised?", "Take {aspect}: does the writer like it?", "Look at {aspect}: is the writer happy with it?",
             "Look at {aspect}: is the opinion good?", "Take {aspect}: is there praise for it?"],
        ],
        "bad_point": [
            ["Is {aspect} [criticised|disliked]?", "Is the writer unhappy with {aspect}?", "Is the opinion about {aspect} bad?",
             "Is {aspect} something the writer dislikes?", "Is {aspect} criticised in the review?"],
            ["Does the writer [criticise|dislike] {aspect}?", "Does the review criticise {aspect}?", "Does the writer find {aspect} bad?",
             "Does the writer say [something|] bad [things|] about {aspect}?", "Does {aspect} get criticism?"],
            ["The writer [criticises|dislikes] {aspect}.", "The writer is unhappy with {aspect}.", "The review criticises {aspect}.",
             "The opinion about {aspect} is bad.", "There is criticism of {aspect}."],
            ["Take {aspect}: is it criticised?", "Take {aspect}: does the writer dislike it?", "Look at {aspect}: is the writer unhappy with it?",
             "Look at {aspect}: is the opinion bad?", "Take {aspect}: is there criticism of it?"],
        ],
        "recommends": [
            ["Would the writer recommend it?", "Would the writer recommend it to [others|friends]?", "Would the writer choose it again?",
             "Would the writer recommend trying it?", "Would the writer [buy it|come] again?"],
            ["Does the writer recommend it?", "Does the review recommend it?", "Does the writer want it again?",
             "Does the writer speak for it, with a recommendation?",
             "Does the review end with a recommendation to try it?"],
            ["The writer [recommends it|would recommend it].", "The writer would choose it again.", "The review recommends it.",
             "The writer has a recommendation: choose it.", "The writer would [buy it|come] again."],
            ["Is it recommended?", "Is the writer willing to recommend it?", "Is it something the writer would choose again?",
             "Is it recommended to [others|friends]?", "Is this a recommendation to choose it?"],
            ["Can we say that the writer recommends it?", "Can we say that it is recommended?", "Can we say that the writer would choose it again?",
             "Can we count on the writer to recommend it?", "Can we say that the writer would come to it again?"],
        ],
        "satisfied": [
            ["Is the writer [satisfied|happy with it]?", "Is the customer [satisfied|happy]?", "Is the review positive?", "Is the opinion good?",
             "Is this a satisfied customer?"],
            ["Does the [writer|customer] sound satisfied?", "Does the [writer|customer] like it?", "Does the writer sound happy with it?",
             "Does the review sound positive?", "Does the writer have a good opinion of it?"],
            ["The [writer|customer] is satisfied.", "The [writer|customer] is happy with it.", "The review is positive.", "The opinion is good.",
             "This customer likes it."],
            ["Can we say that the [writer|customer] is satisfied?", "Can we say that the review is positive?",
             "Can we say that the writer is happy with it?",
             "Can we call this a satisfied customer?", "Can we call this a good opinion?"],
        ],
        "urgency": [
            ["How urgent is [it|this|the request]?", "How soon is it needed?", "How soon must it be done?", "How much time is left?",
             "How long can it wait?"],
            ["[Rate|Grade] how urgent it is.", "[Rate|Grade] the urgency.", "[Rate|Grade] how soon it is needed.",
             "[Rate|Grade] the urgency of the request.",
             "[Rate|Grade] how long it can wait."],
            ["When is it needed?", "When must it be done?", "When does the writer need it?", "When should we do it?", "When is it to be done?"],
            ["What is the urgency?", "What is the deadline?", "What urgency does the request have?", "What level of urgency is it?",
             "What does the writer say about the urgency?"],
            ["Which level of urgency [is it|fits]?", "Which level says how urgent it is?", "Which level says how soon it is needed?",
             "Which deadline does the request have?", "Which level says when it is needed?"],
        ],
        "urgent": [
            ["Is it urgent?", "Is this request urgent?", "Is it a matter of [hours|today]?", "Is the request an urgent one?",
             "Is it needed [today|soon, that is, today]?"],
            ["Does it have to be done [today|today at the latest]?", "Does the writer need it today?", "Does the writer say that it is urgent?",
             "Does this sound urgent?", "Does it need an answer today?"],
            ["It is urgent.", "The request is urgent.", "The writer needs it today at the latest.", "It has to be done today.",
             "This is an urgent request."],
            ["Should we do it today?", "Should we treat it as urgent?", "Must we hurry?", "Must it be done today?",
             "Must we treat this as an urgent request?"],
        ],
        "mood": [
            ["What does the writer feel?", "What is the [mood|feeling] of the writer?", "What [mood|feeling] does the text show?",
             "What is the mood [here|]?",
             "What does the text say about the mood?"],
            ["Which [mood|feeling] does the [writer|text] show?", "Which of these does the writer feel?", "Which [mood|feeling] is it?",
             "Which [mood|feeling] fits the text?", "Which mood is the writer in?"],
            ["[Pick|Choose|Select] the [mood|feeling] of the writer.", "[Pick|Choose|Select] what the writer feels.",
             "[Pick|Choose|Select] the mood of the text.",
             "[Pick|Choose|Select] the feeling shown.", "[Pick|Choose|Select] the mood that fits."],
            ["How does the writer feel?", "How would you describe the mood of the writer?", "How does the writer sound?",
             "How is the mood of the writer?",
             "How would you describe the feeling shown?"],
        ],
        "feels": [
            ["Is the writer {mood}?", "Is the person who wrote this {mood}?", "Is the writer of this text {mood}?",
             "Is the mood of the writer: {mood}?",
             "Is the feeling of the writer: {mood}?"],
            ["Does the writer feel {mood}?", "Does the writer sound {mood}?", "Does the text sound as if the writer is {mood}?",
             "Does the text show that the writer is {mood}?", "Does the writer say: I am {mood}?"],
            ["The writer is {mood}.", "The writer feels {mood}.", "The writer sounds {mood}.", "The text shows that the writer is {mood}.",
             "The person who wrote this is {mood}."],
            ["Can we say that the writer is {mood}?", "Can we say that the writer feels {mood}?", "Would you call the writer {mood}?",
             "Would you say that the writer sounds {mood}?", "Would you say that the writer is {mood}?"],
        ],
    }

    def scene(self, draw):
        slots = {"product": messages.product(draw), "app": draw.pick(messages.APPS), "amount": draw.integer(5, 900), "n": draw.integer(2, 30),
                 "month": draw.choice(messages.MONTHS), "day": draw.choice(messages.DAYS), "city": draw.pick(messages.CITIES),
                 "name": draw.pick(messages.FIRST_NAMES), "me": messages.full_name(draw)}
        scene, sentences = (self.review if draw.chance(0.6) else self.request)(draw, slots)
        extras = [("id", draw.integer(1000, 99999)), ("date", f"{draw.choice(messages.MONTHS)} {draw.random.randint(1, 28)}"),
                  ("language", "en"), ("likes", draw.integer(0, 90))]
        names = ("review", "text", "comment", "body") if scene.is_review else ("message", "text", "request", "body")
        scene.state = messages.envelope(draw, " ".join(sentences), names=names, extras=extras)
        return scene

    def review(self, draw, slots):
        thing, sides = draw.choice(list(words.THINGS.items()))
        aspects = list(sides)
        spoken_of = draw.sample(aspects, draw.choice([1, 2, 2, 3, 3, 4]))
        signs = {"positive": [1], "negative": [-1], "neutral": [0], "mixed": [1, -1]}[
            draw.choice(["positive", "positive", "negative", "negative", "neutral", "neutral", "mixed", "mixed", "mixed"])]
        opinions = {aspect: draw.choice(signs) for aspect in spoken_of}
        scene = Scene(None, aspects, opinions, strength=draw.choice([1, 2]))
        if 0 not in signs and draw.chance(0.3):
            scene.strength = None
        clauses = [(sign, self.clause(draw, sides, aspect, sign, scene.strength, slots)) for aspect, sign in opinions.items()]
        sentences = joined(draw, clauses)
        extras = [fill(draw, pattern, slots) for pattern in draw.sample(words.FACTS, draw.choice([0, 1, 1, 2]))]
        sentences = messages.sprinkle(draw, sentences, extras)
        if draw.chance(0.6):
            sentences.insert(0, fill(draw, draw.choice(words.OPENINGS), slots | {"thing": thing.format_map(slots)}))
        if draw.chance(0.15 if scene.sentiment == "neutral" else 0.5):
            scene.recommended = {"positive": True, "negative": False}.get(scene.sentiment, draw.chance(0.5))
            sentences.append(fill(draw, draw.choice(words.RECOMMEND[scene.recommended]), slots))
        return scene, sentences

    @staticmethod
    def clause(draw, sides, aspect, sign, strength, slots):
        what = {"what": draw.choice(sides[aspect])}
        if sign == 0:
            return fill(draw, draw.choice(words.PLAIN_CLAUSES), slots | what | {"plain": draw.choice(words.PLAIN)})
        if strength is None:
            good, bad = words.SIDED.get(aspect, (words.GOOD[1], words.BAD[1]))
            strength, patterns = 1, ["{what} was {good}", "I found {what} {good}"] if sign > 0 else ["{what} was {bad}", "I found {what} {bad}"]
        else:
            good, bad = words.GOOD[strength], words.BAD[strength]
            patterns = words.CLAUSES[strength]["good" if sign > 0 else "bad"]
        return fill(draw, draw.choice(patterns), slots | what | {"good": draw.choice(good), "bad": draw.choice(bad)})

    def request(self, draw, slots):
        scene = Scene(None)
        while scene.urgency is None and scene.mood is None:
            scene.urgency = draw.choice(list(words.DEADLINES)) if draw.chance(0.75) else None
            scene.mood = draw.choice(list(words.MOODS)) if draw.chance(0.75) else None
        patterns = []
        if scene.urgency:
            patterns += draw.sample(words.DEADLINES[scene.urgency], draw.choice([1, 1, 2]))
        if scene.mood:
            patterns += draw.sample(words.MOODS[scene.mood], draw.choice([1, 2]))
        patterns = [draw.choice(words.ERRAND_SENTENCES)] + draw.sample(patterns, len(patterns)) + draw.sample(words.CLOSINGS, draw.choice([0, 1]))
        slots = slots | {"errand": fill(draw, draw.choice(words.ERRANDS), slots).replace("The ", "the ", 1).replace("Our ", "our ", 1)}
        return scene, [fill(draw, pattern, slots) for pattern in patterns]

    def sentiment(self, draw, scene):
        if not scene.is_review or scene.recommended is not None and scene.sentiment == "neutral":
            return None
        sets = [["positive", "negative"], ["positive", "negative", "neutral"], ["positive", "negative", "mixed"]]
        sets += [["positive", "negative", "neutral", "mixed"]] * 4
        labels, options = labelled(draw, words.SENTIMENTS, draw.choice([chosen for chosen in sets if scene.sentiment in chosen]))
        return Choice(labels[scene.sentiment], options)

    def stars(self, draw, scene):
        balanced = sum(scene.opinions.values()) == 0
        middle = scene.sentiment in ("mixed", "neutral")
        if not scene.is_review or middle and (not balanced or scene.recommended is not None or draw.chance(0.4)):
            return None
        if not middle and (scene.strength is None or scene.strength == 1 and scene.recommended is not None):
            return None
        level = "medium" if middle else {("positive", 1): "good", ("positive", 2): "great", ("negative", 1): "bad",
                                         ("negative", 2): "awful"}[scene.sentiment, scene.strength]
        scales = [["awful", "bad", "medium", "good", "great"]] * 3 + [["awful", "bad", "good", "great"]]
        scales += [["bad", "medium", "good"] if scene.strength == 1 else ["awful", "medium", "great"]]
        scale = draw.choice([scale for scale in scales if level in scale])
        return Score(scale.index(level), [draw.describe(words.STARS, each) for each in scale])

    def praised(self, draw, scene):
        return self.only_one(draw, scene, 1)

    def criticised(self, draw, scene):
        return self.only_one(draw, scene, -1)

    @staticmethod
    def only_one(draw, scene, sign):
        """The one aspect with an opinion of that sign, among aspects with other opinions or none."""
        fitting = [aspect for aspect, opinion in scene.opinions.items() if opinion == sign]
        others = [aspect for aspect in scene.aspects if aspect not in fitting]
        if not fitting or not others:
            return None
        disliked = [aspect for aspect in others if aspect in scene.opinions]
        chosen = draw.sample(disliked, min(len(disliked), 2))
        chosen += [aspect for aspect in draw.sample(others, draw.random.randint(1, min(4, len(others)))) if aspect not in chosen]
        answer = draw.choice(fitting)
        labels, options = labelled(draw, words.ASPECTS, chosen + [answer])
        return Choice(labels[answer], options)

    def good_point(self, draw, scene):
        return self.point(draw, scene, 1)

    def bad_point(self, draw, scene):
        return self.point(draw, scene, -1)

    @staticmethod
    def point(draw, scene, sign):
        fitting = [aspect for aspect, opinion in scene.opinions.items() if opinion == sign]
        opposite = [aspect for aspect, opinion in scene.opinions.items() if opinion == -sign]
        others = opposite if opposite and draw.chance(0.7) else [aspect for aspect in scene.aspects if aspect not in fitting]
        if not scene.is_review or not fitting and draw.chance(0.75):
            return None
        answer = bool(fitting) and (not others or draw.chance(0.6))
        return Noul(answer, {"aspect": draw.choice(words.ASPECT_NAMES[draw.choice(fitting if answer else others)])})

    def recommends(self, draw, scene):
        return None if scene.recommended is None else Noul(scene.recommended)

    def satisfied(self, draw, scene):
        return Noul(scene.sentiment == "positive") if scene.sentiment in ("positive", "negative") else None

    def urgency(self, draw, scene):
        if scene.urgency is None:
            return None
        levels = list(words.DEADLINES)
        if draw.chance(0.35):
            levels.remove(draw.choice([level for level in levels if level != scene.urgency]))
        return Score(levels.index(scene.urgency), [draw.describe(words.URGENCIES, level) for level in levels])

    def urgent(self, draw, scene):
        if scene.urgency in (None, "week") or scene.urgency != "wait" and draw.chance(0.5):
            return None
        return Noul(scene.urgency != "wait")

    def mood(self, draw, scene):
        if scene.mood is None:
            return None
        others = [mood for mood in words.MOODS if mood != scene.mood]
        labels, options = labelled(draw, words.FEELINGS, draw.sample(others, draw.choice([1, 2, 3, 3, 4])) + [scene.mood])
        return Choice(labels[scene.mood], options)

    def feels(self, draw, scene):
        if scene.mood is None:
            return None
        answer = draw.chance(0.5)
        mood = scene.mood if answer else draw.choice([mood for mood in words.MOODS if mood != scene.mood])
        return Noul(answer, {"mood": draw.choice(words.FEELING_WORDS[mood])})


def joined(draw, clauses):
    """Sentences from clauses [(sign, clause)]: an opposite opinion may follow with a "but"."""
    sentences, last = [], None
    for sign, clause in clauses:
        if last is not None and sign == -last and sentences[-1].count(",") < 2 and draw.chance(0.5):
            lower = clause if clause.startswith("I ") else clause[:1].lower() + clause[1:]
            sentences[-1] = sentences[-1][:-1] + draw.choice(words.TURNS).format(lower) + "."
            last = None
        else:
            sentences.append(clause + draw.choice([".", ".", ".", "!"]))
            last = sign or None
    return sentences
