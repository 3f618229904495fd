"""The demo from start to end: run both exchanges, the gateway and the bots, show them, tell how it went."""

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict

import click
from rich.console import Console
from rich.live import Live

from sealgate.config.load import config_of
from sealgate.demo.bots import BOTS, STREAM, THROUGH_GATEWAY, playing, signed_by, with_token
from sealgate.demo.tally import Count, Summary, Tally, Team, figures, whole_windows
from sealgate.demo.views import Picture, contrast, live, plain
from sealgate.machine.loop import stop_event
from sealgate.machine.process import StartError
from sealgate.machine.system import System, random_token
from sealgate.machine.terminal import plain_cause
from sealgate.observe.log import configure_log
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import Gateway
from sealgate.server.serving import running_with_admin

# The exchange's clock is ahead of this machine's, as clocks are; within recv_window, so that bots on their
# own live with it.
EXCHANGE = SandboxSettings(limit_requests=20, limit_window_s=1, skew_ms=1500)
_HOST = "127.0.0.1"
_GUEST = "you"  # a bot of the user's own, for the curl line
_TOKEN_LENGTH = 16  # 96 bits, for as long as the demo runs; so that the curl line fits on a line
_LIVE_S, _PLAIN_S = 0.25, 1.0


async def show(
    seconds: float | None, *, port: int, admin_port: int, sandbox_port: int, as_json: bool
) -> None:
    """Run the demo for so many seconds, or until a signal; port 0 is any free one.

    Raises StartError for a port that cannot be had.
    """
    _try_ports({"--port": port, "--admin-port": admin_port, "--sandbox-port": sandbox_port})
    system = System()
    configure_log("error", "console", system.wall)
    stop = stop_event(ends_on_hangup=True)
    console = Console(stderr=as_json)
    tokens = {name: random_token()[:_TOKEN_LENGTH] for name in (*BOTS, _GUEST)}
    async with (
        running_sandbox(EXCHANGE, listen=(_HOST, sandbox_port)) as exchange,
        running_sandbox(EXCHANGE) as other,
        _running_gateway(exchange, port, admin_port, tokens) as (gateway, admin_url),
    ):
        (bots_url,) = gateway.listeners.urls
        stream_path = f"{THROUGH_GATEWAY}{STREAM}"
        _print_addresses(console, bots_url, admin_url, exchange.base_url, tokens[_GUEST])
        signed = signed_by(other.api_key, other.api_secret, system)
        async with (
            playing(bots_url, lambda name: with_token(tokens[name]), system, stream_path) as through,
            playing(other.base_url, lambda _name: signed, system) as alone,
        ):
            scene = _Scene(system, gateway, (exchange, other), (through, alone))
            await _show_until(stop, seconds, scene, console)
            # The exchanges' counts end here; the bots still get the answers that they wait for.
            last, windows = scene.picture(), scene.windows()
    ours, theirs = (figures(team, windows, EXCHANGE.limit_window_s) for team in (last.through, last.alone))
    ran_s = round(last.elapsed_s, 3)
    summary = Summary(ran_s, EXCHANGE.limit_requests, EXCHANGE.limit_window_s, ours, theirs)
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        console.print(contrast(summary))


def _try_ports(options: Mapping[str, int]) -> None:
    """Listen at all of these ports for a moment. Raises StartError, which names the demo's own option."""
    with ExitStack() as held:
        for option, port in options.items():
            try:
                held.enter_context(socket.create_server((_HOST, port)))
            except OSError as error:
                raise StartError(
                    f"cannot listen on {_HOST}:{port}: {plain_cause(error)}; choose another {option}"
                ) from None


@asynccontextmanager
async def _running_gateway(
    exchange: Sandbox, port: int, admin_port: int, tokens: Mapping[str, str]
) -> AsyncIterator[tuple[Gateway, str]]:
    """Run the gateway for bots with these tokens, whatever the user's own settings are."""
    weights = {name: bot.weight for name, bot in BOTS.items()}
    config = config_of(
        {
            "base_url": exchange.base_url,
            "upstream": {"streams": exchange.streams_url},
            "listen": {"tcp": f"{_HOST}:{port}", "drain": 0},
            # The default place of the admin socket is the real gateway's.
            "admin": {"tcp": f"{_HOST}:{admin_port}", "unix": "off"},
            "keys": {"main": {"api_key": exchange.api_key, "secret": "env:SECRET"}},
            "bots": {name: {"token": f"env:{name}", "weight": weights.get(name, 1)} for name in tokens},
        }
    )
    environ = {"SECRET": exchange.api_secret, **tokens}
    async with running_with_admin(config, environ=environ) as (gateway, admin):
        yield gateway, f"http://{admin}"


def _print_addresses(
    console: Console, bots_url: str, admin_url: str, exchange_url: str, guest_token: str
) -> None:
    """Print where everything is, and a line to try."""
    window = f"{EXCHANGE.limit_requests} requests in {EXCHANGE.limit_window_s:g} s"
    for line in (
        f"Four bots share one API key and its limit of {window}.",
        f"The exchange's clock is {EXCHANGE.skew_ms / 1000:g} s off, as some are.",
        f"  bots      {bots_url}",
        f"  live page {admin_url}/",
        f"  metrics   {admin_url}/metrics",
        f"  exchange  {exchange_url}/openapi.json",
        "Try it, while it runs (the gateway signs it):",
        f"  curl http://{_GUEST}:{guest_token}@{bots_url.removeprefix('http://')}/v1/trade/symbols/list",
        "",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Scene:
    """What the pictures are taken of: the gateway, and the teams at their exchanges."""

    def __init__(
        self,
        system: System,
        gateway: Gateway,
        exchanges: Sequence[Sandbox],
        tallies: Sequence[Mapping[str, Tally]],
    ) -> None:
        self.system = system
        self.started = system.now()
        self._started_wall_s = system.wall()
        self._gateway = gateway
        self._exchanges = exchanges
        self._teams = [Team(counted, Count(EXCHANGE.limit_window_s)) for counted in tallies]

    def windows(self) -> range:
        """Return the windows of the limit that lie between the start and now."""
        return whole_windows(self._started_wall_s, self.system.wall(), EXCHANGE.limit_window_s)

    def picture(self) -> Picture:
        """Return the state of everything."""
        for sandbox, team in zip(self._exchanges, self._teams, strict=True):
            team.count.add(sandbox.exchange.journal.newer(team.count.last))
        status = self._gateway.status()
        (key,) = status.keys
        return Picture(
            self.system.now() - self.started,
            key.pause_s,
            sum(key.waiting.values()),
            status.clock.offset_s,
            status.clock.error_s,
            *self._teams,
        )


async def _show_until(stop: asyncio.Event, seconds: float | None, scene: _Scene, console: Console) -> None:
    """Show the scene until the time is up or `stop` is set: live on a terminal, else in lines."""
    is_live = console.is_terminal and not console.is_dumb_terminal
    step_s = _LIVE_S if is_live else _PLAIN_S
    with Live(console=console, auto_refresh=False, transient=True) if is_live else nullcontext() as view:
        for number in itertools.count(1):
            # Counted from the start, so that no second is skipped however long a line takes.
            due_s = number * step_s if seconds is None else min(number * step_s, seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout(scene.started + due_s - scene.system.now()):
                    await stop.wait()
            if stop.is_set() or due_s == seconds:
                return
            if view is not None:
                view.update(live(scene.picture()), refresh=True)
            else:
                console.print(plain(scene.picture()), markup=False, highlight=False, soft_wrap=True)
