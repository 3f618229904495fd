"""Reload: a whole new generation is built, validated and tried, then one reference is swapped.

Requests under way end on the pipeline that they began with. The lines of the keys, with all that wait there
and what was learned of the limit, the clock, the journal, halts and, where the destination is the same, the
connections go over into the new generation; of these only the lines get other settings, at the swap. A fault
leaves everything as it is.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

import structlog

from sealgate.config import Config, ConfigError, check_whole
from sealgate.errors import Refusal
from sealgate.gateway.keys.parts import read_parts
from sealgate.gateway.keys.sources import SecretError
from sealgate.gateway.keys.watch import SecretWatch
from sealgate.gateway.request.generation import Generation
from sealgate.gateway.request.handler import Handler
from sealgate.gateway.request.pipeline import Pipeline
from sealgate.gateway.runtime.assembly import build_generation, pacing_of
from sealgate.gateway.runtime.fixed_settings import waiting_for_restart, with_fixed
from sealgate.gateway.runtime.memory import restore, subjects
from sealgate.gateway.runtime.rules import log_policies
from sealgate.gateway.runtime.services import Services
from sealgate.gateway.runtime.trial import Trial, TrialError

_FIRST_SAMPLE_S = 5.0

log = structlog.get_logger("sealgate.reload")


class ReloadError(Exception):
    """The new configuration is not taken. `str()` has cause and fix; the old one stays in use."""


class Reloader:
    """Reloads one gateway. `load` returns the configuration as it is now; it may block."""

    def __init__(self, services: Services, handler: Handler, load: Callable[[], Config]) -> None:
        self._services = services
        self._handler = handler
        self._load = load
        self._one_at_a_time = asyncio.Lock()
        self._files = SecretWatch(
            lambda: handler.pipeline.generation.config, services.environ, services.system
        )
        self.results: Counter[str] = Counter(ok=0, failed=0)

    async def watch(self) -> None:
        """Reload whenever a secret file has changed, until cancelled."""
        await self._files.run(self._on_change)

    async def _on_change(self) -> None:
        with contextlib.suppress(ReloadError):  # it is in the log, and nobody waits for an answer
            await self.reload("a changed secret file")

    async def reload(self, asked_by: str) -> tuple[str, ...]:
        """Take the configuration as it is now into use, and return what to mind. Raises ReloadError.

        `asked_by` says in the log who wanted it.
        """
        async with self._one_at_a_time:
            try:
                warnings = await self._renew()
            except (ConfigError, SecretError, TrialError, ReloadError, OSError) as error:
                told = "; ".join(str(error).splitlines())
                self.results["failed"] += 1
                log.error("reload_failed", asked_by=asked_by, cause=told, meanwhile="the old one stays")  # noqa: TRY400 - the cause says it all
                raise ReloadError(told) from None
            except Exception:
                self.results["failed"] += 1
                log.exception("reload_failed", asked_by=asked_by, meanwhile="the old one stays")
                raise ReloadError("the gateway failed on it; report it with the line in its log") from None
            self.results["ok"] += 1
            log.info("reloaded", asked_by=asked_by)
            for warning in warnings:
                log.warning("reloaded_but", cause=warning)
            return warnings

    async def _renew(self) -> tuple[str, ...]:
        old = self._handler.pipeline
        running = old.generation.config
        self._files.note(await asyncio.to_thread(self._files.look, running))
        loaded = await asyncio.to_thread(self._load)
        config = with_fixed(loaded, running)
        check_whole(config)
        seen = await asyncio.to_thread(self._files.look, config)
        parts = await asyncio.to_thread(read_parts, config, self._services.environ)
        generation = build_generation(
            config, parts, self._services.system, self._services.in_flight, old.generation
        )
        new = self._services.pipeline(generation)
        try:
            await self._recall(new.generation)
            doubts = await self._prove(new, old)
        except BaseException:
            self._give_up(new, old)
            raise
        self._swap(new, old)
        self._files.note(seen)
        waiting = (f"{name} takes effect after a restart" for name in waiting_for_restart(loaded, running))
        return (*doubts, *waiting)

    async def _recall(self, generation: Generation) -> None:
        """Let the limits of keys that are new start from what the journal has of them."""
        if self._services.keeper is not None:
            places = subjects(generation)
            restore(places, await asyncio.to_thread(self._services.keeper.recall, places))

    async def _prove(self, new: Pipeline, old: Pipeline) -> list[str]:
        """Try the keys that are not known to be good; return what is not known even so."""
        # What the new generation brings, another clock, say, works already: signing takes it.
        self._services.background.follow(
            {**self._services.work(old), **self._services.upkeep(new.generation)}
        )
        doubts = await self._follow_clock(new, old)
        doubts += await Trial(new, old.generation, self._services.system).run()
        if old.is_draining:
            raise ReloadError("the gateway is shutting down; reload the next one")
        return doubts

    async def _follow_clock(self, new: Pipeline, old: Pipeline) -> list[str]:
        """Give a new clock the time for its first sample, so that no request waits; return why none came.

        Where the old one works, that is an error: no request could be signed any more.
        """
        if new.generation.clock is old.generation.clock:
            return []
        until = self._services.system.now() + _FIRST_SAMPLE_S
        try:
            await new.generation.clock.wait_until_ready(until)
        except Refusal as refusal:
            if new.generation.config.clock.required and old.generation.clock.not_ready is None:
                fix = "correct base_url, [clock] or upstream.ca_file, or wait until the exchange answers"
                raise ReloadError(f"{refusal.detail.removesuffix('.')}; {fix}") from None
            return [refusal.detail]
        return []

    def _swap(self, new: Pipeline, old: Pipeline) -> None:
        if self._services.keeper is not None:
            self._services.keeper.follow(subjects(new.generation))
        self._handler.pipeline = new
        log_policies(new.generation.config, new.generation.rules.guards)
        pacing = pacing_of(new.generation.config)
        for scheduler in new.generation.schedulers():
            scheduler.adopt(pacing)
        old.retire()
        self._services.background.follow(self._services.work(new))
        if new.generation.upstream is not old.generation.upstream:
            self._services.background.finish(self._retire(old))

    async def _retire(self, old: Pipeline) -> None:
        """Close the old connections when nobody needs them any more."""
        try:
            await self._services.in_flight.wait_until_idle(None, old.generation.upstream)
        finally:
            await old.generation.upstream.close()

    def _give_up(self, new: Pipeline, old: Pipeline) -> None:
        self._services.background.follow(self._services.work(old))
        if new.generation.upstream is not old.generation.upstream:
            self._services.background.finish(new.generation.upstream.close())
