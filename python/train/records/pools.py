"""Pools of everyday values that several families share: names of people, places, jobs, colours and objects."""

from .core import Pool


def words(text):
    return text.split()


def phrases(text):
    return [item.strip() for item in text.split(",")]


WOMEN = Pool("pools.women", words("""
    Anna Maria Sofia Elena Laura Clara Julia Nora Emma Olivia Ava Mia Chloe Grace Hannah Alice Lucy Ruth Irene Helen Marta Lena Eva Ines
    Carmen Rosa Paula Bianca Chiara Giulia Ingrid Astrid Freya Sigrid Katarina Petra Daria Olga Natalia Yuki Aiko Mei Priya Anjali Leila
    Fatima Amina Zainab Ngozi Adaeze Amara Thandi Naledi Camila Valentina Lucia Beatriz Fernanda Brigitte Colette Margot Odette Sinead
    Maeve Rhian Gwen Esther Miriam Tamar Noa Selin Defne Hanako"""))
MEN = Pool("pools.men", words("""
    Tom Peter Paul David Daniel Michael Jack Harry Oscar Leo Max Felix Hugo Victor Simon Adam Noah Liam Ethan Lucas Mateo Diego Pablo Javier
    Andres Carlos Marco Luca Enzo Giorgio Stefan Lars Sven Anders Bjorn Erik Mikko Pavel Ivan Dmitri Boris Kenji Hiro Takeshi Wei Jun Arjun
    Rohan Vikram Omar Yusuf Karim Hassan Tariq Kwame Kofi Emeka Chidi Sipho Thabo Rafael Joao Thiago Bruno Pierre Henri Olivier Declan Cormac
    Rhys Owen Eli Amos Emre Kerem Ravi"""))
CITIES = Pool("pools.cities", words("""
    Paris Lyon Bordeaux Madrid Seville Valencia Lisbon Porto Rome Milan Turin Naples Berlin Hamburg Munich Cologne Vienna Graz Zurich Geneva
    Prague Brno Warsaw Krakow Budapest Athens Istanbul Ankara Cairo Tunis Nairobi Lagos Accra Dakar Delhi Mumbai Chennai Tokyo Osaka Kyoto
    Seoul Busan Beijing Shanghai Hanoi Bangkok Manila Jakarta Sydney Perth Auckland Toronto Montreal Boston Chicago Denver Seattle Dallas
    Miami Lima Bogota Quito Santiago Oslo Bergen Stockholm Malmo Helsinki Copenhagen Dublin Cork Leeds Bristol Glasgow Brussels Ghent Utrecht
    Rotterdam Riga Vilnius Tallinn Zagreb Belgrade Sofia Bucharest"""))
COUNTRIES = Pool("pools.countries", words("""
    France Spain Portugal Italy Germany Austria Switzerland Poland Hungary Greece Turkey Egypt Tunisia Kenya Nigeria Ghana Senegal India
    Japan Korea China Vietnam Thailand Indonesia Australia Canada Mexico Peru Colombia Ecuador Chile Brazil Argentina Norway Sweden Finland
    Denmark Ireland Belgium Netherlands Latvia Lithuania Estonia Croatia Serbia Bulgaria Romania Iceland Malta Cyprus Slovakia Slovenia
    Morocco Jordan Israel Nepal Malaysia Singapore Uruguay Bolivia Cuba Jamaica Ethiopia Rwanda Uganda Botswana Namibia"""))
JOBS = Pool("pools.jobs", phrases("""
    nurse, teacher, baker, pilot, lawyer, farmer, plumber, carpenter, engineer, architect, librarian, chef, waiter, driver, painter, dentist,
    surgeon, editor, journalist, translator, accountant, cashier, florist, gardener, mechanic, electrician, tailor, butcher, barber,
    photographer, musician, actor, dancer, judge, detective, guard, firefighter, sailor, fisherman, miner, welder, programmer, analyst,
    designer, chemist, biologist, geologist, astronomer, vet, pharmacist, banker, broker, secretary, receptionist, janitor, postman,
    porter, weaver, potter, jeweller"""))
COLOURS = Pool("pools.colours", words("""
    red blue green yellow black white grey brown orange purple pink silver gold beige turquoise violet crimson navy olive cream maroon amber
    lilac teal"""))
OBJECTS = Pool("pools.objects", words("""
    book letter key lamp basket bottle coat hat scarf umbrella camera guitar violin ladder hammer bucket blanket map ticket ring watch clock
    mirror vase bowl plate kettle knife spoon suitcase backpack notebook pencil brush candle box chair stool table rug pillow tent rope shovel
    saw drill radio phone laptop tablet printer bicycle scooter helmet ball kite puzzle doll drum flute painting photo poster stamp coin
    necklace wallet purse parcel folder magazine dictionary jacket sweater shirt belt cup jar tray flask compass lantern"""))


def person(draw):
    return draw.pick(draw.choice([WOMEN, MEN]))


def people(draw, count):
    """count different first names, women's and men's mixed."""
    women = draw.random.randint(0, count)
    names = draw.picks(WOMEN, women) + draw.picks(MEN, count - women)
    draw.random.shuffle(names)
    return names


def filled(options, count, stranger):
    """options, with further ones from stranger() up to count of them, if it has that many."""
    for _ in range(8 * count):
        if len(options) >= count:
            break
        other = stranger()
        options += [other] * (other not in options)
    return options


def article(noun):
    """"an apple", "a unit": a vowel that sounds like one takes "an"."""
    vowel = noun[0].lower() in "aeiou" and not noun.lower().startswith(("uni", "uku", "eu", "use"))
    return ("an " if vowel else "a ") + noun


def listing(items, last="and"):
    """["a", "b", "c"] -> "a, b and c"."""
    items = list(map(str, items))
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {last} " + items[-1]
