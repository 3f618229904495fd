"""All that one configuration makes of the gateway's parts: frozen, and replaced as a whole by a reload."""

from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.config import Config
from sealgate.exchange.clock_keeper import ClockKeeper
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.keys.key import SigningKey
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.orders.validity import Nonces, Stamps
from sealgate.request.admission import Rules
from sealgate.request.key_breaker import KeyBreaker


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key in use, with the scheduler that its requests pass, its timestamps and its circuit breaker.

    Its nonces are shared by all who use the same key at the exchange. With a `serial`, its signed requests go
    one at a time, so that none overtakes another with a smaller nonce; "" where they need not.
    """

    key: SigningKey
    scheduler: RateScheduler
    stamps: Stamps
    nonces: Nonces
    breaker: KeyBreaker
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """What the pipeline works with."""

    config: Config
    rules: Rules
    live_keys: Mapping[str, LiveKey]
    gates: Gates
    upstream: Upstream
    clock: KeptClock
    clock_keeper: ClockKeeper

    @property
    def open_scheduler(self) -> RateScheduler:
        """Where requests without a key wait."""
        return self.gates.of_open
