"""The exchange's time as a command needs it: a few replies, this host's clock as long as there is none."""

from sealgate.core.clock import Sample, ServerClock
from sealgate.core.server_time import stated_time
from sealgate.core.venues.replies import Verdict
from sealgate.gateway.clock.keeper import date_in, time_in
from sealgate.gateway.platform.system import System
from sealgate.gateway.upstream.answer import Answer


class CommandClock:
    """What a command knows of the time. `field` is where a reply of `/time` has it, as in `TimeSource`."""

    def __init__(self, field: str, system: System) -> None:
        self._field = field
        self._system = system
        self._clock = ServerClock()

    def take(self, answer: Answer, sent: float) -> None:
        """Take in a reply of `/time` that just came. Raises UnreadableTimeError."""
        received = self._system.now()
        found = time_in(answer, self._field)
        self._clock = self._clock.observe(Sample(sent, received, found.seconds, found.resolution))

    def take_date(self, answer: Answer, sent: float) -> bool:
        """Take in the `Date` of a reply that just came, true to half a second; return whether it has one."""
        seconds = date_in(answer)
        if seconds is not None:
            self._clock = self._clock.observe(Sample(sent, self._system.now(), seconds, 1.0))
        return seconds is not None

    def refused(self, verdict: Verdict, sent: float) -> None:
        """Take in what a refusal for the timestamp that just came states, if it does."""
        stated = stated_time(verdict.found.get("server_time", ""))
        if stated is not None:
            self._clock = self._clock.observe(Sample(sent, self._system.now(), stated))

    @property
    def is_synced(self) -> bool:
        """Whether the exchange's time is known."""
        return self._clock.is_synced

    def error_s(self) -> float:
        """Return how far off it can be, infinite where it is not known."""
        return self._clock.error(self._system.now())

    def offset_s(self) -> float:
        """Return the exchange's time minus this host's."""
        return self.server_now() - self._system.wall()

    def timestamp_ms(self, now: float) -> int:
        """Return the timestamp to sign with at `now`, a reading of the host's clock."""
        return self._clock.timestamp_ms(now) if self.is_synced else int(self._system.wall() * 1000)

    def server_now(self) -> float:
        """Return the exchange's time in epoch seconds."""
        now = self._system.now()
        return now + self._clock.bounds(now).middle if self.is_synced else self._system.wall()
