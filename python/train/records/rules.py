"""rules: a case and a rule, which stands in the state or comes with the question; what the rule says about the case."""

from dataclasses import dataclass, field

from .core import Choice, Family, Meanings, Noul, labelled
from .facts import facts_of
from .pools import person
from .rules_domains import DOMAINS, TIERS
from .rules_policy import MISSING, Case, Rule, amount_limit, capital, draw_rule, draw_tiers, fit, manager_text, tiers_text

DECISIONS = Meanings("rules.decisions", {
    "approve": ["Approve it.", "The request is approved.", "Say yes: all conditions are met.", "Accept it, the conditions are met.",
    "It is approved and goes ahead.",
                "Accept the request.", "Approved: it meets the rule.", "It is accepted.", "Yes, it is allowed.",
                "The rule allows it, so approve.", "Allowed: accept it.",
                "Grant it, since the conditions are met."],
    "reject": ["Reject it.", "The request is rejected.", "Say no: a condition is not met.", "Refuse it, a condition is not met.",
    "It is rejected and ends here.",
               "Refuse the request.", "Rejected: it breaks the rule.", "It is refused.", "No, it is not allowed.",
               "The rule does not allow it, so reject.", "Not allowed: refuse it.",
               "Turn it down, since a condition is not met."],
    "manager": ["Ask a manager.", "A manager must decide.", "Pass it to a manager, since the limit is exceeded.",
    "It needs a manager to approve.", "Let a manager decide.",
                "The amount is over the limit: ask a manager.", "Send it to a manager.", "Over the limit, so a manager decides.",
                "Only a manager can approve it.",
                "Pass it on to a manager."],
    "ask": ["Ask for the missing information.", "Something is missing: ask for it.", "Ask for the missing value first.",
    "Information is missing.", "Wait until the missing value is known.",
            "A needed value is not known yet.", "It is not complete: ask for what is missing.", "Ask the applicant for the unknown value.",
            "The case is not complete.",
            "Not known yet, so ask for the information."]})
NONE_FAILS = Meanings("rules.none", {"none": [
    "No condition fails.", "All conditions are met.", "None of them fails.", "None: all of them are met.", "Every condition is met.",
    "Nothing fails.", "All of them hold.",
    "None, every one holds.", "No condition is broken.", "None is broken.", "Nothing is broken, all is met.", "None of the conditions is broken."]})


@dataclass
class Scene:
    case: Case
    state: object = None
    rule: Rule | None = None               # None: every question brings a rule of its own
    manager_above: int | None = None
    tiers: list = field(default_factory=list)
    missing: int | None = None             # index of the condition whose fact is unknown
    shown: set = field(default_factory=set)            # indices of the facts in the state


def ruled(*templates):
    """Every wording with room for a rule before or after it."""
    return [["{lead} " + wording + " {tail}" for wording in wordings] for wordings in templates]


def plain(value):
    """A value of a case as it stands in a text."""
    return {"True": "yes", "False": "no", "None": "unknown"}.get(str(value), value)


