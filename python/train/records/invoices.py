"""invoices: an invoice, order or receipt with line items; its total, its items' prices, what is on it, whether it is paid."""

from dataclasses import dataclass

from .core import Choice, Family, Meanings, Noul, labelled, clearly_apart
from .facts import facts_of
from .vocabulary import COMPANIES, PLACES, PRODUCTS, code, day, entity_options, mirrored, person, write_date

CURRENCIES = {"USD": "$", "EUR": "€", "GBP": "£", "CHF": None, "SEK": None, "JPY": "¥", "CAD": None, "AUD": None, "INR": None, "PLN": None}
DOCS = ["invoice", "invoice", "order", "receipt", "bill", "purchase"]
NAME_KEYS = ["name", "item", "description", "product", "article", "title"]
QUANTITY_KEYS = ["quantity", "qty", "count", "units", "pieces"]
UNIT_PRICE_KEYS = {"price": ["price"], "unit_price": ["unit price", "price"], "price_each": ["price"], "cost": ["cost", "price"]}
LINE_PRICE_KEYS = {"amount": ["amount", "price"], "line_total": ["line total", "amount"], "price": ["price"], "sum": ["amount", "price"]}
PAID_WORDS = {True: ["paid", "settled", "paid in full", "payment received"],
              False: ["unpaid", "open", "outstanding", "not paid", "awaiting payment", "not settled"]}

PAYMENT = Meanings("invoices.payment", {
    "paid": ["It has been paid.", "The money has been received.", "Payment received, nothing is left open.", "It is settled.",
             "Paid in full.", "The payment has been made.", "It is paid and settled.", "Settled: the money is there.",
             "Nothing is left to pay.", "The full payment has been received."],
    "unpaid": ["It has not been paid.", "The money is still to be received.", "Payment is still open.", "It is not settled.",
               "Not paid yet.", "The payment has not been made.", "It is unpaid and still open.", "Outstanding: the money is not there yet.",
               "There is still an outstanding amount to pay.", "The payment is still outstanding."]})


@dataclass
class Scene:
    state: object
    doc: str
    prices: dict                           # {item: price, as the record gives it}
    amounts: dict                          # {item: price times quantity, where the price is for one piece}
    price_words: list                      # what a question may call the price
    total: float
    subtotal: float
    currency: str
    paid: bool | None                      # None: the record does not tell

    def slots(self, draw, **others):
        return {"doc": self.doc, "price": draw.choice(self.price_words)} | others


def tidy(amount):
    """An amount without float noise, whole where it is whole."""
    amount = round(amount, 2)
    return int(amount) if amount == int(amount) else amount


LESS = {"above": "below", "over": "under", "more": "less", "higher": "lower", "greater": "smaller", "exceed": "fall below",
        "exceeds": "falls below", "limit": "minimum", "maximum": "minimum", "dearer": "cheaper"}
LEAST = {"most": "least", "highest": "lowest", "largest": "smallest", "greatest": "smallest", "dearest": "cheapest"}

