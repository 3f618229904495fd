"""How an attempt at the exchange failed: it brought no whole reply."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class FailureKind(Enum):
    """How far an attempt came that brought no whole reply."""

    FULL = "full"  # all our connections are in use, and the exchange was not even turned to
    UNREACHABLE = "unreachable"  # no connection: no byte was written
    CONNECT_TIMEOUT = "connect_timeout"  # the same, too late
    LOST = "lost"  # written, then no whole reply: reset, cut, garbage
    LATE = "late"  # written, and no whole reply in time


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt without a whole reply; `detail` is for people and has no secret.

    `limit_fields` is what the head said of the limit where its status alone shows a refusal for it, and the
    body was cut; as in `ReplyHead`.
    """

    kind: FailureKind
    detail: str
    limit_fields: Mapping[str, str] | None = None

    @property
    def is_unsent(self) -> bool:
        """Whether no byte was written."""
        return self.kind in (FailureKind.FULL, FailureKind.UNREACHABLE, FailureKind.CONNECT_TIMEOUT)

    @property
    def is_for_time(self) -> bool:
        """Whether its time was over: for another request, with more of it, that says nothing."""
        return self.kind in (FailureKind.FULL, FailureKind.CONNECT_TIMEOUT, FailureKind.LATE)

    @property
    def is_own(self) -> bool:
        """Whether our own bound was met: then it is no attempt, and no error of the exchange."""
        return self.kind is FailureKind.FULL
