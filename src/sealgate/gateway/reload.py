"""Reload: a whole new tree is built, validated and tried, then one reference is swapped.

Nothing is mutated in place. Requests under way end on the pipeline that they began with; what was learned of
a limit, the clock, the journal, halts and, where the destination is the same, the connections go over into
the new tree. Whatever is wrong leaves everything as it is.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

import structlog

from sealgate.config import Config, ConfigError, check_whole
from sealgate.core.key_health import Verdict, judge, key_fault
from sealgate.core.routes import Lane
from sealgate.core.target import Target
from sealgate.errors import Refusal
from sealgate.gateway.assembly import build_tree, restore, subjects
from sealgate.gateway.build import read_parts
from sealgate.gateway.fixed_settings import waiting_for_restart, with_fixed
from sealgate.gateway.handler import Handler
from sealgate.gateway.own_requests import SIGNED_READ, ask
from sealgate.gateway.pipeline import Pipeline
from sealgate.gateway.secret_sources import SecretError
from sealgate.gateway.secret_watch import SecretWatch
from sealgate.gateway.site import Site
from sealgate.gateway.tree import Desk, Tree

_FIRST_SAMPLE_S = 5.0
_SAME = Target("/", "/", None)  # what old and new key sign to be compared

log = structlog.get_logger("sealgate.reload")


class ReloadError(Exception):
    """The new configuration is not taken. `str()` has cause and fix; the old one stays in use."""


class Reloader:
    """Reloads one gateway. `load` returns the configuration as it is now; it may block."""

    def __init__(self, site: Site, handler: Handler, load: Callable[[], Config]) -> None:
        self._site = site
        self._handler = handler
        self._load = load
        self._one_at_a_time = asyncio.Lock()
        self._files = SecretWatch(lambda: handler.pipeline.tree.config, site.environ, site.around.host)
        self.results: Counter[str] = Counter(ok=0, failed=0)

    async def watch(self) -> None:
        """Reload whenever a secret file has changed, until cancelled."""
        await self._files.run(self._on_change)

    async def _on_change(self) -> None:
        with contextlib.suppress(ReloadError):  # it is in the log, and nobody waits for an answer
            await self.reload("a changed secret file")

    async def reload(self, cause: str) -> tuple[str, ...]:
        """Take the configuration as it is now into use, and return what to mind. Raises ReloadError.

        `cause` says in the log who wanted it.
        """
        async with self._one_at_a_time:
            try:
                warnings = await self._renew()
            except (ConfigError, SecretError, ReloadError, OSError) as error:
                told = "; ".join(str(error).splitlines())
                self.results["failed"] += 1
                log.error("reload_failed", asked_by=cause, cause=told, meanwhile="the old one stays")  # noqa: TRY400
                raise ReloadError(told) from None
            except Exception:
                self.results["failed"] += 1
                log.exception("reload_failed", asked_by=cause, meanwhile="the old one stays")
                raise ReloadError("the gateway failed on it; report it with the line in its log") from None
            self.results["ok"] += 1
            log.info("reloaded", asked_by=cause)
            for warning in warnings:
                log.warning("reloaded_but", cause=warning)
            return warnings

    async def _renew(self) -> tuple[str, ...]:
        old = self._handler.pipeline
        running = old.tree.config
        self._files.note(self._files.look(running))
        loaded = await asyncio.to_thread(self._load)
        config = with_fixed(loaded, running)
        check_whole(config)
        seen = self._files.look(config)
        parts = await asyncio.to_thread(read_parts, config, self._site.environ)
        new = self._site.pipeline(build_tree(config, parts, self._site.around, old.tree))
        try:
            await self._recall(new.tree)
            doubts = await self._prove(new, old)
        except BaseException:
            self._give_up(new, old)
            raise
        self._swap(new, old)
        self._files.note(seen)
        waiting = (f"{name} takes effect after a restart" for name in waiting_for_restart(loaded, running))
        return (*doubts, *waiting)

    async def _recall(self, tree: Tree) -> None:
        """Let the limits of keys that are new start from what the journal has of them."""
        if self._site.keeper is not None:
            places = subjects(tree)
            restore(places, await asyncio.to_thread(self._site.keeper.recall, places))

    async def _prove(self, new: Pipeline, old: Pipeline) -> list[str]:
        """Try the keys that are not known to be good; return what is not known even so."""
        # What the new tree brings, another clock, say, works already: signing takes it.
        self._site.background.follow({**self._site.work(old), **self._site.work(new)})
        await self._follow_clock(new, old)
        doubts = [await self._try(new, alias) for alias in _changed(new.tree, old.tree)]
        if old.is_draining:
            raise ReloadError("the gateway is shutting down; reload the next one")
        return [doubt for doubt in doubts if doubt is not None]

    async def _follow_clock(self, new: Pipeline, old: Pipeline) -> None:
        """Give a new clock the time for its first sample, so that no request waits for that."""
        if new.tree.clock is not old.tree.clock:
            until = self._site.around.host.now() + _FIRST_SAMPLE_S
            recv_window_ms = min(key.recv_window_ms for key in new.tree.config.keys.values())
            with contextlib.suppress(Refusal):  # whoever sends a request is told
                await new.tree.clock.wait_until_good(until, recv_window_ms)

    async def _try(self, new: Pipeline, alias: str) -> str | None:
        """Send a signed read; return why it says nothing of the key, None where that is good."""
        try:
            answer = await ask(new, alias, SIGNED_READ, Lane.CANCEL, self._site.around.host)
        except Refusal as refusal:
            return f"keys.{alias} could not be tried: {refusal.detail}"
        verdict = judge(answer.status, answer.body)
        told = f"keys.{alias}: a signed read was answered {answer.status}"
        if verdict is Verdict.REFUSED:
            cause = key_fault(answer.status, answer.body) or "the signature is refused"
            fix = f"correct keys.{alias}.api_key, its secret or [signing]"
            raise ReloadError(f"{told}: {cause}; {fix}")
        return told if verdict is Verdict.UNSURE else None

    def _swap(self, new: Pipeline, old: Pipeline) -> None:
        if self._site.keeper is not None:
            self._site.keeper.follow(subjects(new.tree))
        self._handler.pipeline = new
        self._site.background.follow(self._site.work(new))
        if new.tree.upstream is not old.tree.upstream:
            self._site.background.finish(self._retire(old))

    async def _retire(self, old: Pipeline) -> None:
        """Close the old connections when nobody needs them any more."""
        try:
            await self._site.around.under_way.wait_until_idle(None, old.tree.upstream)
        finally:
            await old.tree.upstream.close()

    def _give_up(self, new: Pipeline, old: Pipeline) -> None:
        self._site.background.follow(self._site.work(old))
        if new.tree.upstream is not old.tree.upstream:
            self._site.background.finish(new.tree.upstream.close())


def _changed(new: Tree, old: Tree) -> list[str]:
    """Return the keys that are not known to be good: another one, another secret, or another exchange."""
    if new.config.base_url != old.config.base_url:
        return list(new.desks)
    known = {_proof(desk) for desk in old.desks.values()}
    return [alias for alias, desk in new.desks.items() if _proof(desk) not in known]


def _proof(desk: Desk) -> bytes:
    """Return what is the same for the same key and secret: no secret is kept that could be compared."""
    return desk.key.signing_lines(0, "GET", _SAME, b"")
