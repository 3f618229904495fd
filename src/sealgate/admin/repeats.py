"""No storm in the log: a warning that says the same again within a minute is counted, not written.

The next one after that minute says how many were left out.
"""

from collections import OrderedDict
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

_QUIET = timedelta(seconds=59)  # so that what comes once a minute passes
_MOST = 256  # different ones that are remembered
_LOUD = frozenset({"warning", "error", "critical"})
_UNLIKE = frozenset({"timestamp", "exc_info", "exception", "request_id"})  # differ, and say nothing new


@dataclass(slots=True)
class _Said:
    """When it was written last, and how often not since."""

    at: datetime
    count: int = 0


class Repeats:
    """A structlog processor; it goes by the line's own `timestamp`, which must be there already."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Let a line pass, or raise DropEvent."""
        if event["level"] not in _LOUD:
            return event
        now = datetime.fromisoformat(event["timestamp"])
        key = tuple(f"{name}={value!r}" for name, value in event.items() if name not in _UNLIKE)
        said = self._said.get(key)
        if said is not None and timedelta(0) <= now - said.at < _QUIET:
            said.count += 1
            raise structlog.DropEvent
        self._note(key, now)
        if said is not None and said.count:
            event["repeated"] = said.count
        return event

    def _note(self, key: tuple[str, ...], now: datetime) -> None:
        self._said[key] = _Said(now)
        self._said.move_to_end(key)
        if len(self._said) > _MOST:
            self._said.popitem(last=False)
