"""Where the requests of one key wait: all bots go through here, and nobody goes while the key is paused."""

from collections import Counter

from sealgate.core.pause import Pause
from sealgate.core.routes import Lane
from sealgate.core.status import KeyStatus
from sealgate.errors import Refusal
from sealgate.gateway.host import Host

# A sleep may not count suspend, and a pause may grow meanwhile: look again at least this often.
_LONGEST_SLEEP_S = 1.0


class Turnstile:
    """The pause of one key, and those who wait for its end."""

    def __init__(self, alias: str, host: Host) -> None:
        self._alias = alias
        self._host = host
        self._pause = Pause()
        self._waiting: Counter[Lane] = Counter()

    async def pass_through(self, lane: Lane, give_up_at: float) -> None:
        """Return when a request may be sent.

        Raises Refusal `rate_limited` at once where the pause lasts longer than `give_up_at`. Cancelling
        leaves the queue.
        """
        while left := self._pause.left(self._host.now()):
            if self._pause.until > give_up_at:
                raise Refusal(
                    "rate_limited",
                    "The exchange paused this key for longer than you can wait.",
                    retry_after_s=left,
                )
            self._waiting[lane] += 1
            try:
                await self._host.sleep(min(left, _LONGEST_SLEEP_S))
            finally:
                self._waiting[lane] -= 1

    @property
    def is_paused(self) -> bool:
        """Whether nothing may be sent at this moment."""
        return self._pause.left(self._host.now()) > 0

    def pause_for(self, retry_after_s: float | None) -> None:
        """Pause after a 429; `retry_after_s` is what it stated, None for nothing usable."""
        self._pause = self._pause.after_429(self._host.now(), retry_after_s, self._host.chance())

    def status(self) -> KeyStatus:
        """Return what waits here, and until when."""
        waiting = {lane.value: self._waiting[lane] for lane in Lane}
        return KeyStatus(self._alias, self._pause.left(self._host.now()), waiting)
