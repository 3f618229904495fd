"""The parts that a gateway has one of and keeps over a reload, and the generations that use them in turn."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sealgate.config import Config
from sealgate.exchange.clock_keeper import ClockKeeper, TimeSource
from sealgate.exchange.destination import Destination, destination_of
from sealgate.exchange.kept_clock import ClockNeeds, KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.keys.parts import Parts, read_parts
from sealgate.limits.firewall import Firewall
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.machine import process as machine
from sealgate.machine.background import Background, Work
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.orders.journal import LearnedKeeper
from sealgate.orders.validity import Nonces, Stamps
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests
from sealgate.request.generation import Generation, LiveKey
from sealgate.request.halting import Halting
from sealgate.request.key_breaker import KeyBreaker
from sealgate.request.key_care import KeyCare
from sealgate.request.pipeline import Pipeline
from sealgate.request.price_care import PriceCare
from sealgate.request.rules import build_rules, log_policies
from sealgate.server.memory import build_books, build_keeper, nonces_place, subject
from sealgate.venues.venue import Scope


def build_generation(
    config: Config, parts: Parts, system: System, in_flight: InFlightRequests, old: Generation | None = None
) -> Generation:
    """Make all parts inside a running loop, but for those of the `old` generation that stay as they are.

    Raises StartError where limits are to be shared and what that takes is not installed.

    One that follows another takes over what has not changed: what was learned of a key's limit, the clock,
    the connections.
    """
    upstream = _upstream(destination_of(config, parts.ca_digest), old)
    live_keys = _live_keys(config, parts, system, in_flight, old)
    open_scheduler = _open_scheduler(config, live_keys, system, old)
    of_keys = frozenset(live_key.scheduler for live_key in live_keys.values())
    is_same = old is not None and old.upstream is upstream
    firewall = old.gates.firewall if old is not None and is_same else Firewall()
    gates = Gates(of_keys, open_scheduler, firewall)
    clock, clock_keeper = _clock(config, upstream, gates, system, old)
    return Generation(
        config=config,
        rules=build_rules(config, parts.roster, None if old is None else old.rules.policies),
        live_keys=live_keys,
        gates=gates,
        upstream=upstream,
        clock=clock,
        clock_keeper=clock_keeper,
    )


def _live_keys(
    config: Config, parts: Parts, system: System, in_flight: InFlightRequests, old: Generation | None
) -> dict[str, LiveKey]:
    """Return the keys. Whom a limit counts together is the venue's; stamps and nonces are an API key's.

    Both stay what they are over a reload, whatever a key's alias and its secret are.
    """
    former = _Former(old)
    kind = config.venue.signing.nonce
    live_keys: dict[str, LiveKey] = {}
    for alias, key in parts.keys.items():
        name, make = subject(config, alias), _maker(config, parts, alias, system)
        if name not in former.schedulers:
            former.schedulers[name] = make()
        place = nonces_place(config, alias)
        stamps, nonces = former.marks.setdefault(place, (Stamps(), Nonces(kind, system.unique, place)))
        breaker = KeyBreaker(alias, in_flight, system)
        serial = place if config.venue.signing.nonces_rise else ""
        live_keys[alias] = LiveKey(key, former.schedulers[name], stamps, nonces, breaker, serial)
    return live_keys


class _Former:
    """The parts of an old generation: schedulers by subject of their limit, stamps and nonces by API key."""

    def __init__(self, old: Generation | None) -> None:
        self.schedulers: dict[str, RateScheduler] = {}
        self.marks: dict[str, tuple[Stamps, Nonces]] = {}
        if old is None:
            return
        for alias, live_key in old.live_keys.items():
            self.schedulers[subject(old.config, alias)] = live_key.scheduler
            self.marks[live_key.nonces.place] = live_key.stamps, live_key.nonces


def _maker(config: Config, parts: Parts, alias: str, system: System) -> Callable[[], RateScheduler]:
    """Return a function that makes a key's scheduler, for this gateway alone or for a cluster."""
    settings, url = pacing_of(config), parts.redis
    if url is None:
        return lambda: RateScheduler(Pacer(settings, system.chance), system)
    if not machine.has_redis():
        raise StartError(f"limits.redis: {machine.REDIS_MISSING}; {machine.REDIS_FIX}, or take it out")
    from sealgate.cluster.redis_group import shared_scheduler  # noqa: PLC0415 - redis is an extra

    return lambda: shared_scheduler(alias, subject(config, alias), url, settings, system)


