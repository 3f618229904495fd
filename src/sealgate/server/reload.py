"""Reload: a whole new generation is built, validated and tried, then one reference is swapped.

Requests under way end on the pipeline that they began with. The lines of the keys, with all that wait there
and what was learned of the limit, the clock, the journal, halts and, where the destination is the same, the
connections go over into the new generation; of these only the lines get other settings, at the swap. A fault
leaves everything as it is.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator

import structlog
from pydantic import BaseModel

from sealgate.config import Config, ConfigError, OwnAddress, check_whole
from sealgate.config.venues import is_scheme_open
from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.exchange import LiveKey
from sealgate.exchange.pool import Upstream
from sealgate.keys.key_health import KeyVerdict, judge_key, key_fault
from sealgate.keys.key_records import find_record
from sealgate.keys.parts import read_parts
from sealgate.keys.sources import SecretError
from sealgate.keys.watch import SecretWatch
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.orders.halts import Halts
from sealgate.request.bots import BotServer
from sealgate.request.generation import Backend, Generation
from sealgate.request.handler import Handler
from sealgate.request.own_reads import Deliverer, ask
from sealgate.request.pipeline import Pipeline
from sealgate.request.router import Router
from sealgate.request.rules import log_policies
from sealgate.server.exchanges import pacing_of
from sealgate.server.memory import restore, schedulers
from sealgate.server.opening import Listener, Listeners
from sealgate.server.services import Services, build_generation, make_room
from sealgate.streams.registry import Streams
from sealgate.venues.replies import Means
from sealgate.venues.routes import Lane

_FREE = {
    "listen": frozenset({"hosts", "max_body", "body_timeout", "drain"}),
    "limits": frozenset({"known", "pools", "headers", "replay_429", "max_wait", "queue", "share_open_s"}),
}
_FIXED_TABLES = ("listen", "admin", "journal", "log", "limits")
_FIRST_SAMPLE_S = 5.0
_MEANWHILE = "the old configuration stays in use"

log = structlog.get_logger("sealgate.reload")


def with_fixed(config: Config, running: Config) -> Config:
    """Return the new configuration with those settings as they run."""
    tables = {name: _kept(name, getattr(config, name), getattr(running, name)) for name in _FIXED_TABLES}
    exchanges = {
        name: exchange.model_copy(update={"limits": _kept("limits", exchange.limits, old.limits)})
        if (old := running.served.get(name)) is not None
        else exchange
        for name, exchange in config.exchanges.items()
    }
    return config.with_tables(**tables, exchanges=exchanges)


def waiting_for_restart(config: Config, running: Config) -> tuple[str, ...]:
    """Return the names of settings that have changed, and take effect only after a restart."""
    # With [exchanges], the common limits are only where each one's begin.
    tables = [name for name in _FIXED_TABLES if name != "limits" or not config.exchanges]
    pairs = [(name, name, getattr(config, name), getattr(running, name)) for name in tables]
    pairs += [
        ("limits", f"exchanges.{name}.limits", exchange.limits, running.served[name].limits)
        for name, exchange in config.exchanges.items()
        if name in running.served
    ]
    return tuple(
        f"{where}.{name}"
        for table, where, new, old in pairs
        for name in _fixed_names(table, new)
        if getattr(new, name) != getattr(old, name)
    )


def goes_on_by_name(config: Config, running: Config, halts: Halts) -> Iterator[str]:
    """Yield what is remembered by the name of an exchange that is gone, or has become another one."""
    for halt in halts:
        name = halt.scope.exchange
        if name is not None and name not in config.served:
            yield f"the halt of {halt.scope.words} stops no orders, because there is no exchange {name}"
    for name in config.exchanges.keys() & running.exchanges.keys():
        if config.served[name].base_url != running.served[name].base_url:
            what = "halts, Idempotency-Keys and the counts of policies"
            fix = "give a different exchange a different name"
            yield f"exchanges.{name}.base_url has changed: {what} continue under this name; {fix}"


def _kept(table: str, new: BaseModel, running: BaseModel) -> BaseModel:
    return new.model_copy(update={name: getattr(running, name) for name in _fixed_names(table, new)})


def _fixed_names(table: str, settings: BaseModel) -> list[str]:
    free = _FREE.get(table, frozenset())
    return [name for name in type(settings).model_fields if name not in free]


class TrialError(Exception):
    """The exchange refuses something. `str()` has cause and fix."""


class Trial:
    """Tries the keys and sessions of a new pipeline that the old generation did not have.

    A refusal of the exchange is an error; a reply that proves nothing, or no reply, is a warning.
    """

    def __init__(self, new: Deliverer, old: Backend | None, system: System) -> None:
        self._new = new
        self._old = old
        self._system = system

    async def run(self) -> list[str]:
        """Try new keys, sessions and addresses; return a warning for each that could not be verified.

        Raises TrialError if the exchange refuses one.
        """
        doubts = [await _tried(f"keys.{alias}", self._try_key(alias)) for alias in self._changed(_key_proof)]
        doubts += [
            await _tried(f"keys.{alias}.session", self._try_session(alias))
            for alias in self._changed(_session_proof)
            if self._live_key(alias).key.session is not None
        ]
        return [doubt for doubt in doubts if doubt is not None]

    def _live_key(self, alias: str) -> LiveKey:
        return self._new.backend.exchange.live_keys[alias]

    def _changed(self, proof: Callable[[LiveKey], Hashable]) -> list[str]:
        """Return the keys whose proof has not been accepted yet: new ones, or all at another exchange."""
        new, old = self._new.backend, self._old
        if old is None or new.config.base_url != old.config.base_url:
            return list(new.exchange.live_keys)
        known = {proof(live_key) for live_key in old.exchange.live_keys.values()}
        return [alias for alias, live_key in new.exchange.live_keys.items() if proof(live_key) not in known]

    async def _try_key(self, alias: str) -> str | None:
        """Send a signed read; return why it proves nothing about the key, None if the key is good."""
        venue = self._new.backend.config.venue
        path = venue.signed_read
        if not path:
            return f"keys.{alias} could not be tested: the venue's file names no read in reads.signed"
        answer = await ask(self._new, alias, path, Lane.CANCEL, self._system)
        cause = key_fault(answer.verdict) or "the exchange refuses the signature"
        rest = ", its secret or [signing]" if is_scheme_open(venue) else " or its secret"
        fix = f"correct keys.{alias}.api_key{rest}"
        # Some exchanges say the same of an unknown key and of a missing permission: the key that was in use
        # tells which.
        former = None if self._old is None else self._old.exchange.live_keys.get(alias)
        was_taken = former is not None and former.breaker.state.is_proven
        if was_taken and answer.verdict.means is Means.PERMISSION:
            cause = "this key lacks a permission that the former key had"
            raise TrialError(f"keys.{alias}: a signed read was answered {answer.status}: {cause}; {fix}")
        return _objection(answer, f"keys.{alias}: a signed read", f"{cause}; {fix}")

    async def _try_session(self, alias: str) -> str | None:
        """Read the list of keys, in the same way; the key must be in it."""
        name = f"keys.{alias}.session"
        path = self._new.backend.config.venue.key_list
        if not path:
            return None
        answer = await ask(self._new, alias, path, Lane.CANCEL, self._system)
        fix = "store the token of a session that is still valid"
        doubt = _objection(answer, f"{name}: the list of keys", f"the exchange refuses the token; {fix}")
        if doubt is None and find_record(answer.body, self._live_key(alias).key.api_key) is None:
            return f"{name}: the exchange's list lacks the key; use a session token of the key's user"
        return doubt


async def _tried(name: str, trial: Awaitable[str | None]) -> str | None:
    """Run a trial; return its warning, or why it could not be sent."""
    try:
        return await trial
    except Refusal as refusal:
        return f"{name} could not be tested: {refusal.detail}"


def _objection(answer: Answer, what: str, refused: str) -> str | None:
    """Return why a reply proves nothing, None if it proves the key. Raises TrialError if it refuses it."""
    told = f"{what} was answered {answer.status}"
    verdict = judge_key(answer.status, answer.verdict)
    if verdict is KeyVerdict.REFUSED:
        raise TrialError(f"{told}: {refused}")
    return told if verdict is KeyVerdict.UNSURE else None


def _key_proof(live_key: LiveKey) -> Hashable:
    return live_key.key.proof


def _session_proof(live_key: LiveKey) -> Hashable:
    return live_key.key.api_key, live_key.key.session


class ReloadError(Exception):
    """The new configuration is not taken. `str()` has cause and fix; the old one stays in use."""


class Reloader:
    """Reloads one gateway. `load` returns the configuration as it is now; it may block."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one part of the gateway
        self,
        services: Services,
        handler: Handler,
        listeners: Listeners,
        server: BotServer,
        streams: Streams,
        load: Callable[[], Config],
    ) -> None:
        self._services = services
        self._handler = handler
        self._listeners = listeners
        self._server = server
        self._streams = streams
        self._load = load
        self._one_at_a_time = asyncio.Lock()
        self._files = SecretWatch(lambda: handler.router.generation.config, services.environ, services.system)
        self.results: Counter[str] = Counter(ok=0, unchanged=0, failed=0)

    async def watch(self) -> None:
        """Reload whenever a secret file has changed, until cancelled."""
        await self._files.run(self._on_change)

    async def _on_change(self) -> None:
        with contextlib.suppress(ReloadError):  # it is in the log, and nobody waits for an answer
            await self.reload("a changed secret file")

    async def reload(self, asked_by: str) -> tuple[str, ...]:
        """Put the current configuration into use; return warnings. Raises ReloadError.

        `asked_by` says in the log who wanted it.
        """
        async with self._one_at_a_time:
            before = self._handler.router
            try:
                warnings = await self._renew()
            except (ConfigError, SecretError, TrialError, ReloadError, StartError, OSError) as error:
                told = "; ".join(str(error).splitlines())
                self.results["failed"] += 1
                log.error("reload_failed", asked_by=asked_by, cause=told, meanwhile=_MEANWHILE)  # noqa: TRY400 - the cause says it all
                raise ReloadError(told) from None
            except Exception:
                self.results["failed"] += 1
                log.exception("reload_failed", asked_by=asked_by, meanwhile=_MEANWHILE)
                raise ReloadError(
                    "the reload failed because of a fault in the gateway; report it with its line of the log"
                ) from None
            after = self._handler.router
            is_same = not warnings and _essence(after.generation) == _essence(before.generation)
            self.results["unchanged" if is_same else "ok"] += 1
            added = " ".join(after.pipelines.keys() - before.pipelines.keys())
            removed = " ".join(before.pipelines.keys() - after.pipelines.keys())
            log.info(
                "reloaded",
                asked_by=asked_by,
                added=added or None,
                removed=removed or None,
                unchanged=is_same or None,
            )
            for warning in warnings:
                log.warning("reloaded_but", cause=warning)
            return warnings

    async def _renew(self) -> tuple[str, ...]:
        old = self._handler.router
        running = old.generation.config
        # 1. Read what is to be, and make its parts.
        self._files.note(await asyncio.to_thread(self._files.snapshot, running))
        loaded = await asyncio.to_thread(self._load)
        config = with_fixed(loaded, running)
        check_whole(config)
        seen = await asyncio.to_thread(self._files.snapshot, config)
        parts = await asyncio.to_thread(read_parts, config, self._services.environ)
        generation = build_generation(
            config, parts, self._services.system, self._services.in_flight, old.generation
        )
        new = self._services.router(generation)
        bound = dict[OwnAddress, Listener]()
        # 2. Try them; a fault leaves everything as it is.
        try:
            await self._recall(generation)
            doubts = await self._prove(new, old)
            bound = await self._listeners.bind(config.own_addresses)
            _check_running(old)
        except BaseException:
            for one in bound.values():
                one.close()
            self._give_up(new, old)
            raise
        # 3. Put them into use.
        self._swap(new, old)
        await self._listeners.serve(bound, config.own_addresses)
        self._files.note(seen)
        waiting = (f"{name} takes effect after a restart" for name in waiting_for_restart(loaded, running))
        return (*doubts, *waiting, *goes_on_by_name(config, running, self._services.halting.halts))

    async def _recall(self, generation: Generation) -> None:
        """Start the limits of new keys from what the journal remembers."""
        if self._services.keeper is not None:
            places = schedulers(generation)
            restore(places, await asyncio.to_thread(self._services.keeper.recall, places))

    async def _prove(self, new: Router, old: Router) -> list[str]:
        """Try the keys that have not been accepted yet; return a warning for each that stays unproven.

        The exchanges are tried beside each other: one that hangs does not hold up the reload for longer than
        it alone may take.
        """
        # New parts run beside the old ones from now on: a trial needs the new clock, for example.
        self._services.background.follow(
            {**self._services.work(old), **self._services.upkeep(new.generation)}
        )
        trials = [
            asyncio.create_task(self._prove_one(pipeline, old.generation.backends.get(name)))
            for name, pipeline in new.pipelines.items()
        ]
        try:
            return [doubt for doubts in await asyncio.gather(*trials) for doubt in doubts]
        finally:
            for trial in trials:
                trial.cancel()
            await asyncio.wait(trials)

    async def _prove_one(self, new: Pipeline, old: Backend | None) -> list[str]:
        doubts = await self._follow_clock(new.backend, old)
        return doubts + await Trial(new, old, self._services.system).run()

    async def _follow_clock(self, new: Backend, old: Backend | None) -> list[str]:
        """Wait for the first sample of a new clock, so that no request has to; return why none arrived.

        If the old clock works, that is an error: no request could be signed any more.
        """
        clock, former = new.exchange.clock, None if old is None else old.exchange.clock
        if clock is former:
            return []
        try:
            await clock.wait_until_ready(self._services.system.now() + _FIRST_SAMPLE_S)
        except Refusal as refusal:
            detail = refusal.detail if not new.config.at else f"exchanges.{new.config.name}: {refusal.detail}"
            if new.config.clock.required and former is not None and former.not_ready is None:
                fix = "correct base_url, [clock] or [upstream], or wait until the exchange answers"
                raise ReloadError(f"{detail.removesuffix('.')}; {fix}") from None
            return [detail]
        return []

    def _swap(self, new: Router, old: Router) -> None:
        if self._services.keeper is not None:
            self._services.keeper.follow(schedulers(new.generation))
        self._handler.router = new
        log_policies(new.generation)
        for backend in new.generation.backends.values():
            exchange = backend.exchange
            exchange.clock_keeper.gates = exchange.gates
            exchange.gates.scheduler.adopt(pacing_of(backend.config))
        self._server.make_room(make_room(new.generation))
        old.retire()
        self._streams.adopt(new)
        self._services.background.follow(self._services.work(new))
        for upstream in _upstreams(old) - _upstreams(new):
            self._services.background.finish(self._retire(upstream))

    async def _retire(self, upstream: Upstream) -> None:
        """Close connections of before when nobody needs them any more."""
        try:
            await self._services.in_flight.wait_until_idle(None, upstream)
        finally:
            await upstream.close()

    def _give_up(self, new: Router, old: Router) -> None:
        self._services.background.follow(self._services.work(old))
        for upstream in _upstreams(new) - _upstreams(old):
            self._services.background.finish(upstream.close())


def _essence(generation: Generation) -> object:
    """Return what a generation goes by: settings, bots, and keys however they are stored."""
    config = generation.config
    stored = {"secret": "", "kind": None, "secret_passphrase": None}
    keys = {alias: key.model_copy(update=stored) for alias, key in config.keys.items()}
    return config.with_tables(keys=keys), [
        (
            backend.exchange.upstream,  # another one where its authorities or its proxy's password are others
            backend.rules.bots.keys(),
            {alias: (_key_proof(one), one.key.session) for alias, one in backend.exchange.live_keys.items()},
        )
        for backend in generation.backends.values()
    ]


def _check_running(router: Router) -> None:
    if router.halting.is_draining:
        raise ReloadError("the gateway is shutting down; reload the gateway that replaces it")


def _upstreams(router: Router) -> set[Upstream]:
    return {backend.exchange.upstream for backend in router.generation.backends.values()}
