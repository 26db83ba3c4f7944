"""The rules of the family `rules`: conditions fitted to a case, and the text that states them; limits and who decides up to them."""

import re
from dataclasses import dataclass

from .pools import article
from .rules_domains import TIERS, Domain

ALL_OF = ["{A} is allowed only if {c}.", "Approve {the} only if {c}; otherwise reject it.",
          "{A} is approved when {c}. In all other cases it is rejected.",
          "No {thing} unless {c}.", "We allow {a} if {c}, and not otherwise.", "{A} is possible if {c}; otherwise it is not.",
          "{The} is accepted only when {c}.",
          "Accept {the} if {c}. Reject it in any other case.", "{A} must meet this: {c}.", "Reject {the} unless {c}.",
          "Only when {c} do we accept {a}.",
          "If {c}, {the} is granted, otherwise refused."]
LISTED = ["Conditions for {a}, all of them needed: {n}.", "All of this must be so for {a}: {n}.", "{A} is allowed if all conditions are met: {n}.",
          "Approve {the} if each of these holds, otherwise reject it: {n}."]
ANY_OF = ["{A} is allowed if either {c}.", "Approve {the} if one of these holds: {c}. Otherwise reject it.",
          "One of two conditions is enough for {a}: {c}.",
          "It is enough for {a} if either {c}.", "Accept {the} when either {c}; reject it when neither is so."]
MANAGER = ["If all is met but the {amount} is over {limit}, ask a manager.",
           "If this is so and the {amount} is more than {limit}, a manager decides.",
           "Even then, a manager must decide when the {amount} is above {limit}.",
           "Above {limit} ({amount}) a manager has to approve what meets the rule.",
           "When the rule is met but the {amount} goes over {limit}, it still goes to a manager."]
MISSING = ["If a needed value is missing, ask for it first.", "Ask when something needed is unknown.",
           "Do not decide while a needed value is missing: ask for it.",
           "When a value for this is missing, ask for it."]
TIER_TEXTS = [("Up to {limit} {unit} the {who} decides", "above that the {who}"), ("The {who} approves up to {limit} {unit}",
               "the {who} approves anything more"),
              ("{limit} {unit} or less: {who}", "more than that: {who}"), ("Not more than {limit} {unit}: the {who}", "all above: the {who}")]


@dataclass
class Case:
    domain: Domain
    facts: list                            # one per condition of the domain
    keys: list                             # what the state calls them
    amount: int


@dataclass
class Rule:
    text: str
    conditions: list                       # [(index, clause, met)]
    met: bool                              # whether the rule as a whole is
    joined: str                            # "and" or "or"


def capital(text):
    return text[0].upper() + text[1:]


def singular(text):
    return re.sub(r"\b1 (day|night|hour|book|year|item|fine|system|licence|euro|dollar|accident|point)s\b", r"1 \1", text)


def draw_rule(draw, case, complete=False):
    """A rule that the case meets in half of all draws; with `complete`, always, and every condition of it."""
    conditions = None
    while conditions is None:
        count = draw.choice([1, 2, 2, 3])
        joined = "or" if count == 2 and not complete and draw.chance(0.25) else "and"
        conditions = fit(draw, case, draw_mets(draw, count, joined, complete or draw.chance(0.5)))
    met = (all if joined == "and" else any)(met for _, _, met in conditions)
    return Rule(rule_text(draw, case.domain.thing, [clause for _, clause, _ in conditions], joined), conditions, met, joined)


def draw_mets(draw, count, joined, wanted):
    """Which of the conditions are met, such that the rule is (wanted) or is not."""
    if wanted == (joined == "and"):
        return [wanted] * count
    mets = [not wanted] * count
    mets[draw.random.randrange(count)] = wanted
    return [met if draw.chance(0.75) else wanted for met in mets]


def fit(draw, case, mets):
    """Different conditions of the domain that are met or not as wanted, in random order, or None."""
    chosen = []
    order = draw.sample(range(len(case.facts)), len(case.facts))
    for met in mets:
        for index in order:
            condition = case.domain.conditions[index]
            slots = condition.fitted(draw, case.facts[index], met) if condition.can_be(case.facts[index], met) else None
            if slots is not None:
                chosen.append((index, singular(condition.clause(draw, slots)), met))
                order.remove(index)
                break
        else:
            return None
    draw.random.shuffle(chosen)
    return chosen


def rule_text(draw, thing, clauses, joined):
    numbered = " ".join(f"({i + 1}) {clause}" for i, clause in enumerate(clauses))
    listed = ", ".join(clauses[:-1]) + (f" {joined} " if len(clauses) > 1 else "") + clauses[-1]
    patterns = ANY_OF if joined == "or" else LISTED if len(clauses) > 1 and draw.chance(0.35) else ALL_OF
    a = article(thing)
    return draw.choice(patterns).format(A=capital(a), a=a, The=f"The {thing}", the=f"the {thing}", thing=thing, c=listed, n=numbered)


def amount_limit(draw, amount, above):
    """A limit the amount is above, or not above; None when there is none."""
    least = max(1, amount // 5)
    away = draw.random.randint(least, max(least, int(amount * draw.choice([0.3, 0.6, 0.8]))))
    limit = amount - away if above else amount + away
    unit = draw.choice([1, 5, 10, 50])
    near = round(limit / unit) * unit
    limit = near if (amount > near) == above else limit
    return limit if limit > 0 else None


def manager_text(draw, domain, limit):
    name, unit, _, _ = domain.amount
    if unit in ("euros", "dollars"):
        return draw.choice(MANAGER).format(amount=name.split()[0].replace("_", " "), limit=f"{limit} {unit}")
    return draw.choice(MANAGER).format(amount=f"number of {unit}", limit=limit)


def draw_tiers(draw, amount):
    """[(limit, who)], rising, the last without limit; the amount falls into any of them with about equal chance."""
    count = draw.choice([2, 3, 3])
    place = draw.random.randrange(count)
    limits = set()
    for i in range(count - 1):
        below = i < place
        limit = amount_limit(draw, amount, above=below) or 1
        factor = place - i if below else i - place + 1                      # limits farther from the amount lie farther away
        limits.add(max(1, limit // factor) if below else limit * factor)
    return list(zip(sorted(limits) + [None], draw.picks(TIERS, len(limits) + 1)))


def tiers_text(draw, tiers, unit):
    bounded, last = draw.choice(TIER_TEXTS)
    texts = [bounded.format(limit=limit, unit=unit, who=who) for limit, who in tiers[:-1]]
    texts = texts[:1] + [text[0].lower() + text[1:] for text in texts[1:]] + [last.format(who=tiers[-1][1])]
    return singular("; ".join(texts) + ".")
