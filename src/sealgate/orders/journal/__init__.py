"""The journal: what must outlive the process, in one SQLite file.

What a return of `OrderJournal.intent` promises: the row survives the end of this process, by SIGKILL too. The
disk is synced by the checkpoint about once a second, so that a power cut may cost the records of about the
last second, never the file; syncing each would put a disk's latency before every order.
"""

from sealgate.orders.journal.file import JournalError
from sealgate.orders.journal.learned import HaltsTable, LimitsKeeper, LimitsTable, PricesKeeper
from sealgate.orders.journal.ledger import Keeping
from sealgate.orders.journal.nonces import NoncesKeeper, NoncesTable
from sealgate.orders.journal.order_journal import OrderJournal
from sealgate.orders.journal.orders import Order

__all__ = [
    "HaltsTable",
    "JournalError",
    "Keeping",
    "LimitsKeeper",
    "LimitsTable",
    "NoncesKeeper",
    "NoncesTable",
    "Order",
    "OrderJournal",
    "PricesKeeper",
]
