"""What the families about messages share: patterns of sentences, names and goods, and the shapes a message comes in."""

import re

from .core import Pool

FIRST_NAMES = Pool("messages.first_names", """
    Anna Ben Clara David Elena Farid Grace Hugo Ines Jonas Katya Leon Maria Nadia Omar Paula Quentin Rosa Samir Tara Umar Vera Walter
    Ximena Yusuf Zoe Aisha Bruno Carmen Dmitri Esther Fatima Gustav Hana Ivan Julia Karim Lucia Marek Nora Oscar Priya Rafael Sofia Tomas
    Ursula Viktor Wanda Yara Zofia Amir Beatriz Chen Daniel Emil Fiona Georg Helen Igor Jasmin Kenji Laura Mehmet Naomi Oliver Pedro Rita
    Sven Thomas Valeria William Agnes Boris Celine Dario Eva Felix Gloria Henrik Irina Jakub Kofi Lars Mina Nils Olga Peter""".split())
LAST_NAMES = Pool("messages.last_names", """
    Miller Novak Garcia Rossi Weber Kowalski Silva Jansen Larsen Yilmaz Haddad Okafor Tanaka Petrov Dubois Moreau Keller Fischer Brown
    Clark Evans Hughes Iqbal Jensen Khan Lopez Martin Nguyen Ortiz Patel Quinn Reyes Schmidt Torres Usman Vogel Walker Xu Young Zeller
    Andersson Bauer Costa Demir Eriksen Ferrari Gruber Horvat Ivanov Johnson Kaya Lindgren Mendes Nowak Olsen Popov Ricci Santos Taylor
    Unger Varga Wagner Yamada Ziegler Aydin Bianchi Castro Dahl""".split())
CITIES = Pool("messages.cities", """
    Berlin Madrid Lisbon Oslo Vienna Prague Dublin Athens Warsaw Budapest Helsinki Zurich Brussels Milan Porto Lyon Hamburg Leeds Bergen
    Graz Gdansk Seville Turin Ghent Malmo Izmir Tampa Austin Denver Boston Toronto Sydney Auckland Nairobi Cairo Lagos Mumbai Osaka Seoul
    Lima Bogota Quito Santiago Dallas Phoenix Ottawa Perth Durban Tunis Basel""".split())
BRANDS = Pool("messages.brands", """
    Velora Kintar Aumo Brisco Calden Dorvex Elmira Fenko Galdor Hestia Ixon Jarlo Kelvo Lumera Mistral Norvik Optra Pelmo Quantis Rivano
    Solvia Tarken Ultima Vandor Weltix Xelio Yorvan Zentro Arvida Bellux Corvo Dynar Everon Fulmar Gravio Halden Inova Juno Korven Lotus
    Marlin Nexar Orbis Pronto Quilla Rondo Selkie Torval Umbra Vireo""".split())
GOODS = Pool("messages.goods", """
    kettle lamp sofa camera laptop phone blender drill jacket backpack bicycle heater toaster printer monitor keyboard speaker vacuum
    mattress desk chair watch tent router oven fridge freezer dishwasher scooter helmet guitar microphone projector radio clock stove grill
    mixer fan tablet scanner headset charger stroller wardrobe bookcase mower pump compressor tripod""".split())
APPS = Pool("messages.apps", """
    Lumo Notara Finly Taskora Mapero Fitzi Cookly Budgo Rideon Parkly Weathra Songbox Photon Chatter Learnix Plantio Sleepy Runna Bookly
    Petto Cargo Vaulty Schedo Invoxy Planora Trackit Mealio Musero Quizzo Tripla""".split())
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
SPACE_BEFORE_MARK = re.compile(r"\s+([?.,!:;])")


def fill(draw, pattern, slots=None):
    """A sentence from a pattern: `[a|b|]` is a free alternative, {name} a slot; the first letter becomes a capital."""
    while "[" in pattern:
        pattern = ALTERNATIVES.sub(lambda match: draw.choice(match[1].split("|")), pattern)
    text = SPACE_BEFORE_MARK.sub(r"\1", " ".join(pattern.format_map(slots or {}).split()))
    return text[:1].upper() + text[1:]


def full_name(draw):
    return f"{draw.pick(FIRST_NAMES)} {draw.pick(LAST_NAMES)}"


def product(draw):
    return f"{draw.pick(BRANDS)} {draw.pick(GOODS)}"


def email_address(draw):
    name = f"{draw.pick(FIRST_NAMES)}.{draw.pick(LAST_NAMES)}".lower()
    return f"{name}@{draw.choice(['mail', 'post', 'inbox', 'webmail', 'letters'])}.{draw.choice(['com', 'net', 'org', 'example'])}"


def sprinkle(draw, sentences, extras):
    """sentences in their order, with each extra put somewhere among them."""
    mixed = list(sentences)
    for extra in extras:
        mixed.insert(draw.random.randint(0, len(mixed)), extra)
    return mixed


def envelope(draw, text, subject=None, names=("message", "text", "body", "content"), extras=(), plain=0.35):
    """text as it is, or as an object with a sender, a subject, some of extras [(key, value)], now and then nested."""
    if draw.chance(plain):
        return text
    message = {draw.choice(names): text}
    if draw.chance(0.6):
        sender = draw.choice(["from", "sender", "author", "name", "customer"])
        message[sender] = email_address(draw) if draw.chance(0.3) else full_name(draw)
    if subject is not None and draw.chance(0.6):
        message[draw.choice(["subject", "title", "about"])] = subject
    message |= dict(draw.sample(extras, min(len(extras), draw.choice([0, 1, 1, 2]))))
    if draw.chance(0.2):
        return {draw.choice(["ticket", "case", "item", "data", "entry"]): message}
    return message
