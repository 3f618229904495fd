"""All probes in order: what is nearest first, and none whose answer would only repeat an earlier failure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sealgate.config import Config, ConfigError
from sealgate.config.effective import Effective, effective
from sealgate.config.load import Loaded, is_configured, load_with_sources
from sealgate.config.names import PREFIX
from sealgate.config.sources import DEFAULT, DEFAULT_FILE
from sealgate.diagnose import local
from sealgate.diagnose.exchange import Exchange
from sealgate.diagnose.local import look_at_journal, look_at_reach, remembered_limits
from sealgate.diagnose.network import (
    find_other,
    judge_pause,
    judge_running,
    judge_troubles,
    look_at_network,
    look_at_redis,
    pause_s,
)
from sealgate.diagnose.probe import direct_upstream
from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target
from sealgate.limits import memory
from sealgate.machine.findings import Finding, Level, fail, ok, warn, worst
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import leave_with_error, waiting_for
from sealgate.observe.running import ask_running

if TYPE_CHECKING:
    from sealgate.limits.memory import Snapshot

GOOD, FAILED, UNUSABLE = 0, 1, 2  # exit codes


class Report(Protocol):
    """Shows what was found, line by line."""

    @property
    def has_failed(self) -> bool:
        """Whether anything so far keeps the gateway from working."""

    def add(self, finding: Finding) -> None:
        """Show a line."""

    def explain(self, settings: Sequence[Effective]) -> None:
        """Show the settings with their sources, where they were asked for."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the user asked for; `path` None is the usual read."""

    config_file: Path | None
    path: str | None
    is_offline: bool


@dataclass(frozen=True)
class Round:
    """One check of a configuration that is valid; `known` are the keys that could be read.

    `accepted` are those of them whose signed read the exchange accepted, `running` is what a gateway that
    runs with it says of itself, and `learned` what the journal remembers of limits and pauses.
    """

    config: Config
    file: Path | None
    target: Target | None
    report: Report
    environ: Mapping[str, str]
    running: dict[str, Any] | None
    known: dict[str, local.Known] = field(default_factory=dict)
    learned: "dict[str, Snapshot]" = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)


def check(options: CheckOptions, report: Report, environ: Mapping[str, str]) -> int:
    """Run all probes and return the exit code."""
    if not is_configured(options.config_file, environ):
        report.add(_unconfigured())
        return UNUSABLE
    try:
        loaded = load_with_sources(options.config_file, environ=environ)
    except ConfigError as error:
        for line in str(error).splitlines():
            report.add(local.found_wrong("configuration", line))
        return UNUSABLE
    config = loaded.config
    turn = Round(config, loaded.file, _target(config, options.path), report, environ, _ours(config, environ))
    settings = effective(loaded)
    report.explain(settings)
    wrong = [*local.look_at_file(loaded.file), *local.look_for_leftovers(config)]
    if worst(wrong) is not Level.FAIL:
        report.add(ok("configuration", _summary(loaded, settings)))
    for finding in (*wrong, *_look_around(turn)):
        report.add(finding)
    if not options.is_offline:
        run(_go_out(turn))
    # Last, as the signed reads show whether what is stored is wrong, or only what the gateway has of it.
    for finding in judge_troubles(turn.running, turn.accepted) if turn.running else ():
        report.add(finding)
    return FAILED if report.has_failed else GOOD


def _unconfigured() -> Finding:
    text = f"not found: no {DEFAULT_FILE} in {Path.cwd()}, and no variable that begins with {PREFIX}"
    fix = "run this where the gateway's variables are set, or create a file with `sealgate config init`"
    return fail("configuration", text, fix)


def _ours(config: Config, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Ask the gateway that runs; one that serves another exchange is not ours, and in the way."""
    status = ask_running(config, environ)
    return status if status is not None and status["base_url"] == str(config.base_url) else None


def _target(config: Config, path: str | None) -> Target | None:
    """Return what the signed read asks for, None where neither the user nor the venue's file says it."""
    asked = path or config.venue.signed_read
    try:
        return parse_target(asked, config.upstream.prefix) if asked else None
    except Refusal as refusal:
        leave_with_error(f"--path: {refusal.detail} {refusal.advice}")


def _summary(loaded: Loaded, settings: list[Effective]) -> str:
    file = str(loaded.file)
    in_file = sum(one.source == file for one in settings)
    in_venue = sum(one.source.startswith("venue ") for one in settings)
    elsewhere = sum(one.source not in (file, DEFAULT) for one in settings) - in_venue
    parts = [f"{_settings(in_file)} from {file}"] if loaded.file else []
    parts += [f"{elsewhere if parts else _settings(elsewhere)} from the environment"] if elsewhere else []
    others = "the venue's or defaults" if in_venue else "defaults"
    return f"valid: {' and '.join(parts)}, the others are {others}"


def _settings(count: int) -> str:
    return "1 setting" if count == 1 else f"{count} settings"


def _look_around(turn: Round) -> Iterator[Finding]:
    """Yield what this machine shows. A further probe is a further line here."""
    config, environ = turn.config, turn.environ
    yield from local.read_keys(config, environ, turn.known)
    yield from local.read_tokens(config, environ, turn.file)
    yield from local.look_at_policies(config)
    yield from local.look_at_certificate(config)
    yield from local.look_at_addresses(config, environ, is_running=turn.running is not None)
    yield from look_at_reach(config)
    yield from local.look_at_descriptors(config)
    yield from look_at_journal(config, environ, turn.learned, turn.file)
    if turn.running is None:
        yield from find_other(config, environ)
        yield from remembered_limits(config, turn.learned)
    else:
        yield from judge_running(turn.running)


async def _go_out(turn: Round) -> None:
    """Go to the network; to the exchange only if it is no longer the example's."""
    if (finding := await look_at_redis(turn.config, turn.environ)) is not None:
        turn.report.add(finding)
    if any(local.look_for_leftovers(turn.config)):
        turn.report.add(warn("exchange", "not contacted", "replace the example first, see configuration"))
    elif (left_s := pause_s(turn.running)) > 0:
        turn.report.add(judge_pause(turn.running or {}, left_s))
    elif (left_s := max(map(memory.pause_s, turn.learned.values()), default=0.0)) > 0:
        text = "not contacted: the exchange has shut out this address or a key, as the journal remembers"
        turn.report.add(warn("exchange", text, f"run this again in {left_s:.0f} s"))
    else:
        await _ask(turn)


async def _ask(turn: Round) -> None:
    """Ask the exchange where the way to it is free."""
    is_free = True
    with waiting_for(f"looking for {turn.config.base_url.host}"):
        steps = [one async for one in look_at_network(turn.config, turn.environ)]
    for finding in steps:
        turn.report.add(finding)
        is_free = is_free and finding.level is not Level.FAIL
    if not is_free:
        return
    with waiting_for(f"asking {turn.config.base_url}"):
        found = await _examine(turn)
    for finding in found:
        turn.report.add(finding)


async def _examine(turn: Round) -> list[Finding]:
    async with direct_upstream(turn.config) as upstream:
        exchange = Exchange(turn.config, upstream, turn.target, System())
        found = [one async for one in exchange.examine(turn.known)]
        turn.accepted.update(exchange.accepted)
        return found
