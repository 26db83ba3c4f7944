"""Value pools and small helpers that several families share: people, places, companies, products, dates, limits, options."""

import datetime
import re

from .core import Pool, number_is_held_out


def words(text):
    return [word.strip() for word in text.split(",")]


def compounds(text):
    """"oak|steel desk, floor|reading lamp" -> ["oak desk", "steel desk", "floor lamp", "reading lamp"]"""
    return [f"{first} {rest}" for group in words(text) for first in group.split(" ", 1)[0].split("|")
            for rest in [group.split(" ", 1)[1]]]


def mirrored(templates, opposites):
    """The templates with words replaced by their opposites; slots stay."""
    return [[re.sub(r"\{\w+\}|\w+", lambda match: opposites.get(match[0], match[0]), wording) for wording in template]
            for template in templates]


FIRST_NAMES = Pool("first names", words(
    "Ada, Ahmed, Aiko, Alice, Amara, Anders, Anna, Arjun, Astrid, Ben, Bianca, Boris, Carla, Carlos, Chen, Chloe, Dana, David, Deniz, Diego,"
    "Elena, Elif, Emma, Erik, Fatima, Felix, Fiona, Gabriel, Grace, Hana, Hugo, Ines, Ivan, Jana, Jonas, Julia, Kamal, Karin, Kofi, Lara,"
    "Lena, Leo, Lina, Luca, Maja, Marco, Maria, Mei, Milan, Mona, Nadia, Nils, Nina, Noah, Olga, Omar, Oscar, Paula, Pedro, Petra,"
    "Priya, Rania, Ravi, Rosa, Ruth, Samir, Sara, Sofia, Stefan, Tara, Theo, Tomas, Uma, Vera, Victor, Wei, Yara, Yusuf, Zara, Zoe"))
LAST_NAMES = Pool("last names", words(
    "Abe, Adeyemi, Almeida, Baker, Banerjee, Becker, Berg, Bianchi, Brown, Castro, Chang, Cohen, Costa, Cruz, Dahl, Diaz, Dubois, Evans,"
    "Fischer, Foster, Garcia, Gomez, Gupta, Haas, Hansen, Hoffman, Ibrahim, Ito, Jensen, Johnson, Kaya, Keller, Khan, Kim, Kowalski, Lang,"
    "Larsen, Lee, Lopez, Martin, Mbeki, Mendes, Meyer, Miller, Moreau, Mori, Murphy, Nagy, Novak, Okafor, Olsen, Osman, Park, Patel, Petrov,"
    "Popescu, Quinn, Rossi, Sato, Schmidt, Silva, Singh, Smith, Suzuki, Tanaka, Torres, Vogel, Walker, Weber, White, Wong, Yilmaz, Young"))
PLACES = Pool("places", words(
    "Accra, Adelaide, Amsterdam, Ankara, Antwerp, Athens, Austin, Basel, Berlin, Bilbao, Bogota, Boston, Bristol, Brussels, Bucharest, Cairo,"
    "Calgary, Cape Town, Chicago, Cologne, Dakar, Dallas, Delhi, Denver, Dublin, Geneva, Ghent, Glasgow, Hamburg, Hanoi, Helsinki, Istanbul,"
    "Jakarta, Kyoto, Lagos, Leeds, Lima, Lisbon, Lyon, Madrid, Malmo, Manila, Marseille, Miami, Milan, Montreal, Mumbai, Munich, Nairobi,"
    "Naples, Nice, Osaka, Oslo, Ottawa, Perth, Porto, Prague, Quito, Riga, Rome, Rotterdam, Santiago, Seoul, Seville, Sofia, Sydney, Tallinn,"
    "Tokyo, Toronto, Tunis, Turin, Utrecht, Valencia, Vienna, Vilnius, Warsaw, Zagreb, Zurich"))
COMPANIES = Pool("companies", [f"{name} {form}" for name, form in zip(words(
    "Alder, Amber, Apex, Arbor, Atlas, Aurora, Beacon, Birch, Blue Harbor, Bright, Cascade, Cedar, Citrus, Clover, Cobalt, Copper, Coral,"
    "Crest, Delta, Drift, Eagle, Ember, Falcon, Fern, Flint, Forge, Garnet, Glacier, Granite, Green Valley, Halo, Harvest, Hazel, Horizon,"
    "Indigo, Iron, Ivory, Jade, Juniper, Kestrel, Lark, Linden, Lotus, Lunar, Maple, Meridian, Mosaic, Nimbus, North Star, Nova, Oakwood,"
    "Onyx, Orbit, Osprey, Pearl, Pine, Pioneer, Prairie, Quartz, Quill, Raven, Redstone, River, Saffron, Sage, Silver, Summit, Terra, Tidal,"
    "Topaz, Umber, Valley, Vertex, Willow, Zenith"), words("Ltd, GmbH, Inc, Supplies, Trading, Works, Group, Store, & Sons, Tools, Media") * 7)])