def _open_scheduler(
    config: Config, live_keys: Mapping[str, LiveKey], system: System, old: Generation | None
) -> RateScheduler:
    """Return the scheduler of requests without a key.

    Where the exchange counts by address, that is the limit of all. Else they have one of their own, if any:
    its 429s must not pause the orders.
    """
    scope = config.venue.limits.scope
    if scope is Scope.ADDRESS and live_keys:
        return next(iter(live_keys.values())).scheduler
    is_same = old is not None and old.config.base_url == config.base_url
    if old is not None and is_same and old.config.venue.limits.scope is scope:
        return old.gates.of_open
    return RateScheduler(Pacer(pacing_of(config), system.chance), system)


def pacing_of(config: Config) -> PacerSettings:
    """Return the settings of a key's scheduler."""
    return PacerSettings(config.limits.queue, config.limits.known, config.limits.headers)


def _upstream(destination: Destination, old: Generation | None) -> Upstream:
    return (
        old.upstream if old is not None and old.upstream.destination == destination else Upstream(destination)
    )


def _clock(
    config: Config, orders: Upstream, gates: Gates, system: System, old: Generation | None
) -> tuple[KeptClock, ClockKeeper]:
    """Return the clock and its keeper; one of the old generation keeps its gates until the swap."""
    settings = _clock_settings(config, orders.destination)
    if old is not None and _clock_settings(old.config, old.upstream.destination) == settings:
        return old.clock, old.clock_keeper
    needs, source, destination = settings
    clock = KeptClock(needs, system)
    return clock, ClockKeeper(source, clock, Upstream(destination, orders.closes), gates, system)


def _clock_settings(config: Config, orders: Destination) -> tuple[ClockNeeds, TimeSource, Destination]:
    """Return the settings of a clock; `orders` is the destination of requests."""
    recv_window_ms = min(key.recv_window_ms for key in config.keys.values())
    needs = ClockNeeds(config.clock.required, config.clock.grace, recv_window_ms)
    source = TimeSource(config.clock.path, config.clock.field, config.clock.interval)
    destination = replace(orders, max_connections=1, keep_alive_s=2 * source.interval_s)
    return needs, source, destination


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that stay. `untried` are the keys whose first read is still to come, see KeyCare."""

    system: System
    in_flight: InFlightRequests
    environ: Mapping[str, str] = field(repr=False)  # a traceback must not print it
    books: Bookkeeping
    halting: Halting
    keeper: LearnedKeeper | None
    background: Background
    untried: set[str]

    def pipeline(self, generation: Generation) -> Pipeline:
        """Return a pipeline for a generation."""
        return Pipeline(generation, self.books, self.halting, self.system)

    def work(self, pipeline: Pipeline) -> dict[object, Work]:
        """Return the background work for the pipeline in use, by part."""
        return {**self.upkeep(pipeline.generation), **self._care(pipeline), **self._prices(pipeline)}

    def _care(self, pipeline: Pipeline) -> dict[object, Work]:
        live_keys = pipeline.generation.live_keys.items()
        cares = {
            live_key.breaker: KeyCare(pipeline, alias, self.untried, self.system)
            for alias, live_key in live_keys
        }
        return {breaker: care.run for breaker, care in cares.items()}

    def _prices(self, pipeline: Pipeline) -> dict[object, Work]:
        """Return the reads of prices, if a policy needs them and the venue's file names one."""
        generation = pipeline.generation
        prices = generation.rules.prices
        if prices is None or not generation.config.venue.price_reads:
            return {}
        return {pipeline: PriceCare(pipeline, prices, self.system).run}

    def upkeep(self, generation: Generation) -> dict[object, Work]:
        """Return the background work that a generation needs even before it is in use."""
        work: dict[object, Work] = {generation.clock_keeper: generation.clock_keeper.run}
        for live_key in generation.live_keys.values():
            if (sharing := live_key.scheduler.sharing) is not None:
                work[sharing] = sharing.run
        if generation.config.upstream.warm:
            work[generation.upstream] = generation.upstream.keep_warm
        if self.keeper is not None:
            work[self.keeper] = self.keeper.run
        return work


def build_services(
    config: Config, environ: Mapping[str, str], system: System, ends: contextlib.AsyncExitStack
) -> tuple[Services, Pipeline]:
    """Make the services and the first pipeline; `ends` gets what closes each part.

    Raises SecretError where a secret cannot be read, JournalError where the journal cannot be used.
    """
    in_flight = InFlightRequests()
    generation = build_generation(config, read_parts(config, environ), system, in_flight)
    ends.push_async_callback(generation.upstream.close)
    log_policies(config, generation.rules.guards)
    books = build_books(config, environ, system, generation.rules.policies)
    ends.push_async_callback(books.close)
    keeper = build_keeper(books.journal, generation, system)
    if keeper is not None:
        ends.push_async_callback(keeper.keep)
    halting = Halting(in_flight, books.journal, system)
    untried = set(generation.live_keys)
    services = Services(system, in_flight, environ, books, halting, keeper, Background(system), untried)
    return services, services.pipeline(generation)
