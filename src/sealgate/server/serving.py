"""The gateway and its readers, put together: what `serve` and `demo` run."""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import structlog
from prometheus_client.process_collector import ProcessCollector

from sealgate import __version__
from sealgate.config import Address, Config, ConfigError
from sealgate.config.first_read import curl_lines, first_read
from sealgate.config.load import addresses_of
from sealgate.config.starter import leftovers
from sealgate.config.venues import venue_text
from sealgate.errors import Refusal
from sealgate.machine.loop import stop_event
from sealgate.machine.process import (
    ServiceManager,
    StartError,
    caller_of,
    forbid_core_dumps,
    room_for_admin,
)
from sealgate.machine.system import System
from sealgate.observe.admin import admin_app, pages
from sealgate.observe.control import control_app
from sealgate.observe.live import Live
from sealgate.observe.log import RequestLog, buffered_stderr, configure_log, is_console
from sealgate.observe.log_stream import LogStream
from sealgate.observe.metrics import Metrics
from sealgate.observe.running import UnixConnection, by_socket, by_tcp, status_of
from sealgate.observe.serving import BACKLOG, running_app
from sealgate.observe.status import notes
from sealgate.orders.journal import JournalError
from sealgate.orders.journal.lock import user_of
from sealgate.request.handler import Reader
from sealgate.server.gateway import Controls, Gateway, running_gateway
from sealgate.server.reload import ReloadError
from sealgate.server.sockets import bind, bind_admin

_LOOK_AGAIN_S = 5.0  # a reload may bring another clock

log = structlog.get_logger("sealgate.serve")
_MOST_AT_ONCE = 8  # commands; they are a person's


async def serve(load: Callable[[], Config]) -> None:
    """Run the gateway until a signal asks it to stop; `load` is called again for a reload.

    Raises ConfigError, also if the example of the starter file would be sent to the exchange, and StartError
    if a gateway has one of its addresses already.
    """
    config = load()
    if lines := [f"{cause}; {fix}" for cause, fix in leftovers(config.served.values())]:
        raise ConfigError(lines)
    with contextlib.closing(buffered_stderr()) as stream:
        configure_log(config.log.level, config.log.format, System().wall, stream)
        forbid_core_dumps()
        try:
            await _serve(config, load, stream)
        except (JournalError, StartError):
            # The second of two gateways fails at the first thing that the other has: it is not to blame.
            if (running := _second_of(config, os.environ)) is not None:
                raise StartError(running) from None
            raise


async def _serve(config: Config, load: Callable[[], Config], stream: LogStream) -> None:
    stop = stop_event()
    async with running_with_admin(config, (RequestLog(stream),), load=load) as (gateway, admin):
        _reload_on_hangup(gateway)
        _announce(gateway, admin, stream)
        if admin is not None and not admin.is_loopback:
            fix = "everybody who can connect can read it: restrict access with a firewall or network policy"
            log.warning("admin_is_open", address=str(admin), fix=fix)
        _freeze_memory()
        manager = ServiceManager(os.environ)
        # Not only once it can sign: an exchange that is away is no reason to start it again.
        manager.notify("READY=1")
        gateway.services.background.finish(manager.keep_up(lambda: _in_words(gateway), gateway.system))
        ready = [asyncio.create_task(_log_when_ready(gateway, name)) for name in config.served]
        await stop.wait()
        for task in ready:
            task.cancel()
        log.info("draining", inflight=gateway.handler.inflight)
        manager.notify("STOPPING=1")
        await gateway.drain()  # here, where the admin address still says so
    log.info("stopped")


