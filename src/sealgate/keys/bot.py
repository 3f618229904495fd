"""A client of the gateway."""

from dataclasses import dataclass

from sealgate.venues.routes import Permission


@dataclass(frozen=True, slots=True, eq=False)
class Bot:
    """A client of the gateway, at one exchange. `weight` is its share.

    `keys` are the aliases of those of its keys that are valid there, the first is the default; it may have
    none. `exchanges` are the names of those where it has one.
    """

    name: str
    keys: tuple[str, ...]
    may: frozenset[Permission]
    weight: float = 1.0
    exchanges: tuple[str, ...] = ()
