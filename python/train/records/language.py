"""language: messages in ten languages; which language they use, which of several uses it, and who can answer them."""

from dataclasses import dataclass

from . import language_words as words
from . import messages
from .core import Choice, Family, Noul, labelled
from .messages import fill

SHORT = 30                                 # a text of fewer letters may not show its language


@dataclass
class Scene:
    state: object
    languages: dict                        # {id of a message: language}
    names: dict                            # {id of a message: how a question refers to it}
    agents: dict                           # {name: [languages]}, empty when nobody is listed

    def target(self, draw):
        return draw.choice(list(self.languages))


class Language(Family):
    name = "language"
    harder = ("agent", "can_answer")
    templates = {
        "language": [
            ["Which language is {which} written in?", "Which language does {which} use?", "Which language is used in {which}?",
             "Which of these is the language of {which}?", "Which language do we see in {which}?"],
            ["What is the language of {which}?", "What language is {which} in?", "What language is {which} written in?",
             "What language does {which} use?",
             "What is the language used in {which}?"],
            ["[Pick|Choose|Select] the language of {which}.", "[Pick|Choose|Select] the language that {which} uses.",
             "[Pick|Choose|Select] the language {which} is written in.", "[Pick|Choose|Select] the language used in {which}.",
             "[Pick|Choose|Select] what language {which} is in."],
            ["[Name|Find] the language of {which}.", "[Name|Find] the language that {which} uses.",
             "[Name|Find] the language {which} is written in.",
             "[Name|Find] the language used in {which}.", "[Name|Find] what language {which} is in."],
            ["In which language is {which} written?", "In what language is {which}?", "In which language do we read {which}?",
             "In which of these languages is {which}?", "In what language did someone write {which}?"],
        ],
        "written_in": [
            ["Is {which} [written|] in {language}?", "Is the language of {which} {language}?", "Is {language} the language of {which}?",
             "Is {language} used in {which}?", "Is {which} a text in {language}?"],
            ["Does {which} use {language}?", "Does the text of {which} use {language}?", "Do we read {language} in {which}?",
             "Does the writer of {which} use {language}?", "Do we see {language} in {which}?"],
            ["The language of {which} is {language}.", "It is true that {which} is written in {language}.",
             "The language used in {which} is {language}.",
             "We read {language} in {which}.", "In {which}, {language} is used."],
            ["Was {which} written in {language}?", "Was {language} used in {which}?", "Was {language} the language of {which}?",
             "Can we say that {which} is in {language}?", "Can we say that {which} uses {language}?"],
            ["Someone says that {which} is in {language}. Is that [right|correct]?",
             "Someone says that the language of {which} is {language}. Is that [right|correct]?",
             "Is it [right|correct] that {which} is written in {language}?", "Is it [right|correct] that {which} uses {language}?",
             "Is it [right|correct] that the language of {which} is {language}?"],
        ],
        "foreign": [
            ["Is {which} in [another language than|a language other than] {language}?", "Is the language of {which} another than {language}?",
             "Is {which} written in a language other than {language}?", "Is another language than {language} used in {which}?",
             "Is {which} not in {language}?"],
            ["Does {which} use [another language than|a language other than] {language}?", "Does the language of {which} differ from {language}?",
             "Does the text of {which} use another language than {language}?",
             "Does someone who reads only {language} need a translation of {which}?",
             "Does {which} need a translation into {language}?"],
            ["The language of {which} is not {language}.", "The language of {which} is another than {language}.",
             "Someone who reads only {language} needs a translation of {which}.", "It takes a translation to read {which} in {language}.",
             "The language used in {which} is other than {language}."],
            ["I read only {language}. Do I need a translation of {which}?",
             "I read no other language than {language}. Do I need a translation of {which}?",
             "We read only {language}. Is {which} in another language?", "We use only {language}. Is {which} in a language other than that?",
             "We read only {language}. Does {which} need a translation?"],
        ],
        "which_message": [
            ["Which [message|text|one] is [written|] in {language}?", "Which [message|text] uses {language}?",
             "Which of [these|the messages] is in {language}?",
             "Which message has {language} as its language?", "Which one do we read in {language}?"],
            ["[Pick|Choose|Select] the [message|text] [written|] in {language}.", "[Pick|Choose|Select] the [message|text] that uses {language}.",
             "[Pick|Choose|Select] the one in {language}.", "[Pick|Choose|Select] the message whose language is {language}.",
             "[Pick|Choose|Select] what is written in {language}."],
            ["[Name|Find] the [message|text] [written|] in {language}.", "[Name|Find] the [message|text] that uses {language}.",
             "[Name|Find] the one in {language}.", "[Name|Find] the message whose language is {language}.",
             "[Name|Find] what is written in {language}."],
            ["Where do we read {language}?", "Where is {language} used?", "Where did someone write in {language}?",
             "Where do we see a text in {language}?",
             "Where is the language {language}?"],
            ["The message in {language} is which one?", "The [text|message] that uses {language} is which?",
             "The one in {language} is which of these?",
             "The message whose language is {language} is which one?", "The text written in {language} is which of these?"],
        ],
        "same_language": [
            ["Are {which} and {other} in the same language?", "Are {which} and {other} written in the same language?",
             "Are {which} and {other} texts in one language?", "Are the languages of {which} and {other} the same?",
             "Is the language of {which} also that of {other}?"],
            ["Do {which} and {other} use the same language?", "Do {which} and {other} have the same language?",
             "Does {which} use the same language as {other}?",
             "Do {which} and {other} share one language?", "Does {which} share its language with {other}?"],
            ["The languages of {which} and {other} are the same.", "The language of {which} is the same as that of {other}.",
             "The same language is used in {which} and {other}.", "One language is shared by {which} and {other}.",
             "The same language is read in {which} and {other}."],
            ["Take {which} and {other}: is the language the same?", "Take {which} and {other}: do they use the same language?",
             "Compare {which} with {other}: is it the same language?", "Compare {which} with {other}: do they share one language?",
             "Compare {which} and {other}. Are they in one language?"],
        ],
        "agent": [
            ["Who can answer {which}?", "Who speaks the language of {which}?", "Who should answer {which}?", "Who can read {which}?",
             "Who should get {which}?"],
            ["Which [person|agent] can answer {which}?", "Which [person|agent] speaks the language of {which}?",
             "Which [person|agent] should answer {which}?",
             "Which [person|agent] can read {which}?", "Which of these people should get {which}?"],
            ["[Pick|Choose|Select] the [person|agent] who can answer {which}.",
             "[Pick|Choose|Select] the [person|agent] who speaks the language of {which}.",
             "[Pick|Choose|Select] who should answer {which}.", "[Pick|Choose|Select] who can read {which}.",
             "[Pick|Choose|Select] who should get {which}."],
            ["To whom [should|do] we send {which}?", "To whom does {which} go, so that someone can read it?",
             "To whom do we give {which} for an answer?",
             "To which [person|agent] should we send {which}?", "To which person who speaks its language do we give {which}?"],
            ["[Name|Find] the [person|agent] who can answer {which}.", "[Name|Find] the [person|agent] who speaks the language of {which}.",
             "[Name|Find] who should answer {which}.", "[Name|Find] who can read {which}.", "[Name|Find] who should get {which}."],
        ],
        "can_answer": [
            ["Can {agent} answer {which}?", "Can {agent} read {which}?", "Can we send {which} to {agent}?",
             "Can {agent} speak the language of {which}?",
             "Can {agent} read the language of {which}?"],
            ["Does {agent} speak the language of {which}?", "Does {agent} know the language of {which}?",
             "Does {agent} speak the language used in {which}?",
             "Does {agent} read the language of {which}?", "Does {agent} know enough to answer {which}?"],
            ["The language of {which} is one that {agent} speaks.", "It is possible for {agent} to answer {which}.",
             "The language of {which} is one that {agent} can read.", "We can send {which} to {agent}.",
             "The agent {agent} speaks the language of {which}."],
            ["Is {agent} able to answer {which}?", "Is {agent} able to read {which}?", "Is the language of {which} one that {agent} speaks?",
             "Is {agent} someone who speaks the language of {which}?", "Is {agent} someone who can answer {which}?"],
        ],
    }

    def scene(self, draw):
        people = draw.picks(messages.FIRST_NAMES, 8)
        agents = {}
        if draw.chance(0.5):
            spoken = draw.sample(words.SENTENCES, draw.choice([4, 6, 6, 8]))
            agents = {person: [] for person in people[4:4 + draw.choice([2, 3, 4])]}
            for i, language in enumerate(spoken):
                list(agents.values())[i % len(agents)].append(language)
        candidates = sum(agents.values(), []) or list(words.SENTENCES)
        scene = (self.one if draw.chance(0.45) else self.several)(draw, candidates, people)
        scene.agents = agents
        if agents:
            listed = agents if draw.chance(0.5) else {name: "speaks " + " and ".join(spoken) for name, spoken in agents.items()}
            body = scene.state if isinstance(scene.state, dict) and "messages" in scene.state else {"message": scene.state}
            scene.state = body | {draw.choice(["agents", "people", "staff", "team"]): listed}
        return scene

    def one(self, draw, candidates, people):
        language = draw.choice(candidates)
        extras = [("id", draw.integer(1000, 99999)), ("channel", draw.choice(["email", "chat", "form"])), ("received", draw.choice(messages.DAYS))]
        state = messages.envelope(draw, self.text(draw, language, draw.choice([1, 2, 2, 3, 3])), extras=extras)
        return Scene(state, {"it": language}, {"it": draw.choice(["the message", "the message", "the text", "this message", "this text"])}, {})

    def several(self, draw, candidates, people):
        count = draw.choice([2, 2, 3, 3, 4])
        used = draw.sample(candidates, min(draw.random.randint(2, count), len(candidates)))
        languages = used + [draw.choice(used) for _ in range(count - len(used))]
        draw.random.shuffle(languages)
        style = draw.choice(["letter", "number", "sender"])
        ids = {"letter": [chr(97 + i) for i in range(count)], "number": [f"m{i + 1}" for i in range(count)], "sender": people[:count]}[style]
        texts = [self.text(draw, language, draw.choice([1, 1, 2])) for language in languages]
        if draw.chance(0.5):
            key = "from" if style == "sender" else "id"
            state = {"messages": [{key: name, "text": text} for name, text in zip(ids, texts)]}
        else:
            state = {"messages": dict(zip(ids, texts))}
        refer = "the message from {}" if style == "sender" else draw.choice(["message {}", "text {}"])
        return Scene(state, dict(zip(ids, languages)), {name: refer.format(name) for name in ids}, {})

    @staticmethod
    def text(draw, language, count):
        slots = {"day": draw.choice(words.DAYS[language]), "time": f"{draw.random.randint(14, 20)}:{draw.choice(['00', '15', '30', '45'])}",
                 "name": draw.pick(messages.FIRST_NAMES), "city": draw.pick(messages.CITIES), "n": draw.random.randint(5, 20)}
        sentences = draw.picks(words.POOLS[language], count)
        if sum(map(len, sentences)) < SHORT:
            sentences = draw.picks(words.POOLS[language], count + 1)
        if draw.chance(0.3):
            sentences.insert(0, draw.choice(words.GREETINGS[language]))
        if draw.chance(0.3):
            sentences.append(draw.choice(words.CLOSINGS[language]))
        return " ".join(fill(draw, sentence, slots) for sentence in sentences)

    def told(self, draw, scene):
        able = {language: name for name, spoken in scene.agents.items() for language in spoken}
        return ", ".join(f"{scene.names[each]} {language} {able.get(language, '')}".strip() for each, language in scene.languages.items())

    @staticmethod
    def options(draw, languages):
        """Options for languages -> ({language: label}, {label: description})."""
        if draw.chance(0.2):
            return words.CODES, {words.CODES[each]: draw.describe(words.LANGUAGES, each) for each in languages}
        return labelled(draw, words.LANGUAGES, languages, plain=0.3, bare=0.3)

    @staticmethod
    def refer(draw, language):
        return language if draw.chance(0.6) and draw.role != "options" else draw.describe(words.PLACES, language)

    def language(self, draw, scene):
        target = scene.target(draw)
        answer = scene.languages[target]
        others = [each for each in words.SENTENCES if each != answer]
        labels, options = self.options(draw, draw.sample(others, draw.choice([1, 2, 3, 3, 4, 5, 7, 9])) + [answer])
        return Choice(labels[answer], options, {"which": scene.names[target]})

    def about(self, draw, scene):
        """-> (whether a proposition about a message and a language holds, its slots)"""
        target = scene.target(draw)
        holds = draw.chance(0.5)
        near = [each for each in scene.languages.values() if each != scene.languages[target]]
        others = near if near and draw.chance(0.6) else [each for each in words.SENTENCES if each != scene.languages[target]]
        language = scene.languages[target] if holds else draw.choice(others)
        return holds, {"which": scene.names[target], "language": self.refer(draw, language)}

    def written_in(self, draw, scene):
        return Noul(*self.about(draw, scene))

    def foreign(self, draw, scene):
        holds, slots = self.about(draw, scene)
        return Noul(not holds, slots)

    def which_message(self, draw, scene):
        spoken = list(scene.languages.values())
        single = [each for each, language in scene.languages.items() if spoken.count(language) == 1]
        if len(spoken) < 2 or not single:
            return None
        answer = draw.choice(single)
        return Choice(answer, dict.fromkeys(scene.languages), {"language": self.refer(draw, scene.languages[answer])})

    def same_language(self, draw, scene):
        pairs = [(a, b) for a in scene.languages for b in scene.languages if a != b]
        same = [(a, b) for a, b in pairs if scene.languages[a] == scene.languages[b]]
        answer = bool(same) and draw.chance(0.75)
        if not pairs or not same and draw.chance(0.75):
            return None
        which, other = draw.choice(same if answer else [pair for pair in pairs if pair not in same])
        return Noul(answer, {"which": scene.names[which], "other": scene.names[other]})

    def agent(self, draw, scene):
        target = scene.target(draw)
        language = scene.languages[target]
        slots = {"which": scene.names[target]}
        if scene.agents:
            return Choice(next(name for name, spoken in scene.agents.items() if language in spoken), dict.fromkeys(scene.agents), slots)
        others = draw.sample([each for each in words.SENTENCES if each != language], 5)
        people = [name for name in draw.picks(messages.FIRST_NAMES, 8) if name not in scene.languages][:draw.choice([2, 3])]
        spoken = [[language] + others[:1], others[1:3], others[3:]][:len(people)]
        options = {name: "speaks " + " and ".join(draw.sample(each, len(each))) for name, each in zip(people, spoken)}
        return Choice(people[0], options, slots)

    def can_answer(self, draw, scene):
        if not scene.agents:
            return None
        target = scene.target(draw)
        answer = draw.chance(0.5)
        fitting = [name for name, spoken in scene.agents.items() if (scene.languages[target] in spoken) == answer]
        return Noul(answer, {"which": scene.names[target], "agent": draw.choice(fitting)})
