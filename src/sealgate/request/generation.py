"""All that one configuration makes of the gateway's parts: frozen, and replaced as a whole by a reload."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sealgate.config import Config
from sealgate.exchange.clock_keeper import ClockKeeper
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.keys.key import SigningKey
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.orders.validity import Nonces, Stamps
from sealgate.request.admission import Rules, Ticket
from sealgate.request.key_breaker import KeyBreaker
from sealgate.venues.routes import Auth

_SIGNED, _OPEN = Auth.SIGNED, Auth.OPEN  # looked up once, as in context.py


@dataclass(frozen=True, slots=True)
class Line:
    """Where a request waits for its turn, and whether it needs the clock.

    `window_ms` is how long the exchange accepts its timestamp, None if it has none. With a `serial`,
    requests go one at a time, so that none overtakes another with a smaller nonce.
    """

    scheduler: RateScheduler
    window_ms: int | None = None
    serial: str = ""


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key in use, with the scheduler that its requests pass, its timestamps and its circuit breaker.

    Its nonces are shared by all who use the same key at the exchange. `serial` is for signed requests.
    """

    key: SigningKey
    scheduler: RateScheduler
    stamps: Stamps
    nonces: Nonces
    breaker: KeyBreaker
    serial: str = ""
    signed_line: Line = field(init=False)
    other_line: Line = field(init=False)

    def __post_init__(self) -> None:
        window_ms = self.key.recv_window_ms
        object.__setattr__(self, "signed_line", Line(self.scheduler, window_ms, self.serial))
        object.__setattr__(self, "other_line", Line(self.scheduler, window_ms))


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
    open_line: Line = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_line", Line(self.gates.of_open))

    def line_of(self, ticket: Ticket) -> Line:
        """Return where a request waits: with its key, or with all that need none."""
        if ticket.route.auth is _OPEN:
            return self.open_line
        live_key = self.live_keys[ticket.key]
        return live_key.signed_line if ticket.route.auth is _SIGNED else live_key.other_line