def _announce(gateway: Gateway, admin: Address | None, stream: LogStream) -> None:
    """Say which exchanges this is for, where bots connect and where the live page is."""
    page = None if admin is None else f"http://{admin}/"
    if is_console(gateway.config.log.format) and stream.isatty():
        stream.write(_addresses_for_people(gateway, page))
        return
    status, venues = gateway.status(), gateway.config.served
    only = status.exchanges[0] if len(status.exchanges) == 1 else None
    log.info(
        "listening",
        exchange=only and only.name,
        venue=only and venue_text(venues[only.name].venue),
        environment=only and (venues[only.name].environment or None),
        base_url=status.base_url,
        bots=" ".join(only.urls if only else gateway.listeners.urls) or None,
        admin=admin and f"http://{admin}",
        page=page,
    )
    for one in () if only else status.exchanges:
        config = venues[one.name]
        log.info(
            "serving",
            exchange=one.name,
            venue=venue_text(config.venue),
            environment=config.environment or None,
            base_url=one.base_url,
            bots=" ".join(one.urls) or None,
        )
    for name, url in status.bot_urls.items():
        log.info("own_address", bot=name, url=url)


def _addresses_for_people(gateway: Gateway, page: str | None) -> str:
    """Return what a terminal shows first: of several exchanges, a row for each."""
    served, rows = gateway.config.served, dict[str, str]()
    what = f"{len(served)} exchanges"
    if len(served) == 1:
        (one,) = served.values()
        what, rows["bots"] = f"{one.title}, {one.base_url}", " ".join(gateway.listeners.urls_of(one))
    else:
        for name, one in served.items():
            rows[name] = f"{' '.join(gateway.listeners.urls_of(one))}  ({one.title}, {one.base_url})"
    rows |= {f"bot {name}": f"{url}  (without a token)" for name, url in gateway.listeners.bot_urls.items()}
    rows |= {"live page": page or "none (admin.tcp is off)", **_first_read(gateway), "stop with": "Ctrl-C"}
    width = max(map(len, rows))
    lines = (f"  {name:<{width}}  {text}" for name, text in rows.items())
    return "\n".join((f"Sealgate {__version__} for {what}", *lines, "", ""))


def _first_read(gateway: Gateway) -> dict[str, str]:
    """Return a row with a signed read to try, if a bot has its token in a file."""
    config = gateway.config
    for name, bot in config.bots.items():
        if bot.token is None or not bot.token.startswith("file:"):
            continue
        for one in config.served.values():
            urls = [url for url in gateway.listeners.urls_of(one) if url.startswith("http")]
            if urls and set(one.keys).intersection(config.keys_of(name)):
                return {"try": f"\n{'':<13}".join(curl_lines(first_read(one, urls[0]), bot.token))}
    return {}


def _in_words(gateway: Gateway) -> str:
    """Return the state as `systemctl status` shows it."""
    status = gateway.status()
    if status.is_draining:
        return f"draining: {status.inflight} in flight"
    if status.not_ready:
        return f"not ready: {'; '.join(status.not_ready)}"
    return ", but ".join(filter(None, ("ready", "; ".join(notes(status)))))


def _reload_on_hangup(gateway: Gateway) -> None:
    """Let SIGHUP reload, as it does with every daemon."""

    async def reload() -> None:
        with contextlib.suppress(ReloadError):  # it is in the log
            await gateway.reloader.reload("SIGHUP")

    background = gateway.services.background
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: background.finish(reload()))


def _freeze_memory() -> None:
    """Look through what start-up made no more: it stays for good.

    The collector's walks through all modules, again and again, took a fifth of a request and were its worst
    delays. Requests make few cycles, so that the young generation may grow.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


async def _log_when_ready(gateway: Gateway, name: str) -> None:
    """Log when an exchange's requests can be signed, and why not once its grace is over."""
    if not await _is_ready_within(gateway, name, gateway.config.served[name].clock.grace):
        exchange = gateway.status().exchange(name)
        reasons = "; ".join(exchange.not_ready) if exchange else None
        log.warning("not_ready", exchange=name, reasons=reasons, fix="it keeps trying")
        while not await _is_ready_within(gateway, name, _LOOK_AGAIN_S):
            pass
    if name in gateway.config.served:  # a reload may have removed it
        log.info("ready", exchange=name)


async def _is_ready_within(gateway: Gateway, name: str, seconds: float) -> bool:
    try:
        await gateway.wait_until_ready(seconds, name)
    except Refusal:
        return False
    return True


