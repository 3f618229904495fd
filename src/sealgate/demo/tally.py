"""What the bots count, what journals and status say, and the contrast at the end."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import aiohttp

_RECENT = 1000
_UNSIGNED = "/v1/trade/time"
_LEARNING_S = 10.0  # with the demo's limit
# The bot named cancel waits for its orders, too; the longest wait of a cancel has a row of its own.
_ALSO = {"cancel": " (orders too)"}


class Tally:
    """One bot's experience. `accepted` and `limited` (429) count replies, `requests` what it asked for.

    A wait lasts from the moment the bot wants something until the exchange has answered it, seconds by `now`.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.requests = 0
        self.accepted = 0
        self.limited = 0
        self.unknown_orders = 0
        self.longest_cancel_s = 0.0
        self._now = now
        self._longest_s = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._open: list[float] = []

    @contextmanager
    def waiting(self, method: str) -> Iterator[None]:
        """Count a request, and the time that the block takes as its wait."""
        asked = self._now()
        self.requests += 1
        self._open.append(asked)
        try:
            yield
        finally:
            self._open.remove(asked)
            self._note(method, self._now() - asked)

    def _note(self, method: str, seconds: float) -> None:
        self._recent.append(seconds)
        self._longest_s = max(self._longest_s, seconds)
        if method == "DELETE":
            self.longest_cancel_s = max(self.longest_cancel_s, seconds)

    @property
    def usual_wait_s(self) -> float:
        """The median of the latest waits."""
        return median(self._recent) if self._recent else 0.0

    @property
    def longest_wait_s(self) -> float:
        """The longest wait, one that still lasts included."""
        now = self._now()
        return max(self._longest_s, *(now - asked for asked in self._open), 0.0)


