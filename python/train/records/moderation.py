"""moderation: a post in a forum; which rule it breaks, what personal data it shows, how severe that is and what is done about it."""

from dataclasses import dataclass, field

from . import messages
from . import moderation_words as words
from .core import Choice, Family, Noul, Score, labelled
from .messages import fill

OFFENCES = [category for category in words.SENTENCES if category != "none"] + ["personal_data"]
CLOSE = {"spam": {"advertising", "phishing"}, "advertising": {"spam"}, "phishing": {"spam", "personal_data"}, "personal_data": {"phishing"},
         "threat": {"insult"}, "insult": {"threat"}}
WEIGHTS = {"none": 6, "spam": 4, "phishing": 3, "threat": 3, "insult": 3, "advertising": 3, "personal_data": 7}
LEVELS = ["none", "low", "medium", "high", "critical"]


@dataclass
class Scene:
    state: object
    category: str
    data: list                             # kinds of personal data shown
    listed: dict = field(default_factory=dict)        # {label: category} when the state lists rules
    action: str | None = None
    severity: str | None = None
    in_use: list = field(default_factory=list)        # severities that the policy knows

    @property
    def graded(self):
        """Whether a policy says what each offence leads to."""
        return self.action is not None or self.severity is not None


class Moderation(Family):
    name = "moderation"
    questions = (1, 2, 3, 4, 5)
    weights = (2, 3, 3, 2, 1)
    templates = {
        "spam": [
            ["Is [it|this|the post] spam?", "Is this a spam [post|message]?", "Is the [post|message] to be seen as spam?",
             "Is it [just|only] spam?",
             "Is spam what we see here?"],
            ["Does this look like spam?", "Does the [post|message] look like spam?", "Does the [post|text] count as spam?",
             "Does this read like spam?",
             "Does it belong with the spam?"],
            ["[It|This|The post] is spam.", "This is a spam [post|message].", "The [post|text] counts as spam.", "We see spam here.",
             "It belongs with the spam."],
            ["[Should|Must] we [mark|treat] it as spam?", "[Should|Must] the spam filter catch this?", "Would you call this spam?",
             "Can we call it spam?",
             "Would a good spam filter catch this?"],
            ["Spam or not: is it spam?", "Spam check: is this spam?", "Check: is the [post|message] spam?", "[Look|Check]: does it count as spam?",
             "Spam filter: does this look like spam?"],
        ],
        "offence": [
            ["Is there {phrase} in the [post|text]?", "Is {phrase} found in the [post|text]?", "Is {phrase} what we see here?",
             "Is there {phrase} here?",
             "Is {phrase} part of the post?"],
            ["Does the [post|text] contain {phrase}?", "Does the post have {phrase} in it?", "Does the author post {phrase}?",
             "Does this count as {phrase}?",
             "Does the [post|text] look like {phrase}?"],
            ["The [post|text] contains {phrase}.", "There is {phrase} in the [post|text].", "The post has {phrase} in it.", "We see {phrase} here.",
             "This counts as {phrase}."],
            ["[Should|Must] we report {phrase} here?", "Can we find {phrase} in the [post|text]?", "Can we call this {phrase}?",
             "Would you say that the post contains {phrase}?",
             "Would you say that there is {phrase} in it?"],
            ["[Look|Check]: does the post contain {phrase}?", "[Look|Check]: is there {phrase} in it?",
             "[See|Check] whether the [post|text] contains {phrase}.",
             "[See|Check] whether there is {phrase} here.", "[See|Check] whether the post has {phrase} in it."],
        ],
        "rule": [
            ["Which rule does the [post|text] break?", "Which rule is broken [here|]?", "Which of these rules does it break?",
             "Which rule does the author break?",
             "Which of the rules is broken by this post?"],
            ["What rule does the [post|text] break?", "What rule does the author break?", "What rule is broken [here|]?", "What is the broken rule?",
             "What rule does the post go against?"],
            ["[Pick|Choose|Select] the rule that the [post|text] breaks.", "[Pick|Choose|Select] the broken rule.",
             "[Pick|Choose|Select] the rule that the author breaks.",
             "[Pick|Choose|Select] the rule broken [here|by this post].", "[Pick|Choose|Select] the rule that the post goes against."],
            ["[Name|Find] the rule that the [post|text] breaks.", "[Name|Find] the broken rule.", "[Name|Find] the rule that the author breaks.",
             "[Name|Find] the rule broken [here|by this post].", "[Name|Find] the rule that the post goes against."],
            ["The [post|text] breaks which rule?", "The author of this breaks which rule?", "The broken rule is which of these?",
             "The post goes against which rule?", "By this post, which rule is broken?"],
        ],
        "breaks_any": [
            ["Is a rule broken [here|by this post]?", "Is the post against the rules?", "Is any rule broken [here|]?",
             "Is the [post|text] against a rule?",
             "Is a rule broken by the author?"],
            ["Does the [post|text] break [a|any] rule?", "Does the post go against the rules?", "Does the author break [a|any] rule?",
             "Does the [post|text] go against a rule?", "Does the author go against the rules?"],
            ["The [post|text] breaks a rule.", "The post is against the rules.", "The [post|text] goes against a rule.", "A rule is broken here.",
             "The author breaks a rule."],
            ["Can we say that the post breaks a rule?", "Can we say that the post is against the rules?",
             "Would you say that the author breaks a rule?",
             "Would you say that a rule is broken?", "Would you say that the post goes against the rules?"],
            ["[Look|Check]: is a rule broken?", "[Look|Check]: does the post break any rule?", "[See|Check] whether the post is against the rules.",
             "[See|Check] whether the author breaks a rule.", "[See|Check] whether a rule is broken."],
        ],
        "personal": [
            ["Is personal data shown [here|in the post]?", "Is there personal data in the [post|text]?", "Is personal data given away?",
             "Is there personal data of someone (phone, address, email, card) in it?", "Is some personal data part of the post?"],
            ["Does the [post|text] contain personal data?", "Does the [post|text] contain personal data such as an address or a phone number?",
             "Does the author give away personal data?", "Does the post show personal data of someone?",
             "Does the text show personal data such as an email or a card number?"],
            ["The [post|text] contains personal data.", "Personal data is given away.", "There is personal data in the post.",
             "The post shows personal data.",
             "The text shows personal data (phone, address, email, card)."],
            ["[Should|Must] we hide personal data here?", "Must personal data be blacked out in the post?",
             "Can we find personal data in the [post|text]?",
             "Can personal data be seen here?", "Should we black out personal data such as an address or a phone number?"],
            ["[Look|Check]: does it contain personal data?", "[Look|Check]: is personal data shown?",
             "[See|Check] whether the post shows personal data.",
             "[See|Check] whether there is personal data in it.", "[See|Check] whether personal data is given away."],
        ],
        "contains": [
            ["Is {data} shown [here|in the post]?", "Is there {data} in the [post|text]?", "Is {data} given away?", "Is {data} part of the post?",
             "Is {data} to be seen in the text?"],
            ["Does the [post|text] contain {data}?", "Does the author give away {data}?", "Does the post show {data}?",
             "Does the [post|text] give {data}?",
             "Does the text have {data} in it?"],
            ["The [post|text] contains {data}.", "The author gives away {data}.", "There is {data} in the post.", "The post shows {data}.",
             "The text has {data} in it."],
            ["[Should|Must] we hide {data} here?", "Must we black out {data} in the post?", "Can we find {data} in the [post|text]?",
             "Can we see {data} here?",
             "Do we have to black out {data}?"],
        ],
        "data_kind": [
            ["Which [kind of|] personal data does the [post|text] contain?", "Which kind of data is given away?", "Which data does the post show?",
             "Which of these does the text show?", "Which kind of personal data is in it?"],
            ["What [kind of|] personal data does the [post|text] contain?", "What data is given away?", "What kind of data does the post show?",
             "What personal data is in it?", "What kind of personal data do we see?"],
            ["[Pick|Choose|Select] the [kind of|] personal data in the [post|text].", "[Pick|Choose|Select] the kind of data given away.",
             "[Pick|Choose|Select] which data the post shows.", "[Pick|Choose|Select] what personal data we see.",
             "[Pick|Choose|Select] what data is in the text."],
            ["[Name|Find] the [kind of|] personal data in the [post|text].", "[Name|Find] the kind of data given away.",
             "[Name|Find] which data the post shows.",
             "[Name|Find] what personal data we see.", "[Name|Find] what data is in the text."],
        ],
        "action": [
            ["What should [we|the moderator] do?", "What does the policy say about this post?", "What should be done with the post?",
             "What does the policy ask us to do?",
             "What is to be done by the policy?"],
            ["Which action should [we|the moderator] take?", "Which action does the policy ask for?", "Which action fits this post?",
             "Which of these should be done?", "Which action is right by the policy?"],
            ["[Pick|Choose|Select] the action.", "[Pick|Choose|Select] the action that the policy asks for.",
             "[Pick|Choose|Select] what should be done with the post.",
             "[Pick|Choose|Select] what the moderator should do.", "[Pick|Choose|Select] the right action by the policy."],
            ["[Name|Find] the action [for this post|].", "[Name|Find] the action that the policy asks for.",
             "[Name|Find] what should be done with the post.",
             "[Name|Find] what the moderator should do.", "[Name|Find] the right action by the policy."],
            ["By the policy, what should be done?", "By the policy, which action is right?", "By the policy, what should the moderator do?",
             "Following the policy, which action fits?", "Following the policy, what should we do with the post?"],
        ],
        "severity": [
            ["How severe is [it|this|the post]?", "How severe is the post by the policy?", "How bad is the post?", "How bad is this by the policy?",
             "How severe is what the author did?"],
            ["What is the severity [of the post|]?", "What severity does the policy give?", "What severity does this have?",
             "What level of severity is it?",
             "What level does the policy give to this post?"],
            ["[Rate|Grade] the severity [of the post|].", "[Rate|Grade] how severe it is.", "[Rate|Grade] how bad the post is by the policy.",
             "[Rate|Grade] the post by its severity.", "[Rate|Grade] the severity by the policy."],
            ["Which severity [fits|is it]?", "Which level of severity does the policy give?", "Which level says how severe it is?",
             "Which severity does the post have?", "Which level says how bad the post is?"],
            ["By the policy, how severe is it?", "By the policy, how bad is the post?", "By the policy, what is the severity?",
             "Following the policy, which severity fits?", "Following the policy, which level is it?"],
        ],
    }

    def scene(self, draw):
        category = draw.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        data = draw.sample(words.DATA, draw.choice([1, 1, 1, 2])) if category == "personal_data" else []
        patterns = draw.sample(words.SENTENCES[category], draw.choice([1, 1, 2])) if category in words.SENTENCES else []
        patterns += [draw.choice(words.DATA[kind]) for kind in data]
        extras = draw.sample(words.SENTENCES["none"], draw.choice([0, 0, 1, 1, 2])) if category != "none" else []
        if draw.chance(0.35):
            extras.append(draw.choice(words.NO_DATA))
        slots = self.slots(draw)
        text = " ".join(fill(draw, pattern, slots) for pattern in messages.sprinkle(draw, patterns, extras))
        scene = Scene(None, category, data)
        post = {draw.choice(["post", "text", "comment", "message"]): text}
        extras = [("author", f"{draw.pick(messages.FIRST_NAMES).lower()}_{draw.integer(1, 999)}"), ("likes", draw.integer(0, 500)),
                  ("reports", draw.random.randint(0, 9)), ("forum", draw.choice(["cooking", "travel", "music", "sports", "games", "pets", "cars"])),
                  ("new_member", draw.chance(0.5))]
        post |= dict(draw.sample(extras, draw.choice([0, 1, 2])))
        scene.state = draw.choice([self.bare, self.rules, self.policy, self.graded, self.graded])(draw, scene, text, post)
        return scene

    @staticmethod
    def slots(draw):
        good = draw.pick(messages.GOODS)
        site = f"{draw.pick(words.SITES)}.{draw.choice(['com', 'net', 'shop', 'info'])}"
        number = draw.random.randint
        return {"good": good, "goods": good + ("es" if good.endswith(("s", "ch")) else "s"), "site": site, "product": messages.product(draw),
                "name": draw.pick(messages.FIRST_NAMES), "city": draw.pick(messages.CITIES), "day": draw.choice(messages.DAYS),
                "amount": draw.integer(20, 900), "n": number(5, 60), "digits": draw.integer(10000, 999999),
                "phone": draw.choice(["0{} {} {}", "+{} {} {}", "0{}-{}-{}"]).format(number(20, 99), number(200, 999), number(10000, 99999)),
                "address": "{} {} {}, {}".format(number(1, 200), draw.pick(words.STREETS), draw.choice(["Street", "Road", "Lane", "Avenue"]),
                                                 draw.pick(messages.CITIES)),
                "card": " ".join(str(number(1000, 9999)) for _ in range(4)), "email": messages.email_address(draw)}

    @staticmethod
    def bare(draw, scene, text, post):
        return text if draw.chance(0.4) else post

    @staticmethod
    def rules(draw, scene, text, post):
        """The rules are listed beside the post, some or all."""
        close = CLOSE.get(scene.category, ())
        listed = draw.sample([category for category in OFFENCES if category not in close], draw.choice([2, 3, 3, 4]))
        if scene.category != "none" and scene.category not in listed and draw.chance(0.7):
            listed[draw.random.randrange(len(listed))] = scene.category
        style = draw.choice(["R{}", "{}", "rule {}", "rule_{}"])
        scene.listed = {style.format(i + 1): category for i, category in enumerate(listed)}
        described = {label: draw.describe(words.RULES, category) for label, category in scene.listed.items()}
        return post | {draw.choice(["rules", "forum_rules", "not_allowed"]): described}

    @staticmethod
    def policy(draw, scene, text, post):
        """A policy that names an action for each offence."""
        actions = {category: draw.choice(["warn", "remove", "escalate"]) for category in OFFENCES}
        scene.action = actions.get(scene.category, "allow")
        named = {draw.choice(words.POLICY_NAMES[category]): action for category, action in actions.items()}
        return post | {"policy": named | {draw.choice(["other", "anything_else", "harmless"]): "allow"}}

    @staticmethod
    def graded(draw, scene, text, post):
        """A policy that names a severity for each offence and, mostly, an action for each severity."""
        scene.in_use = LEVELS[1:] if draw.chance(0.4) else LEVELS[1:4]
        severities = {category: draw.choice(scene.in_use) for category in OFFENCES}
        scene.severity = severities.get(scene.category, "none")
        policy = {draw.choice(words.POLICY_NAMES[category]): severity for category, severity in severities.items()}
        state = post | {draw.choice(["severity", "severities", "policy", "severity_policy"]): policy}
        if draw.chance(0.7):
            actions = dict(zip(scene.in_use, draw.choice([["warn", "remove", "escalate", "escalate"], ["allow", "warn", "remove", "escalate"],
                                                          ["warn", "warn", "remove", "escalate"], ["remove", "escalate", "escalate", "escalate"]])))
            scene.action = actions.get(scene.severity, "allow")
            state["actions"] = actions | {"none": "allow"}
        return state

    def spam(self, draw, scene):
        answer = scene.category == "spam"
        if scene.category in CLOSE["spam"] or not answer and draw.chance(0.75):
            return None
        return Noul(answer)

    def offence(self, draw, scene):
        answer = scene.category != "none" and draw.chance(0.6)
        others = [category for category in OFFENCES if category != scene.category and category not in CLOSE.get(scene.category, ())]
        return Noul(answer, {"phrase": draw.describe(words.PHRASES, scene.category if answer else draw.choice(others))})

    def rule(self, draw, scene):
        if scene.listed:
            fitting = [label for label, category in scene.listed.items() if category == scene.category]
            return Choice(fitting[0] if fitting else "none", dict.fromkeys([*scene.listed, "none"]))
        others = [category for category in OFFENCES if category != scene.category]
        chosen = draw.sample(others, draw.choice([1, 2, 2, 3, 4, 5])) + [scene.category]
        if scene.category != "none" and draw.chance(0.6):
            chosen.append("none")
        labels, options = labelled(draw, words.RULES, chosen)
        return Choice(labels[scene.category], options)

    def breaks_any(self, draw, scene):
        if scene.category in ("personal_data", "advertising") and not scene.listed and not scene.graded:
            return None
        breaks = scene.category in scene.listed.values() if scene.listed else scene.category != "none"
        return None if breaks and draw.chance(0.68) else Noul(breaks)

    def personal(self, draw, scene):
        if scene.category == "phishing" or not scene.data and draw.chance(0.62):
            return None
        return Noul(bool(scene.data))

    def contains(self, draw, scene):
        if not scene.data and draw.chance(0.9):
            return None
        answer = bool(scene.data) and draw.chance(0.65)
        kind = draw.choice(scene.data if answer else [kind for kind in words.DATA if kind not in scene.data])
        return Noul(answer, {"data": draw.describe(words.KINDS_OF_DATA, kind)})

    def data_kind(self, draw, scene):
        if len(scene.data) != 1 and (scene.data or draw.chance(0.93)):
            return None
        answer = scene.data[0] if scene.data else "none"
        others = [kind for kind in words.DATA if kind != answer]
        chosen = draw.sample(others, draw.choice([1, 2, 3, 3])) + [answer]
        if answer != "none" and draw.chance(0.5):
            chosen.append("none")
        labels, options = labelled(draw, words.KINDS_OF_DATA, chosen)
        return Choice(labels[answer], options)

    def action(self, draw, scene):
        if scene.action is None:
            return None
        others = [action for action in words.ACTIONS.categories if action != scene.action]
        labels, options = labelled(draw, words.ACTIONS, draw.sample(others, draw.choice([1, 2, 3, 3])) + [scene.action])
        return Choice(labels[scene.action], options)

    def severity(self, draw, scene):
        if scene.severity is None or scene.severity == "none" and draw.chance(0.3):
            return None
        with_none = scene.severity == "none" or draw.chance(0.4)
        levels = (["none"] if with_none else []) + scene.in_use
        return Score(levels.index(scene.severity), [draw.describe(words.SEVERITIES, level) for level in levels])
