"""What a gateway has but one of: it stays over a reload, and each tree uses it in turn."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sealgate.config import Config
from sealgate.gateway.host.background import Background, Work
from sealgate.gateway.host.host import Host
from sealgate.gateway.journal import LimitsKeeper
from sealgate.gateway.keys.parts import read_parts
from sealgate.gateway.life.assembly import build_tree
from sealgate.gateway.life.key_care import KeyCare
from sealgate.gateway.life.memory import build_books, build_halting, build_keeper
from sealgate.gateway.life.rules import tell_policies
from sealgate.gateway.request.bookkeeping import Bookkeeping
from sealgate.gateway.request.halting import Halting
from sealgate.gateway.request.in_flight import InFlightRequests
from sealgate.gateway.request.pipeline import Pipeline
from sealgate.gateway.request.tree import Tree


@dataclass(frozen=True, slots=True)
class Site:
    """The parts that stay. `untried` are the keys whose first read is still to come, see KeyCare."""

    host: Host
    in_flight: InFlightRequests
    environ: Mapping[str, str] = field(repr=False)  # a traceback must not print it
    books: Bookkeeping
    halting: Halting
    keeper: LimitsKeeper | None
    background: Background
    untried: set[str]

    def pipeline(self, tree: Tree) -> Pipeline:
        """Return a pipeline for a tree."""
        return Pipeline(tree, self.books, self.halting, self.host)

    def work(self, pipeline: Pipeline) -> dict[object, Work]:
        """Return what goes on in the background for the pipeline in use, by part."""
        return {**self.upkeep(pipeline.tree), **self._care(pipeline)}

    def _care(self, pipeline: Pipeline) -> dict[object, Work]:
        live_keys = pipeline.tree.live_keys.items()
        cares = {
            live_key.breaker: KeyCare(pipeline, alias, self.untried, self.host)
            for alias, live_key in live_keys
        }
        return {breaker: care.run for breaker, care in cares.items()}

    def upkeep(self, tree: Tree) -> dict[object, Work]:
        """Return what of it a tree needs even to be tried."""
        keeper = self.keeper
        work: dict[object, Work] = {tree.clock_keeper: tree.clock_keeper.run}
        for live_key in tree.live_keys.values():
            if (sharing := live_key.scheduler.sharing) is not None:
                work[sharing] = sharing.run
        if tree.config.upstream.warm:
            work[tree.upstream] = tree.upstream.keep_warm
        return work if keeper is None else {**work, keeper: keeper.run}


def build_site(
    config: Config, environ: Mapping[str, str], host: Host, ends: contextlib.AsyncExitStack
) -> tuple[Site, Pipeline]:
    """Make it, and the first pipeline; `ends` learns how each part ends.

    Raises SecretError where a secret cannot be read, JournalError where the journal cannot be used.
    """
    in_flight = InFlightRequests()
    tree = build_tree(config, read_parts(config, environ), host, in_flight)
    ends.push_async_callback(tree.upstream.close)
    tell_policies(config, tree.rules.guards)
    books = build_books(config, host, tree.rules.policies)
    ends.push_async_callback(books.close)
    keeper = build_keeper(config, tree, host)
    if keeper is not None:
        ends.push_async_callback(keeper.keep)
    halting = build_halting(config, in_flight, host)
    site = Site(host, in_flight, environ, books, halting, keeper, Background(host), set(tree.live_keys))
    return site, site.pipeline(tree)
