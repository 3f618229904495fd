"""A check runs its probes in order: the nearest first, and none that would only repeat a failure."""

from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sealgate.config import Config, ConfigError
from sealgate.config.effective import Effective, effective
from sealgate.config.load import Loaded, is_configured, load_with_sources
from sealgate.config.names import PREFIX
from sealgate.config.sources import DEFAULT, DEFAULT_FILE
from sealgate.config.starter import leftovers
from sealgate.diagnose import local
from sealgate.diagnose.arguments import checked_target
from sealgate.diagnose.exchange import Exchange
from sealgate.diagnose.network import look_at_redis, look_at_way
from sealgate.diagnose.probe import direct_upstream
from sealgate.diagnose.running import judge_pause, judge_running, judge_stale, pause_s
from sealgate.http.target import Target
from sealgate.limits import snapshots as memory
from sealgate.limits.snapshots import Snapshot
from sealgate.machine.findings import Finding, Level, fail, ok, warn, worst
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import waiting_for
from sealgate.observe.running import ask_running, by_socket, by_tcp, first_status

GOOD, FAILED, UNUSABLE = 0, 1, 2  # exit codes


class Checked(NamedTuple):
    """What came of a check: its exit code, all lines, and the settings with their sources."""

    code: int
    findings: Sequence[Finding]
    settings: Sequence[Effective] = ()


def check(
    config_file: Path | None,
    path: str | None,
    environ: Mapping[str, str],
    show: Callable[[Finding], None],
    *,
    is_offline: bool,
) -> Checked:
    """Run all probes, and show each line as it comes. The signed read is of `path`, or the venue's own."""
    findings: list[Finding] = []

    def tell(found: Iterable[Finding]) -> None:
        for finding in found:
            findings.append(finding)
            show(finding)

    # 1. The configuration: without one, there is nothing else to look at.
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
    asked = path or config.venue.signed_read
    target = checked_target(asked, config.upstream.prefix) if asked else None
    wrong = [*local.look_at_file(file), *(fail("configuration", *one) for one in leftovers(config))]
    if worst(wrong) is not Level.FAIL:
        tell([ok("configuration", _summary(loaded, settings))])
    tell(wrong)
    # 2. This machine. A gateway here that serves another exchange is not this one, and in its way.
    running = ask_running(config, environ)
    if running is not None and running["base_url"] != config.exchange_urls:
        running = None
    known: dict[str, local.Known] = {}
    learned: dict[str, Snapshot] = {}
    tell(local.read_keys(config, environ, known))
    tell(local.read_tokens(config, environ, file))
    tell(local.look_at_policies(config))
    tell(local.look_at_certificate(config))
    tell(local.look_at_addresses(config, environ, is_running=running is not None))
    tell(local.look_at_reach(config))
    tell(local.look_at_descriptors(config))
    tell(local.look_at_journal(config, environ, learned, file))
    # 3. A gateway that runs says what it knows; without one, the journal remembers it.
    tell(_not_running(config, environ, learned) if running is None else judge_running(running))
    # 4. The network and the exchange.
    if not is_offline:
        accepted = run(
            _go_far(config, environ, target, known, _why_not_asked(config, running, learned), tell)
        )
        # Last, as the signed reads show whether what is stored is wrong, or only what the gateway has of it.
        if running is not None:
            tell(judge_stale(running, accepted))
    return Checked(FAILED if worst(findings) is Level.FAIL else GOOD, findings, settings)


def _not_running(
    config: Config, environ: Mapping[str, str], learned: Mapping[str, Snapshot]
) -> Iterator[Finding]:
    other = first_status(config, (*by_tcp(config), *by_socket(config, environ)))
    if other is not None:
        text = f"another Sealgate gateway is running here, for {other['base_url']}"
        yield warn("gateway", text, "stop it, or give this one addresses of its own")
    yield from local.remembered_limits(config, learned)


def _why_not_asked(
    config: Config, running: Mapping[str, Any] | None, learned: Mapping[str, Snapshot]
) -> Finding | None:
    """Return why the exchange must not be asked, None if it may."""
    if any(leftovers(config)):
        return warn("exchange", "not contacted", "replace the example first, see configuration")
    if running is not None and (left_s := pause_s(running)) > 0:
        return judge_pause(running, left_s)
    if (left_s := max(map(memory.pause_s, learned.values()), default=0.0)) > 0:
        text = "not contacted: the exchange has shut out this address or a key, as the journal remembers"
        return warn("exchange", text, f"run this again in {left_s:.0f} s")
    return None


async def _go_far(  # noqa: PLR0913, PLR0917 - what the near probes left
    config: Config,
    environ: Mapping[str, str],
    target: Target | None,
    known: Mapping[str, local.Known],
    why_not: Finding | None,
    tell: Callable[[Iterable[Finding]], None],
) -> Container[str]:
    """Ask Redis and the exchange; return the keys whose signed read was accepted."""

    async def shown(meanwhile: str, probe: AsyncIterator[Finding]) -> Level:
        with waiting_for(meanwhile):
            found = [finding async for finding in probe]
        tell(found)
        return worst(found)

    await shown("asking Redis", look_at_redis(config, environ))
    if why_not is not None:
        tell([why_not])
        return ()
    if await shown(f"looking for {config.only.base_url.host}", look_at_way(config, environ)) is Level.FAIL:
        return ()
    async with direct_upstream(config) as upstream:
        exchange = Exchange(config, upstream, target, System())
        await shown(f"asking {config.base_url}", exchange.examine(known))
        return exchange.accepted


def _summary(loaded: Loaded, settings: list[Effective]) -> str:
    """Return how many settings come from where."""
    file = str(loaded.file)
    in_file = sum(one.source == file for one in settings)
    in_venue = sum(one.source.startswith("venue ") for one in settings)
    elsewhere = sum(one.source not in (file, DEFAULT) for one in settings) - in_venue

    def counted(count: int) -> str:
        return "1 setting" if count == 1 else f"{count} settings"

    parts = [f"{counted(in_file)} from {file}"] if loaded.file else []
    parts += [f"{elsewhere if parts else counted(elsewhere)} from the environment"] if elsewhere else []
    others = "the venue's or defaults" if in_venue else "defaults"
    return f"valid: {' and '.join(parts)}, the others are {others}"