PRODUCTS = Pool("products", compounds(
    "oak|steel|standing desk, office|garden|folding chair, floor|reading|ceiling lamp, wall|alarm clock, coffee|dining table, water|steam pump,"
    "laser|label|photo printer, gas|electric heater, leather|canvas bag, travel|camera|laptop case, rain|winter jacket, running|hiking boot,"
    "cotton|linen shirt, wool|silk scarf, baseball cap, phone|tablet holder, usb|network|power cable, wireless|gaming mouse, mechanical keyboard,"
    "noise meter, garden|fire hose, pressure washer, tool|lunch|storage box, hand|chain saw, claw hammer, torque wrench, cordless drill,"
    "safety|ski|swim mask, bike|motor helmet, work|kitchen apron, yoga|door mat, bath|beach towel, bed sheet, feather pillow, picnic blanket,"
    "tea|milk pot, frying|baking pan, soup|salad bowl, bread|pocket knife, wine|shot glass, paper|plastic cup, water|thermos bottle, ink cartridge,"
    "printer|wrapping paper, ring binder, ball|marker pen, desk calendar, memo board, glue stick, bar stool, book shelf, key cabinet,"
    "roller blind, shower curtain, mirror frame, wall|floor paint, paint brush, rubber seal, brake|clutch pad, oil|air filter, spark plug,"
    "fuel tank, roof rack, snow chain, fishing|curtain rod, camping|gas stove, sleeping bag, head torch, compass watch, guitar strap,"
    "piano bench, music stand, chess set, puzzle mat, toy train, teddy bear, dog|cat food, bird|fish feed, plant pot, seed tray, hedge trimmer"))


def person(draw):
    return f"{draw.pick(FIRST_NAMES)} {draw.pick(LAST_NAMES)}"


def people(draw, count):
    """count different people: first names alone or full names."""
    first = draw.picks(FIRST_NAMES, count)
    return first if draw.chance(0.4) else [f"{name} {draw.pick(LAST_NAMES)}" for name in first]


def code(draw):
    """An identifier such as INV-4821."""
    prefix = "".join(draw.sample("ABCDEFGHKLMNPRSTVWXZ", draw.choice([1, 2, 2, 3])))
    return prefix + draw.choice(["-", "", "/"]) + str(draw.integer(100, 99999))


# ---- dates -----------------------------------------------------------------------------------------------------------

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


NEAREST = 60                               # days between two dates that are compared, at least


def day(draw, first=1995, last=2034):
    """A date of these years."""
    return datetime.date.fromordinal(draw.integer(datetime.date(first, 1, 1).toordinal(), datetime.date(last, 12, 31).toordinal()))


def day_near(draw, origin, direction):
    """A date before (-1) or after (1) origin: two months to sixteen years away, mostly another year."""
    while True:
        days = draw.random.randint(*draw.choice([(NEAREST, 300), (300, 1500), (400, 3000), (1500, 6000)]))
        ordinal = origin.toordinal() + direction * days
        if number_is_held_out(ordinal) == (draw.role == "values"):
            return datetime.date.fromordinal(ordinal)


def write_date(date, style="iso"):
    if style == "iso":
        return date.isoformat()
    month = MONTHS[date.month - 1]
    return f"{date.day} {month} {date.year}" if style == "long" else f"{month} {date.day}, {date.year}"


# ---- options -----------------------------------------------------------------------------------------------------

def entity_options(draw, names, answer):
    """Choice arguments for "which of these": the names are the labels, or now and then the descriptions of bare labels."""
    names = draw.sample(names, len(names))
    if draw.chance(0.75):
        return answer, {name: None for name in names}
    style = draw.choice(["{letter}", "{number}", "option_{number}", "item {letter}"])
    labels = [style.format(letter=chr(65 + i), number=i + 1) for i in range(len(names))]
    return labels[names.index(answer)], dict(zip(labels, names))
