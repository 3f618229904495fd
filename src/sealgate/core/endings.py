"""How a request ended, as far as that is remembered: what its bot may conclude, and the reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from sealgate.core.outcome import Conclusion

_NOT_SENT, _REFUSED = Conclusion.NOT_SENT, Conclusion.REFUSED  # looked up once: that takes long
LARGEST_BODY = 256 * 1024  # of a reply that is kept


@dataclass(slots=True)
class BotReply:
    """A reply as a bot gets it; `fields` are without the gateway's own notes."""

    status: int
    phrase: str
    fields: Sequence[tuple[bytes, bytes]]
    body: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes to keep, roughly."""
        return len(self.body) + sum(map(len, chain.from_iterable(self.fields)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended: what its bot may conclude, and the reply, None where that was not kept.

    `fence_ms` is the server time after which it can no longer be admitted; 0 where nothing was signed.
    `is_own` says that it ended without a reply of the exchange to pass on: the gateway answered, or nobody.
    `is_limited` says that the reply refuses it for the limit.
    """

    conclusion: Conclusion
    fence_ms: int = 0
    reply: BotReply | None = None
    is_own: bool = False
    is_limited: bool = False


def is_remembered(ending: Ending) -> bool:
    """Ask whether a key is spent by such an ending.

    It is not where nothing was sent, and not where the exchange refused for a moment only (for its limit, or
    the time ran out after such a refusal): a bot that comes back with the same key then wants it sent, and
    stored, the refusal would be repeated for as long as keys are kept.
    """
    if ending.conclusion is _REFUSED:
        return not (ending.is_own or ending.is_limited)
    return ending.conclusion is not _NOT_SENT