TOTAL_ABOVE = [
    ["[Is|Was] the total [of the {doc}|] [above|over] {limit}?", "Is the {doc} total [more|higher|greater] than {limit}?",
     "Is the total [more|higher|greater] than {limit}?", "Is the total amount [above|over|more than] {limit}?",
     "Is the total of the {doc} [above|over|greater than] {limit}?"],
    ["Does the total [of the {doc}|] exceed {limit}?", "Does the {doc} come to more than {limit}?", "Does the total go [above|over] {limit}?",
     "Does the total amount lie [above|over] {limit}?", "Does the {doc} total come to more than {limit}?"],
    ["The total [of the {doc}|] [is|was] [above|over] {limit}.", "The {doc} comes to more than {limit}.", "The total exceeds {limit}.",
     "The {doc} total is [more|higher|greater] than {limit}.", "The record shows a total [above|over|greater than] {limit}."],
    ["The [limit|maximum] for the total is {limit}. [Is|Was] it [over|above] that?",
     "With a [limit|maximum] of {limit}, is the total over the limit?",
     "Is the {doc} over the limit of {limit}?", "Does the total exceed the [limit|maximum] of {limit}?",
     "Our limit is {limit}. Is the total of the {doc} above it?"],
    ["[Check|Say|Decide] whether the total is [above|over] {limit}.", "[Check|Say|Decide] whether the {doc} comes to more than {limit}.",
     "[Check|Say|Decide] if the total exceeds {limit}.", "[Check|Decide] if the {doc} total is [higher|greater|more] than {limit}.",
     "[Check|Decide]: is the total [over|above|more than] {limit}?"],
]
PRICE_ABOVE = [
    ["Is the {price} of [the|] {item} [above|over] {limit}?", "Is the {price} of [the|] {item} [more|higher|greater] than {limit}?",
     "Is [the|] {item} [dearer|more expensive] than {limit}?", "Is the {price} for [the|] {item} [over|above|more than] {limit}?",
     "Is [the|] {item} priced [above|over] {limit}?"],
    ["Does [the|] {item} cost more than {limit}?", "Does the {price} of [the|] {item} exceed {limit}?", "Does [the|] {item} cost over {limit}?",
     "Does the {price} of [the|] {item} lie [above|over] {limit}?", "Does the {price} for [the|] {item} come to more than {limit}?"],
    ["[The|] {item} costs more than {limit}.", "The {price} of [the|] {item} is [above|over] {limit}.",
     "The {price} of [the|] {item} exceeds {limit}.", "The {price} of [the|] {item} is [more|higher|greater] than {limit}.",
     "[The|] {item} is priced [above|over] {limit}."],
    ["With a [limit|maximum] of {limit}, is the {price} of [the|] {item} over the limit?",
     "The [limit|maximum] per item is {limit}. Is [the|] {item} above it?",
     "Is the {price} of [the|] {item} over the [limit|maximum] of {limit}?", "Does [the|] {item} exceed the [limit|maximum] of {limit}?",
     "Take [the|] {item}: does it cost more than {limit}?"],
    ["[Check|Say|Decide] whether [the|] {item} costs more than {limit}.",
     "[Check|Say] whether the {price} of [the|] {item} is [above|over] {limit}.",
     "[Check|Decide] if the {price} of [the|] {item} exceeds {limit}.", "[Check|Say] if [the|] {item} is priced [above|over|higher than] {limit}.",
     "[Check|Decide]: is the {price} of [the|] {item} [more|greater|higher] than {limit}?"],
]
DEAREST = [
    ["Which [item|line item|product] costs [the|] most?", "Which item has the highest {price}?", "Which [item|line] is the most expensive?",
     "Which of these is the [most expensive|dearest]?", "Which [product|item] on the {doc} has the [highest|greatest|largest] {price}?"],
    ["What is the most expensive [item|product|line]?", "What costs [the|] most on this {doc}?", "What has the [highest|largest] {price}?",
     "What is the dearest item on the {doc}?", "What is the item with the highest {price}?"],
    ["[Pick|Choose|Select] the item with the [highest|largest|greatest] {price}.", "[Pick|Choose|Select] the most expensive [item|product].",
     "[Pick|Choose|Select] the item that costs [the|] most.", "[Pick|Choose|Select] the dearest [item|product|line].",
     "[Pick|Choose] whichever item is most expensive."],
    ["[Name|Find] the most expensive [item|product|line].", "[Name|Find] the item whose {price} is [highest|greatest].",
     "[Name|Find] the item that costs [the|] most.", "[Name|Find] the dearest [item|product] on the {doc}.",
     "[Name|Find] the line with the [largest|highest] {price}."],
    ["Of all [items|products|lines], which costs [the|] most?", "Looking at the {price} of each item, which is [highest|greatest|largest]?",
     "Compare the items: which is the most expensive?", "Of these items, which one is [dearest|the most expensive]?",
     "Compare the items by {price}. Which has the highest?"],
]
CONTAINS = [
    ["Is [the|] {item} on the {doc}?", "Is [the|] {item} [among the items|one of the items]?", "Is [the|] {item} listed on the {doc}?",
     "Is there a line for [the|] {item}?", "Is [the|] {item} part of this {doc}?"],
    ["Does the {doc} [contain|include|list] [the|] {item}?", "Does [the|] {item} appear on the {doc}?",
     "Does the list of items include [the|] {item}?", "Does the {doc} have a line for [the|] {item}?", "Do the items include [the|] {item}?"],
    ["The {doc} [contains|includes|lists] [the|] {item}.", "[The|] {item} is on the {doc}.", "[The|] {item} is [one of|among] the items.",
     "[The|] {item} is listed on this {doc}.", "There is a line for [the|] {item}."],
    ["Looking for [the|] {item}: is it on the {doc}?", "Someone asks for [the|] {item}. Is it among the items?",
     "Take [the|] {item}: does the {doc} include it?", "Look for [the|] {item}. Is it listed?",
     "Concerning [the|] {item}: is it one of the items?"],
    ["[Check|Say|Decide] whether [the|] {item} is on the {doc}.", "[Check|Decide] whether the {doc} [contains|includes|lists] [the|] {item}.",
     "[Check|Say] if [the|] {item} is [among|one of] the items.", "[Check|Decide] if there is a line for [the|] {item}.",
     "[Check|Decide]: does [the|] {item} appear on the {doc}?"],
]


