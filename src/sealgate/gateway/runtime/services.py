"""What a gateway has but one of: it stays over a reload, and each generation uses it in turn."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sealgate.config import Config
from sealgate.gateway.journal import LimitsKeeper
from sealgate.gateway.keys.parts import read_parts
from sealgate.gateway.platform.background import Background, Work
from sealgate.gateway.platform.system import System
from sealgate.gateway.request.bookkeeping import Bookkeeping
from sealgate.gateway.request.generation import Generation
from sealgate.gateway.request.halting import Halting
from sealgate.gateway.request.in_flight import InFlightRequests
from sealgate.gateway.request.pipeline import Pipeline
from sealgate.gateway.runtime.assembly import build_generation
from sealgate.gateway.runtime.key_care import KeyCare
from sealgate.gateway.runtime.memory import build_books, build_halting, build_keeper
from sealgate.gateway.runtime.rules import log_policies


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that stay. `untried` are the keys whose first read is still to come, see KeyCare."""

    system: System
    in_flight: InFlightRequests
    environ: Mapping[str, str] = field(repr=False)  # a traceback must not print it
    books: Bookkeeping
    halting: Halting
    keeper: LimitsKeeper | None
    background: Background
    untried: set[str]

    def pipeline(self, generation: Generation) -> Pipeline:
        """Return a pipeline for a generation."""
        return Pipeline(generation, self.books, self.halting, self.system)

    def work(self, pipeline: Pipeline) -> dict[object, Work]:
        """Return what goes on in the background for the pipeline in use, by part."""
        return {**self.upkeep(pipeline.generation), **self._care(pipeline)}

    def _care(self, pipeline: Pipeline) -> dict[object, Work]:
        live_keys = pipeline.generation.live_keys.items()
        cares = {
            live_key.breaker: KeyCare(pipeline, alias, self.untried, self.system)
            for alias, live_key in live_keys
        }
        return {breaker: care.run for breaker, care in cares.items()}

    def upkeep(self, generation: Generation) -> dict[object, Work]:
        """Return what of it a generation needs even to be tried."""
        keeper = self.keeper
        work: dict[object, Work] = {generation.clock_keeper: generation.clock_keeper.run}
        for live_key in generation.live_keys.values():
            if (sharing := live_key.scheduler.sharing) is not None:
                work[sharing] = sharing.run
        if generation.config.upstream.warm:
            work[generation.upstream] = generation.upstream.keep_warm
        return work if keeper is None else {**work, keeper: keeper.run}


def build_services(
    config: Config, environ: Mapping[str, str], system: System, ends: contextlib.AsyncExitStack
) -> tuple[Services, Pipeline]:
    """Make it, and the first pipeline; `ends` learns how each part ends.

    Raises SecretError where a secret cannot be read, JournalError where the journal cannot be used.
    """
    in_flight = InFlightRequests()
    generation = build_generation(config, read_parts(config, environ), system, in_flight)
    ends.push_async_callback(generation.upstream.close)
    log_policies(config, generation.rules.guards)
    books = build_books(config, system, generation.rules.policies)
    ends.push_async_callback(books.close)
    keeper = build_keeper(config, generation, system)
    if keeper is not None:
        ends.push_async_callback(keeper.keep)
    halting = build_halting(config, in_flight, system)
    site = Services(
        system, in_flight, environ, books, halting, keeper, Background(system), set(generation.live_keys)
    )
    return site, site.pipeline(generation)
