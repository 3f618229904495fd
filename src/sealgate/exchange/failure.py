"""How an attempt failed that brought no whole reply."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class FailureKind(Enum):
    """How far an attempt came."""

    FULL = "full"  # all our connections were in use: the exchange was not contacted
    UNREACHABLE = "unreachable"  # no connection: no byte was written
    PROXY = "proxy"  # the proxy opened no way to the exchange: no byte was written
    CONNECT_TIMEOUT = "connect_timeout"  # no connection in time: no byte was written
    LOST = "lost"  # written, but the reply was reset, cut or garbage
    LATE = "late"  # written, but no whole reply in time


_UNSENT = (FailureKind.FULL, FailureKind.UNREACHABLE, FailureKind.PROXY, FailureKind.CONNECT_TIMEOUT)


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt without a whole reply. `detail` is for people and contains no secret.

    `limit_fields` is as in `ReplyHead`, if the status alone shows a refusal for the limit and only the body
    was cut.
    """

    kind: FailureKind
    detail: str
    limit_fields: Mapping[str, str] | None = None

    @property
    def is_unsent(self) -> bool:
        """Whether no byte was written."""
        return self.kind in _UNSENT

    @property
    def is_for_time(self) -> bool:
        """Whether its time was over, which means nothing for a request with more time."""
        return self.kind in (FailureKind.FULL, FailureKind.CONNECT_TIMEOUT, FailureKind.LATE)

    @property
    def is_own(self) -> bool:
        """Whether a bound of our own was reached: neither an attempt nor an error of the exchange."""
        return self.kind is FailureKind.FULL
