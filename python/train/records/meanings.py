"""meanings: words and what kind of thing they name; known words stand alone or with a definition, unseen ones with a definition."""

from dataclasses import dataclass

from .core import Choice, Family, Noul, labelled
from .meanings_kinds import BARE, KINDS, NAMES, POOLS, WORDS, compatible
from .pools import article, listing, person

SENTENCES = ["The note mentions {a}.", "Someone wrote about {a}.", "There was a long talk about {a}.", "{who} read about {a} today.",
             "{who} told me something about {a}.",
             "The next page is about {a}.", "The picture is called \"{word}\".", "The first thing on the page is {a}.",
             "{who} drew a picture of {a}.", "The story begins with {a}.",
             "{who} asked what {word} means."]
LISTS = ["The page shows {all}.", "{who} wrote down {all}.", "The list has {all}.", "The story mentions {all}.", "There are pictures of {all}.",
         "The words are {all}.",
         "{who} drew {all}.", "On the cards there are {all}."]


@dataclass
class Scene:
    state: object
    words: dict                            # {word: category}


def capital(text):
    return text[0].upper() + text[1:]


def with_article(word, category):
    return word if category in BARE else article(word)


class WordMeanings(Family):
    name = "meanings"
    templates = {
        "kind": [
            ["What [kind|sort|type] of thing is {a}?", "What is {a}?", "What [kind|sort] of thing does {word} name?",
             "What does the word {word} [mean|name]?",
             "What [group|kind] does {word} belong to?"],
            ["Which [kind|sort|type] of thing is {a}?", "Which of these is {a}?", "Which [group|kind|sort] does {word} belong to?",
             "Which of these does {word} name?",
             "Which [kind|meaning] fits {word}?"],
            ["[Pick|Choose|Select] the [kind|sort|type] of thing that {word} is.", "[Pick|Choose|Select] what {a} is.",
             "[Pick|Choose|Select] the group that {word} belongs to.",
             "[Pick|Choose] what {word} names.", "[Pick|Select] the meaning of {word}."],
            ["{A} is what [kind|sort|type] of thing?", "{A} is which of these?", "{A} belongs to which [group|kind]?",
             "The word {word} names what?", "The word {word} belongs to what [group|kind]?",
             "{A}: what [kind|sort] of thing?"],
            ["[Name|Find] the [kind|sort] of thing that {word} is.", "[Name|Find] what {a} is.", "[Name|Find] the group that {word} belongs to.",
             "[Name|Find] what the word {word} names.",
             "Say what [kind|sort] of thing {a} is."],
        ],
        "is_a": [
            ["Is {a} {a_kind}?", "Is {a} [a kind of|a sort of] {kind}?", "Is {word} the name of {a_kind}?", "Is {word} one of the {kinds}?",
             "Is the thing called {word} {a_kind}?"],
            ["Does {word} name {a_kind}?", "Does the word {word} mean {a_kind}?", "Does {word} belong to the {kinds}?",
             "Does {a} count as {a_kind}?", "Does {word} mean a [kind|sort] of {kind}?"],
            ["{A} is {a_kind}.", "{A} is a [kind|sort] of {kind}.", "{A} belongs to the {kinds}.", "The word {word} names {a_kind}.",
             "{A} is one of the {kinds}.", "{A} counts as {a_kind}."],
            ["[Would|Can] you call {a} {a_kind}?", "[Would|Can] {a} be called {a_kind}?", "[Would|Can] {a} count as {a_kind}?",
             "Can one say that {a} is {a_kind}?",
             "Would you say that {a} is {a_kind}?"],
            ["[Say|Judge|Decide] whether {a} is {a_kind}.", "[Say|Decide] whether {word} names {a_kind}.",
             "[Say|Decide] whether {word} belongs to the {kinds}.", "Take {word}: is it {a_kind}?",
             "Look at {word}. Is it {a_kind}?"],
        ],
        "which": [
            ["Which of [these|them|the words] is {a_kind}?", "Which one is {a_kind}?", "Which of these is a [kind|sort] of {kind}?",
             "Which belongs to the {kinds}?", "Which is {a_kind}?"],
            ["Which [word|of the words] names {a_kind}?", "Which word means a [kind|sort] of {kind}?", "Which word belongs to the {kinds}?",
             "Which one names {a_kind}?", "Which is the name of {a_kind}?"],
            ["[Pick|Choose|Select] the {kind}.", "[Pick|Choose|Select] the word that names {a_kind}.",
             "[Pick|Choose|Select] the one that is {a_kind}.", "[Pick|Choose] what belongs to the {kinds}.",
             "[Pick|Select] the one that is a [kind|sort] of {kind}."],
            ["[Name|Find] the {kind}.", "[Name|Find] the word that names {a_kind}.", "[Name|Find] the one that is {a_kind}.",
             "[Name|Find] what belongs to the {kinds}.",
             "[Name|Find] the one that is a [kind|sort] of {kind}."],
            ["One of these is {a_kind}: which?", "Only one is {a_kind}. Which one?", "One word names {a_kind}. Which is it?",
             "One of the words is a [kind|sort] of {kind}: which one?",
             "One of these belongs to the {kinds}. Which?"],
        ],
        "same": [
            ["Are {a} and {b} the same [kind|sort|type] of thing?", "Are {a} and {b} of the same [kind|sort]?",
             "Are {a} and {b} things of one [kind|sort]?", "Are both, {a} and {b}, of the same kind?",
             "Are {word} and {other} in the same group?"],
            ["Do {word} and {other} [name|mean] the same [kind|sort] of thing?", "Do {a} and {b} belong to the same [group|kind]?",
             "Do {word} and {other} name things of one kind?",
             "Do {a} and {b} belong together in one group?", "Do both words, {word} and {other}, name the same sort of thing?"],
            ["{A} and {b} are the same [kind|sort] of thing.", "{A} and {b} belong to the same [group|kind].",
             "{A} is of the same [kind|sort] as {b}.", "{A} and {b} are things of one kind.",
             "The words {word} and {other} name the same kind of thing."],
            ["[Take|Compare] {word} and {other}: are they of the same [kind|sort]?",
             "[Take|Compare] {word} and {other}. Do they belong to the same group?", "Compare {a} with {b}: the same [kind|sort] of thing?",
             "Take {a} and {b}. Are both of one kind?", "[Say|Decide] whether {word} and {other} name the same kind of thing."],
            ["Is {a} the same [kind|sort|type] of thing as {b}?", "Is {a} of the same [kind|sort] as {b}?",
             "Is {word} in the same group as {other}?", "Is {a}, like {b}, of the same kind?",
             "Is it the same kind of thing, {a} and {b}?"],
        ],
        "odd": [
            ["Which [one|word] does not belong [with the others|here|]?", "Which of these does not belong with the others?",
             "Which [one|word] is not of the same [kind|sort]?", "Which [one|word] is different from the others?",
             "Which does not fit with the others?"],
            ["Which [one|word|] is the odd one out?", "Which [one|word] is of a different [kind|sort]?", "Which of these is the odd one?",
             "Which one is not like the others?", "Which is the different one?"],
            ["[Pick|Choose|Select] the odd one out.", "[Pick|Choose|Select] the one that does not belong.",
             "[Pick|Choose|Select] the one of a different [kind|sort].", "[Pick|Choose] the one that is not like the others.",
             "[Pick|Select] the word that does not fit with the others."],
            ["[Name|Find] the odd one out.", "[Name|Find] the one that does not belong [with the others|].",
             "[Name|Find] the one of a different [kind|sort].", "[Name|Find] the word that is not like the others.",
             "[Name|Find] the one that is different from the others."],
            ["All but one are of the same kind. Which is different?", "All but one belong together. Which one does not belong?",
             "All are alike but one: which is the odd one?", "All but one are alike. Which one does not fit?",
             "One is not like the others: which?"],
        ],
        "any": [
            ["Is any of [these|them|the words] {a_kind}?", "Is one of [these|them] {a_kind}?", "Is there {a_kind} [here|among them|]?",
             "Is any of these a [kind|sort] of {kind}?", "Is any {kind} among them?"],
            ["Does any of [these|the words] name {a_kind}?", "Does one of these belong to the {kinds}?", "Does any word mean {a_kind}?",
             "Does one of them name a [kind|sort] of {kind}?", "Does the state name any {kind}?"],
            ["There is {a_kind} [here|among them].", "One of [these|them|the words] is {a_kind}.", "One of the words names {a_kind}.",
             "One of these belongs to the {kinds}.", "{A_kind} is among them."],
            ["[Can|Do] you find {a_kind} [here|among them]?", "[Can|Do] you see any {kind} among these?",
             "Do you find a word that names {a_kind}?", "Can you find one that belongs to the {kinds}?", "Can one of these be called {a_kind}?"],
            ["[Say|Decide] whether any of these is {a_kind}.", "[Say|Decide] whether one of them names {a_kind}.",
             "[Look|Check] for {a_kind}: is there one?", "[Look|Check] whether there is {a_kind} among them.",
             "[Say|Decide] whether one belongs to the {kinds}."],
        ],
    }

    # ---- the scene -------------------------------------------------------------------------------------------------------

    def scene(self, draw):
        shape = draw.choice(["one", "mixed", "odd"])
        categories = {"one": self.one, "mixed": self.mixed, "odd": self.odd_one}[shape](draw)
        words = {}
        for category in categories:
            word = draw.pick(POOLS[category])
            if word in words or any(other in WORDS[category][word][1] for other in categories):
                return self.scene(draw)
            words[word] = category
        glossed = draw.role == "values" or draw.chance(0.5)
        return Scene((self.with_glosses if glossed else self.without)(draw, words), words)

    @staticmethod
    def one(draw):
        return [draw.choice(list(WORDS))]

    @staticmethod
    def mixed(draw):
        categories = []
        for category in draw.sample(WORDS, draw.choice([3, 4, 5])):
            if all(compatible(category, other) for other in categories):
                categories.append(category)
        if len(categories) > 2 and draw.chance(0.5):
            categories.append(categories[0])
        return draw.sample(categories, len(categories))

    @staticmethod
    def odd_one(draw):
        common = draw.choice(list(WORDS))
        other = draw.choice([category for category in WORDS if compatible(category, common)])
        categories = [common] * draw.choice([2, 3, 3, 4]) + [other]
        return draw.sample(categories, len(categories))

    @staticmethod
    def with_glosses(draw, words):
        meanings = {word: WORDS[category][word][0] for word, category in words.items()}
        word_key, gloss_key = draw.choice(["word", "term", "name", "entry"]), draw.choice(["definition", "meaning", "gloss", "explanation"])
        entries = [{word_key: word, gloss_key: gloss} for word, gloss in meanings.items()]
        if len(words) == 1:
            word, gloss = next(iter(meanings.items()))
            return draw.choice([entries[0], entries[0], f"{capital(word)}: {gloss}.", f"{word}, that is, {gloss}"])
        text = " ".join(f"{capital(word)}: {gloss}." for word, gloss in meanings.items())
        return draw.choice([entries, {draw.choice(["words", "entries", "terms"]): entries}, meanings, meanings, text])

    @staticmethod
    def without(draw, words):
        things = [with_article(word, category) for word, category in words.items()]
        if len(words) == 1:
            word = next(iter(words))
            sentence = draw.choice(SENTENCES).format(a=things[0], word=word, who=person(draw))
            return draw.choice([word, {draw.choice(["word", "term", "name", "thing"]): word}, sentence, {draw.choice(["text", "sentence",
                                                    "note"]): sentence}])
        plain = draw.choice(LISTS).format(all=listing(things), who=person(draw))
        return draw.choice([list(words), {draw.choice(["words", "list", "things", "terms"]): list(words)}, plain, ", ".join(words)])

    def told(self, draw, scene):
        return ", ".join(f"{word} {category}" for word, category in scene.words.items())

    # ---- the questions ---------------------------------------------------------------------------------------------------

    @staticmethod
    def slots(draw, word, category, tag="word", short="a"):
        bare = draw.chance(0.25)
        shown = draw.choice([word, f'"{word}"'])
        thing = shown if bare else with_article(word, category)
        return {tag: shown, short: thing, short.upper(): capital(thing)}

    @staticmethod
    def kind_slots(draw, category):
        one, several = NAMES[category]
        kind = draw.choice(one)
        named = kind if kind in ("cloth", "food", "furniture") else article(kind)
        return {"kind": kind, "a_kind": named, "A_kind": capital(named), "kinds": draw.choice(several)}

    @staticmethod
    def unlike(words):
        """The categories none of the words belongs to, in any sense."""
        return [category for category in WORDS
                if all(compatible(category, own) and category not in WORDS[own][word][1] for word, own in words.items())]

    def kind(self, draw, scene):
        word, category = draw.choice(list(scene.words.items()))
        others = self.unlike({word: category})
        count = draw.choice([1, 2, 3, 3, 4, 4, 5, 6, 8, 10, 14, 19])
        labels, options = labelled(draw, KINDS, [category] + draw.sample(others, min(count, len(others))))
        return Choice(labels[category], options, self.slots(draw, word, category))

    def is_a(self, draw, scene):
        word, category = draw.choice(list(scene.words.items()))
        right = draw.chance(0.5)
        others = self.unlike({word: category})
        nearby = [name for name in others if name in scene.words.values()]
        asked = category if right else draw.choice(nearby if nearby and draw.chance(0.5) else others)
        return Noul(right, self.slots(draw, word, category) | self.kind_slots(draw, asked))

    def which(self, draw, scene):
        categories = list(scene.words.values())
        single = [word for word, category in scene.words.items() if categories.count(category) == 1]
        if len(categories) < 3 or not single:
            return None
        word = draw.choice(single)
        return self.words_choice(draw, scene, word, self.kind_slots(draw, scene.words[word]))

    @staticmethod
    def words_choice(draw, scene, word, slots):
        return Choice(word, {other: None for other in scene.words}, slots)

    def same(self, draw, scene):
        right = draw.chance(0.59)          # scenes without two words of a kind only give the answer no
        pairs = [(a, b) for a in scene.words for b in scene.words if a != b and (scene.words[a] == scene.words[b]) == right]
        if not pairs:
            return None
        word, other = draw.choice(pairs)
        return Noul(right, self.slots(draw, word, scene.words[word]) | self.slots(draw, other, scene.words[other], "other", "b"))

    def odd(self, draw, scene):
        categories = list(scene.words.values())
        single = [word for word, category in scene.words.items() if categories.count(category) == 1]
        if len(single) != 1 or len(set(categories)) != 2:
            return None
        return self.words_choice(draw, scene, single[0], {})

    def any(self, draw, scene):
        if len(scene.words) < 3:
            return None
        right = draw.chance(0.5)
        asked = draw.choice(list(scene.words.values()) if right else self.unlike(scene.words))
        return Noul(right, self.kind_slots(draw, asked))
