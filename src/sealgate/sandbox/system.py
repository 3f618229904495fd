"""The sandbox's one door to clocks, sleep and chance. Everything else is handed what it needs from here."""

import asyncio
import random
import secrets
import time


class System:
    """The machine's own clocks and randomness; tests put one in its place whose time moves by hand."""

    def __init__(self) -> None:
        self._steady_origin_s = time.time() - time.monotonic()

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by this machine's clock."""
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        """Seconds that never run backwards; they start at the wall clock, so that windows can be aligned."""
        return self._steady_origin_s + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(seconds)

    def token(self, n_bytes: int) -> bytes:
        """Give unpredictable bytes, for keys, secrets and tokens."""
        return secrets.token_bytes(n_bytes)

    def dice(self, seed: int | None = None) -> random.Random:
        """Give a generator of chance, repeatable when seeded: for faults and waits, never for secrets."""
        return random.Random(seed)  # noqa: S311 - says so itself
