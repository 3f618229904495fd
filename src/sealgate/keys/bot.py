"""A client of the gateway."""

from dataclasses import dataclass

from sealgate.venues.routes import Permission


@dataclass(frozen=True, slots=True, eq=False)
class Bot:
    """A client of the gateway, as it is at one exchange. `weight` is its share.

    `keys` are the aliases of its keys that are valid at this exchange, the default first; there may be none.
    `exchanges` are the names of all exchanges at which it has a key.
    """

    name: str
    keys: tuple[str, ...]
    may: frozenset[Permission]
    weight: float = 1.0
    exchanges: tuple[str, ...] = ()
