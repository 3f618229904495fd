"""The parts that a gateway has one of and keeps over a reload, and the generations that use them in turn."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sealgate.config import Config
from sealgate.http.head_memory import HeadMemory
from sealgate.keys.parts import Parts, read_parts
from sealgate.machine.background import Background, Work
from sealgate.machine.process import room_for_bots
from sealgate.machine.system import System
from sealgate.orders.journal import LearnedKeeper
from sealgate.orders.policy import PolicyMemory
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests
from sealgate.request.generation import Backend, Generation
from sealgate.request.halting import Halting
from sealgate.request.key_care import KeyCare
from sealgate.request.pipeline import Pipeline
from sealgate.request.price_care import PriceCare
from sealgate.request.router import Router
from sealgate.request.rules import build_rules, log_policies
from sealgate.server.exchanges import KeyMaker, build_exchange
from sealgate.server.memory import build_books, build_keeper

if TYPE_CHECKING:
    from sealgate.http.parser import RequestHead


def build_generation(
    config: Config, parts: Parts, system: System, in_flight: InFlightRequests, old: Generation | None = None
) -> Generation:
    """Make all parts inside a running loop, but for those of the `old` generation that stay as they are.

    Raises StartError if limits are to be shared and the packages for that are not installed.
    """
    policies = PolicyMemory() if old is None else old.policies
    former = {} if old is None else old.backends
    key_maker = KeyMaker(former.values(), system, in_flight.stop_signed)
    backends: dict[str, Backend] = {}
    for name, settings in config.served.items():
        exchange = build_exchange(settings, parts.exchanges[name], key_maker, former.get(name))
        rules = build_rules(config, settings, parts.roster, policies, former.get(name))
        backends[name] = Backend(settings, rules, exchange)
    return Generation(config, policies, backends)


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that stay.

    `untried` are the keys whose first read is still to come, by exchange and alias: see KeyCare.
    """

    system: System
    in_flight: InFlightRequests
    environ: Mapping[str, str] = field(repr=False)  # a traceback must not print it
    books: Bookkeeping
    halting: Halting
    keeper: LearnedKeeper | None
    background: Background
    untried: set[tuple[str, str]]

    def router(self, generation: Generation) -> Router:
        """Return the pipelines of a generation."""
        heads: HeadMemory[RequestHead] = HeadMemory()
        pipelines = {
            name: Pipeline(backend, self.books, self.halting, self.system, heads)
            for name, backend in generation.backends.items()
        }
        return Router(generation, pipelines, heads, self.halting)

    def work(self, router: Router) -> dict[object, Work]:
        """Return the background work for the pipelines in use, by part."""
        work = self.upkeep(router.generation)
        for name, pipeline in router.pipelines.items():
            # 1. Keys are tried and looked after.
            for alias in pipeline.backend.exchange.live_keys:
                work[pipeline, alias] = KeyCare(pipeline, (name, alias), self.untried, self.system).run
            # 2. Prices are read, if a policy needs them and the venue's file names a read.
            prices = pipeline.backend.rules.prices
            if prices is not None and pipeline.backend.config.venue.price_reads:
                work[pipeline] = PriceCare(pipeline, prices, self.system).run
        return work

    def upkeep(self, generation: Generation) -> dict[object, Work]:
        """Return the background work that a generation needs even before it is in use."""
        work: dict[object, Work] = {}
        for backend in generation.backends.values():
            exchange = backend.exchange
            work[exchange.clock_keeper] = exchange.clock_keeper.run
            if (sharing := exchange.gates.scheduler.sharing) is not None:
                work[sharing] = sharing.run
            if backend.config.upstream.warm:
                work[exchange.upstream] = exchange.upstream.keep_warm
        if self.keeper is not None:
            work[self.keeper] = self.keeper.run
        return work


def make_room(generation: Generation) -> int:
    """Raise the limit of descriptors for the connections of a generation; return the room for bots."""
    upstreams = [backend.exchange.upstream for backend in generation.backends.values()]
    most = sum(upstream.most_connections for upstream in upstreams)
    return room_for_bots(generation.config.listen.max_connections, most)


def build_services(
    config: Config, environ: Mapping[str, str], system: System, ends: contextlib.AsyncExitStack
) -> tuple[Services, Router]:
    """Make the services and the first pipelines; `ends` gets what closes each part.

    Raises SecretError where a secret cannot be read, JournalError where the journal cannot be used.
    """
    in_flight = InFlightRequests()
    generation = build_generation(config, read_parts(config, environ), system, in_flight)
    for backend in generation.backends.values():
        ends.push_async_callback(backend.exchange.upstream.close)
    log_policies(generation)
    books = build_books(config, environ, system, generation.policies)
    ends.push_async_callback(books.close)
    keeper = build_keeper(books.journal, generation, system)
    if keeper is not None:
        ends.push_async_callback(keeper.keep)
    halting = Halting(in_flight, books.journal, system)
    untried = {
        (name, alias) for name, backend in generation.backends.items() for alias in backend.exchange.live_keys
    }
    services = Services(system, in_flight, environ, books, halting, keeper, Background(system), untried)
    return services, services.router(generation)
