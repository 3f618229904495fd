"""The parts that a gateway has one of and keeps over a reload, and the generations that use them in turn."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sealgate.config import Config
from sealgate.keys.parts import Parts, read_parts
from sealgate.machine.background import Background, Work
from sealgate.machine.system import System
from sealgate.orders.journal import LearnedKeeper
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests
from sealgate.request.generation import Generation
from sealgate.request.halting import Halting
from sealgate.request.key_care import KeyCare
from sealgate.request.pipeline import Pipeline
from sealgate.request.price_care import PriceCare
from sealgate.request.rules import build_rules, log_policies
from sealgate.server.exchanges import build_exchange
from sealgate.server.memory import build_books, build_keeper


def build_generation(
    config: Config, parts: Parts, system: System, in_flight: InFlightRequests, old: Generation | None = None
) -> Generation:
    """Make all parts inside a running loop, but for those of the `old` generation that stay as they are.

    Raises StartError if limits are to be shared and the packages for that are not installed.
    """
    rules = build_rules(config, parts.roster, None if old is None else old.rules.policies)
    return Generation(config, rules, build_exchange(config, parts, system, in_flight.stop_signed, old))


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
        live_keys = pipeline.generation.exchange.live_keys.items()
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
        work: dict[object, Work] = {generation.exchange.clock_keeper: generation.exchange.clock_keeper.run}
        for live_key in generation.exchange.live_keys.values():
            if (sharing := live_key.scheduler.sharing) is not None:
                work[sharing] = sharing.run
        if generation.config.upstream.warm:
            work[generation.exchange.upstream] = generation.exchange.upstream.keep_warm
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
    ends.push_async_callback(generation.exchange.upstream.close)
    log_policies(config, generation.rules.guards)
    books = build_books(config, environ, system, generation.rules.policies)
    ends.push_async_callback(books.close)
    keeper = build_keeper(books.journal, generation, system)
    if keeper is not None:
        ends.push_async_callback(keeper.keep)
    halting = Halting(in_flight, books.journal, system)
    untried = set(generation.exchange.live_keys)
    services = Services(system, in_flight, environ, books, halting, keeper, Background(system), untried)
    return services, services.pipeline(generation)