class Journal:
    """Counts the signed requests that one exchange received, by its own journal.

    `by_window` are those accepted, by the number of their window of `window_s`, counted from 1970.
    """

    def __init__(self, session: aiohttp.ClientSession, base_url: str, window_s: float) -> None:
        self.limited = 0
        self.by_window: Counter[int] = Counter()
        self._window_ms = window_s * 1000
        self._session = session
        self._url = f"{base_url}/_sandbox/journal"
        self._last = 0

    async def read(self) -> None:
        """Count what is new; what cannot be read stays as it was."""
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self._session.get(self._url, params={"since": self._last}) as reply:
                for entry in (await reply.json())["entries"]:
                    if entry["verdict"] == "pending":
                        return  # and count it next time
                    self._count(entry)

    def _count(self, entry: dict[str, Any]) -> None:
        self._last = entry["n"]
        if entry["target"] != _UNSIGNED:
            self.by_window[int(entry["at_ms"] // self._window_ms)] += entry["executed"]
            self.limited += entry["verdict"] == "rate_limited"


@dataclass(frozen=True, slots=True)
class DemoKey:
    """The key and the clock as the gateway sees them. The clock is None until it is synced."""

    pause_s: float = 0.0
    waiting: int = 0
    offset_s: float | None = None
    error_s: float | None = None


class Gateway:
    """Reads the gateway's status."""

    def __init__(self, session: aiohttp.ClientSession, admin_url: str) -> None:
        self.key = DemoKey()
        self._session = session
        self._url = f"{admin_url}/status.json"

    async def read(self) -> None:
        """Take the state of now; what cannot be read stays as it was."""
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self._session.get(self._url) as reply:
                self.key = _demo_key(await reply.json())


def _demo_key(status: dict[str, Any]) -> DemoKey:
    key, clock = status["keys"][0], status["clock"]
    return DemoKey(key["pause_s"], sum(key["waiting"].values()), clock["offset_s"], clock["error_s"])


@dataclass(frozen=True, slots=True)
class Count:
    """What an exchange's journal says of the signed requests it received.

    `by_window` are those accepted by the number of their window, counted from 1970.
    """

    accepted: int
    limited: int
    by_window: Mapping[int, int] = field(default_factory=dict)


def whole_windows(started_s: float, ended_s: float, window_s: float) -> range:
    """Return the windows that lie within this time whole, but not the first one that began before it."""
    return range(int(started_s // window_s) + 1, int(ended_s // window_s))


@dataclass(frozen=True, slots=True)
class Waits:
    """How long one bot waited, from asking to the answer."""

    usual_s: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One team's column. Orders and waits are what its bots know, the rest is by the exchange's journal.

    `accepted_per_s` is None where the run was shorter than a whole window.
    """

    longest_cancel_s: float
    limited: int
    limited_per_1000_accepted: float | None
    accepted_per_s: float | None
    unknown_orders: int
    waits: Mapping[str, Waits]


def figures(count: Count, windows: range, window_s: float, tallies: Mapping[str, Tally]) -> Figures:
    """Put one team's figures together.

    Requests accepted per second are taken over whole windows of the limit, the same ones for both teams. The
    window in which the bots started is left out: who fills it at its end would seem to exceed the limit.
    """
    in_windows = sum(count.by_window.get(window, 0) for window in windows)
    return Figures(
        longest_cancel_s=round(max(bot.longest_cancel_s for bot in tallies.values()), 3),
        limited=count.limited,
        limited_per_1000_accepted=round(count.limited / count.accepted * 1000, 1) if count.accepted else None,
        accepted_per_s=round(in_windows / (len(windows) * window_s), 2) if windows else None,
        unknown_orders=sum(bot.unknown_orders for bot in tallies.values()),
        waits={name: _waits(tally) for name, tally in tallies.items()},
    )


def _waits(tally: Tally) -> Waits:
    return Waits(round(tally.usual_wait_s, 3), round(tally.longest_wait_s, 3))


@dataclass(frozen=True, slots=True)
class Summary:
    """Both columns, and how long the bots ran."""

    seconds: float
    limit_requests: int
    limit_window_s: float
    through_sealgate: Figures
    on_its_own: Figures

    @property
    def allowed_per_s(self) -> float:
        """What the limit allows."""
        return self.limit_requests / self.limit_window_s


# The rows of the table that people read; those of each bot's waits follow.
_ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("longest wait of a cancel", lambda of: f"{of.longest_cancel_s:.2f} s"),
    ("429s from the exchange", lambda of: str(of.limited)),
    ("429s per 1000 accepted", lambda of: _or_dash(of.limited_per_1000_accepted, "{:.0f}")),
    ("accepted/s, of {allowed:.1f} allowed", lambda of: _or_dash(of.accepted_per_s, "{:.1f}")),
    ("orders of unknown fate", lambda of: str(of.unknown_orders)),
)


def rows(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Yield label, figure through Sealgate and figure without."""
    ours, theirs = summary.through_sealgate, summary.on_its_own
    for label, text_of in _ROWS:
        yield label.format(allowed=summary.allowed_per_s), text_of(ours), text_of(theirs)
    for name in ours.waits:
        yield (
            f"waits of {name}{_ALSO.get(name, '')}, p50 / max",
            _both(ours.waits[name]),
            _both(theirs.waits[name]),
        )


def _both(waits: Waits) -> str:
    return f"{waits.usual_s:.2f} / {waits.longest_s:.2f} s"


def _or_dash(number: float | None, form: str) -> str:
    return "-" if number is None else form.format(number)


def in_a_sentence(summary: Summary) -> str:
    """Return what the figures show, whichever way they turn out."""
    ours, theirs = summary.through_sealgate, summary.on_its_own
    cancels = _compared(ours.longest_cancel_s, theirs.longest_cancel_s, ("shorter", "longer", "the same"))
    limited = _compared(ours.limited, theirs.limited, ("fewer", "more", "as many"))
    return (
        f"Through Sealgate the longest wait of a cancel was {cancels}"
        f" ({ours.longest_cancel_s:.2f} s against {theirs.longest_cancel_s:.2f} s), the 429s were {limited}"
        f" ({ours.limited} against {theirs.limited}){_use(summary)}.{_hint(summary)}"
    )


def _hint(summary: Summary) -> str:
    """Return what a short run does not show."""
    is_short = summary.seconds < _LEARNING_S
    return " In so short a run it had hardly learned the limit: --seconds 20 shows more." if is_short else ""


def _compared(ours: float, theirs: float, words: tuple[str, str, str]) -> str:
    less, more, same = words
    if ours == theirs:
        return same
    return less if ours < theirs else more


def _use(summary: Summary) -> str:
    """Return how much of the limit was used, where the run was long enough to tell."""
    rates = (summary.through_sealgate.accepted_per_s, summary.on_its_own.accepted_per_s)
    ours, theirs = ("" if rate is None else f"{rate / summary.allowed_per_s:.0%}" for rate in rates)
    return f", and {ours} of the limit was used (against {theirs})" if ours and theirs else ""
