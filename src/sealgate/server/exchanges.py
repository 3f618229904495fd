"""From the configuration to an exchange, which takes over what has not changed of the former one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sealgate.config import ExchangeConfig
from sealgate.exchange.clock_keeper import ClockKeeper, TimeSource
from sealgate.exchange.destination import Destination, destination_of
from sealgate.exchange.exchange import Exchange, LiveKey
from sealgate.exchange.kept_clock import ClockNeeds, KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.exchange.stamps import Nonces, Stamps
from sealgate.keys.key import SigningKey
from sealgate.keys.key_breaker import KeyBreaker, Stop
from sealgate.keys.parts import ExchangeParts
from sealgate.limits.firewall import Firewall
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.machine import process as machine
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.request.generation import Backend
from sealgate.server.memory import address_of, nonces_place, subject
from sealgate.venues.venue import Scope


class KeyMaker:
    """Makes the keys in use of a generation. `stop` ends the requests of a key that its exchange refuses.

    Schedulers, stamps and nonces stay what they are over a reload, whatever a key's alias and secret are.
    What the exchange counts together has one of each, also where it is configured under two names.
    """

    def __init__(self, former: Iterable[Backend], system: System, stop: Stop) -> None:
        self.system = system
        self._stop = stop
        self._schedulers: dict[str, RateScheduler] = {}
        self._marks: dict[str, tuple[Stamps, Nonces]] = {}
        self._live_keys: dict[tuple[str, str], LiveKey] = {}  # by exchange and alias
        for backend in former:
            for alias, live_key in backend.exchange.live_keys.items():
                self._live_keys[backend.config.name, alias] = live_key
                self._schedulers[subject(backend.config, alias)] = live_key.scheduler
                self._marks[live_key.nonces.place] = live_key.stamps, live_key.nonces

    def make(self, config: ExchangeConfig, parts: ExchangeParts, key: SigningKey) -> LiveKey:
        """Return a key in use. The venue says which keys its limit counts together.

        Raises StartError if limits are to be shared and the packages for that are not installed.
        """
        counted, place = subject(config, key.alias), nonces_place(config, key.alias)
        if counted not in self._schedulers:
            self._schedulers[counted] = _scheduler(config, parts, key.alias, self.system)
        if place not in self._marks:
            self._marks[place] = Stamps(), Nonces(config.venue.signing.nonce, self.system.unique, place)
        stamps, nonces = self._marks[place]
        # What the exchange says of a key holds for the same key and secret at the same address.
        former = self._live_keys.get((config.name, key.alias))
        if former is not None and former.nonces is nonces and former.key.proof == key.proof:
            breaker = former.breaker
            breaker.hasten()
        else:
            breaker = KeyBreaker(config.name, key.alias, self._stop, self.system)
        serial = place if config.venue.signing.nonces_rise else ""
        return LiveKey(key, self._schedulers[counted], stamps, nonces, breaker, serial)


def build_exchange(
    config: ExchangeConfig, parts: ExchangeParts, key_maker: KeyMaker, former: Backend | None = None
) -> Exchange:
    """Make an exchange inside a running loop; it takes over what has not changed of the former one.

    Raises StartError if limits are to be shared and the packages for that are not installed.
    """
    system = key_maker.system
    old = None if former is None else former.exchange
    destination = destination_of(config, parts.ca_digest, parts.proxy_password)
    # 1. Connections, and what is known of a firewall on the way, belong to the destination.
    is_same = old is not None and old.upstream.destination == destination
    upstream = old.upstream if old is not None and is_same else Upstream(destination)
    firewall = old.gates.firewall if old is not None and is_same else Firewall()
    # 2. Limits belong to whom the exchange counts together.
    live_keys = {alias: key_maker.make(config, parts, key) for alias, key in parts.keys.items()}
    of_keys = frozenset(live_key.scheduler for live_key in live_keys.values())
    gates = Gates(of_keys, _open_scheduler(config, live_keys, system, former), firewall)
    # 3. The clock belongs to what it asks. One that is taken over keeps its gates until the swap.
    needs, source, at = settings = _clock_settings(config, destination)
    if (
        former is not None
        and _clock_settings(former.config, former.exchange.upstream.destination) == settings
    ):
        clock, keeper = former.exchange.clock, former.exchange.clock_keeper
    else:
        clock = KeptClock(config.name, needs, system)
        keeper = ClockKeeper(source, clock, Upstream(at, upstream.closes), gates, system)
    return Exchange(upstream, clock, keeper, gates, live_keys)


def _scheduler(config: ExchangeConfig, parts: ExchangeParts, alias: str, system: System) -> RateScheduler:
    """Make a key's scheduler, for this gateway alone or for a cluster."""
    settings, url = pacing_of(config), parts.redis
    if url is None:
        return RateScheduler(Pacer(settings, system.chance), system, config.name)
    if not machine.has_redis():
        raise StartError(f"limits.redis: {machine.REDIS_MISSING}; {machine.REDIS_FIX}, or take it out")
    from sealgate.cluster.redis_group import shared_scheduler  # noqa: PLC0415 - redis is an extra

    return shared_scheduler((config.name, alias), subject(config, alias), url, settings, system)


def _open_scheduler(
    config: ExchangeConfig, live_keys: Mapping[str, LiveKey], system: System, former: Backend | None
) -> RateScheduler:
    """Return the scheduler of requests without a key.

    If the exchange counts by address, that is the limit of all. Else they have one of their own, if any: its
    429s must not pause the orders.
    """
    scope = config.venue.limits.scope
    if scope is Scope.ADDRESS and live_keys:
        return next(iter(live_keys.values())).scheduler
    if (
        former is not None
        and address_of(former.config) == address_of(config)
        and former.config.venue.limits.scope is scope
    ):
        return former.exchange.gates.of_open
    return RateScheduler(Pacer(pacing_of(config), system.chance), system, config.name)


def pacing_of(config: ExchangeConfig) -> PacerSettings:
    """Return the settings of a key's scheduler."""
    return PacerSettings(config.limits.queue, config.limits.known, config.limits.headers)


def _clock_settings(
    config: ExchangeConfig, orders: Destination
) -> tuple[ClockNeeds, TimeSource, Destination]:
    """Return the settings of a clock; `orders` is the destination of requests."""
    recv_window_ms = min(key.recv_window_ms for key in config.keys.values())
    needs = ClockNeeds(config.clock.required, config.clock.grace, recv_window_ms)
    source = TimeSource(config.clock.path, config.clock.field, config.clock.interval)
    destination = replace(orders, max_connections=1, keep_alive_s=2 * source.interval_s)
    return needs, source, destination
