"""The exchange's reply. A small one is held, so that a cut is noticed before the bot gets any of it."""

from collections.abc import Callable
from dataclasses import dataclass

from sealgate.exchange.destination import TRANSPORT_ERRORS, describe
from sealgate.http.flow import Body
from sealgate.http.headers import ReplyHead
from sealgate.venues.replies import Means, Verdict

HELD_BYTES = 256 * 1024
_DONE = Means.DONE  # a name that costs no look-up
_REDIRECTS = 300  # the first status beyond success


class BrokenReplyError(Exception):
    """A streamed reply was cut."""


class Remainder:
    """The rest of a large reply. It holds a connection: read it to the end, or `abandon` it.

    `release` gives the connection back, `abandon` cuts it. `is_wanted` returns whether another request waits
    for a connection. `ends_at` is when the time for the reply is over, on the loop's clock.
    """

    def __init__(
        self,
        content: Body,
        ends_at: float,
        release: Callable[[], None],
        abandon: Callable[[], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._content = content
        self.ends_at = ends_at
        self._release = release
        self.abandon = abandon
        self.is_wanted = is_wanted

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises BrokenReplyError if the reply is cut or too slow."""
        try:
            chunk = await self._content.read()
        except TRANSPORT_ERRORS as error:
            raise BrokenReplyError(describe(error)) from None
        if not chunk:
            self._release()
        return chunk


@dataclass(slots=True, init=False)
class Answer:
    """A reply: its sorted head, and its whole body, or the first part of it with the remainder to be read.

    `verdict` is what the reply means by the venue's rules.
    """

    status: int
    phrase: str
    head: ReplyHead
    body: bytes
    verdict: Verdict
    remainder: Remainder | None

    def __init__(  # noqa: PLR0913, PLR0917 - its fields
        self,
        status: int,
        phrase: str,
        head: ReplyHead,
        body: bytes,
        verdict: Verdict,
        remainder: Remainder | None = None,
    ) -> None:
        self.status = status
        self.phrase = phrase
        self.head = head
        self.body = body
        self.verdict = verdict
        self.remainder = remainder

    @property
    def is_success(self) -> bool:
        """Whether the request was executed, rather than refused or redirected."""
        return self.verdict.means is _DONE and self.status < _REDIRECTS


async def read_held(content: Body) -> bytes:
    """Read a body that is still arriving: all of it, or its first part if it is larger than what is held."""
    parts: list[bytes] = []
    size = 0
    while size < HELD_BYTES and (chunk := await content.read()):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)