class Invoices(Family):
    name = "invoices"
    harder = ("dearest", "cheapest")
    alike = (("total_above", "total_below"), ("price_above", "price_below"), ("dearest", "cheapest"), ("paid", "unpaid"))
    templates = {
        "total_above": TOTAL_ABOVE,
        "total_below": mirrored(TOTAL_ABOVE, LESS),
        "price_above": PRICE_ABOVE,
        "price_below": mirrored(PRICE_ABOVE, LESS),
        "dearest": DEAREST,
        "cheapest": mirrored(DEAREST, LEAST),
        "contains": CONTAINS,
        "paid": [
            ["Is the {doc} [paid|settled]?", "Is this {doc} already paid?", "Is the {doc} [paid|settled] in full?", "Is the payment [received|made]?",
             "Is it [paid|settled] already?"],
            ["Has the {doc} been [paid|settled]?", "Has the payment been [made|received]?", "Has it been paid [in full|already|]?",
             "Has the {doc} already been [settled|paid]?", "Has the money been [paid|received]?"],
            ["The {doc} [has been|is] [paid|settled].", "It [is|has been] paid.", "The payment [has been|was] [made|received].",
             "This {doc} is already [paid|settled].", "The money has been [received|paid]."],
            ["[Check|Say|Decide] whether the {doc} is [paid|settled].", "[Check|Say] whether it has been paid.",
             "[Check|Decide] if the payment has been [received|made].", "[Check|Decide] if the {doc} has been [settled|paid].",
             "[Check|Decide]: is it [paid|settled]?"],
            ["Going by the record, is the {doc} [paid|settled]?", "According to this, has the {doc} been paid?",
             "Looking at the record, is it [settled|paid]?", "By its status, has the payment been [received|made]?",
             "As it stands, is this {doc} paid?"],
        ],
        "unpaid": [
            ["Is the {doc} [unpaid|outstanding]?", "Is this {doc} still [open|unpaid|outstanding]?", "Is the payment still [outstanding|open]?",
             "Is the {doc} not yet [paid|settled]?", "Is it still [unpaid|to be paid]?"],
            ["Does the {doc} still have to be paid?", "Does the payment remain [open|outstanding]?",
             "Does this {doc} remain [unpaid|open|outstanding]?", "Does it still have to be [paid|settled]?",
             "Does the money still have to be paid?"],
            ["The {doc} is [unpaid|outstanding|not paid].", "It [is|remains] [unpaid|open].", "The payment is still [outstanding|open].",
             "This {doc} still has to be [paid|settled].", "The {doc} has not been [paid|settled]."],
            ["[Check|Say|Decide] whether the {doc} is [unpaid|outstanding].", "[Check|Say] whether it still has to be paid.",
             "[Check|Decide] if the payment is still [open|outstanding].", "[Check|Decide] if the {doc} is not yet [settled|paid].",
             "[Check|Decide]: is it still [unpaid|open]?"],
            ["Going by the record, is the {doc} [unpaid|outstanding]?", "According to this, does the {doc} still have to be paid?",
             "Looking at the record, is it still [open|unpaid]?", "By its status, is the payment still [outstanding|open]?",
             "As it stands, is this {doc} not yet paid?"],
        ],
        "payment": [
            ["What is the payment status [of the {doc}|]?", "What is the status of the payment?", "What does the {doc} say about payment?",
             "What is the {doc}'s payment status?", "What is true of the payment [of this {doc}|]?"],
            ["Which payment status [fits|applies]?", "Which of these [fits|describes] the payment?", "Which status does the payment have?",
             "Which payment status does the {doc} have?", "Which of these applies to the payment of the {doc}?"],
            ["[Pick|Choose|Select] the payment status [of the {doc}|].", "[Pick|Choose|Select] what applies to the payment.",
             "[Pick|Choose|Select] the status of the payment.", "[Pick|Choose|Select] what fits the payment of the {doc}.",
             "[Pick|Choose] the payment status that fits."],
            ["How does the payment [of the {doc}|] stand?", "How does it stand with the payment?", "Where does the payment of the {doc} stand?",
             "How do things stand with the payment?", "Where do things stand with the payment of the {doc}?"],
            ["Looking at the {doc}, what is the payment status?", "Going by the record, which payment status applies?",
             "According to this {doc}, how does the payment stand?", "By the record, which of these fits the payment?",
             "As it stands, what is the status of the payment?"],
        ],
    }

    def scene(self, draw):
        names = draw.picks(PRODUCTS, draw.choice([2, 3, 3, 4, 4, 5, 6]))
        per_piece = draw.chance(0.6)
        keys = UNIT_PRICE_KEYS if per_piece else LINE_PRICE_KEYS
        price_key = draw.choice(list(keys))
        quantities = {name: draw.choice([1, 1, 1, 2, 3, 4, 6, 10]) for name in names} if draw.chance(0.65) else dict.fromkeys(names, 1)
        prices = self.prices(draw, names)
        amounts = {name: tidy(prices[name] * (quantities[name] if per_piece else 1)) for name in names}
        subtotal = tidy(sum(amounts.values()))
        extras = self.extras(draw, subtotal)
        scene = Scene(None, draw.choice(DOCS), prices, amounts, keys[price_key], tidy(subtotal + sum(extras.values())), subtotal,
                      draw.choice(list(CURRENCIES)), None if draw.chance(0.1) else draw.chance(0.5))
        if draw.chance(0.15):
            scene.price_words = ["price"]
            scene.state = self.text(draw, scene, quantities)
        else:
            scene.state = self.document(draw, scene, quantities, price_key, extras)
        return scene

    @staticmethod
    def prices(draw, names):
        low, high = draw.choice([(2, 40), (10, 300), (50, 900), (100, 3000)])
        while True:
            whole = draw.chance(0.5)
            prices = {name: tidy(draw.integer(low, high) if whole else draw.money(low, high)) for name in names}
            if clearly_apart(prices.values()):
                return prices

    @staticmethod
    def extras(draw, subtotal):
        extras = {}
        if draw.chance(0.35):
            extras[draw.choice(["tax", "vat", "sales_tax"])] = tidy(subtotal * draw.choice([0.05, 0.08, 0.1, 0.19, 0.2]))
        if draw.chance(0.25):
            extras[draw.choice(["shipping", "delivery", "freight"])] = draw.choice([4.9, 5, 9.5, 12, 15, 25])
        return extras

    def document(self, draw, scene, quantities, price_key, extras):
        """The state as JSON."""
        total = {draw.choice(["total", "total", "grand_total", "total_amount", "total_to_pay"]): scene.total}
        sums = extras | ({draw.choice(["subtotal", "net", "before_extras"]): scene.subtotal} if extras else {}) | total
        currency = CURRENCIES[scene.currency] if CURRENCIES[scene.currency] and draw.chance(0.2) else scene.currency
        sums[draw.choice(["currency", "currency", "cur"])] = currency
        items = self.items(draw, scene, quantities, price_key)
        document = {draw.choice(["items", "items", "lines", "line_items", "positions", "products"]): items}
        document |= {draw.choice(["totals", "sums", "amounts"]): sums} if draw.chance(0.2) else sums
        document |= self.payment_fields(draw, scene)
        for key, value in (("vendor|seller|supplier|shop|from", draw.pick(COMPANIES)), ("customer|buyer|billed_to|to", person(draw)),
                           ("id|number|no|reference", code(draw)), ("due|due_date|pay_by", write_date(day(draw))),
                           ("date|issued|created", write_date(day(draw))), ("city|ship_to", draw.pick(PLACES))):
            if draw.chance(0.4):
                document[draw.choice(key.split("|"))] = value
        if draw.chance(0.25):
            return {scene.doc: document}
        return document | ({draw.choice(["type", "document", "kind"]): scene.doc} if draw.chance(0.4) else {})

    @staticmethod
    def items(draw, scene, quantities, price_key):
        style = draw.choice(["objects"] * 7 + ["map", "strings", "strings"])
        if style == "map":
            return dict(scene.prices)
        if style == "strings":
            pattern = draw.choice(["{n} x {name}: {price}", "{name}, {n} pcs, {price}", "{name} ({n}): {price}", "{name} - {price}"])
            return [pattern.format(n=quantities[name], name=name, price=price) for name, price in scene.prices.items()]
        name_key, quantity_key = draw.choice(NAME_KEYS), draw.choice(QUANTITY_KEYS)
        counted, coded = max(quantities.values()) > 1 or draw.chance(0.3), draw.chance(0.15)
        items = []
        for name, price in scene.prices.items():
            item = {name_key: name, price_key: price}
            if counted:
                item[quantity_key] = quantities[name]
            if coded:
                item["sku"] = code(draw)
            items.append(item)
        return items

    @staticmethod
    def payment_fields(draw, scene):
        if scene.paid is None:
            return {}
        word = draw.choice(PAID_WORDS[scene.paid])
        match draw.choice(["status", "status", "flag", "nested", "date", "balance"]):
            case "flag":
                return {draw.choice(["paid", "is_paid", "settled"]): scene.paid}
            case "nested":
                return {"payment": {"status": word, "method": draw.choice(["card", "bank transfer", "cash", "check", "wallet"])}}
            case "date":
                return {draw.choice(["paid_on", "paid_at", "payment_date"]): write_date(day(draw)) if scene.paid else None}
            case "balance":
                return {draw.choice(["still_to_pay", "open_amount", "outstanding"]): 0 if scene.paid else scene.total}
        return {draw.choice(["status", "payment_status", "payment", "state"]): word}

    @staticmethod
    def text(draw, scene, quantities):
        """The state as a short text."""
        money = draw.choice(["{} " + scene.currency, "{} " + scene.currency, "{}"])
        line = draw.choice(["{n} x {name} at {price}", "{name} ({n}) {price}", "{n} {name}, {price} each", "{name}: {price}"])
        if any(scene.prices[name] != amount for name, amount in scene.amounts.items()):
            line = draw.choice(["{n} x {name} at {price} each", "{n} x {name}, unit price {price}"])
        elif max(quantities.values()) > 1:
            line = draw.choice(["{n} x {name}, together {price}", "{name} ({n}), {price} in all"])
        lines = draw.choice(["; ", "\n", ". "]).join(
            line.format(n=quantities[name], name=name, price=money.format(price)) for name, price in scene.prices.items())
        head = draw.choice(["{doc} {id} from {vendor}.", "{doc} {id}, {vendor}.", "{doc} by {vendor}, number {id}.", "{vendor}: {doc} {id}."])
        head = head.format(doc=scene.doc, id=code(draw), vendor=draw.pick(COMPANIES))
        total = draw.choice(["Total: {}.", "The total is {}.", "Total to pay: {}.", "In total {}."]).format(money.format(scene.total))
        status = "" if scene.paid is None else draw.choice(PAID_WORDS[scene.paid])
        status = draw.choice(["Status: {}.", "Payment status: {}.", "Status of payment: {}."]).format(status) if status else ""
        return " ".join(filter(None, [head[0].upper() + head[1:], lines + ".", total, status]))

    def told(self, draw, scene):
        paid = {} if scene.paid is None else {"paid": scene.paid}
        return facts_of(draw, {"total": scene.total} | paid | {"items": [{"name": name, "price": price} for name, price in scene.prices.items()]})

    # ---- questions ---------------------------------------------------------------------------------------------------

    def total_above(self, draw, scene):
        return self.total_limit(draw, scene, above=True)

    def total_below(self, draw, scene):
        return self.total_limit(draw, scene, above=False)

    def total_limit(self, draw, scene, above):
        limit = draw.limit_near(scene.total)
        return Noul((scene.total > limit) == above, scene.slots(draw, limit=self.amount(draw, scene, limit)))

    @staticmethod
    def amount(draw, scene, number):
        symbol = CURRENCIES[scene.currency]
        styles = ["{} " + scene.currency] * 3 + [scene.currency + " {}", "{}"] + ([symbol + "{}"] if symbol else [])
        return draw.choice(styles).format(number)

    def dearest(self, draw, scene):
        return self.extreme(draw, scene, max)

    def cheapest(self, draw, scene):
        return self.extreme(draw, scene, min)

    def extreme(self, draw, scene, pick):
        """None where the piece and the line with the extreme price are different items, or two lines share it."""
        answer = pick(scene.prices, key=scene.prices.get)
        extreme = scene.amounts[answer]
        if pick(scene.amounts.values()) != extreme or list(scene.amounts.values()).count(extreme) > 1:
            return None
        return Choice(*entity_options(draw, scene.prices, answer), scene.slots(draw))

    def contains(self, draw, scene):
        names = list(scene.prices)
        if draw.chance(0.5):
            return Noul(True, scene.slots(draw, item=draw.choice(names)))
        items = PRODUCTS.held_out if draw.role == "values" else PRODUCTS.known
        others = [item for item in items if item not in names]
        heads = {name.split()[-1] for name in names}
        similar = [item for item in others if item.split()[-1] in heads]
        return Noul(False, scene.slots(draw, item=draw.choice(similar if similar and draw.chance(0.5) else others)))

    def price_above(self, draw, scene):
        return self.price_limit(draw, scene, above=True)

    def price_below(self, draw, scene):
        return self.price_limit(draw, scene, above=False)

    def price_limit(self, draw, scene, above):
        name, price = draw.choice(list(scene.prices.items()))
        limit = draw.limit_near(price)
        return Noul((price > limit) == above, scene.slots(draw, item=name, limit=self.amount(draw, scene, limit)))

    def paid(self, draw, scene):
        return None if scene.paid is None else Noul(scene.paid, scene.slots(draw))

    def unpaid(self, draw, scene):
        return None if scene.paid is None else Noul(not scene.paid, scene.slots(draw))

    def payment(self, draw, scene):
        if scene.paid is None:
            return None
        labels, options = labelled(draw, PAYMENT, ["paid", "unpaid"])
        return Choice(labels["paid" if scene.paid else "unpaid"], options, scene.slots(draw))
