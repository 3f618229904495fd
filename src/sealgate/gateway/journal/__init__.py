"""The journal: what must outlive the process, in one SQLite file.

file.py      the file itself: permissions, version, damage, and the lock that keeps a second gateway away
learned.py   what was learned of each key's limit, written once a minute
orders.py    the table of orders: an intent before the first byte, the ending after the reply
ledger.py    the open file: writing to it, and looking after it
ages.py      how old an order is, where the wall clock may jump
shedding.py  what goes from a full file, and whose
writer.py    the thread that alone has the ledger; all that waits is one transaction
halts.py     which orders a person halted
book.py      the orders as the pipeline uses them
desk.py      settling orders in doubt, from a process of its own
insight.py   what is kept, for who only looks

What a return of `OrderBook.intent` promises: the row survives the end of this process, by SIGKILL too. The
disk is synced by the checkpoint about once a second, so that a power cut may cost the records of about the
last second, never the file; syncing each would put a disk's latency before every order.
"""

from sealgate.gateway.journal.book import OrderBook
from sealgate.gateway.journal.file import JournalError
from sealgate.gateway.journal.halts import HaltsTable
from sealgate.gateway.journal.learned import Journal, Keeper
from sealgate.gateway.journal.ledger import Keeping
from sealgate.gateway.journal.orders import Order

__all__ = ["HaltsTable", "Journal", "JournalError", "Keeper", "Keeping", "Order", "OrderBook"]
