"""From the configuration to an exchange, which takes over what has not changed of the former one."""

from collections.abc import Iterable
from dataclasses import replace

from sealgate.config import ExchangeConfig
from sealgate.exchange.clock_keeper import ClockKeeper, TimeSource
from sealgate.exchange.destination import Destination, destination_of
from sealgate.exchange.exchange import Exchange, LiveKey
from sealgate.exchange.kept_clock import ClockNeeds, KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.exchange.stamps import Nonces, Stamps
from sealgate.exchange.stream_hosts import StreamHosts
from sealgate.keys.key import SigningKey
from sealgate.keys.key_breaker import KeyBreaker, Stop
from sealgate.keys.parts import ExchangeParts
from sealgate.limits.firewall import Firewall
from sealgate.limits.membership import Membership
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.machine import process as machine
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.request.generation import Backend
from sealgate.request.rules import route_table
from sealgate.server.memory import nonces_place, subjects
from sealgate.venues.limit_rules import published


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
            self._schedulers[str(backend.config.base_url)] = backend.exchange.gates.scheduler
            for alias, live_key in backend.exchange.live_keys.items():
                self._live_keys[backend.config.name, alias] = live_key
                self._marks[live_key.nonces.place] = live_key.stamps, live_key.nonces

    def scheduler(self, config: ExchangeConfig, parts: ExchangeParts) -> RateScheduler:
        """Return where all requests to the address of an exchange wait, for this gateway or for a cluster.

        Raises StartError if limits are to be shared and the packages for that are not installed.
        """
        place, url = str(config.base_url), parts.redis
        if place in self._schedulers:
            return self._schedulers[place]
        settings = pacing_of(config)
        if url is None:
            scheduler = RateScheduler(Pacer(settings, self.system.chance), self.system, config.name)
        else:
            if not machine.has_redis():
                raise StartError(
                    f"limits.redis: {machine.REDIS_MISSING}; {machine.REDIS_FIX}, or remove the setting"
                )
            from sealgate.cluster.redis_group import shared_scheduler  # noqa: PLC0415 - redis is an extra

            scheduler = shared_scheduler(config.name, place, url, settings, self.system)
        self._schedulers[place] = scheduler
        return scheduler

    def make(self, config: ExchangeConfig, scheduler: RateScheduler, key: SigningKey) -> LiveKey:
        """Return a key in use."""
        place = nonces_place(config, key.alias)
        if place not in self._marks:
            self._marks[place] = Stamps(), Nonces(key.sealer.scheme.nonce, self.system.unique, place)
        stamps, nonces = self._marks[place]
        # What the exchange says of a key holds for the same key and secret at the same address.
        former = self._live_keys.get((config.name, key.alias))
        if former is not None and former.nonces is nonces and former.key.proof == key.proof:
            breaker = former.breaker
            breaker.hasten()
        else:
            breaker = KeyBreaker(config.name, key.alias, self._stop, self.system)
        serial = place if key.sealer.scheme.nonces_rise else ""
        membership = Membership(config.pools, subjects(config, key.alias), is_open=False)
        return LiveKey(key, scheduler, membership, stamps, nonces, breaker, serial)


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
    instead = "" if config.upstream.streams is None else str(config.upstream.streams)
    if old is not None and is_same and old.stream_hosts.instead == instead:
        stream_hosts = old.stream_hosts
    else:
        stream_hosts = StreamHosts(destination, instead)
    # 2. Limits belong to the exchange, and to whom it counts together.
    scheduler = key_maker.scheduler(config, parts)
    live_keys = {alias: key_maker.make(config, scheduler, key) for alias, key in parts.keys.items()}
    of_keys = tuple(live_key.membership for live_key in live_keys.values())
    of_open = Membership(config.pools, subjects(config, None), is_open=True)
    time_route = route_table(config).find("GET", config.clock.path or "/")
    of_time = of_open.pools_of("GET", time_route)
    for membership in (*of_keys, of_open):
        scheduler.know(membership.places)
    gates = Gates(scheduler, of_keys, of_open, of_time, firewall)
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
    return Exchange(upstream, clock, keeper, gates, live_keys, stream_hosts)


def pacing_of(config: ExchangeConfig) -> PacerSettings:
    """Return the settings of a scheduler."""
    pools = {
        rule.name: PoolSettings(
            tuple(Quota(*published(one)) for one in rule.known), rule.counts == "requests", rule.is_aligned
        )
        for rule in config.pools
    }
    return PacerSettings(config.limits.queue, config.limits.headers, pools)


def _clock_settings(
    config: ExchangeConfig, orders: Destination
) -> tuple[ClockNeeds, TimeSource, Destination]:
    """Return the settings of a clock; `orders` is the destination of requests."""
    recv_window_ms = min(key.recv_window_ms for key in config.keys.values())
    needs = ClockNeeds(config.clock.required, config.clock.grace, recv_window_ms)
    source = TimeSource(config.clock.path, config.clock.field, config.clock.interval)
    destination = replace(orders, max_connections=1, keep_alive_s=2 * source.interval_s)
    return needs, source, destination
