"""The gateway as a whole: it listens, reports its state, and stops without losing a reply."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog

from sealgate import __version__
from sealgate.config import Address, Config, OwnAddress
from sealgate.config.load import addresses_of
from sealgate.exchange.exchange import Exchange
from sealgate.http.server import Service
from sealgate.machine.nearest import nearest
from sealgate.machine.process import Memory
from sealgate.machine.system import System
from sealgate.observe.pools import open_pools_of
from sealgate.observe.status import ExchangeStatus, Status, halt_status, key_status, policy_status
from sealgate.orders.halts import UNKNOWN, Origin, Scope
from sealgate.request.admission import Peer
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.bots import BotServer, peer_of
from sealgate.request.generation import Backend, Generation
from sealgate.request.halting import Halted
from sealgate.request.handler import Handler, Reader, Reporter
from sealgate.server.opening import Listeners
from sealgate.server.reload import Reloader, ReloadError
from sealgate.server.services import Services, build_services, make_room
from sealgate.streams.opening import StreamOpener
from sealgate.streams.orders import Desk
from sealgate.streams.registry import Streams
from sealgate.streams.tally import Tally

log = structlog.get_logger("sealgate.gateway")

_CLOSING_S = 1.0
_LOCAL = "local"  # the bot of a configuration without any


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway. `listeners` are where it listens, `services` what stays over a reload."""

    listeners: Listeners
    started: float
    services: Services
    handler: Handler
    reloader: Reloader
    reporter: Reporter
    server: BotServer
    streams: Streams

    @property
    def address(self) -> Address:
        """The TCP address in use, with the port that was chosen. Raises LookupError without one."""
        if self.listeners.tcp is None:
            raise LookupError("listen.tcp is off")
        return self.listeners.tcp

    @property
    def system(self) -> System:
        """This machine's clocks."""
        return self.services.system

    @property
    def books(self) -> Bookkeeping:
        """What is remembered of requests."""
        return self.services.books

    @property
    def generation(self) -> Generation:
        """The generation in use."""
        return self.handler.router.generation

    @property
    def is_draining(self) -> bool:
        """Whether it shuts down."""
        return self.services.halting.is_draining

    @property
    def config(self) -> Config:
        """The configuration in use."""
        return self.generation.config

    def unsigned_routes(self, exchange: str) -> frozenset[str]:
        """Return the templates of an exchange's routes that are not signed; none for one that is gone."""
        served = self.config.served.get(exchange)
        return frozenset() if served is None else served.venue.unsigned_routes

    def status(self) -> Status:
        """Return the state of everything at this moment."""
        return Status(
            version=__version__,
            uptime_s=self.system.now() - self.started,
            is_draining=self.is_draining,
            inflight=self.handler.inflight,
            connections=len(self.server.connections),
            exchanges=tuple(map(self._exchange_status, self.generation.backends.values())),
            journal=self.books.status,
            halts=halt_status(self.services.halting.halts),
            reloads=dict(self.reloader.results),
            addresses=addresses_of(self.config.listen, self.config.admin),
            bot_urls=self.listeners.bot_urls,
            callback_errors=self.services.background.callback_errors,
            tls_cert_expires_at=self.listeners.certificate_expires_at,
            streams=self.streams.status(),
        )

    def _exchange_status(self, backend: Backend) -> ExchangeStatus:
        config, exchange = backend.config, backend.exchange
        pacer = exchange.gates.scheduler.status()
        return ExchangeStatus(
            name=config.name,
            venue=config.venue.name,
            base_url=str(config.base_url),
            urls=self.listeners.urls_of(config),
            not_ready=_not_ready(exchange),
            clock=exchange.clock.status(),
            keys=tuple(
                key_status(alias, config.name, pacer, key.membership, key.breaker.state, key.breaker.record)
                for alias, key in exchange.live_keys.items()
            ),
            policies=policy_status(config.name, backend.rules.guards),
            open_pools=open_pools_of(pacer, exchange.gates.of_open, exchange.gates.of_keys),
        )

    async def halt(self, scope: Scope, origin: Origin = UNKNOWN) -> Halted:
        """Stop the orders of a scope."""
        return await self.services.halting.halt(scope, origin)

    async def resume(self, scope: Scope, origin: Origin = UNKNOWN) -> Halted:
        """Lift the halts of a scope, and use its keys again at once if the exchange refused them."""
        keys = tuple(
            Scope(None, alias, name if backend.config.at else None)
            for name, backend in self.generation.backends.items()
            for alias, live_key in backend.exchange.live_keys.items()
            if scope.covers(Scope(scope.bot, alias, name)) and live_key.breaker.enable()
        )
        return replace(await self.services.halting.resume(scope, origin), keys=keys)

    async def wait_until_ready(self, seconds: float, exchange: str | None = None) -> None:
        """Wait until requests can be signed for an exchange; without one, for every exchange.

        Raises Refusal `clock_unsynced` if that takes too long.
        """
        until = self.system.now() + seconds
        for name, backend in self.generation.backends.items():
            if exchange in (None, name):
                await backend.exchange.clock.wait_until_ready(until)

    async def drain(self) -> None:
        """Stop accepting connections, serve for the grace period, answer the requests in flight, close."""
        self.services.halting.is_draining = True
        self.listeners.close()
        await self.server.wait_until_empty(self.config.listen.drain)
        await self.streams.drain(_CLOSING_S)
        longest_s = max(
            one.limits.max_wait + one.upstream.total_timeout for one in self.config.served.values()
        )
        await self.services.in_flight.wait_until_idle(longest_s)
        await self.server.close(_CLOSING_S)
        self.reporter.flush()


