"""Published rate limits, written as "1200/60s"."""

import re
from dataclasses import dataclass

from sealgate.config.lists import parse_list

_LIMIT = re.compile(r"(?P<requests>[0-9]{1,9}) */ *(?P<count>[0-9]{1,6}(\.[0-9]{1,3})?)? *(?P<unit>ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class KnownLimit:
    """At most `requests` within any `window_s` seconds."""

    requests: int
    window_s: float

    def __str__(self) -> str:
        return f"{self.requests}/{self.window_s:g}s"


def parse_known_limits(value: object) -> tuple[KnownLimit, ...]:
    """Parse a list of limits; a unit alone is one of it ("20/s")."""
    return tuple(_parse(str(member)) for member in parse_list(value))


def _parse(text: str) -> KnownLimit:
    found = _LIMIT.fullmatch(text.strip())
    limit = KnownLimit(0, 0.0)
    if found is not None:
        limit = KnownLimit(int(found["requests"]), float(found["count"] or 1) * _SECONDS[found["unit"]])
    if limit.requests < 1 or limit.window_s <= 0:
        raise ValueError('is not a limit; write requests per time, as in "1200/60s"')
    return limit
