"""What the demo reads: the journals of the exchanges, and the gateway's status."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

_UNSIGNED = "/v1/trade/time"


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