@contextlib.asynccontextmanager
async def running_with_admin(
    config: Config,
    readers: tuple[Reader, ...] = (),
    environ: Mapping[str, str] | None = None,
    load: Callable[[], Config] | None = None,
    system: System | None = None,
) -> AsyncIterator[tuple[Gateway, Address | None]]:
    """Run the gateway, its admin address and socket; yield the first two, the address as it really is.

    What it takes and raises is as with `running_gateway`.
    """
    async with running_gateway(config, readers, environ, load, system) as gateway:
        metrics = Metrics(gateway.status, ProcessCollector(registry=None))
        live = Live(
            gateway.status,
            gateway.system,
            lambda: {name: bot.weight for name, bot in gateway.config.bots.items()},
            lambda: {name: one.venue.replies for name, one in gateway.config.served.items()},
            gateway.unsigned_routes,
        )
        gateway.reporter.add(metrics)
        gateway.reporter.add(live)
        async with (
            _running_admin(config, gateway, metrics, live) as address,
            running_control(gateway, metrics, live) as control,
        ):
            if control is not None:
                log.info("taking_commands", socket=str(control))
            yield gateway, address


@contextlib.asynccontextmanager
async def _running_admin(
    config: Config, gateway: Gateway, metrics: Metrics, live: Live
) -> AsyncIterator[Address | None]:
    address = config.admin.tcp
    if address is None:
        yield None
        return
    hosts = frozenset(config.admin.hosts)
    app = admin_app(gateway.status, metrics, live, hosts, is_loopback=address.is_loopback)
    async with running_app(app, room_for_admin(), config.listen.head_timeout) as protocol:
        listeners = await bind(address, "admin.tcp", BACKLOG)
        with contextlib.ExitStack() as ends:
            for sock in listeners:
                server = await asyncio.get_running_loop().create_server(protocol, sock=sock, backlog=BACKLOG)
                ends.callback(server.close)
            yield Address(*listeners[0].getsockname()[:2])


@contextlib.asynccontextmanager
async def running_control(gateway: Gateway, metrics: Metrics, live: Live) -> AsyncIterator[Path | None]:
    """Take commands as long as the block lasts; yield where, None where it is off. Raises StartError."""
    bound = bind_admin(gateway.config.admin.unix, gateway.services.environ)
    if bound is None:
        yield None
        return
    controls = Controls(gateway)
    actions = {"reload": controls.reload, "halt": controls.halt, "resume": controls.resume}
    app = control_app(pages(gateway.status, metrics, live.document), actions, caller_of)
    async with running_app(app, _MOST_AT_ONCE, gateway.config.listen.head_timeout) as protocol:
        try:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(protocol, sock=bound.sock, backlog=BACKLOG)
            with contextlib.closing(server):
                yield bound.path
        finally:
            bound.remove()
            bound.sock.close()


def _second_of(config: Config, environ: Mapping[str, str]) -> str | None:
    """Return that a gateway has one of these addresses already, and what to do; None if none has.

    Its process is known by its admin socket or, without one, by the lock of the journal.
    """
    own = addresses_of(config.listen, config.admin).items()
    for connection in (*by_socket(config, environ), *by_tcp(config)):
        with contextlib.closing(connection):
            document = status_of(connection, config.admin.hosts[0])
            process = connection.process if document and isinstance(connection, UnixConnection) else None
        theirs = document.get("addresses", {}) if document else {}
        # Port 0 is another one at each start.
        if not any(theirs.get(setting) == at for setting, at in own if at and not at.endswith(":0")):
            continue
        if process is None and config.journal.file is not None:
            with contextlib.suppress(OSError, JournalError):
                process = user_of(config.journal.file) or None
        who = "a Sealgate gateway" if process is None else f"pid {process}"
        where = theirs["listen.tcp"] or theirs["listen.unix"] or theirs["admin.tcp"]
        stop = "stop it" if process is None else f"stop it (kill {process})"
        return (
            f"already running: {who}, at {where}; apply changes to it with `sealgate reload`, or {stop}; for "
            "a second gateway, give this one its own addresses"
        )
    return None
