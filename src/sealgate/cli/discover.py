"""`sealgate discover`: which signature scheme the exchange accepts, by a few spaced reads."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sealgate.cli.frame import FiniteRange, config_option
from sealgate.config import Config, load_config
from sealgate.config.venues import is_scheme_open, venue_text
from sealgate.diagnose.arguments import checked_target, chosen_alias
from sealgate.diagnose.probe import Discovery, ProbeSpec, direct_upstream
from sealgate.diagnose.schemes import MOST_AGAIN, End, Plan, Probe, ProbeResult, SearchEnd, Verdict
from sealgate.keys.ways import SignedTarget, Way
from sealgate.machine.findings import REACH
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import leave, leave_with_error, shortened
from sealgate.request.rules import method_of_read, route_table
from sealgate.venues.routes import Auth

_QUERY = "limit=1"  # where --path has none: the most usual parameter, and one that asks for less
_FINE_S = 1.0  # well within any recv_window


@click.command("discover")
@config_option
@click.option("--key", "alias", metavar="ALIAS", help="A key of the configuration.  [default: the only one]")
@click.option(
    "--path",
    "target",
    metavar="TARGET",
    help="A read that needs a signature.  [default: PREFIX/symbols/list]",
)
@click.option(
    "--every",
    "spacing_s",
    type=FiniteRange(0.1, 60.0),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="The time between two requests.",
)
@click.option("--yes", "is_agreed", is_flag=True, help="Send them without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, *, is_agreed: bool, as_json: bool, **spec: Any) -> None:
    """Find out how the exchange wants requests signed, and print the settings to paste.

    It shows what it will send, and asks first. It sends only reads, 25 at most, and stops at the first
    signature that is accepted. TARGET is the path as sent, with the prefix; a query in it is used to find out
    whether the query is signed. If [[routes]] has the path as a read by POST, it is sent by POST.

    Only the default venue needs this, as its documentation leaves the scheme open. The file of every other
    venue states the scheme: see `sealgate venues show NAME`.
    """
    config = load_config(config_file)
    if not is_scheme_open(config.venue):
        leave_with_error(_known_already(config))
    chosen = _spec(config, **spec)
    discovery = Discovery(config, chosen, os.environ, System())
    click.echo(announcement(config, chosen, discovery.plan), err=True)
    _agree(is_agreed=is_agreed)
    search = _search(config, discovery)
    for line in explanation(config, chosen, search):
        click.echo(f"sealgate: {line}", err=True)
    text = document(config, search) if as_json else toml(config, search)
    if text:
        click.echo(text)
    if not search.is_found:
        raise click.exceptions.Exit(1)


def _known_already(config: Config) -> str:

    venue = venue_text(config.venue)
    return (
        f"nothing to find out: the file of {venue} states how requests are signed "
        f"(sealgate venues show {venue}); if signatures are refused, check the key: sealgate check"
    )


def _spec(config: Config, alias: str | None, target: str | None, spacing_s: float) -> ProbeSpec:

    prefix = config.upstream.prefix
    chosen = checked_target(target or config.venue.signed_read, prefix)
    method = method_of_read(config, chosen)
    if route_table(config).find(method, chosen.path[len(prefix) :]).auth is not Auth.SIGNED:
        leave_with_error(f"--path: {chosen.path} is not read with a signature; choose a read that needs one")
    return ProbeSpec(chosen_alias(config, alias), chosen.path, chosen.query or _QUERY, spacing_s, method)


def _agree(*, is_agreed: bool) -> None:
    if is_agreed:
        return
    if not sys.stdin.isatty():
        leave_with_error("there is no terminal to ask on; pass --yes to send them")
    if not click.confirm("Send them?", err=True):
        leave("nothing was sent")


def _search(config: Config, discovery: Discovery) -> "Search":
    """Send the reads, and print each answer as it arrives."""
    heard: list[ProbeResult] = []
    found: list[SearchEnd] = []

    async def main() -> None:
        async with direct_upstream(config) as upstream:
            async for step in discovery.run(upstream):
                if isinstance(step, SearchEnd):
                    found.append(step)
                else:
                    heard.append(step)
                    click.echo(line(len(heard), step), err=True)

    run(main())
    return Search(tuple(heard), found[0], discovery.offset_s(), discovery.clock_trouble)


# What each end means and what to do. `words` are those of the exchange, or of the system.
ENDS: dict[End, str] = {
    End.QUERY_UNCLEAR: (
        "whether the query is signed stays open: with ?{query} the exchange answered {words}; "
        "give --path a query that this path takes, as in --path '{path}?NAME=VALUE'"
    ),
    End.ALL_REFUSED: (
        "all signatures were refused ({words}), so it is not the scheme. Most likely the secret is not that "
        "of {api_key}: compare keys.{alias} with the app. Otherwise upstream.prefix ({prefix}) is not what "
        "this exchange leaves out of the signed path, or a proxy in between changes the path"
    ),
    End.PATH_OPEN: (
        "{path} is answered even without a valid signature, so it proves nothing; "
        "choose another with --path, such as {prefix}/user/ADDRESS/positions with your own address"
    ),
    End.PATH_CLOSED: (
        "{path} is answered with {words}, whatever the signature is; "
        "choose another with --path, and check upstream.prefix and the key's whitelist and permissions"
    ),
    End.KEY_UNKNOWN: (
        "the exchange does not know the key {api_key} ({words}); "
        "compare keys.{alias}.api_key with the app: a revoked key never comes back"
    ),
    End.HEADERS_UNKNOWN: (
        "the exchange cannot find the signature's headers ({words}); "
        "set signing.header_prefix to what it documents; it is {header_prefix} now"
    ),
    End.SESSION_WANTED: (
        "{path} takes a session token, not a signature ({words}); use --path to choose a read that is signed"
    ),
    End.CLOCK: (
        "the exchange refuses the timestamp, although it follows the exchange's own time ({words}); "
        "check clock.path and clock.field, and the recv_window that the exchange has for the key"
    ),
    End.LIMITED: (
        "the exchange's rate limit is reached ({words}); stop other programs that use this key, wait, "
        "and run it again, more slowly, with --every"
    ),
    End.TROUBLE: "the exchange is failing: {words}; try again later",
    End.UNREACHABLE: f"{{base_url}} cannot be reached: {{words}}; {REACH}",
}


@dataclass(frozen=True, slots=True)
class Search:
    """All that came of a search. `offset_s` is the exchange's clock minus this host's, None if not known."""

    heard: tuple[ProbeResult, ...]
    finding: SearchEnd
    offset_s: float | None
    clock_trouble: str | None

    @property
    def is_found(self) -> bool:
        """Whether every setting is known now."""
        return self.finding.end is End.FOUND


def announcement(config: Config, spec: ProbeSpec, plan: Plan) -> str:
    """Return what will be sent."""
    key = f"key {spec.alias} ({shortened(config.keys[spec.alias].api_key)})"
    rows = (
        (1, f"GET {config.clock.path}", "unsigned, for the clock"),
        (plan.most_ways, f"{spec.method} {spec.path}", "signed another way each time"),
        (len(SignedTarget), f"{spec.method} {spec.target(has_query=True)}", "is the query signed?"),
        (MOST_AGAIN, f"{spec.method} {spec.path}", "again, after a 429 or a fault"),
    )
    width = max(len(read) for _, read, _ in rows)
    lines = [f"  {most:>2} x {read:<{width}}  {why}" for most, read, why in rows]
    most_reads = 1 + plan.most_reads
    return "\n".join(
        [
            f"It will send at most {most_reads} reads, one every {spec.spacing_s:g} s,",
            f"to {config.base_url}, with {key}:",
            *lines,
            "They change nothing, and stop at the first signature that is accepted.",
            "Each refused one counts as a failed sign-in at the exchange.",
        ]
    )


def line(number: int, heard: ProbeResult) -> str:
    """Return what was tried and what came of it."""
    probe = heard.probe
    way = f"{probe.way.encoding:<9}  secret: {probe.way.secret_is:<9}  {_special(probe):<16}"
    accepted = " accepted" if heard.verdict is Verdict.ACCEPTED else ""
    return f"{number:>2}  {way}  {heard.words}{accepted}"


def _special(probe: Probe) -> str:
    if probe.is_false:
        return "wrong on purpose"
    if not probe.has_query:
        return ""
    return "query unsigned" if probe.target is SignedTarget.PATH else "query signed"


def explanation(config: Config, spec: ProbeSpec, search: Search) -> Iterator[str]:
    """Yield what the end means and what to do, and what else was noticed."""
    yield from _clock(search)
    finding = search.finding
    if finding.end is not End.FOUND:
        yield ENDS[finding.end].format(
            words=finding.words,
            alias=spec.alias,
            api_key=shortened(config.keys[spec.alias].api_key),
            base_url=config.base_url,
            header_prefix=config.venue.header_prefix,
            path=spec.path,
            prefix=config.upstream.prefix,
            query=spec.query,
        )
        return
    yield f"found after {len(search.heard)} signed reads; {_change(config, search)}"
    read = next(one for one in search.heard if one.probe.way == finding.way)
    if read.verdict is Verdict.PASSED:
        yield f"the signature is right, but the read itself is refused: {read.words}"


def _clock(search: Search) -> Iterator[str]:
    if search.clock_trouble is not None:
        yield f"{search.clock_trouble}; signed by this host's clock"
    elif search.offset_s is not None and abs(search.offset_s) > _FINE_S:
        side = "behind" if search.offset_s > 0 else "ahead of"
        yield (
            f"this host's clock is {abs(search.offset_s):.1f} s {side} the exchange's; "
            "signed by the exchange's, as the gateway does"
        )


def _change(config: Config, search: Search) -> str:
    settings = _settings(config, search)
    venue = config.venue
    configured = {
        "header_prefix": venue.header_prefix,
        "encoding": venue.signing.encoding,
        "secret_is": venue.signing.secret,
        "target": "path_and_query" if venue.signs_query else "path",
    }
    names = ", ".join(name for name, value in settings.items() if configured[name] != value)
    if not names:
        return "the configuration already says so"
    return f"put this into sealgate.toml, it changes {names}"


def _settings(config: Config, search: Search) -> dict[str, str]:
    """Return what is known of the table [signing], as it is to be."""
    way, target = search.finding.way, search.finding.target
    if way is None:
        return {}
    settings = {
        "header_prefix": config.venue.header_prefix,
        "encoding": way.encoding.value,
        "secret_is": way.secret_is.value,
    }
    return settings if target is None else settings | {"target": target.value}


def toml(config: Config, search: Search) -> str:
    """Return the table to paste, "" where nothing is known."""
    settings = _settings(config, search)
    return "\n".join(
        ["[signing]", *(f'{name} = "{value}"' for name, value in settings.items())] if settings else []
    )


def document(config: Config, search: Search) -> str:
    """Return the same for programs."""
    return json.dumps(
        {
            "end": search.finding.end.value,
            "words": search.finding.words,
            "signing": _settings(config, search) or None,
            "signed_reads": len(search.heard),
            "clock_offset_s": None if search.offset_s is None else round(search.offset_s, 3),
            "tried": [_entry(one) for one in search.heard],
        }
    )


def _entry(heard: ProbeResult) -> dict[str, object]:
    way: Way = heard.probe.way
    return {
        "encoding": way.encoding.value,
        "secret_is": way.secret_is.value,
        "target": heard.probe.target.value,
        "has_query": heard.probe.has_query,
        "is_false": heard.probe.is_false,
        "verdict": heard.verdict.value,
        "words": heard.words,
    }
