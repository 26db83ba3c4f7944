"""What moderation's posts say: sentences per offence, harmless ones, personal data, and descriptions of offences and actions."""

from .core import Meanings, Pool

STREETS = Pool("moderation.streets", """
    Mill Church Station Garden Park River Bridge Market School Forest Hill Lake Castle Harbour King Queen Maple Oak Cedar Birch Rose Lily
    Tower Garrison Victoria Albert North South Orchard Meadow Spring Sunset Baker Fisher Weaver Potter Abbey Chapel Canal Union Liberty
    Washington Franklin Lincoln Palace Crown Valley Summit Granite Amber""".split())
SITES = Pool("moderation.sites", """
    best-deal easy-win quick-cash top-offer gold-club star-bonus smart-shop web-market safe-check my-login bank-verify pay-secure account-help
    win-today mega-store happy-shop city-fitness home-pro travel-now green-garden fast-fix blue-course photo-print pet-corner book-barn""".split())

SENTENCES = {
    "spam": [
        "[You have won|Congratulations, you won] a [free|new] {good}!", "Win [{amount} euros|a free {good}] [today|now]!",
        "Forward this message to [ten|twenty] friends[ or you will have bad luck|].", "[Get|Become] rich [fast|quickly|in {n} days] without work!",
        "Make {amount} euros a day from home[, no work needed|]!", "You are our lucky winner, [collect|take] your [prize|{amount} euros]!",
        "Free money for everybody, click now!!!", "Follow me and I follow you back, follow, follow, follow!",
        "Share this chain letter with all your friends!",
        "CLICK HERE CLICK HERE CLICK HERE for free [money|followers]!", "Lucky winner! Your prize of {amount} euros is waiting!",
        "This trick makes you rich in {n} days, click here!", "Copy and paste this message to [all your friends|ten groups]!",
        "Get {n}00 free followers [now|today], click here!", "Send this chain message to {n} people and get lucky!"],
    "phishing": [
        "[Confirm|Enter|Verify] your password at {site} or your account will be closed.",
        "Your bank account is blocked, [enter|confirm] your PIN at {site}.",
        "Please send us your password [so that we can check your account|to keep your account].",
        "Log in at {site} to verify your [account|card] at once.",
        "We are your bank: reply with your [PIN|card number|password].", "Your account was limited, verify your password here: {site}.",
        "To unlock your account, [enter|send] your card number and PIN.", "Security check: [enter|confirm] your bank login at {site}.",
        "Your card will be blocked unless you verify your PIN at {site}.", "The bank asks you to confirm your login [today|now] at {site}.",
        "Give us the code that you got by text message to verify your account.", "Your parcel is held, enter your card number and PIN at {site}.",
        "Your password has run out, confirm the old password at {site}.", "Tax office: enter your bank login at {site} to get {amount} euros back.",
        "Verify your account with your PIN [today|now], or it will be closed."],
    "threat": [
        "I will [hurt|beat|hit] you.", "I will find you and [hurt|beat] you, {name}.", "I know where you live, {name}, be afraid.",
        "You will [regret|pay for] this, I will come for you.", "I will burn down your house.", "Watch your back, I will [get|find] you.",
        "Next time I see you, I will [break your nose|hurt you].", "I am going to [kill|beat|hurt] you.", "You are dead when I find you.",
        "{name}, I will come to your house and hurt you.", "If you come here again, I will beat you up.", "You will not see tomorrow, {name}.",
        "I will make you bleed.", "Be afraid, I will find you and your family.", "We will come for you tonight and beat you."],
    "insult": [
        "You are [an idiot|a fool|so stupid|a loser].", "{name} is [an idiot|a stupid fool|a pathetic loser].",
        "What a stupid [idiot|fool] you are, {name}.",
        "[Shut up|Be quiet], you [idiot|fool|moron].", "You are as dumb as a [rock|brick].", "Only [a moron|an idiot] could write such a thing.",
        "You [stupid|ugly|pathetic] [loser|clown|moron].", "{name}, you are [ugly and stupid|a pathetic moron].",
        "Your brain is the size of a pea, you moron.",
        "Nobody likes you, you pathetic loser.", "Even a [donkey|brick] is smarter than you, {name}.", "You are too stupid to [read|count|think].",
        "Go away, you ugly [fool|clown].", "Such a dumb idiot as {name} should not write here.", "What a loser, what a clown you are."],
    "advertising": [
        "[Buy|Order] our {good} at {site}, now only {amount} euros.", "Our shop {site} sells the best {goods} in town.",
        "Visit our shop in {city}: all {goods} at half price.", "Special offer: the {product} for {amount} euros.",
        "We sell {goods}, order today at {site}.",
        "Sale! {n} percent off every {good} in our shop.", "Need a new {good}? Buy it at {site}.",
        "Our company offers {goods} at low prices, call for an offer.",
        "The new {product} is on sale [now|this week], only {amount} euros.",
        "Book our cleaning service in {city}, the first hour costs {n} euros.",
        "Try our gym in {city}, {n} percent off for new members.", "Order the {product} today and save {n} percent.",
        "Best prices for {goods}, visit {site} and buy now.", "Our new course costs only {amount} euros, book it at {site}.",
        "Discount at {site}: buy two {goods} and pay for one."],
    "none": [
        "Does anyone know [when|whether] the {good} shop in {city} is open [on {day}|]?", "I had a lovely walk [in {city}|by the lake] on {day}.",
        "Thank you, {name}, [your answer helped me a lot|that was very helpful].", "How do I clean [the|my] {good}?",
        "My {good} makes a noise, what can I do?",
        "I agree with {name}[, good point|].", "The weather in {city} was [lovely|cold|rainy] on {day}.",
        "Which {good} would you choose for a small flat?",
        "We cooked soup [on {day}|together] and it was delicious.", "I do not agree with {name}, but I see the point.", "Happy birthday, {name}!",
        "The match on {day} was [exciting|a bit boring].", "I read a good book about {city}.", "Has anybody tried the {product}?",
        "I am looking for a good [bakery|library|park] in {city}.", "Our cat sleeps on the {good} all day.",
        "My train to {city} was late again.", "Good luck with your exam [on {day}|], {name}.", "The new film was a little too long for me."],
}
DATA = {
    "phone": ["Call {name} at {phone}.", "The phone number of {name} is {phone}.", "My phone number is {phone}.",
              "You can reach {name} by phone: {phone}.",
              "Phone {phone} and ask for {name}.", "{name} has the number {phone}."],
    "address": ["{name} lives at {address}.", "My address is {address}.", "The home address of {name} is {address}.",
                "You find {name} at home: {address}.",
                "Come to my home, {address}.", "{name} has moved to {address}."],
    "card": ["My card number is {card}.", "The credit card of {name}: {card}.", "{name} pays with card {card}.", "Use the card number {card}.",
             "Here is the card of {name}, number {card}.", "The number of the credit card is {card}."],
    "email": ["Write to {name} at {email}.", "My email address is {email}.", "The email of {name} is {email}.", "Mail {name}: {email}.",
              "You can reach me by email at {email}.", "{name} reads mail at {email}."]}
