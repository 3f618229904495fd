"""What the bots count, what the exchanges' journals say, and the contrast at the end."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sealgate.sandbox.journal import Receipt

_RECENT_WAITS = 1000
_NOT_OF_THE_KEY = ("/v1/trade/time", "/v1/stream")  # what its limit does not count


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
        self._recent: deque[float] = deque(maxlen=_RECENT_WAITS)
        self._unanswered: list[float] = []

    @contextmanager
    def waiting(self, method: str) -> Iterator[None]:
        """Count a request, and the time that the block takes as its wait."""
        asked = self._now()
        self.requests += 1
        self._unanswered.append(asked)
        try:
            yield
        finally:
            self._unanswered.remove(asked)
            seconds = self._now() - asked
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
        """The longest wait; one that still lasts counts as well."""
        now = self._now()
        return max(self._longest_s, *(now - asked for asked in self._unanswered), 0.0)


class Count:
    """The requests that one exchange counted for the key, by its own journal.

    `by_window` are those accepted, by the number of their window of `window_s` seconds, counted from 1970.
    """

    def __init__(self, window_s: float) -> None:
        self.limited = 0
        self.by_window: Counter[int] = Counter()
        self.last = 0
        self._window_ms = window_s * 1000

    @property
    def accepted(self) -> int:
        """How many were accepted."""
        return self.by_window.total()

    def add(self, receipts: "Iterable[Receipt]") -> None:
        """Count those up to the first that is still being answered; `last` is the number of the last one."""
        for receipt in receipts:
            if receipt.verdict == "pending":
                return
            self.last = receipt.n
            if not receipt.request.path.startswith(_NOT_OF_THE_KEY):
                self.by_window[int(receipt.now.wall_ms // self._window_ms)] += receipt.executed
                self.limited += receipt.verdict == "rate_limited"


@dataclass(frozen=True, slots=True)
class Team:
    """The four bots on one way to the exchange: what they counted, and what its journal says."""

    tallies: Mapping[str, Tally]
    count: Count


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
    waits: Mapping[str, Waits] = field(default_factory=dict)


def whole_windows(started_s: float, ended_s: float, window_s: float) -> range:
    """Return the windows that lie wholly within this time.

    The one in which the bots started is left out: if they fill it at its end, they seem to exceed the limit.
    """
    return range(int(started_s // window_s) + 1, int(ended_s // window_s))


def figures(team: Team, windows: range, window_s: float) -> Figures:
    """Return a team's figures. The rate is taken over `windows`, which are the same for both teams."""
    count, tallies = team.count, team.tallies.values()
    in_windows = sum(count.by_window[window] for window in windows)
    return Figures(
        longest_cancel_s=round(max(bot.longest_cancel_s for bot in tallies), 3),
        limited=count.limited,
        limited_per_1000_accepted=round(count.limited / count.accepted * 1000, 1) if count.accepted else None,
        accepted_per_s=round(in_windows / (len(windows) * window_s), 2) if windows else None,
        unknown_orders=sum(bot.unknown_orders for bot in tallies),
        waits={
            name: Waits(round(bot.usual_wait_s, 3), round(bot.longest_wait_s, 3))
            for name, bot in team.tallies.items()
        },
    )


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


def rows(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Yield label, figure through Sealgate and figure without."""

    def row(label: str, text_of: Callable[[Figures], str]) -> tuple[str, str, str]:
        return label, text_of(summary.through_sealgate), text_of(summary.on_its_own)

    yield row("longest wait of a cancel", lambda of: f"{of.longest_cancel_s:.2f} s")
    yield row("429s from the exchange", lambda of: str(of.limited))
    yield row("429s per 1000 accepted", lambda of: _or_dash(of.limited_per_1000_accepted, "{:.0f}"))
    allowed = f"accepted/s, of {summary.allowed_per_s:.1f} allowed"
    yield row(allowed, lambda of: _or_dash(of.accepted_per_s, "{:.1f}"))
    yield row("orders of unknown fate", lambda of: str(of.unknown_orders))
    for name, ours in summary.through_sealgate.waits.items():
        # The bot named cancel waits for its orders, too; the longest wait of a cancel has a row of its own.
        label = f"waits of {name}{' (orders too)' if name == 'cancel' else ''}, p50 / max"
        yield label, _both(ours), _both(summary.on_its_own.waits[name])


def _both(waits: Waits) -> str:
    return f"{waits.usual_s:.2f} / {waits.longest_s:.2f} s"


def _or_dash(number: float | None, form: str) -> str:
    return "-" if number is None else form.format(number)
