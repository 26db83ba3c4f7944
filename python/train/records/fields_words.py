"""The words of the family `fields`: field names and what they hold, statuses, how they are written and described."""

from .core import Meanings, Pool

NAMES_AND_SORTS = [("email", "email"), ("phone", "phone"), ("city", "place"), ("address", "address"), ("manager", "person"), ("contact", "person"),
                   ("company", "company"), ("supplier", "company"), ("location", "place"), ("region", "place"), ("serial number", "code"),
                   ("reference", "code"), ("tracking number", "code"), ("invoice number", "code"), ("start date", "date"), ("end date", "date"),
                   ("last check", "date"), ("product", "product"), ("spare part", "product"), ("backup contact", "person"), ("assistant", "person"),
                   ("mobile", "phone"), ("fax", "phone"), ("home town", "place"), ("employer", "company"), ("account number", "code"),
                   ("website", "site"), ("work email", "email"), ("supervisor", "person"), ("branch", "place"), ("partner", "company"),
                   ("birthday", "date"), ("room", "room"), ("desk", "room"), ("locker", "room"), ("order number", "code"), ("sponsor", "company"),
                   ("reviewer", "person"), ("warehouse", "place"), ("key number", "code")]
FIELDS = Pool("fields.fields", NAMES_AND_SORTS)
SORTS = dict(NAMES_AND_SORTS)
EMPTY = [None, None, "", "", "n/a", "-", "absent", "absent"]        # "absent": the key itself is left out

# status: (how a record may write it, [descriptions])
STATUSES = {
    "order": {
        "pending": (["pending", "waiting", "not started"], [
            "It is waiting, nothing has been sent.", "Still waiting to be handled.", "Nobody has started on it yet.", "Not started yet.",
            "It waits for its turn.", "Waiting: work has not started.", "It is pending and has not been started.", "Pending, still to be handled."]),
        "shipped": (["shipped", "sent", "on the way"], [
            "It is on its way.", "The parcel has been sent.", "Sent, but not there yet.", "It was sent and is on its way.",
            "The goods are on their way.", "Shipped, now on its way.", "It has been shipped.", "It was shipped but is not there yet."]),
        "delivered": (["delivered", "arrived", "received"], [
            "It has arrived.", "The customer has received it.", "The parcel has been delivered.", "Arrived and received.",
            "It was delivered to the customer.", "The goods have arrived.", "It was received by the customer.", "Delivered: it has arrived."]),
        "cancelled": (["cancelled", "called off", "cancelled by customer"], [
            "It was called off.", "It has been cancelled.", "Called off, nothing will be sent.", "It was cancelled and will not be sent.",
            "Cancelled by someone.", "It will not go on, it was called off.", "The order was cancelled.", "It was stopped and cancelled."]),
        "returned": (["returned", "sent back", "given back"], [
            "It was sent back.", "The customer sent it back.", "It came back to us.", "The goods were returned.", "It has been returned.",
            "The parcel came back.", "Returned by the customer.", "It was given back and returned."])},
    "ticket": {
        "new": (["new", "just in", "unread"], [
            "It is new, nobody has read it.", "Nobody has read it yet.", "It has just come in.", "New and still unread.",
            "It just came in and is unread.", "A new one that has just come in.", "It is unread.", "It is new."]),
        "in_progress": (["in progress", "being worked on", "started"], [
            "Someone is working on it.", "Work on it has begun.", "It is being worked on.", "Work is in progress.", "It is in progress.",
            "Someone has begun with the work.", "It is under way.", "Work is under way."]),
        "on_hold": (["on hold", "paused", "halted"], [
            "It is paused.", "Work on it has been halted.", "It was put on hold.", "Paused for now.", "It is on hold for now.",
            "Halted for the time being.", "Work is paused.", "It has been put on hold and is halted."]),
        "solved": (["solved", "resolved", "fixed"], [
            "The problem is solved.", "It has been fixed.", "The problem has been fixed.", "A solution was found.", "It is resolved.",
            "It was resolved with a solution.", "Fixed: the problem is gone.", "The problem is gone and resolved."]),
        "rejected": (["rejected", "refused", "turned down"], [
            "It was turned down.", "It has been refused.", "We said no to it.", "Rejected, we will not do it.", "It was rejected.",
            "Turned down: we said no.", "It was refused and will not be done.", "The answer was no, it is rejected."])},
    "device": {
        "online": (["online", "connected", "up"], [
            "It is connected.", "It can be reached over the network.", "It is up and connected.", "The device is online.", "Connected and up.",
            "It is online and can be reached.", "It is up.", "The network can reach it."]),
        "offline": (["offline", "disconnected", "down"], [
            "It is not connected.", "It cannot be reached over the network.", "It is down.", "The device is offline.", "Disconnected and down.",
            "It is offline and cannot be reached.", "It has lost its connection.", "The network cannot reach it."]),
        "faulty": (["faulty", "broken", "defective"], [
            "It is broken.", "It has a defect.", "It does not work as it should.", "Broken, it needs repair.", "It is defective.",
            "A fault was found, so it needs repair.", "It has a fault.", "Something in it is broken or has a defect."]),
        "maintenance": (["maintenance", "being serviced", "under maintenance"], [
            "It is being serviced.", "A technician is servicing it.", "It is under maintenance.", "Service work is being done on it.",
            "Maintenance is under way.", "It gets its regular service.", "Under maintenance by a technician.", "A technician has it for service."]),
        "retired": (["retired", "decommissioned", "scrapped"], [
            "It is no longer used.", "It has been taken out of use.", "Retired for good.", "It was scrapped.", "Out of use for good.",
            "It was retired and is no longer used.", "Scrapped, no longer in use.", "It was taken out of use and scrapped."])},
    "person": {
        "active": (["active", "working", "current"], [
            "The person is active.", "A current member who takes part.", "Active and taking part.", "Working at present.", "They are at work.",
            "Currently active.", "They are working and take part.", "A current, active person."]),
        "on_leave": (["on leave", "away", "on vacation"], [
            "The person is away.", "They are on leave.", "Away for a while, will come back.", "On vacation and back later.", "They are on vacation.",
            "Away on leave.", "They are not here but will be back.", "On leave for a while."]),
        "suspended": (["suspended", "blocked", "locked out"], [
            "The person is blocked.", "Access has been blocked.", "They were suspended.", "Locked out for now.", "Their access is locked.",
            "Suspended, without access.", "They are locked out and blocked.", "Access was taken away, a suspension."]),
        "invited": (["invited", "invitation sent", "asked to join"], [
            "The person has been invited.", "An invitation was sent.", "They were asked to join.", "Invited, but has not joined yet.",
            "Asked to join, no answer yet.", "They have an invitation.", "An invitation is waiting for an answer.", "They have not joined yet."]),
        "left": (["gone", "former", "departed"], [
            "The person has left.", "They are gone for good.", "A former member.", "They left and are no longer with us.",
            "No longer with us.", "Gone: a former member.", "They have left for good.", "A former one who is gone."])}}

MEANINGS = {kind: Meanings(f"fields.{kind}", {status: texts for status, (_, texts) in statuses.items()}) for kind, statuses in STATUSES.items()}
NOUNS = {"order": ["order", "purchase"], "ticket": ["ticket", "request", "case"], "device": ["device", "machine", "sensor", "printer", "server"],
         "person": ["employee", "member", "user", "student", "volunteer"]}
