"""Extracts data/kinds.json from Debian's wordnet-base: common concrete nouns by category, with short glosses.

    python3 wordnet.py /usr/share/wordnet > data/kinds.json

{category: {word: [gloss, further categories]}}. The words of a category are chosen here; WordNet confirms that one of a word's
senses lies in the category, says what that is (the gloss), and which of our categories its other senses lie in. A gloss that does not
name its category gets it in front ("a country: ..."). data/README.md has WordNet's licence.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

GLOSS_WORDS = 13
# a gloss is cut before one of these, the best first, but not after a LOOSE word
STOPS = [{"with", "that", "which", "having", "used", "whose", "where"}, {"in", "of", "for", "to", "from", "by", "native"}, {"and", "or"}]
LOOSE = {"and", "or", "usually", "often", "especially", "chiefly", "a", "the", "is", "are", "in", "of", "by"}
# category: (its synsets as word#sense, what a gloss that names it contains, what is put in front of one that does not, words)
CATEGORIES = {
    "bird": ("bird#1", "birds?", "a bird", """
        albatross bittern blackbird bluebird buzzard canary chickadee chicken cockatoo condor cormorant crow cuckoo dove duck eagle egret
        falcon finch flamingo gannet goose grebe gull hawk hen heron hornbill hummingbird ibis jackdaw jay kestrel kingfisher kite lapwing
        lark loon macaw magpie nightingale nuthatch oriole osprey ostrich owl parakeet parrot partridge pelican penguin pheasant pigeon
        plover puffin quail raven robin rooster sandpiper seagull snipe sparrow starling stork swallow swan thrush toucan turkey vulture
        warbler woodpecker wren"""),
    "fish": ("fish#1", "fish|fishes", "a fish", """
        anchovy barracuda bream carp catfish chub cod eel flounder goldfish grouper guppy haddock hake halibut herring mackerel marlin
        minnow mullet perch pike pilchard piranha plaice pollock ray roach salmon sardine seahorse shark skate smelt snapper sole stickleback
        stingray sturgeon sunfish swordfish tench trout tuna turbot whitefish whiting"""),
    "insect": ("insect#1", "insects?", "an insect", """
        ant aphid bee beetle blowfly bug bumblebee butterfly cicada cockroach cricket dragonfly earwig firefly flea fly gnat grasshopper hornet
        honeybee horsefly housefly katydid lacewing ladybug locust louse mantis mayfly mosquito moth silverfish termite wasp weevil"""),
    "mammal": ("mammal#1", "mammals?", "a mammal", """
        antelope ape armadillo baboon badger bat bear beaver bison boar buffalo bull camel cat cheetah chimpanzee chipmunk cow coyote deer
        dog donkey elephant elk ferret fox gazelle gibbon giraffe goat gorilla guanaco hamster hare hedgehog hippopotamus horse hyena jackal jaguar
        kangaroo koala lemur leopard lion llama lynx marmot mink mole mongoose monkey moose mouse mule otter panda panther platypus porcupine
        puma rabbit raccoon rat reindeer rhinoceros seal sheep shrew skunk sloth squirrel tapir tiger walrus weasel whale wolf wombat yak
        zebra"""),
    "reptile": ("reptile#1", "reptiles?", "a reptile", """
        adder alligator anaconda asp boa caiman chameleon cobra copperhead crocodile dinosaur gecko iguana lizard mamba python rattlesnake
        serpent skink snake terrapin tortoise turtle viper"""),
    "tree": ("tree#1", "trees?", "a tree", """
        acacia alder ash aspen balsa baobab beech birch cedar chestnut cottonwood cypress ebony elm eucalyptus fir hazel hemlock hickory
        hornbeam laurel linden magnolia mahogany mangrove maple oak olive palm pine poplar rowan spruce sycamore
        tamarind teak walnut willow yew"""),
    "flower": ("flower#1, bulbous plant#1, herb#1, shrub#1, houseplant#1", "flowers?", "a flower", """
        anemone aster azalea begonia bluebell buttercup camellia carnation chrysanthemum columbine cornflower crocus cyclamen daffodil dahlia daisy
        dandelion forsythia foxglove fuchsia gardenia geranium gladiolus heather hibiscus hyacinth hydrangea iris jasmine lavender
        lilac lily marigold narcissus orchid pansy peony petunia poppy primrose rhododendron rose snapdragon snowdrop sunflower
        tulip verbena violet zinnia"""),
    "fruit": ("edible fruit#1", "fruits?", "a fruit", """
        apple apricot avocado banana blackberry blueberry cantaloupe cherry citron clementine cranberry currant date durian elderberry fig
        gooseberry grape grapefruit guava kiwi kumquat lemon lime mandarin mango melon mulberry nectarine orange papaya peach pear persimmon
        pineapple plum pomegranate quince raspberry strawberry tangerine watermelon"""),
    "vegetable": ("vegetable#1", "vegetables?", "a vegetable", """
        artichoke asparagus bean beet broccoli cabbage carrot cauliflower celery chard chicory chickpea cress cucumber eggplant endive fennel
        gherkin kale leek lentil lettuce mushroom okra onion parsnip pea pepper potato pumpkin radish rutabaga shallot spinach squash tomato turnip
        yam zucchini"""),
    "tool": ("tool#1, implement#1", "tools?", "a tool", """
        awl axe chainsaw chisel cleaver corkscrew crowbar drill file hacksaw hammer hatchet hoe jackhammer knife
        mallet mattock mower nutcracker pickaxe pincer pitchfork plane plow rake rasp razor sander saw scraper screwdriver scythe shovel
        sickle sledgehammer spade spatula trowel tweezer whisk wrench"""),
    "vehicle": ("vehicle#1", "vehicles?", "a vehicle", """
        airliner airplane ambulance automobile barge bicycle boat bomber bulldozer bus canoe car carriage cart catamaran chariot convertible
        dinghy ferry freighter glider gondola helicopter hovercraft hydrofoil jeep kayak limousine locomotive lorry minivan moped
        motorboat motorcycle rickshaw rocket rowboat sailboat schooner scooter sedan ship skateboard sled sledge spacecraft steamer
        streetcar submarine tank tanker taxi tractor trailer tram tricycle truck van wagon yacht"""),
    "weapon": ("weapon#1, weaponry#1", "weapons?", "a weapon", """
        bayonet bomb boomerang bow bullet cannon carbine crossbow cutlass dagger dart flamethrower grenade gun halberd
        howitzer javelin lance mace machete missile mortar musket pistol rapier revolver rifle saber scimitar shotgun sling spear sword torpedo
        tomahawk trident"""),
    "garment": ("garment#1, footwear#1, headdress#1, clothing#1", "garments?|clothing", "a garment", """
        anorak apron bathrobe beret bikini blazer blouse bonnet bra cap cape cardigan cloak coat corset cravat dress glove gown
        hat helmet hood jacket jersey kilt kimono legging mitten nightgown overcoat pajama parka petticoat poncho pullover raincoat
        robe sari sarong scarf shawl shirt skirt smock sock stocking suit sweater sweatshirt swimsuit toga trouser tunic
        turban tuxedo vest waistcoat"""),
    "furniture": ("furniture#1", "furniture", "a piece of furniture", """
        armchair armoire bed bench bookcase buffet bunk bureau cabinet chair chaise chest couch cot cradle credenza crib desk divan
        dresser footstool hammock highchair lectern lounge loveseat ottoman pew recliner rocker seat settee sideboard sofa stool table
        throne wardrobe workbench"""),
    "instrument": ("musical instrument#1", "musical instruments?", "a musical instrument", """
        accordion bagpipe balalaika banjo bassoon bongo bugle castanets celesta cello clarinet clavichord cornet cymbal drum dulcimer fiddle flute
        glockenspiel gong guitar harmonica harmonium harp harpsichord horn kazoo lute lyre mandolin maraca marimba oboe ocarina organ piano
        piccolo recorder saxophone sitar synthesizer tambourine trombone trumpet tuba ukulele vibraphone viola violin xylophone zither"""),
    "building": ("building#1, place of worship#1, dwelling#1", "buildings?", "a building", """
        abbey barn basilica bungalow cabin cafe casino castle cathedral chalet chapel chateau church cottage courthouse farmhouse
        garage gazebo greenhouse hospital hostel hotel house inn library mansion monastery mosque motel observatory pagoda palace
        planetarium pub restaurant schoolhouse shed shrine skyscraper stable synagogue tavern temple theater villa """),
    "container": ("container#1", "containers?", "a container", """
        aquarium backpack bag barrel basin basket beaker bin bottle bowl box briefcase bucket can canister carafe carton cask coffin crate cup
        envelope flask goblet jar jug keg kettle mug pail pan pitcher pot pouch purse sack suitcase teapot tray trunk tub urn
        vase vat wallet"""),
    "fabric": ("fabric#1", "fabrics?", "a fabric", """
        brocade burlap calico cambric canvas cashmere chiffon chintz corduroy cotton crepe damask denim felt flannel fleece gauze gingham
        khaki lace linen mohair muslin nylon organza poplin rayon satin seersucker silk spandex suede taffeta tulle tweed twill velour velvet
        wool worsted"""),
    "drink": ("beverage#1", "drinks?", "a drink", """
        absinthe ale beer bourbon brandy champagne chianti cider claret cocktail coffee cognac cola eggnog espresso gin grog julep lager
        lemonade limeade liqueur madeira margarita martini mead milk muscatel port punch rum rye sake sherry smoothie soda tea tequila
        toddy vermouth vodka whiskey wine"""),
    "dish": ("dish#2, nutriment#1, pasta#2, bread#1, dessert#1", "dish|dishes", "a dish", """
        bagel baguette burrito cake cannelloni casserole chili chowder coleslaw couscous croissant curry custard dumpling enchilada
        fondue frittata goulash gumbo hamburger hash jambalaya kebab lasagna meatball meatloaf moussaka mousse muffin omelet paella pasta
        pilaf pizza porridge pretzel pudding ravioli risotto salad sandwich sauerkraut souffle soup spaghetti stew sushi taco
        tamale tiramisu toast trifle """),
    "disease": ("disease#1, disorder#1, infection#1", "diseases?", "a disease", """
        acne anthrax arthritis asthma bronchitis cancer chickenpox cholera cirrhosis cold
        diabetes diphtheria dysentery eczema emphysema epilepsy flu glaucoma gout hepatitis herpes influenza leprosy leukemia
        lupus malaria measles meningitis mumps plague pneumonia polio psoriasis rabies rickets rubella scarlatina scurvy
        smallpox syphilis tetanus tuberculosis typhoid typhus"""),
    "job": ("worker#1, professional#1, creator#2, serviceman#1, person#1", "workers?|jobs?", "a worker", """
        accountant actor architect astronaut astronomer baker banker barber barber bartender blacksmith bricklayer butcher butler carpenter
        cashier chemist clerk cobbler composer cook dentist detective doctor editor electrician engineer farmer firefighter fisherman
        florist gardener geologist goldsmith grocer hairdresser janitor jeweler journalist judge lawyer librarian lumberjack magician mason
        mechanic miner musician nanny novelist nurse painter pharmacist photographer pianist pilot plumber poet policeman porter postman potter
        priest programmer publisher sailor salesman sculptor secretary shepherd soldier surgeon surveyor tailor teacher translator tutor
        undertaker veterinarian waiter waitress weaver welder"""),
    "relative": ("relative#1", "relatives?", "a relative", """
        ancestor aunt brother cousin daughter father forefather grandchild granddaughter grandfather grandmother grandparent grandson husband
        mother nephew niece parent sibling sister son spouse stepbrother stepfather stepmother stepsister stepson uncle wife"""),
    "body part": ("body part#1", "body", "a part of the body", """
        abdomen ankle arm armpit beak bladder brain breast buttock calf cheek chest chin collarbone ear elbow eye eyelid face femur fin
        finger fist foot forehead gland hand head heart heel hip intestine jaw kidney knee knuckle leg lip liver lung mouth muscle nail neck nose
        nostril palm pancreas pelvis rib scalp shin shoulder skeleton skull spine spleen stomach tail thigh throat thumb toe tongue tonsil tooth
        torso waist wing wrist"""),
    "metal": ("metallic element#1, alloy#1", "metals?|metallic", "a metal", """
        aluminum antimony barium beryllium bismuth brass bronze cadmium calcium cerium chromium cobalt copper gallium gold iridium iron lead
        lithium magnesium manganese mercury molybdenum nickel osmium palladium pewter platinum potassium radium rhodium
        silver sodium steel strontium thorium tin titanium tungsten uranium vanadium zinc zirconium"""),
    "gem": ("gem#2, gem#5, transparent gem#1, opaque gem#1, quartz#2", "gems?|gemstones?", "a gemstone", """
        agate alexandrite amethyst aquamarine bloodstone carnelian chalcedony citrine diamond emerald garnet jade jasper moonstone onyx opal
        pearl peridot ruby sapphire sardonyx topaz tourmaline turquoise """),
    "sport": ("sport#1, game#1", "sports?|games?", "a sport", """
        archery badminton baseball basketball billiards bobsledding bowling boxing cricket croquet curling cycling fishing football golf
        gymnastics handball hockey hurling judo lacrosse polo racing riding rowing rugby skating skiing snooker
        soccer softball squash surfing swimming tennis volleyball wrestling"""),
    "currency": ("monetary unit#1", "money", "a unit of money", """
        baht cent dinar dirham dollar dong drachma escudo euro franc guilder krona lira mark naira penny peseta peso pound rand rial ringgit
        ruble rupee shekel shilling yen yuan zloty"""),
    "country": ("country#2", "country|countries", "a country", """
        Afghanistan Albania Algeria Angola Argentina Australia Austria Bangladesh Belgium Bolivia Brazil Bulgaria Canada Chile China Colombia
        Croatia Cuba Denmark Ecuador Egypt Ethiopia Finland France Germany Ghana Greece Hungary Iceland India Indonesia
        Iran Iraq Ireland Israel Italy Jamaica Japan Jordan Kenya Lebanon Libya Malaysia Mali Mexico Mongolia Morocco Nepal
        Nigeria Norway Pakistan Peru Philippines Poland Portugal Romania Russia Senegal Slovakia Somalia Spain Sudan Sweden Switzerland
        Syria Thailand Tunisia Turkey Uganda Ukraine Uruguay Venezuela Vietnam Yemen Zambia"""),
    "city": ("city#1, national capital#1, city#2", "city|cities", "a city", """
        Amsterdam Ankara Athens Atlanta Baghdad Bangkok Barcelona Beijing Berlin Bogota Boston Bristol Brussels Bucharest Budapest Cairo Calcutta
        Chicago Cologne Copenhagen Dallas Damascus Delhi Denver Detroit Dresden Dublin Florence Frankfurt Geneva Glasgow Hamburg Hanoi
        Havana Helsinki Houston Istanbul Jakarta Johannesburg Karachi Kiev Lagos Lima Lisbon Liverpool London Madrid Manchester Manila
        Melbourne Miami Milan Montreal Moscow Munich Nairobi Naples Osaka Oslo Ottawa Paris Philadelphia Pittsburgh Prague Rome Rotterdam Seattle
        Seoul Seville Shanghai Stockholm Stuttgart Sydney Tokyo Toronto Toulouse Venice Vienna Warsaw Zurich"""),
    "language": ("natural language#1", "languages?", "a language", """
        Afrikaans Albanian Amharic Arabic Aramaic Armenian Basque Bengali Bulgarian Catalan Chinese Czech Danish Dutch English Estonian
        Finnish French Gaelic German Greek Hebrew Hindi Hungarian Icelandic Irish Italian Japanese Korean Latin Latvian Lithuanian Malay
        Norwegian Persian Polish Portuguese Romanian Russian Sanskrit Spanish Swahili Swedish Tamil Thai Tibetan Turkish Ukrainian
        Urdu Vietnamese Welsh Yiddish Zulu"""),
}


class WordNet:
    def __init__(self, folder):
        self.synsets, self.senses, self.kinds = {}, {}, defaultdict(list)
        for line in self.lines(folder / "data.noun"):
            self.read_synset(line)
        for line in self.lines(folder / "index.noun"):
            fields = line.split()
            self.senses[fields[0].replace("_", " ")] = fields[-int(fields[2]):]

    @staticmethod
    def lines(path):
        return (line for line in path.read_text().splitlines() if not line.startswith(" "))

    def read_synset(self, line):
        head, _, gloss = line.partition(" | ")
        fields = head.split()
        count = int(fields[3], 16)
        pointers = fields[5 + 2 * count:]
        self.synsets[fields[0]] = gloss.strip()
        for symbol, target in zip(pointers[::4], pointers[1::4]):
            if symbol.startswith("@"):
                self.kinds[target].append(fields[0])

    def below(self, names):
        """All synsets under the ones named "word#sense, ..."."""
        found, waiting = set(), []
        for name in names.split(", "):
            word, _, sense = name.partition("#")
            waiting.append(self.senses[word][int(sense) - 1])
        while waiting:
            synset = waiting.pop()
            if synset not in found:
                found.add(synset)
                waiting += self.kinds[synset]
        return found


def short(gloss):
    """The first statement of a gloss, cut where it can be to at most GLOSS_WORDS words."""
    text = re.sub(r"\([^)]*\)", " ", gloss.split(";")[0].split(":")[0])
    text = " ".join(text.replace('"', " ").split()).replace(" ,", ",")
    words = text.split()
    if len(words) <= GLOSS_WORDS:
        return text.strip(" ,")
    for stops in STOPS:
        for end in range(GLOSS_WORDS, 4, -1):
            if words[end] in stops and words[end - 1] not in LOOSE:
                return " ".join(words[:end]).strip(" ,")
    return " ".join(words[:GLOSS_WORDS]).strip(" ,")


def extract(wordnet):
    below = {category: wordnet.below(names) for category, (names, *_) in CATEGORIES.items()}
    plainly = {category: wordnet.below(names.split(", ")[0]) for category, (names, *_) in CATEGORIES.items()}
    kinds = {}
    for category, (_, named, front, words) in CATEGORIES.items():
        kinds[category] = {}
        for word in sorted(set(words.split())):
            senses = wordnet.senses.get(word.lower(), [])
            meant = next((sense for sense in senses if sense in below[category]), None)
            if meant is None:
                print(f"{category}: WordNet has no {word}", file=sys.stderr)
                continue
            gloss = short(wordnet.synsets[meant])
            if not re.search(rf"\b({named})\b", gloss):
                gloss = f"{front}: {gloss}"
            also = [name for name in CATEGORIES if name != category and any(sense in plainly[name] for sense in senses)]
            kinds[category][word] = [gloss, also]
    return kinds


def main():
    kinds = extract(WordNet(Path(sys.argv[1])))
    lines = [f'"{category}": {{\n' + ",\n".join(f"{json.dumps(word)}: {json.dumps(entry)}" for word, entry in words.items()) + "}"
             for category, words in kinds.items()]
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
