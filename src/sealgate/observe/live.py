"""The live view: it makes a picture twice a second, sends it to viewers, and keeps points for five minutes.

`/status.json`, the page and `sealgate top` all show the same picture.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import structlog

from sealgate.config.names import STRANGER
from sealgate.machine.system import System
from sealgate.observe.evidence import advice, evidence
from sealgate.observe.picture import TICK_S, Picture, circumstances_of
from sealgate.observe.recent import Recent
from sealgate.observe.redaction import redacted
from sealgate.observe.status import Status
from sealgate.observe.troubles import Trouble, client_words
from sealgate.orders.outcome import Outcome
from sealgate.venues.replies import Judge, Whose, doc_link

_MOST_VIEWERS = 50
_QUEUE = 4

Event = tuple[str, str]  # name and data
_KEPT = 600  # points, five minutes
_A_DAY_S = 86_400

log = structlog.get_logger("sealgate.upstream")


class TooManyViewersError(Exception):
    """There are as many viewers as are allowed."""


class Broadcast:
    """Hands every event to every viewer. `None` in a queue is the end."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Event | None]] = set()

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._queues)

    @contextlib.contextmanager
    def viewing(self) -> Iterator[asyncio.Queue[Event | None]]:
        """Yield a viewer's queue as long as the block lasts. Raises TooManyViewersError."""
        if len(self._queues) >= _MOST_VIEWERS:
            raise TooManyViewersError
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    def publish(self, event: Event | None) -> None:
        """Give an event to every viewer; one that does not keep up loses its oldest."""
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)


def row(outcome: Outcome, epoch_s: float) -> dict[str, Any]:
    """Return a request as plain values. `epoch_s` plus `now` are epoch seconds."""
    user_agent = outcome.user_agent and redacted(outcome.user_agent)
    return {
        "id": outcome.request_id,
        "at_ms": round((outcome.started + outcome.total_s + epoch_s) * 1000),
        "bot": outcome.bot or STRANGER,
        "exchange": outcome.exchange,
        "client": outcome.client,
        "user_agent": user_agent,
        "from": client_words(outcome.client, user_agent),
        "key": outcome.key,
        "method": outcome.method,
        "route": outcome.route,
        "status": outcome.status,
        "outcome": outcome.conclusion.value,
        "reason": outcome.reason,
        "attempts": outcome.attempts,
        "wait_ms": round(outcome.queue_s * 1000, 1),
        "took_ms": round(outcome.total_s * 1000, 1),
    }


class Live:
    """A reader of outcomes, and what viewers get.

    `weights` returns each bot's weight, `judges` what says what the replies of each exchange mean,
    `unsigned` the templates of the routes of an exchange that nobody signs.
    """

    def __init__(
        self,
        status: Callable[[], Status],
        system: System,
        weights: Callable[[], Mapping[str, float]] = dict,
        judges: Callable[[], Mapping[str, Judge]] = dict,
        unsigned: Callable[[str], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self.judges = judges
        self.broadcast = Broadcast()
        self._status = status
        self._system = system
        self._weights = weights
        self._recent = Recent(unsigned)
        self._points: deque[str] = deque(maxlen=_KEPT)
        self._history: str | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take in requests that ended, and log the errors that are due."""
        if due := self._recent.take(outcomes, self._system.now()):
            status = self._status()
            for trouble in due:
                self._log(trouble, status)

    def _log(self, trouble: Trouble, status: Status) -> None:
        known = trouble.at_the_time(circumstances_of(status, trouble))
        (log.info if trouble.verdict.whose is Whose.BOT else log.warning)(
            "upstream_error",
            kind=trouble.kind,
            exchange=trouble.exchange,
            key=trouble.key,
            bot=trouble.bot,
            count=trouble.unlogged,
            evidence=evidence(trouble.verdict, known) or None,
            advice=advice(trouble.verdict, known),
            see=doc_link(trouble.verdict),
        )

    def start(self) -> None:
        """Begin to make pictures, inside a running loop."""
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def close(self) -> None:
        """End the pictures, and the streams of all viewers."""
        if self._timer is not None:
            self._timer.cancel()
        self.broadcast.publish(None)

    def _tick(self) -> None:
        self.start()
        ended = self._recent.turn(int(self._system.wall() // _A_DAY_S))
        picture = self._paint()
        point = json.dumps(picture.point(ended))
        self._points.append(point)
        self._history = None
        if self.broadcast.viewers:
            document = json.dumps(picture.document())
            self.broadcast.publish(("picture", f'{{"point":{point},"now":{document}}}'))

    def _paint(self) -> Picture:
        return Picture(
            self._status(),
            self._recent,
            self._weights(),
            self._system.now(),
            self._system.wall(),
            lambda: len(asyncio.all_tasks()),  # which takes as long as there are many: only for who looks
        )

    def document(self) -> dict[str, Any]:
        """Return the picture of this moment as plain values."""
        return self._paint().document()

    def requests(self) -> list[dict[str, Any]]:
        """Return the latest requests as plain values, the latest first."""
        epoch_s = self._system.wall() - self._system.now()
        return [row(one, epoch_s) for one in reversed(self._recent.requests)]

    def history(self) -> str:
        """Return what a viewer gets first, as JSON: the points so far, and the picture.

        It is made once for all who come before the next look: they may come many at once.
        """
        if self._history is None:
            self._history = f'{{"points":[{",".join(self._points)}],"now":{json.dumps(self.document())}}}'
        return self._history
