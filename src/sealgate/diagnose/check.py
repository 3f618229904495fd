"""Run the probes of a check in order: the local ones first, and none that would only repeat a failure."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sealgate.config import Config, ConfigError, ExchangeConfig
from sealgate.config.effective import COMMON_TABLE, Effective, effective
from sealgate.config.load import Loaded, is_configured, load_with_sources
from sealgate.config.names import PREFIX
from sealgate.config.sources import DEFAULT, DEFAULT_FILE
from sealgate.config.starter import leftovers
from sealgate.diagnose import local
from sealgate.diagnose.arguments import checked_target, chosen_exchange
from sealgate.diagnose.exchange import Exchange
from sealgate.diagnose.network import look_at_redis, look_at_way
from sealgate.diagnose.probe import direct_upstream
from sealgate.diagnose.running import judge_pause, judge_running, judge_stale, pause_s
from sealgate.http.target import Target
from sealgate.keys.key import Secret
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import ONLY
from sealgate.limits.pool import SHUT_OUT, name_in, subject_in
from sealgate.limits.snapshots import Snapshot
from sealgate.machine.findings import Finding, Level, fail, ok, warn, worst
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import waiting_for
from sealgate.observe.running import (
    ask_running,
    by_socket,
    by_tcp,
    first_status,
    have_one_in_common,
)
from sealgate.server.memory import subjects

GOOD, FAILED, UNUSABLE = 0, 1, 2  # exit codes


class Checked(NamedTuple):
    """The result of a check: its exit code, all lines, the settings with sources, and the next steps."""

    code: int
    findings: Sequence[Finding]
    settings: Sequence[Effective] = ()
    next_step: str = ""


class Trip(NamedTuple):
    """The part of a check at one exchange: the signed read, if any, and the keys whose secrets were read.

    `why_not` says why the exchange must not be contacted, None if it may be.
    """

    exchange: ExchangeConfig
    target: Target | None
    known: Mapping[str, local.Known]
    proxy_password: Secret
    why_not: Finding | None


Tell = Callable[[Iterable[Finding]], None]


def check(  # noqa: PLR0913 - the options of the command
    config_file: Path | None,
    path: str | None,
    environ: Mapping[str, str],
    show: Callable[[Finding, int], None],
    *,
    is_offline: bool,
    has_streams: bool = False,
    exchange_name: str | None = None,
) -> Checked:
    """Run all probes, of all exchanges or of one, and show each line as soon as it is known.

    The signed read is of `path`, or the venue's own. `has_streams`: also log in on streams. With several
    exchanges, each line names its exchange, and `show` gets the length of the longest name, else 0.
    """
    findings: list[Finding] = []
    name_length = 0

    def tell(found: Iterable[Finding]) -> None:
        for finding in found:
            findings.append(finding)
            show(finding if name_length else replace(finding, exchange=""), name_length)

    # 1. The configuration: without one, there is nothing else to check.
    if not is_configured(config_file, environ):
        text = f"not found: no {DEFAULT_FILE} in {Path.cwd()}, and no variable that begins with {PREFIX}"
        fix = "run this where the gateway's variables are set, or create a file with `sealgate config init`"
        tell([fail("configuration", text, fix)])
        return Checked(UNUSABLE, findings)
    try:
        loaded = load_with_sources(config_file, environ=environ)
    except ConfigError as error:
        tell(local.found_wrong("configuration", line) for line in str(error).splitlines())
        return Checked(UNUSABLE, findings)
    config, file, settings = loaded.config, loaded.file, effective(loaded)
    name_length = max(map(len, config.served)) if len(config.served) > 1 else 0
    is_about_one = exchange_name is not None or path is not None
    exchanges = [chosen_exchange(config, exchange_name)] if is_about_one else [*config.served.values()]
    targets = {one.name: _signed_read(one, path) for one in exchanges}
    wrong = [*local.look_at_file(file), *(fail("configuration", *one) for one in leftovers(exchanges))]
    if worst(wrong) is not Level.FAIL:
        tell([ok("configuration", _summary(loaded, settings))])
    tell(wrong)
    # 2. This machine. A running gateway for another exchange is not this one, and blocks its addresses.
    running = ask_running(config, environ)
    if running is not None and not have_one_in_common(config.exchange_urls, running["base_url"]):
        running = None
    known: dict[str, dict[str, local.Known]] = {one.name: {} for one in exchanges}
    learned: dict[str, Snapshot] = {}
    tell(local.read_keys(config, environ, known))
    passwords: dict[str, Secret] = {}
    tell(local.read_passwords(config, exchanges, environ, passwords))
    tell(local.read_tokens(config, environ, file))
    tell(local.look_at_policies(config, exchanges))
    tell(local.look_at_certificate(config))
    tell(local.look_at_addresses(config, environ, is_running=running is not None))
    tell(local.look_at_reach(config))
    tell(local.look_at_descriptors(config))
    tell(local.look_at_journal(config, environ, learned, file))
    # 3. A running gateway reports what it has learned; without one, the journal has it.
    tell(
        _not_running(config, environ, exchanges, learned)
        if running is None
        else judge_running(running, known)
    )
    # 4. The network and the exchanges.
    if not is_offline:
        trips = [
            Trip(
                one,
                targets[one.name],
                known[one.name],
                passwords[one.name],
                _why_not_asked(one, running, learned),
            )
            for one in exchanges
            if one.name in passwords
        ]
        accepted = run(_go_far(config, environ, trips, tell, has_streams=has_streams))
        # Last, because the signed reads show whether the stored secrets are wrong, or only outdated in the
        # gateway.
        if running is not None:
            for name, aliases in accepted.items():
                tell(local.said_of(name, judge_stale(running, name, aliases)))
    code = FAILED if worst(findings) is Level.FAIL else GOOD
    next_step = _next_step(code, config_file, is_offline=is_offline, is_running=running is not None)
    return Checked(code, findings, settings, next_step)


def _next_step(code: int, file: Path | None, *, is_offline: bool, is_running: bool) -> str:
    """Return the command that comes after a check, "" if something is wrong or runs already."""
    option = f" --config {shlex.quote(str(file))}" if file else ""
    if code != GOOD:
        return ""
    if is_offline:
        return f"sealgate check{option}, which also asks the exchange"
    return "" if is_running else f"sealgate serve{option}"


def _signed_read(exchange: ExchangeConfig, path: str | None) -> Target | None:
    asked = path or exchange.venue.signed_read
    return checked_target(asked, exchange.upstream.prefix) if asked else None


def _not_running(
    config: Config,
    environ: Mapping[str, str],
    exchanges: Iterable[ExchangeConfig],
    learned: Mapping[str, Snapshot],
) -> Iterator[Finding]:
    other = first_status(config, (*by_tcp(config), *by_socket(config, environ)))
    if other is not None:
        text = f"another Sealgate gateway is running here, for {other['base_url']}"
        yield warn("gateway", text, "stop it, or give this gateway its own addresses")
    yield from local.remembered_limits(exchanges, learned)


def _why_not_asked(
    exchange: ExchangeConfig, running: Mapping[str, Any] | None, learned: Mapping[str, Snapshot]
) -> Finding | None:
    """Return why an exchange must not be contacted, None if it may be."""
    if any(leftovers([exchange])):
        return warn("exchange", "not contacted", "replace the example value of base_url first")
    if running is not None and (left_s := pause_s(running, exchange.name)) > 0:
        return judge_pause(running, exchange.name, left_s)
    of_keys = {one for alias in exchange.keys for one in subjects(exchange, alias)}
    kept = (
        one
        for place, one in learned.items()
        if subject_in(place) in of_keys and name_in(place) in (*ONLY, SHUT_OUT)
    )
    if (left_s := max(map(memory.pause_s, kept), default=0.0)) > 0:
        text = (
            "not contacted: according to the journal, the exchange has blocked this IP address or an API key"
        )
        return warn("exchange", text, f"run this again in {left_s:.0f} s")
    return None


async def _go_far(
    config: Config, environ: Mapping[str, str], trips: Sequence[Trip], tell: Tell, *, has_streams: bool
) -> dict[str, Container[str]]:
    """Ask Redis and the exchanges; return the keys of each exchange whose signed read was accepted."""
    # 1. Each Redis server, once.
    places = {trip.exchange.limits.redis: trip.exchange.name for trip in trips}
    for setting, name in places.items():
        probe = look_at_redis(setting, environ, config.cmd_env)
        await _shown("asking Redis", {name if len(places) > 1 else "": probe}, tell)
    # 2. The network to each exchange that may be contacted.
    for trip in trips:
        if trip.why_not is not None:
            tell(local.said_of(trip.exchange.name, [trip.why_not]))
    open_trips = {trip.exchange.name: trip for trip in trips if trip.why_not is None}
    hosts = ", ".join(trip.exchange.base_url.host for trip in open_trips.values())
    ways = {
        name: look_at_way(trip.exchange, environ, trip.proxy_password) for name, trip in open_trips.items()
    }
    levels = await _shown(f"looking for {hosts}", ways, tell)
    # 3. The reachable exchanges, all at the same time.
    async with contextlib.AsyncExitStack() as ends:
        asking: dict[str, Exchange] = {}
        for name, trip in open_trips.items():
            if levels[name] is not Level.FAIL:
                upstream = await ends.enter_async_context(direct_upstream(trip.exchange, trip.proxy_password))
                asking[name] = Exchange(config, trip.exchange, upstream, trip.target, System())
        urls = ", ".join(str(open_trips[name].exchange.base_url) for name in asking)
        probes = {
            name: _ask(one, open_trips[name].known, has_streams=has_streams) for name, one in asking.items()
        }
        await _shown(f"asking {urls}", probes, tell)
        return {name: one.accepted for name, one in asking.items()}


async def _ask(
    exchange: Exchange, known: Mapping[str, local.Known], *, has_streams: bool
) -> AsyncIterator[Finding]:
    """Yield all lines of an exchange."""
    async for finding in exchange.examine(known):
        yield finding
    async for finding in exchange.look_at_streams(known, is_asked=has_streams):
        yield finding


async def _shown(
    meanwhile: str, probes: Mapping[str, AsyncIterator[Finding]], tell: Tell
) -> dict[str, Level]:
    """Run the probes of several exchanges at the same time, and return the worst that each found.

    The lines are shown in order, grouped by exchange.
    """

    async def listed(name: str, probe: AsyncIterator[Finding]) -> list[Finding]:
        return list(local.said_of(name, [finding async for finding in probe]))

    levels: dict[str, Level] = {}
    tasks = {name: asyncio.ensure_future(listed(name, probe)) for name, probe in probes.items()}
    for name, task in tasks.items():
        with waiting_for(meanwhile):
            found = await task
        tell(found)
        levels[name] = worst(found)
    return levels


def _summary(loaded: Loaded, settings: list[Effective]) -> str:
    """Return how many settings come from each source."""
    file = str(loaded.file)
    in_file = sum(one.source == file for one in settings)
    in_venue = sum(one.source.startswith("venue ") for one in settings)
    elsewhere = sum(one.source not in (file, DEFAULT, COMMON_TABLE) for one in settings) - in_venue

    def counted(count: int) -> str:
        return "1 setting" if count == 1 else f"{count} settings"

    parts = [f"{counted(in_file)} from {file}"] if loaded.file else []
    parts += [f"{elsewhere if parts else counted(elsewhere)} from the environment"] if elsewhere else []
    others = "the venue's or defaults" if in_venue else "defaults"
    return f"valid: {' and '.join(parts)}, the others are {others}"
