"""A journal of everything received, in memory, the oldest dropped first. Of bodies it keeps the hash only."""

import hashlib
from collections import deque
from dataclasses import dataclass, replace
from itertools import islice

from sealgate.sandbox.clock import Moment
from sealgate.sandbox.message import Call, Reply, Request
from sealgate.sandbox.models.control import JournalEntry, JournalQuery, JournalReply
from sealgate.sandbox.router import Found

KEPT = 100_000


@dataclass(slots=True)
class Receipt:
    """One line of the journal, written while its request runs. `request` is without its body and stream.

    `found` is its route, None where there is none.
    """

    n: int
    now: Moment
    request: Request
    body_sha256: str
    found: Found | None
    status: int = 0
    verdict: str = "pending"
    fault: str | None = None
    executed: bool = False
    order_id: int | None = None

    @property
    def template(self) -> str:
        """The path as the route has it, or as it came."""
        return self.found.route.template if self.found else self.request.path

    def settle(self, reply: Reply) -> None:
        """Write down what the exchange decided."""
        self.status = reply.status
        self.verdict = reply.verdict
        self.executed = reply.verdict == "ok"
        self.order_id = reply.order_id

    def replace_reply(self, reply: Reply) -> None:
        """Write down a reply that took the place of the exchange's own."""
        self.status = reply.status
        if not self.executed:
            self.verdict = reply.verdict

    def entry(self) -> JournalEntry:
        """Show it."""
        request = self.request
        return JournalEntry(
            n=self.n,
            at_ms=self.now.wall_ms,
            server_ms=self.now.server_ms,
            method=request.method,
            target=request.target,
            headers={name: ", ".join(request.headers.getall(name)) for name in request.headers},
            body_sha256=self.body_sha256,
            client_ip=request.client_ip,
            status=self.status,
            verdict=self.verdict,
            fault=self.fault,
            executed=self.executed,
            order_id=self.order_id,
        )


class Journal:
    """Numbers what is received, from 1."""

    def __init__(self) -> None:
        self._receipts: deque[Receipt] = deque(maxlen=KEPT)
        self._last = 0

    def receive(self, request: Request, found: Found | None, now: Moment) -> Receipt:
        """Open a line for a request that has been read."""
        self._last += 1
        body_sha256 = hashlib.sha256(request.body).hexdigest()
        receipt = Receipt(self._last, now, replace(request, body=b"", stream=None), body_sha256, found)
        self._receipts.append(receipt)
        return receipt

    def forget(self) -> int:
        """Drop all lines; return the last number, as it goes on counting from there."""
        self._receipts.clear()
        return self._last

    def newer(self, number: int) -> list[Receipt]:
        """Return the lines with a higher number."""
        wanted = min(self._last - number, len(self._receipts))
        return list(islice(reversed(self._receipts), max(wanted, 0)))[::-1]

    def since(self, call: Call[JournalQuery]) -> JournalReply:
        """Read what was received, with verdicts: the lines with a number above `since`."""
        return JournalReply(entries=[receipt.entry() for receipt in self.newer(call.input.since)])
