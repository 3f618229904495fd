"""A client of the gateway."""

from dataclasses import dataclass

from sealgate.venues.routes import Permission


@dataclass(frozen=True, slots=True, eq=False)
class Bot:
    """A client of the gateway. `keys` are aliases, the first is the default; `weight` is its share.

    There is one of each, so that what follows from a bot can be kept by it.
    """

    name: str
    keys: tuple[str, ...]
    may: frozenset[Permission]
    weight: float = 1.0