@contextlib.asynccontextmanager
async def running_gateway(
    config: Config,
    readers: tuple[Reader, ...] = (),
    environ: Mapping[str, str] | None = None,
    load: Callable[[], Config] | None = None,
    system: System | None = None,
) -> AsyncIterator[Gateway]:
    """Run a gateway as long as the block lasts; it drains at its end.

    `load` returns the configuration anew for a reload; without it only secrets are read again. `system`
    has the clocks, this machine's unless given. Raises SecretError where a secret cannot be read,
    JournalError where the journal cannot be used, StartError where it cannot listen.
    """
    environ = os.environ if environ is None else environ
    system = system or System()
    async with contextlib.AsyncExitStack() as ends:
        services, router = build_services(config, environ, system, ends)
        reporter = Reporter(readers)
        desk = Desk(services.in_flight, services.books, system, reporter.report, Tally())
        streams = Streams(desk, config.listen.max_streams)
        opener = StreamOpener(streams)
        handler = Handler(router, services.in_flight, services.books, system, reporter.report, opener.open)
        ends.push_async_callback(_close_upstreams, handler)

        def service_at(own: OwnAddress | None) -> Service:
            exchange, bot = (own.exchange, own.bot) if own else ("", "")
            peer = Peer(own=(bot, str(own.address))) if own and bot else None
            return Service(
                partial(handler.handle, own=exchange),
                partial(handler.refuse_malformed, own=exchange),
                config.listen.head_timeout,
                memory=lambda: handler.router.heads,
                identify=peer_of if peer is None else lambda _: peer,
                now=system.now,
            )

        server = BotServer(service_at(None), config.listen.max_connections, make_room(router.generation))

        listeners = Listeners(config.listen, lambda own: server.beside(service_at(own)), system)
        reloader = Reloader(services, handler, listeners, server, streams, load or (lambda: config))
        ends.push_async_callback(services.background.stop)
        services.background.follow(services.work(router))
        services.background.finish(services.background.keep_up(reloader, reloader.watch))
        memory = Memory(lambda: len(server.connections), system)
        services.background.finish(services.background.keep_up(memory, memory.keep_small))
        await listeners.open(config.own_addresses)
        gateway = Gateway(listeners, system.now(), services, handler, reloader, reporter, server, streams)
        ends.push_async_callback(gateway.drain)
        yield gateway


async def _close_upstreams(handler: Handler) -> None:
    """Close the connections in use by then: a reload may have replaced the first ones."""
    for backend in handler.router.generation.backends.values():
        await backend.exchange.upstream.close()


def _not_ready(exchange: Exchange) -> tuple[str, ...]:
    """Return why an exchange's requests cannot pass."""
    reasons = []
    if (clock := exchange.clock.not_ready) is not None:
        reasons.append(clock)
    faults = {alias: live_key.breaker.state.fault for alias, live_key in exchange.live_keys.items()}
    if all(faults.values()):
        reasons += [f"the key {alias} is disabled: {fault}" for alias, fault in faults.items()]
    return tuple(reasons)


Said = tuple[int, dict[str, Any]]


class Controls:
    """The three commands of one gateway.

    A name that is not known is refused: a typo in a halt must not be answered as if it had halted somebody.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def reload(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Take the configuration as it is now into use."""
        if scope != Scope():
            return HTTPStatus.BAD_REQUEST, {"error": "a reload accepts no bot, key or exchange"}
        try:
            warnings = await self._gateway.reloader.reload(f"{origin.who}, through the admin socket")
        except ReloadError as error:
            return HTTPStatus.CONFLICT, {"error": str(error)}
        return HTTPStatus.OK, {"warnings": list(warnings), "base_url": self._gateway.config.exchange_urls}

    async def halt(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Stop the orders of a scope."""
        return self._unknown(scope) or self._answer(await self._gateway.halt(scope, origin))

    async def resume(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Lift the halts of a scope; a halt may name what is no longer configured."""
        is_halted = self._gateway.services.halting.halts.within(scope)
        unknown = None if is_halted else self._unknown(scope)
        return unknown or self._answer(await self._gateway.resume(scope, origin))

    def _unknown(self, scope: Scope) -> Said | None:
        config = self._gateway.config
        bots, keys, where = tuple(config.bots) or (_LOCAL,), tuple(config.keys), ""
        error = _unknown("exchange", scope.exchange, config.served)
        if error is None and scope.exchange is not None:
            # A bot without a key there sends no orders that a halt could stop.
            keys = tuple(config.served[scope.exchange].keys)
            bots = tuple(bot for bot in config.bots if not set(config.keys_of(bot)).isdisjoint(keys)) or bots
            where = f" at {scope.exchange}"
        error = error or _unknown("bot", scope.bot, bots, where) or _unknown("key", scope.key, keys, where)
        return None if error is None else (HTTPStatus.NOT_FOUND, {"error": error})

    def _answer(self, halted: Halted) -> Said:
        return HTTPStatus.OK, {
            "halts": [asdict(halt) for halt in halt_status(halted.halts)],
            "refused": halted.refused,
            "had_been": halted.had_been,
            "lifted": [asdict(halt) for halt in halt_status(halted.lifted)],
            "keys": list(dict.fromkeys(one.key for one in halted.keys)),
            "used_again": [one.words for one in halted.keys],
            "survives_restart": halted.forgotten_because is None,
            "forgotten_because": halted.forgotten_because,
            "base_url": self._gateway.config.exchange_urls,
        }


def _unknown(kind: str, name: str | None, known: Iterable[str], where: str = "") -> str | None:
    names = list(known)
    if name is None or name in names:
        return None
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"known: {', '.join(names)}"
    return f"there is no {kind} {name}{where}; {hint}"
