"""The gateway and its readers, put together: what `serve` and `demo` run."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator

import structlog
from aiohttp import web

from sealgate.admin.log import RequestLog, buffered_stderr, configure_log
from sealgate.admin.log_stream import LogStream
from sealgate.admin.metrics import Metrics
from sealgate.admin.server import admin_app
from sealgate.cli.loop import stop_event
from sealgate.config import Address, Config
from sealgate.errors import Refusal
from sealgate.gateway.gateway import Gateway, cannot_listen, running_gateway
from sealgate.gateway.hardening import forbid_core_dumps

_FOR_EVER_S = 1e9

log = structlog.get_logger("sealgate.serve")


async def serve(config: Config) -> None:
    """Run the gateway until a signal asks it to stop."""
    with contextlib.closing(buffered_stderr()) as stream:
        configure_log(config.log.level, config.log.format, stream)
        forbid_core_dumps()
        await _serve(config, stream)


async def _serve(config: Config, stream: LogStream) -> None:
    stop = stop_event()
    async with running_with_admin(config, stream) as (gateway, admin):
        log.info("listening", bots=f"http://{gateway.address}", admin=admin and f"http://{admin}")
        if admin is not None and not admin.is_loopback:
            fix = "who reaches it can read status and metrics: restrict it by a firewall or network policy"
            log.warning("admin_is_open", address=str(admin), fix=fix)
        _settle_memory()
        ready = asyncio.create_task(_say_ready(gateway))
        await stop.wait()
        ready.cancel()
        log.info("draining", inflight=gateway.handler.inflight)
    log.info("stopped")


def _settle_memory() -> None:
    """Look through what start-up made no more: it stays for good.

    The collector's walks through all modules, again and again, took a fifth of a request and were its worst
    delays. Requests make few cycles, so that the young generation may grow.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


async def _say_ready(gateway: Gateway) -> None:
    patience_s = gateway.config.clock.grace
    while True:
        try:
            await gateway.wait_until_ready(patience_s)
        except Refusal:
            log.warning("not_ready", reasons="; ".join(gateway.status().not_ready), fix="it keeps trying")
            patience_s = _FOR_EVER_S
        else:
            log.info("ready")
            return


@contextlib.asynccontextmanager
async def running_with_admin(
    config: Config, stream: LogStream
) -> AsyncIterator[tuple[Gateway, Address | None]]:
    """Run the gateway and its admin address; yield both, the address as it really is."""
    async with running_gateway(config, (RequestLog(stream),)) as gateway:
        metrics = Metrics(gateway.status)
        gateway.reporter.add(metrics)
        async with _running_admin(config, gateway, metrics) as address:
            yield gateway, address


@contextlib.asynccontextmanager
async def _running_admin(config: Config, gateway: Gateway, metrics: Metrics) -> AsyncIterator[Address | None]:
    address = config.admin.tcp
    if address is None:
        yield None
        return
    app = admin_app(gateway.status, metrics, frozenset(config.admin.hosts), is_loopback=address.is_loopback)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port)
        try:
            await site.start()
        except OSError as error:
            raise cannot_listen(address, "admin.tcp", error) from None
        yield Address(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()
