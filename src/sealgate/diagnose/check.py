"""A check is a list of probes in order: the nearest first, and none that would only repeat a failure."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sealgate.config import Config, ConfigError
from sealgate.config.effective import Effective, effective
from sealgate.config.load import Loaded, is_configured, load_with_sources
from sealgate.config.names import PREFIX
from sealgate.config.sources import DEFAULT, DEFAULT_FILE
from sealgate.config.starter import leftovers
from sealgate.diagnose import local
from sealgate.diagnose.exchange import Exchange
from sealgate.diagnose.network import look_at_redis, look_at_way
from sealgate.diagnose.probe import direct_upstream
from sealgate.diagnose.running import judge_pause, judge_running, judge_stale, pause_s
from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target
from sealgate.limits import snapshots as memory
from sealgate.limits.snapshots import Snapshot
from sealgate.machine.findings import Finding, Level, fail, ok, warn, worst
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import leave_with_error, waiting_for
from sealgate.observe.running import ask_running, by_socket, by_tcp, first_status

GOOD, FAILED, UNUSABLE = 0, 1, 2  # exit codes


class Checked(NamedTuple):
    """What came of a check: its exit code, all lines, and the settings with their sources."""

    code: int
    findings: Sequence[Finding]
    settings: Sequence[Effective] = ()


@dataclass(frozen=True)
class Round:
    """One check of a valid configuration, and what its probes leave for later ones.

    `running` is the status of a gateway that runs with it. `known` are the keys that could be read,
    `accepted` those whose signed read the exchange accepted; `learned` is what the journal remembers of
    limits and pauses.
    """

    loaded: Loaded
    settings: list[Effective]
    target: Target | None
    environ: Mapping[str, str]
    running: dict[str, Any] | None
    known: dict[str, local.Known] = field(default_factory=dict)
    learned: dict[str, Snapshot] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.loaded.config

    @property
    def file(self) -> Path | None:
        """The configuration file, None without one."""
        return self.loaded.file


def _configuration(turn: Round) -> Iterator[Finding]:
    wrong = [*local.look_at_file(turn.file), *(fail("configuration", *one) for one in leftovers(turn.config))]
    if worst(wrong) is not Level.FAIL:
        yield ok("configuration", _summary(turn.loaded, turn.settings))
    yield from wrong


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


def _gateway(turn: Round) -> Iterator[Finding]:
    """Yield what a running gateway says of itself; without one, what the journal remembers."""
    if turn.running is not None:
        yield from judge_running(turn.running)
        return
    other = first_status(turn.config, (*by_tcp(turn.config), *by_socket(turn.config, turn.environ)))
    if other is not None:
        text = f"another Sealgate gateway is running here, for {other['base_url']}"
        yield warn("gateway", text, "stop it, or give this one addresses of its own")
    yield from local.remembered_limits(turn.config, turn.learned)


async def _freedom(turn: Round) -> AsyncIterator[Finding]:
    """Yield why the exchange must not be asked, if so."""
    if any(leftovers(turn.config)):
        yield warn("exchange", "not contacted", "replace the example first, see configuration")
    elif turn.running is not None and (left_s := pause_s(turn.running)) > 0:
        yield judge_pause(turn.running, left_s)
    elif (left_s := max(map(memory.pause_s, turn.learned.values()), default=0.0)) > 0:
        text = "not contacted: the exchange has shut out this address or a key, as the journal remembers"
        yield warn("exchange", text, f"run this again in {left_s:.0f} s")


async def _exchange(turn: Round) -> AsyncIterator[Finding]:
    async with direct_upstream(turn.config) as upstream:
        exchange = Exchange(turn.config, upstream, turn.target, System())
        async for finding in exchange.examine(turn.known):
            yield finding
        turn.accepted.update(exchange.accepted)


# On this machine.
NEAR: tuple[Callable[[Round], Iterable[Finding]], ...] = (
    _configuration,
    lambda turn: local.read_keys(turn.config, turn.environ, turn.known),
    lambda turn: local.read_tokens(turn.config, turn.environ, turn.file),
    lambda turn: local.look_at_policies(turn.config),
    lambda turn: local.look_at_certificate(turn.config),
    lambda turn: local.look_at_addresses(turn.config, turn.environ, is_running=turn.running is not None),
    lambda turn: local.look_at_reach(turn.config),
    lambda turn: local.look_at_descriptors(turn.config),
    lambda turn: local.look_at_journal(turn.config, turn.environ, turn.learned, turn.file),
    _gateway,
)


class Far(NamedTuple):
    """A probe of the network, what a terminal shows meanwhile, and the levels after which it is the last."""

    probe: Callable[[Round], AsyncIterator[Finding]]
    waits: Callable[[Config], str]
    ends_at: frozenset[Level] = frozenset()


FAR = (
    Far(lambda turn: look_at_redis(turn.config, turn.environ), lambda _: "asking Redis"),
    Far(_freedom, lambda _: "", frozenset({Level.WARN, Level.FAIL})),
    Far(
        lambda turn: look_at_way(turn.config, turn.environ),
        lambda config: f"looking for {config.base_url.host}",
        frozenset({Level.FAIL}),
    ),
    Far(_exchange, lambda config: f"asking {config.base_url}"),
)


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
    target = _target(loaded.config, path)
    # A gateway at these addresses that serves another exchange is not this one, and in its way.
    status = ask_running(loaded.config, environ)
    is_this_one = status is not None and status["base_url"] == str(loaded.config.base_url)
    turn = Round(loaded, effective(loaded), target, environ, status if is_this_one else None)
    for probe in NEAR:
        tell(probe(turn))
    if not is_offline:
        run(_go_far(turn, tell))
    # Last, as the signed reads show whether what is stored is wrong, or only what the gateway has of it.
    tell(judge_stale(turn.running, turn.accepted) if turn.running else ())
    return Checked(FAILED if worst(findings) is Level.FAIL else GOOD, findings, turn.settings)


def _target(config: Config, path: str | None) -> Target | None:
    """Return what the signed read asks for, None if neither the user nor the venue's file names it."""
    asked = path or config.venue.signed_read
    try:
        return parse_target(asked, config.upstream.prefix) if asked else None
    except Refusal as refusal:
        leave_with_error(f"--path: {refusal.detail} {refusal.advice}")


async def _go_far(turn: Round, tell: Callable[[Iterable[Finding]], None]) -> None:
    for probe, waits, ends_at in FAR:
        with waiting_for(waits(turn.config)):
            found = [finding async for finding in probe(turn)]
        tell(found)
        if worst(found) in ends_at:
            return
