"""One exchange: all that its requests share, from the clock to the keys in use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sealgate.exchange.clock_keeper import ClockKeeper
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.exchange.stamps import Nonces, Stamps
from sealgate.exchange.stream_hosts import StreamHosts
from sealgate.keys.key import SigningKey
from sealgate.keys.key_breaker import KeyBreaker
from sealgate.limits.membership import Membership
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.venues.routes import Auth

# Looked up once: Python 3.11 takes 130 ns longer for a member.
_SIGNED: Final = Auth.SIGNED
_OPEN: Final = Auth.OPEN


@dataclass(frozen=True, slots=True)
class Line:
    """Where a request waits for its turn, in which pools, and whether it needs the clock.

    `window_ms` is how long the exchange accepts its timestamp, None if it has none. With a `serial`,
    requests go one at a time, so that none overtakes another with a smaller nonce.
    """

    scheduler: RateScheduler
    membership: Membership
    window_ms: int | None = None
    serial: str = ""


@dataclass(frozen=True, slots=True)
class LiveKey:
    """A key in use, with where its requests wait, its timestamps and its circuit breaker.

    Its nonces are shared by all who use the same key at the exchange. `serial` is for signed requests.
    """

    key: SigningKey
    scheduler: RateScheduler
    membership: Membership
    stamps: Stamps
    nonces: Nonces
    breaker: KeyBreaker
    serial: str = ""
    signed_line: Line = field(init=False)
    other_line: Line = field(init=False)

    def __post_init__(self) -> None:
        window_ms = self.key.recv_window_ms if self.key.needs_clock else None
        object.__setattr__(self, "signed_line", Line(self.scheduler, self.membership, window_ms, self.serial))
        object.__setattr__(self, "other_line", Line(self.scheduler, self.membership, window_ms))


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange that the gateway serves; a reload replaces it as a whole."""

    upstream: Upstream
    clock: KeptClock
    clock_keeper: ClockKeeper
    gates: Gates
    live_keys: Mapping[str, LiveKey]
    stream_hosts: StreamHosts
    open_line: Line = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_line", Line(self.gates.scheduler, self.gates.of_open))

    def line_of(self, alias: str, auth: Auth) -> Line:
        """Return where a request waits: with its key, or with all that need none."""
        if auth is _OPEN:
            return self.open_line
        live_key = self.live_keys[alias]
        return live_key.signed_line if auth is _SIGNED else live_key.other_line
