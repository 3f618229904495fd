"""The contrast at the end: what the exchange saw of each team, and what its bots went through."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sealgate.cli.demo.tally import Tally


@dataclass(frozen=True, slots=True)
class Count:
    """What an exchange's journal says of the signed requests it received."""

    accepted: int
    limited: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One team's column. Orders and waits are what its bots know, the rest is by the exchange's journal."""

    accepted_per_s: float
    limited: int
    limited_per_1000_accepted: float | None
    longest_cancel_s: float
    unknown_orders: int


def figures(count: Count, seconds: float, tallies: Iterable[Tally]) -> Figures:
    """Put one team's figures together."""
    bots = list(tallies)
    return Figures(
        accepted_per_s=round(count.accepted / seconds, 2),
        limited=count.limited,
        limited_per_1000_accepted=round(count.limited / count.accepted * 1000, 1) if count.accepted else None,
        longest_cancel_s=round(max(bot.longest_cancel_s for bot in bots), 3),
        unknown_orders=sum(bot.unknown_orders for bot in bots),
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Both columns, and how long the bots ran."""

    seconds: float
    limit_requests: int
    limit_window_s: float
    through_sealgate: Figures
    on_its_own: Figures


# The rows of the table that people read.
ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("accepted requests/s", lambda of: f"{of.accepted_per_s:.1f}"),
    ("429s from the exchange", lambda of: str(of.limited)),
    ("429s per 1000 accepted", lambda of: _or_dash(of.limited_per_1000_accepted)),
    ("longest wait of a cancel", lambda of: f"{of.longest_cancel_s:.2f} s"),
    ("orders of unknown fate", lambda of: str(of.unknown_orders)),
)


def _or_dash(number: float | None) -> str:
    return "-" if number is None else f"{number:.0f}"
