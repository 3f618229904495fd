"""Orders in doubt: they were sent, and what became of them is not known.

An order in doubt may have been executed, or may be so until its fence has passed. Only looking it up at the
exchange ends the doubt; nothing here does so by itself.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doubt:
    """One of them, as its readers want it; times are epoch ms.

    `id` is the gateway's own, `request_id` the one in log and reply, which a bot may have chosen. `sent_ms`
    is by this host's clock; `timestamp_ms`, which was signed, and `fence_ms`, after which it can no longer be
    admitted, are by the exchange's.
    """

    id: str
    request_id: str
    bot: str
    key: str
    method: str
    route: str
    target: str
    idempotency_key: str | None
    timestamp_ms: int
    fence_ms: int
    attempts: int
    sent_ms: int


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """The journal at one moment. `doubts` are the oldest of the `in_doubt` orders, as many as are shown.

    `trouble` is why nothing can be written, in words, None where all is well; `is_refusing` says that orders
    are refused for it.
    """

    in_doubt: int
    doubts: tuple[Doubt, ...]
    trouble: str | None
    is_refusing: bool
