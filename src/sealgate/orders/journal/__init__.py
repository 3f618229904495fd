"""The journal: what must outlive the process, in one SQLite file.

What a return of `Journal.intent` promises: the row survives the end of this process, by SIGKILL too. The disk
is synced by the checkpoint about once a second, so that a power cut may cost the records of about the last
second, never the file; syncing each would put a disk's latency before every order.

Pure:
schema    the tables
rows      what a row of an order says
ages      how old a row is
shedding  what goes first when the file is too large

Shell:
file      open, check, make
lock      one gateway at a time
orders    statements on the table of orders
counts    what is counted for policies
upkeep    sync, prune
thread    the one thread that has the database; bad disks
journal   what the gateway and `sealgate orders` call
halts     the table of halts
learned   limits and prices
nonces    reserved nonces
insight   what `sealgate check` reads
marks     notice the loss of the file
"""

from sealgate.orders.journal.file import JournalError
from sealgate.orders.journal.journal import Journal
from sealgate.orders.journal.learned import LearnedKeeper
from sealgate.orders.journal.nonces import NoncesKeeper
from sealgate.orders.journal.rows import Order
from sealgate.orders.journal.upkeep import Keeping

__all__ = ["Journal", "JournalError", "Keeping", "LearnedKeeper", "NoncesKeeper", "Order"]
