"""The journal: the records that must survive the process, in one SQLite file.

When `Journal.intent` returns, the row survives the end of this process, even by SIGKILL. The checkpoint syncs
the disk about once a second: a power cut may cost the records of the last second or so, but never the file.
Syncing each row would add the disk's latency to every order.

Pure:
schema    the tables
rows      the content of an order's row
ages      the age of a row
shedding  which rows to delete first when the file is too large

Shell:
file      open, check, create
lock      one gateway at a time
orders    statements on the table of orders
counts    orders counted for policies
upkeep    sync, prune
thread    the one thread that uses the database; faulty disks
journal   the functions for the gateway and `sealgate orders`
halts     the table of halts
learned   limits and prices
nonces    reserved nonces
insight   a summary for `sealgate check`
marks     notice the loss of the file
"""

from sealgate.orders.journal.file import JournalError
from sealgate.orders.journal.journal import Journal
from sealgate.orders.journal.learned import LearnedKeeper
from sealgate.orders.journal.nonces import NoncesKeeper
from sealgate.orders.journal.rows import Order
from sealgate.orders.journal.upkeep import Keeping

__all__ = ["Journal", "JournalError", "Keeping", "LearnedKeeper", "NoncesKeeper", "Order"]
