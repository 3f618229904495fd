"""Other names of exchanges: the venue to use, or why the exchange is not served.

For the name of a known exchange, never suggest another one with a similar name.
"""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from sealgate import venues
from sealgate.machine.nearest import nearest

_FILE = Path(venues.__file__).parent / "other_names.toml"
_ALIKE = 0.82  # a typo in a name of five letters; a lower similarity means another name


@dataclass(frozen=True, slots=True)
class Served:
    """The venue that a name means, with the settings needed."""

    venue: str
    settings: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f'{name} = "{value}"' for name, value in self.settings.items()]
        return " with ".join(filter(None, (self.venue, ", ".join(lines))))


@dataclass(frozen=True, slots=True)
class NotServed:
    """Why an exchange is not served, and what to do instead."""

    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.why}; {self.fix}"


@dataclass(frozen=True, slots=True)
class OtherNames:
    """The content of the data file; names are spelled as there."""

    products: tuple[str, ...]
    endings: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], Served | NotServed], ...]


@cache
def other_names() -> OtherNames:
    """Return the names that people use although no venue has them."""
    tables = tomllib.loads(_FILE.read_text("utf-8"))
    same = [(tuple(row["names"]), Served(row["venue"], row.get("set", {}))) for row in tables["same"]]
    rest = [(tuple(row["names"]), NotServed(row["why"], row["fix"])) for row in tables["not_served"]]
    return OtherNames(tuple(tables["products"]), tuple(tables["endings"]), (*same, *rest))


def not_served() -> dict[str, NotServed]:
    """Return the exchanges that are known but not served, by name."""
    return {
        name: meaning
        for names, meaning in other_names().rows
        if isinstance(meaning, NotServed)
        for name in names
    }


def why_not(name: str) -> NotServed | None:
    """Return why the exchange of this name is not served; None if it is served, or unknown."""
    reasons = {_plain(known): reason for known, reason in not_served().items()}
    return reasons.get(_plain(name))


def explain(name: str, served: Collection[str]) -> str:
    """Return why a name is not one of the `served`, and what to write: "cause; fix"."""
    others = other_names()
    meanings = {_plain(one): Served(one) for one in served} | {
        _plain(one): meaning for names, meaning in others.rows for one in names
    }
    plain = _plain(name)
    # There are three cases: a known name, a known name followed by a product or a site's ending, and a typo.
    if (meaning := meanings.get(plain)) is not None:
        return (
            f"is not served: {meaning}"
            if isinstance(meaning, NotServed)
            else f"is not a venue; use {meaning}"
        )
    # First without the ending: "binancecom" resembles another name more than it does binance.
    stem, _, ending = name.rpartition(".")
    plain = _plain(stem if stem and ending.lower() in others.endings else name)
    shorter = (plain.removesuffix(product) for product in others.products if plain.endswith(product))
    known = plain if plain in meanings else next(shorter, plain)
    close = known if known in meanings else nearest(plain, meanings, _ALIKE)
    if close is None:
        return "is not a venue; `sealgate venues` lists them"
    if isinstance(meaning := meanings[close], NotServed):
        return f"is not a venue, and {close} is not served: {meaning}"
    return f"is not a venue; did you mean {meaning}?"


def _plain(name: str) -> str:
    """Return a name in the form used to compare: lower-case letters and digits."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