NO_DATA = ["My order number is {digits}.", "The book has {amount} pages.", "It cost me {amount} euros.", "I got version {n}.2 of the app.",
           "Please do not post phone numbers here.", "I lost my phone in {city}.", "I never write my address here.", "My bus number is {n}.",
           "I have a new credit card, it is blue.", "There were {digits} people at the concert.", "{name} has moved to {city}.",
           "My email was hacked last year.", "The invoice number is {digits}."]

RULES = Meanings("moderation.rules", {              # broad: each fits every sentence of its offence
    "spam": ["No spam.", "spam such as fake prizes or free money", "junk and spam", "chain letters, fake prizes and other spam",
    "spam, junk or fake prizes",
             "It is spam or junk.", "get rich fast, free money and other spam", "spam, such as chain letters", "spam and chain letters",
             "junk such as free money or chain letters"],
    "phishing": ["asks for a password, PIN or login", "No asking for passwords or PINs.", "tries to steal a password, PIN or login",
    "tries to steal secret data",
                 "It asks for a PIN, password or login.", "phishing for secret data", "phishing for passwords, PINs or logins", "No phishing.",
                 "phishing, which tries to steal secret data", "steals secret data such as passwords"],
    "threat": ["threatens a person", "No threats.", "says that someone will be hurt", "a threat of violence", "threats against a person",
               "It threatens to hurt a person.", "threats of violence", "makes threats", "a threat to hurt someone",
               "threatens someone with violence"],
    "insult": ["insults a person", "No insults.", "rude to a person", "an insult", "insults or rude words", "It insults someone.",
               "rude words against a person", "is rude and insults someone", "No rude words against others.", "insults such as stupid or idiot"],
    "advertising": ["sells something", "No advertising.", "an offer from a shop or company", "advertising", "offers something for sale",
                    "It offers something to buy.", "advertising for goods or services", "tries to sell goods or services",
                    "wants people to buy something",
                    "an advertisement that wants to sell", "advertising that wants people to buy"],
    "personal_data": ["No private data of people.", "gives away personal data", "shows personal data of someone", "private data of a person",
                      "It shows personal data.", "personal data: phone, address, email or card", "No phone numbers, addresses, emails or cards.",
                      "gives away private data", "shows the phone, address, email or card of someone", "gives away someone's private data"],
    "none": ["It breaks no rule.", "harmless", "nothing wrong", "It is allowed by the rules.", "no rule is broken", "a harmless post",
             "nothing against the rules", "harmless, nothing wrong with it", "It is harmless.", "allowed by every rule"],
})
PHRASES = Meanings("moderation.phrases", {
    "spam": ["spam", "a spam message", "spam such as fake prizes or free money", "spam or junk", "junk, that is, spam",
    "junk such as fake prizes or spam"],
    "phishing": ["phishing", "an attempt to get a password, PIN or login", "phishing for secret data", "an attempt to steal secret data",
                 "phishing for a password, PIN or login", "an attempt to get secret data"],
    "threat": ["a threat", "a threat against a person", "a threat of violence", "a threat against someone", "a threat to hurt someone",
               "a threat of violence against someone"],
    "insult": ["an insult", "an insult against a person", "a rude insult", "an insult against someone", "a rude remark about someone",
               "a rude remark against a person"],
    "advertising": ["advertising", "an advertisement", "an offer to sell something", "advertising for goods or services",
    "an offer of goods or services",
                    "an advertisement for something to buy", "an offer to buy something"],
    "personal_data": ["personal data", "personal data of someone", "private data of a person", "private data", "someone's personal data",
                      "someone's private data"],
})
KINDS_OF_DATA = Meanings("moderation.kinds_of_data", {
    "phone": ["a phone number", "the phone number of a person", "a number to call", "a number to phone someone", "a phone number to call",
              "someone's phone number"],
    "address": ["a home address", "the home address of a person", "a street and house number", "the street where someone lives",
                "a home address with street",
                "someone's home address"],
    "card": ["a card number", "the number of a credit card", "credit card data", "a credit card number", "the number of someone's card",
             "a long card number"],
    "email": ["an email address", "the email of a person", "a mail address", "an address to send email", "someone's email address",
              "an address for mail"],
    "none": ["no personal data", "none", "none of these", "no data of a person", "no private data", "none at all"],
})
ACTIONS = Meanings("moderation.actions", {
    "allow": ["leave it online", "do nothing", "keep the post", "allow it", "the post stays", "leave the post as it is", "allow the post",
              "it stays online",
              "nothing is done", "keep it online"],
    "warn": ["send a warning", "warn the author", "a warning", "tell the author not to do it again", "the author gets a warning", "warn the writer",
             "give a warning", "warn, and tell the author why", "warn and tell the writer", "write a warning to the author"],
    "remove": ["delete the post", "take it down", "remove it", "the post is deleted", "take the post down", "remove the post", "delete it",
               "it is taken down", "the post is removed", "delete or remove it"],
    "escalate": ["call a senior moderator", "pass it to the police or a senior", "escalate it", "hand it to a senior",
                 "pass it on to a person in charge",
                 "escalate to the person in charge", "hand it to the person in charge", "escalate to a senior",
                 "pass the case to a senior moderator",
                 "hand over and escalate"],
})
SEVERITIES = Meanings("moderation.severities", {
    "none": ["no severity", "harmless", "none", "not a problem", "no problem at all", "nothing wrong", "harmless, no problem", "nothing to do"],
    "low": ["low severity", "low", "a small problem", "slightly bad", "a low level", "a small matter", "low, a small problem", "minor and small"],
    "medium": ["medium severity", "medium", "a middle level", "of middle severity", "between low and high", "a medium level",
               "in the middle, between low and high",
               "medium, in the middle"],
    "high": ["high severity", "high", "a serious problem", "serious", "a high level", "a serious matter", "high, a serious problem",
             "very serious"],
    "critical": ["critical severity", "critical", "the worst problem", "the worst level", "a critical level", "most severe, the worst",
                 "a critical problem",
                 "critical, the very worst"],
})
POLICY_NAMES = {"spam": ["spam"], "phishing": ["phishing"], "threat": ["threat", "threats"], "insult": ["insult", "insults"],
                "advertising": ["advertising", "ads"], "personal_data": ["personal_data", "private_data"]}
