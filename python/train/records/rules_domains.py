"""The domains of the family `rules`: what is asked for, the facts of a case, and how a rule words a condition on each fact."""

from dataclasses import dataclass

from .core import Pool
from .pools import CITIES, COUNTRIES, listing, words

TIERS = Pool("rules.tiers", [
    "team lead", "manager", "director", "supervisor", "clerk", "head of sales", "head of finance", "store manager", "branch manager",
    "area manager", "shift leader", "board", "chief accountant", "owner", "president", "treasurer", "deputy director", "case worker",
    "senior clerk", "group leader", "vice president", "controller", "coordinator", "partner", "principal", "dean", "captain", "desk officer",
    "regional director", "general manager", "assistant manager", "chairwoman", "office manager", "project lead", "section head", "registrar",
    "auditor", "commissioner", "council", "committee"])


@dataclass
class Condition:
    """A fact of a case and the condition a rule may put on it: `clauses` say that it is met.

    sort: "most" or "least" (a number from `span`, compared with {n}), "flag" (met when the fact equals `good`), "in" or
    "not in" (a value of `values`, among a few in {list}).
    """
    sort: str
    names: list
    clauses: list
    span: tuple = ()
    good: bool = True
    values: object = None

    def fact(self, draw):
        if self.sort in ("most", "least"):
            return draw.integer(*self.span)
        return draw.chance(0.5) if self.sort == "flag" else self.value(draw)

    def value(self, draw):
        return draw.pick(self.values) if isinstance(self.values, Pool) else draw.choice(self.values)

    def can_be(self, fact, met):
        """Whether a rule can be worded so that this fact meets it (met) or not."""
        return self.sort != "flag" or (fact == self.good) == met

    def fitted(self, draw, fact, met):
        """{slot: value} for a clause that the fact meets, or does not; None when there is none."""
        if self.sort in ("most", "least"):
            limit = self.limit(draw, fact, above=(self.sort == "most") == met, met=met)
            return None if limit is None else {"n": limit}
        if self.sort == "flag":
            return {}
        others = []
        for _ in range(draw.choice([1, 2, 2, 3])):
            other = self.value(draw)
            if other != fact and other not in others:
                others.append(other)
        inside = (self.sort == "in") == met
        chosen = (others[1:] if inside else others) + ([fact] if inside else [])
        if not chosen:
            return None
        draw.random.shuffle(chosen)
        return {"list": listing(chosen, "or")}

    def limit(self, draw, fact, above, met):
        """A limit above (or below) the fact, now and then equal to it when that meets the condition; round if it can be."""
        if met and fact and draw.chance(0.03):
            return fact
        least = max(1, fact // 5)          # apart from equal ones, limits lie a fifth away or more
        limit = fact + (1 if above else -1) * draw.random.randint(least, max(least, int(fact * draw.choice([0.3, 0.6, 1.0, 1.5]))))
        low, high = self.span
        low = max(low, 1) if self.sort == "least" else low                # nothing is less than "at least 0"
        limit = min(max(limit, low), high)
        for unit in (100, 10, 5):
            near = round(limit / unit) * unit
            if draw.chance(0.5) and low <= near <= high and near != fact and (near > fact) == above:
                return near
        return limit if (limit > fact) == above and limit != fact else None

    def clause(self, draw, slots):
        return draw.choice(self.clauses).format_map(slots)


def most(names, low, high, *clauses):
    return Condition("most", words(names), clauses, span=(low, high))


def least(names, low, high, *clauses):
    return Condition("least", words(names), clauses, span=(low, high))


def yes(names, *clauses):
    return Condition("flag", words(names), clauses)


def no(names, *clauses):
    return Condition("flag", words(names), clauses, good=False)


def among(names, values, *clauses):
    return Condition("in", words(names), clauses, values=values)


def outside(names, values, *clauses):
    return Condition("not in", words(names), clauses, values=values)


@dataclass
class Domain:
    """What is asked for, the amount that decides who approves (name, unit, least, most), and the conditions."""
    thing: str
    amount: tuple
    conditions: list


DOMAINS = [
    Domain("refund", ("refund_amount amount", "euros", 5, 900), [
        most("days_since_purchase days_after_purchase", 1, 120, "the purchase was at most {n} days ago",
             "no more than {n} days have passed since the purchase",
             "the purchase is not older than {n} days"),
        no("used item_used", "the item is unused", "the item has not been used", "the item was not used"),
        yes("receipt has_receipt", "there is a receipt", "the customer has the receipt", "the receipt is there"),
        among("category item_type", ["clothing", "shoes", "books", "toys", "furniture", "electronics",
              "food"], "the item is in the category {list}", "the item type is {list}"),
        outside("country customer_country", COUNTRIES, "the customer is not from {list}", "the customer does not live in {list}")]),
    Domain("loan", ("loan_amount amount", "dollars", 500, 40000), [
        least("credit_score score", 300, 850, "the credit score is at least {n}", "the credit score is {n} or more",
              "the applicant has a score of {n} or higher"),
        least("income monthly_income", 900, 9000, "the income is at least {n}", "the applicant earns {n} or more",
              "the monthly income is not below {n}"),
        least("age applicant_age", 17, 80, "the applicant is at least {n} years old", "the applicant is {n} or older", "the age is {n} or more"),
        no("bankrupt bankruptcy", "there is no bankruptcy", "the applicant is not bankrupt", "the applicant has not gone bankrupt"),
        yes("employed has_job", "the applicant is employed", "the applicant has a job", "the applicant is in work"),
        among("country residence", COUNTRIES, "the applicant lives in {list}", "the country is {list}")]),
    Domain("shipment", ("value goods_value", "euros", 20, 8000), [
        most("weight_kg weight", 1, 80, "the weight is at most {n} kg", "it weighs no more than {n} kg", "the parcel is not heavier than {n} kg"),
        most("length_cm length", 10, 300, "the length is at most {n} cm", "it is no longer than {n} cm", "the parcel is {n} cm long or less"),
        among("destination country", COUNTRIES, "the destination is {list}", "it goes to {list}"),
        no("fragile is_fragile", "it is not fragile", "the goods are not fragile", "nothing in it is fragile"),
        yes("insured insurance", "it is insured", "there is an insurance", "the parcel is insured"),
        no("contains_battery battery", "it contains no battery", "there is no battery in it", "it does not contain a battery")]),
    Domain("leave request", ("days_requested leave_days", "days", 1, 60), [
        least("notice_days days_of_notice", 1, 60, "the notice is at least {n} days", "it was asked for at least {n} days before",
              "there are {n} or more days of notice"),
        least("days_left vacation_left", 0, 30, "at least {n} days are left", "the employee has {n} or more days left",
              "no fewer than {n} days of leave are left"),
        yes("replacement has_replacement", "there is a replacement", "someone replaces the employee", "a replacement has been found"),
        no("on_probation probation", "the employee is not on probation", "the probation is over", "the employee is past probation"),
        outside("month leave_month", words("January March May June July August October December"), "the month is not {list}",
                "the leave is not in {list}"),
        among("department team", ["sales", "finance", "legal", "support", "research", "design", "logistics"], "the employee works in {list}",
              "the department is {list}")]),
    Domain("access request", ("systems system_count", "systems", 1, 40), [
        least("clearance clearance_level", 1, 9, "the clearance is at least {n}", "the clearance level is {n} or higher",
              "the person has clearance {n} or more"),
        yes("training_done trained", "the training is done", "the person has done the training", "the person is trained"),
        no("external contractor", "the person is not external", "it is not someone external", "the person is not an external contractor"),
        among("role job_role", ["developer", "analyst", "auditor", "nurse", "doctor", "teacher", "guard", "editor"], "the role is {list}",
              "the person works as {list}"),
        yes("two_factor two_factor_on", "two factor is on", "the account uses two factor", "two factor login is used"),
        outside("location office", CITIES, "the location is not {list}", "the person does not work in {list}")]),
    Domain("library loan", ("books_requested items", "books", 1, 30), [
        most("overdue_books books_overdue", 0, 9, "at most {n} books are overdue", "no more than {n} books are overdue",
             "the member has {n} or fewer overdue books"),
        most("open_fees fees", 0, 60, "the open fees are at most {n}", "the member owes {n} or less in fees", "no more than {n} in fees is open"),
        yes("card_valid valid_card", "the card is valid", "the member has a valid card", "the library card is valid"),
        among("section shelf", ["history", "science", "poetry", "travel", "art", "music", "children",
              "law"], "the book is from the section {list}", "the section is {list}"),
        no("reference_only reference", "the book is not reference only", "it is not a reference book", "the book is no reference copy")]),
    Domain("parking permit", ("hours parking_hours", "hours", 1, 48), [
        yes("resident is_resident", "the driver is a resident", "the driver lives here as a resident", "the car belongs to a resident"),
        most("vehicle_height_cm height_cm", 120, 320, "the height is at most {n} cm", "the vehicle is no higher than {n} cm",
             "the vehicle is {n} cm high or less"),
        among("zone parking_zone", ["north", "south", "east", "west", "centre", "harbour", "station"], "the zone is {list}",
              "it is for the zone {list}"),
        yes("electric electric_car", "the car is electric", "it is an electric car", "the vehicle is electric"),
        most("open_fines fines", 0, 9, "there are at most {n} open fines", "no more than {n} fines are open", "the driver has {n} or fewer fines"),
        yes("disabled_badge badge", "the driver has a badge", "there is a disabled badge", "a badge is shown")]),
    Domain("insurance claim", ("claim_amount damage", "euros", 50, 20000), [
        most("days_until_report reported_after_days", 1, 90, "it was reported within {n} days", "the report came after {n} days or less",
             "it took at most {n} days to report it"),
        yes("premium_paid paid", "the premium is paid", "the premium has been paid", "the customer has paid the premium"),
        yes("police_report has_police_report", "there is a police report", "the police report is there", "a police report exists"),
        among("cause reason", ["fire", "theft", "storm", "flood", "hail", "accident", "vandalism"], "the cause is {list}",
              "it was caused by {list}"),
        no("driver_drunk alcohol", "no alcohol was involved", "the driver was not drunk", "there was no alcohol")]),
    Domain("return", ("price item_price", "dollars", 5, 700), [
        most("days_since_delivery days_after_delivery", 1, 90, "the delivery was at most {n} days ago",
             "no more than {n} days have passed since the delivery", "it comes within {n} days of delivery"),
        yes("original_box in_original_box", "it is in the original box", "the original box is there", "the item comes in the original box"),
        no("damaged is_damaged", "the item is not damaged", "there is no damage", "it comes back without damage"),
        no("on_sale sale_item", "it was not on sale", "the item is not a sale item", "the item was not bought on sale"),
        among("channel bought_at", ["web", "app", "shop", "phone", "market"], "it was bought through the {list}", "the channel is {list}")]),
    Domain("travel request", ("trip_cost cost", "euros", 80, 6000), [
        least("distance_km distance", 20, 3000, "the distance is at least {n} km", "the trip goes {n} km or more",
              "the trip is not shorter than {n} km"),
        among("destination city", CITIES, "the destination is {list}", "the trip goes to {list}"),
        most("nights hotel_nights", 1, 20, "it takes at most {n} nights", "there are no more than {n} nights", "the stay is {n} nights or less"),
        yes("client_visit visits_client", "it is a client visit", "a client is visited", "the trip is to visit a client"),
        among("transport travel_by", ["train", "bus", "plane", "car", "ferry"], "the transport is {list}", "the travel is by {list}")]),
    Domain("discount", ("order_total total", "euros", 10, 5000), [
        least("items item_count", 1, 60, "there are at least {n} items", "{n} or more items are ordered", "the order has no fewer than {n} items"),
        yes("member is_member", "the customer is a member", "the customer has a membership", "it is a member who orders"),
        among("plan customer_plan", ["free", "basic", "silver", "gold", "premium", "business"], "the plan is {list}",
              "the customer is on the plan {list}"),
        yes("first_order is_first_order", "it is the first order", "the customer orders for the first time", "this is a first order"),
        least("years_as_customer customer_years", 0, 20, "the customer has been here for at least {n} years",
              "the customer is with us for {n} years or more", "it is {n} or more years since the customer joined")]),
    Domain("car rental", ("rental_days days", "days", 1, 45), [
        least("driver_age age", 17, 80, "the driver is at least {n} years old", "the driver is {n} or older",
              "the age of the driver is not below {n}"),
        least("licence_years years_with_licence", 0, 30, "the licence is held for at least {n} years",
              "the driver has had a licence for {n} or more years", "the licence is {n} years old or older"),
        yes("credit_card has_credit_card", "there is a credit card", "the driver has a credit card", "a credit card is given"),
        among("licence_country country", COUNTRIES, "the licence is from {list}", "the licence country is {list}"),
        most("accidents past_accidents", 0, 8, "there were at most {n} accidents", "the driver has had {n} accidents or fewer",
             "there are no more than {n} accidents")]),
    Domain("scholarship", ("grant amount", "dollars", 300, 15000), [
        least("grade_points points", 20, 100, "the student has at least {n} points", "the points are {n} or more",
              "there are no fewer than {n} points"),
        most("family_income household_income", 8000, 90000, "the family income is at most {n}", "the family earns no more than {n}",
             "the household has {n} or less"),
        among("subject field_of_study", ["biology", "physics", "law", "medicine", "history", "music", "economics"], "the subject is {list}",
              "the student studies {list}"),
        yes("full_time studies_full_time", "the student is full time", "the study is full time", "it is full time study"),
        most("age student_age", 17, 50, "the student is at most {n} years old", "the student is {n} or younger", "the age is not above {n}")]),
    Domain("room booking", ("guests people", "people", 2, 90), [
        least("days_ahead booked_days_ahead", 0, 60, "it is booked at least {n} days ahead", "the booking comes {n} or more days ahead",
              "it comes no later than {n} days before"),
        most("hours duration_hours", 1, 14, "it takes at most {n} hours", "the booking is for {n} hours or less", "it is no longer than {n} hours"),
        yes("deposit_paid deposit", "the deposit is paid", "a deposit has been paid", "there is a deposit"),
        no("loud_music music", "there is no loud music", "no loud music is played", "it comes without loud music"),
        among("purpose event", ["meeting", "party", "wedding", "lecture", "concert", "training", "exhibition"], "the purpose is {list}",
              "the event is {list}"),
        among("floor level", ["ground", "first", "second", "third", "top"], "the floor is {list}", "it is on the {list} floor")]),
    Domain("software order", ("licences seats", "licences", 1, 200), [
        most("price_per_seat seat_price", 5, 400, "one seat costs at most {n}", "the price per seat is {n} or less", "a seat is not above {n}"),
        yes("security_check checked", "the security check is done", "it passed the security check", "security has checked it"),
        among("data_region region", COUNTRIES, "the data stays in {list}", "the region is {list}"),
        no("stores_personal_data personal_data", "it stores no personal data", "there is no personal data", "personal data is not stored"),
        outside("vendor supplier", ["Acme", "Globex", "Initech", "Umbra", "Norden", "Zenith", "Altura", "Pinnacle"], "the vendor is not {list}",
                "it does not come from {list}")]),
]