class Rules(Family):
    name = "rules"
    harder = ("approver", "may_decide")
    templates = {
        "allowed": ruled(
            ["Is {it} [allowed|permitted] [under the rule|by the rule|]?", "Is it [allowed|permitted]?", "Does the rule [allow|permit] {it}?",
             "May {it} be [approved|accepted]?",
             "Can {it} be [allowed|approved|accepted]?", "Is it right to approve {it}?"],
            ["{It} is [allowed|permitted] [under the rule|].", "The rule [allows|permits] {it}.", "{It} can be [approved|accepted].",
             "{It} meets the rule.",
             "According to the rule, {it} is allowed.", "It is right to accept {it}."],
            ["Does {it} meet the [rule|conditions]?", "Are the conditions for {it} met?", "Is the rule met [here|]?",
             "Does this case meet [the rule|all that the rule asks]?",
             "Does {it} meet what the rule asks for?"],
            ["[Under|According to] the rule, [is {it} allowed|can {it} be approved]?", "By the rule, may {it} be approved?",
             "Judged by the rule, is {it} permitted?",
             "[Check|Apply] the rule: is {it} allowed?", "Going by the rule, should {it} be accepted?"],
            ["Should [we|you] [approve|accept|allow] {it}?", "Do [we|the conditions] allow {it}?", "Should {it} be [approved|accepted]?",
             "Do the conditions permit {it}?",
             "Should it be approved?", "Would it be right to allow {it}?"]),
        "refused": ruled(
            ["Must {it} be [rejected|refused]?", "Is {it} [rejected|refused] [under the rule|]?", "Does the rule forbid {it}?",
             "Is {it} against the rule?",
             "Does {it} break the rule?", "Is {it} to be refused?"],
            ["{It} must be [rejected|refused].", "{It} is against the rule.", "The rule forbids {it}.", "{It} is not allowed.",
             "{It} breaks the rule.",
             "The rule does not allow {it}."],
            ["[Under|According to] the rule, [must {it} be refused|is {it} rejected]?", "By the rule, is {it} forbidden?",
             "[Check|Apply] the rule: must {it} be rejected?",
             "Judged by the rule, must {it} be refused?", "Going by the rule, should {it} be rejected?"],
            ["Should [we|you] [reject|refuse] {it}?", "Do [we|the conditions] forbid {it}?", "Should {it} be [rejected|refused]?",
             "Would it be against the rule to accept {it}?",
             "Would it break the rule to allow {it}?"],
            ["Does {it} [fail|break] the [rule|conditions]?", "Is it rejected because a condition fails?", "Does {it} fail to meet the rule?",
             "Is the rule broken [here|]?",
             "Is there a reason to refuse {it}?"]),
        "met": ruled(
            ["Is it [true|so|the case] that {clause}?", "Is this [true|so|met]: {clause}?", "Is the condition met that {clause}?",
             "Is the condition \"{clause}\" met?",
             "Is it correct that {clause}?"],
            ["{Clause}.", "It is [true|so|the case] that {clause}.", "In this case {clause}.", "The condition is met: {clause}.",
             "This is [true|correct]: {clause}."],
            ["Does it hold that {clause}?", "Does this [hold|condition hold]: {clause}?", "Does the case meet this condition: {clause}?",
             "Does the case show that {clause}?", "Does the condition \"{clause}\" hold?"],
            ["[Condition:|The condition:] {clause}. Is it met?", "{Clause}. Is that [true|so|correct]?", "{Clause}: does that hold?",
             "{Clause}: is this condition met?",
             "One condition is that {clause}. Is this so?"],
            ["[Check|Judge] whether {clause}.", "[Check|Judge] this condition: {clause}.", "Say whether it is [true|so] that {clause}.",
             "Say whether the condition is met: {clause}.",
             "Decide whether this holds: {clause}."]),
        "failing": ruled(
            ["Which condition [fails|is not met|is broken]?", "Which [part|condition] of the rule [fails|is not met]?", "Which one fails?",
             "Which of these is not met?",
             "Which condition does {it} not meet?", "Which of the conditions is broken?"],
            ["What [fails|is not met]?", "What condition is [not met|broken]?", "What is it that fails [here|]?",
             "What speaks against {it}: which condition is not met?",
             "What part of the rule is broken?"],
            ["[Pick|Choose|Select] the condition that [fails|is not met|is broken].", "[Pick|Choose|Select] what fails.",
             "[Pick|Choose] the one that is not met.",
             "[Pick|Choose|Select] the broken condition.", "[Pick|Select] the condition that {it} does not meet."],
            ["[Name|Find] the condition that [fails|is not met].", "[Name|Find] what fails, if anything.", "[Name|Find] the broken condition.",
             "[Name|Find] the part of the rule that is not met.",
             "[Name|Find] the one that fails."],
            ["[Check|Apply] the rule: which condition is not met?", "Going by the rule, which one fails?", "Under the rule, what is not met?",
             "By the rule, which condition is broken?",
             "According to the rule, which condition fails?"]),
        "decision": ruled(
            ["What is the decision [on {it}|]?", "What should be decided?", "What should be done with {it}?",
             "What [does the rule say|is right] about {it}?",
             "What happens to {it}?", "What is the right decision?"],
            ["Which decision is right?", "Which decision [follows|does the rule give]?", "Which of these should be done?",
             "Which one is the right decision [for {it}|]?",
             "Which one does the rule say?"],
            ["[Pick|Choose|Select] the right decision.", "[Pick|Choose|Select] what should be done [with {it}|].",
             "[Pick|Choose|Select] what the rule says.",
             "[Pick|Choose] the decision for {it}.", "[Pick|Select] the decision that follows from the rule."],
            ["[Under|According to] the rule, what [is the decision|should be done]?", "By the rule, which decision is right?",
             "Going by the rule, what happens to {it}?",
             "[Check|Apply] the rule: what is the decision?", "Judged by the rule, what should be done with {it}?"],
            ["Decide on {it}.", "[Decide|Say] what should be done with {it}.", "Give the decision [on {it}|].", "Decide {it} by the rule.",
             "Say what the rule decides."]),
        "manager": [
            ["Does a manager have to [decide|approve]?", "Does it need a manager?", "Does {it} go to a manager?",
             "Does a manager need to be asked?", "Does this need a manager to approve?"],
            ["Is it a case for a manager?", "Is a manager needed [here|]?", "Is {it} to be decided by a manager?",
             "Is it a manager who must decide?", "Is a manager to be asked?"],
            ["A manager [must|has to] [decide|approve].", "{It} needs a manager.", "{It} goes to a manager.", "It is a case for a manager.",
             "A manager is needed."],
            ["Must a manager [decide|approve]?", "Must {it} go to a manager?", "Must a manager be asked?", "Must it be decided by a manager?",
             "Must we ask a manager to approve?"],
            ["Should {it} [go|be sent|be passed] to a manager?", "Should a manager [decide|be asked]?", "Should we ask a manager?",
             "Should this be decided by a manager?",
             "Should {it} be passed on for a manager to approve?"]],
        "approver": ruled(
            ["Who [approves|decides on] {it}?", "Who [decides|approves] [here|]?", "Who has to approve {it}?", "Who is to decide?",
             "Who may approve this amount?"],
            ["Which of them [approves|decides]?", "Which [person|role] approves {it}?", "Which role has to decide?",
             "Which of these may approve this amount?", "Which one is to decide on {it}?"],
            ["[Pick|Choose|Select] who [approves|decides].", "[Pick|Choose|Select] the one who approves {it}.",
             "[Pick|Choose] who has to decide on {it}.", "[Pick|Select] the role that approves this amount.",
             "[Pick|Select] the right one to decide."],
            ["[Under|According to] the rule, who [approves|decides]?", "By the rule, who has to approve {it}?",
             "Going by the amount, who decides?", "With this amount, who is to approve {it}?",
             "[Check|Apply] the rule: who decides?"],
            ["[Name|Find] the one who [approves|decides on] {it}.", "[Name|Find] who has to approve this.", "[Name|Say] who decides.",
             "[Name|Find] the role that decides on this amount.",
             "Say who approves {it}."]),
        "may_decide": ruled(
            ["Is the {who} the one who [decides|approves]?", "Is it the {who} who [decides|approves]?", "Is it for the {who} to decide?",
             "Is {it} decided by the {who}?",
             "Is the {who} the one to approve {it}?"],
            ["The {who} [decides|approves] [here|].", "It is for the {who} to [decide|approve].", "It is the {who} who approves {it}.",
             "{It} is decided by the {who}.",
             "The {who} is the one who decides on {it}."],
            ["Does the {who} [decide|approve] [here|]?", "Does the {who} have to decide on {it}?", "Does it go to the {who} to approve?",
             "Does this amount go to the {who}?",
             "Does the {who} approve this amount?"],
            ["[Under|According to] the rule, does the {who} decide?", "By the rule, is it the {who} who approves?",
             "Going by the amount, does the {who} decide on {it}?", "With this amount, is it the {who} who decides?",
             "[Check|Apply] the rule: does the {who} approve?"],
            ["[Should|Must] the {who} [decide|approve] [here|]?", "[Should|Must] it be decided by the {who}?", "[Should|Must] {it} go to the {who}?",
             "Should the {who} be the one to decide on {it}?", "Must the {who} approve this amount?"]),
    }

    # ---- the scene -------------------------------------------------------------------------------------------------------

    def scene(self, draw):
        domain = draw.choice(DOMAINS)
        facts = [condition.fact(draw) for condition in domain.conditions]
        keys = [draw.choice(condition.names) for condition in domain.conditions]
        name, _, least, most = domain.amount
        scene = Scene(Case(domain, facts, keys, draw.integer(least, most)))
        policy = self.policy(draw, scene) if draw.chance(0.65) else None
        needed = {index for index, _, _ in scene.rule.conditions} if scene.rule else set()
        scene.shown = {index for index in range(len(facts)) if not scene.rule or index in needed or draw.chance(0.8)}
        told = {keys[index]: facts[index] for index in sorted(scene.shown)}
        if scene.missing is not None:
            told[keys[scene.missing]] = draw.choice([None, None, "unknown", "missing"])
        told[draw.choice(name.split())] = scene.case.amount
        scene.state = self.dress(draw, scene, told, policy)
        return scene

    @staticmethod
    def policy(draw, scene):
        """Draws the scene's rule, with a limit for managers, tiers of approvers or a word on missing values -> its text."""
        case = scene.case
        if draw.chance(0.15):
            scene.rule = draw_rule(draw, case, complete=True)
            scene.missing = draw.choice(scene.rule.conditions)[0]
            return f"{scene.rule.text} {draw.choice(MISSING)}"
        scene.rule = draw_rule(draw, case)
        if draw.chance(0.55):
            scene.manager_above = amount_limit(draw, case.amount, draw.chance(0.5))
        elif draw.chance(0.6):
            scene.tiers = draw_tiers(draw, case.amount)
            return f"{scene.rule.text} {tiers_text(draw, scene.tiers, case.domain.amount[1])}"
        return f"{scene.rule.text} {manager_text(draw, case.domain, scene.manager_above)}" if scene.manager_above else scene.rule.text

    @staticmethod
    def dress(draw, scene, told, policy):
        """The state: a case, flat or nested or as text, with the policy if there is one."""
        if draw.chance(0.5):
            told[draw.choice(["name", "applicant", "customer", "from"])] = person(draw)
        if draw.chance(0.4):
            told[draw.choice(["id", "number", "ref"])] = draw.choice(["R", "C", "A", "X", ""]) + str(draw.integer(1000, 99999))
        if draw.chance(0.3):
            told["type"] = scene.case.domain.thing
        rule_key = draw.choice(["policy", "rule", "rules", "terms", "conditions", "guideline"])
        if draw.chance(0.2):
            text = "; ".join(f"{key.replace('_', ' ')}: {plain(told[key])}" for key in draw.sample(told, len(told)))
            return f"{text}." if not policy else draw.choice([f"{policy} Case: {text}.", f"{text}. {capital(rule_key)}: {policy}"])
        if not policy:
            return told if draw.chance(0.7) else {draw.choice(["case", "request", "application"]): told}
        if draw.chance(0.4):
            return told | {rule_key: policy}
        return {draw.choice(["case", "request", "application", "record"]): told, rule_key: policy}

    def told(self, draw, scene):
        if not scene.rule or scene.missing is not None:
            return facts_of(draw, scene.state)
        met = ", ".join(f"{clause}: {'yes' if met else 'no'}" for _, clause, met in scene.rule.conditions)
        decides = self.tiered(draw, scene)[1] if scene.tiers else None
        return f"{met}. {'met' if scene.rule.met else 'not met'}" + (f". {scene.case.amount}: {decides}" if decides else "")

    # ---- the questions ---------------------------------------------------------------------------------------------------

    def slots(self, draw, scene, rule_text):
        """Slots that name the case, and the rule where the state does not have it."""
        it = draw.choice([f"the {scene.case.domain.thing}"] * 3 + ["the request", "this case", f"this {scene.case.domain.thing}"])
        slots = {"it": it, "It": capital(it), "lead": "", "tail": ""}
        if not scene.rule and rule_text:
            if draw.chance(0.65):
                slots["lead"] = draw.choice(["", "Rule: ", "Policy: ", "The rule: "]) + rule_text
            else:
                slots["tail"] = draw.choice(["Rule: ", "Policy: ", "The rule: "]) + rule_text
        return slots

    @staticmethod
    def rule_for(draw, scene):
        return scene.rule or draw_rule(draw, scene.case)

    def allowed(self, draw, scene):
        return self.verdict(draw, scene, True)

    def refused(self, draw, scene):
        return self.verdict(draw, scene, False)

    def verdict(self, draw, scene, positive):
        rule = self.rule_for(draw, scene)
        if scene.missing is not None or (rule.met and scene.manager_above is not None and scene.case.amount > scene.manager_above):
            return None
        return Noul(rule.met == positive, self.slots(draw, scene, rule.text))

    def met(self, draw, scene):
        if scene.missing is not None:
            return None
        of_the_rule = scene.rule and draw.chance(0.5)
        conditions = scene.rule.conditions if of_the_rule else fit(draw, scene.case, [draw.chance(0.5)])
        if not conditions:
            return None
        index, clause, met = draw.choice(conditions)
        if index not in scene.shown:
            return None
        return Noul(met, self.slots(draw, scene, "") | {"clause": clause, "Clause": capital(clause)})

    def failing(self, draw, scene):
        rule = self.rule_for(draw, scene)
        failing = [index for index, _, met in rule.conditions if not met]
        if rule.joined == "or" or len(failing) > 1 or scene.missing is not None or (not failing and draw.chance(0.6)):
            return None
        listed = [(index, clause) for index, clause, _ in rule.conditions]
        others = fit(draw, scene.case, [True, True]) or []
        listed += [(index, clause) for index, clause, _ in others if index not in dict(listed) and draw.chance(0.5)]
        names = {index: scene.case.keys[index].replace("_", " ") for index, _ in listed}
        texts = {index: f"{capital(clause)}." for index, clause in listed}
        answer = failing[0] if failing else "none"
        if not failing or len(listed) == 1 or draw.chance(0.6):
            names["none"], texts["none"] = "none", draw.describe(NONE_FAILS, "none")
        if draw.chance(0.3):
            names = dict(zip(draw.sample(names, len(names)), "ABCDEFG"))
        elif draw.role != "options" and draw.chance(0.5):
            texts = dict.fromkeys(names)
        options, answer = {names[index]: texts[index] for index in names}, names[answer]
        return Choice(answer, options, self.slots(draw, scene, rule.text))

    def decision(self, draw, scene):
        rule = self.rule_for(draw, scene)
        over = scene.manager_above is not None and scene.case.amount > scene.manager_above
        answer = "ask" if scene.missing is not None else "reject" if not rule.met else "manager" if over else "approve"
        decisions = {answer, "approve", "reject"} | {name for name in DECISIONS.categories if draw.chance(0.3)}
        labels, options = labelled(draw, DECISIONS, sorted(decisions))
        return Choice(labels[answer], options, self.slots(draw, scene, rule.text))

    def manager(self, draw, scene):
        if scene.manager_above is None or not scene.rule.met:
            return None
        return Noul(scene.case.amount > scene.manager_above, self.slots(draw, scene, ""))

    def tiered(self, draw, scene):
        """-> (tiers, who decides, their text), of the scene's policy or of the question's."""
        tiers, text = scene.tiers, ""
        if not scene.rule:
            tiers = draw_tiers(draw, scene.case.amount)
            text = tiers_text(draw, tiers, scene.case.domain.amount[1])
        who = next((who for limit, who in tiers if limit is None or scene.case.amount <= limit), None)
        return tiers, who, text

    def approver(self, draw, scene):
        tiers, answer, text = self.tiered(draw, scene)
        if not tiers:
            return None
        roles = [who for _, who in tiers]
        if draw.chance(0.3):
            roles += [who for who in draw.picks(TIERS, 2) if who not in roles]
        if draw.chance(0.25):
            labels = dict(zip(draw.sample(roles, len(roles)), "ABCDEFG"))
            return Choice(labels[answer], {labels[who]: capital(who) for who in roles}, self.slots(draw, scene, text))
        return Choice(answer, {who: None for who in roles}, self.slots(draw, scene, text))

    def may_decide(self, draw, scene):
        tiers, answer, text = self.tiered(draw, scene)
        if not tiers:
            return None
        right = draw.chance(0.5)
        who = answer if right else draw.choice([who for _, who in tiers if who != answer])
        return Noul(right, self.slots(draw, scene, text) | {"who": who})
