"""The upstream's reply: held while small, so that a cut one is noticed in time; streamed when large."""

from collections.abc import Callable
from dataclasses import dataclass

from sealgate.exchange.destination import TRANSPORT_ERRORS, describe
from sealgate.http.flow import Body
from sealgate.http.headers import ReplyHead
from sealgate.venues.replies import Means, Verdict

HELD_BYTES = 256 * 1024
_DONE = Means.DONE  # looked up once
_REDIRECTS = 300  # the first status that is no success


class BrokenReplyError(Exception):
    """A streamed reply ended before its end."""


class Remainder:
    """What is left of a large reply. Read it to the end or `abandon` it: it holds a connection.

    `release` leaves the connection to the next request, `abandon` cuts it, and `is_wanted` says whether
    others wait for one. `ends_at` is when the time for it is over, on the loop's clock.
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
        """Return the next bytes, b"" at the end. Raises BrokenReplyError where it is cut or too slow."""
        try:
            chunk = await self._content.read()
        except TRANSPORT_ERRORS as error:
            raise BrokenReplyError(describe(error)) from None
        if not chunk:
            self._release()
        return chunk


@dataclass(slots=True, init=False)
class Answer:
    """A reply: its head, sorted, and its body: whole, or the first part with the remainder still to come.

    `verdict` is what it means by the venue's rules, made once for all who ask.
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
        """Whether what was asked for was done, and is not elsewhere."""
        return self.verdict.means is _DONE and self.status < _REDIRECTS


async def read_held(content: Body) -> bytes:
    """Read a body that still comes: whole, or its first part if it is larger than what is held."""
    parts: list[bytes] = []
    size = 0
    while size < HELD_BYTES and (chunk := await content.read()):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)
