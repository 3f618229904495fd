"""`sealgate discover`: which signature scheme the exchange accepts, by a few spaced reads."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sealgate.cli.frame import FiniteRange, config_option, exchange_option, json_option
from sealgate.config import ExchangeConfig, load_config
from sealgate.config.names import dotted
from sealgate.config.venues import is_scheme_open, venue_text
from sealgate.diagnose.arguments import checked_target, chosen_alias, chosen_exchange
from sealgate.diagnose.probe import Discovery, ProbeSpec, direct_upstream
from sealgate.diagnose.schemes import ENDS, End, Lesson, Plan, ProbeResult, SearchEnd
from sealgate.keys.key import Secret
from sealgate.keys.parts import read_proxy_password
from sealgate.keys.signing_choices import SignedTarget
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import leave, leave_with_error, shortened
from sealgate.request.rules import method_of_read, route_table
from sealgate.venues.routes import Auth

_QUERY = "limit=1"  # for a --path without a query: the most common parameter, and one that asks for less
_FINE_S = 1.0  # well within any recv_window


@click.command("discover")
@config_option
@exchange_option("An exchange of the configuration.  [default: the only one that needs discovery]")
@click.option("--key", "alias", metavar="ALIAS", help="A key of the configuration.  [default: the only one]")
@click.option(
    "--path",
    "target",
    metavar="TARGET",
    help="A read that needs a signature.  [default: the venue's own signed read]",
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
@click.option("--yes", "is_agreed", is_flag=True, help="Send the reads without asking.")
@json_option
def command(
    config_file: Path | None, exchange_name: str | None, *, is_agreed: bool, as_json: bool, **spec: Any
) -> None:
    """Detect how requests must be signed, and print the settings to paste.

    It shows the reads that it will send, and asks first. It sends at most 25 reads, and stops at the first
    signature that is accepted. TARGET is the path as sent, with the prefix; a query in it serves to detect
    whether the query is signed. If [[routes]] lists the path as a read by POST, it is sent by POST.

    Only the default venue, `service`, needs this, because its documentation leaves the scheme open. The file
    of every other venue states the scheme: see `sealgate venues show NAME`.
    """
    config = load_config(config_file)
    exchange = chosen_exchange(
        config, exchange_name, spec["alias"], suits=lambda one: is_scheme_open(one.venue)
    )
    if not is_scheme_open(exchange.venue):
        venue = venue_text(exchange.venue)
        leave_with_error(
            f"nothing to discover: the file of {venue} states how requests are signed "
            f"(sealgate venues show {venue}); if signatures are refused, check the key: sealgate check"
        )
    chosen = _spec(exchange, **spec)
    discovery = Discovery(config, exchange, chosen, os.environ, System())
    click.echo(announcement(exchange, chosen, discovery.plan), err=True)
    if not is_agreed and not sys.stdin.isatty():
        leave_with_error("there is no terminal to ask on; pass --yes to send the reads")
    if not is_agreed and not click.confirm("Send these reads?", err=True):
        leave("no read was sent")
    finding = run(_search(exchange, discovery, read_proxy_password(exchange, os.environ, config.cmd_env)))
    for line in explanation(exchange, chosen, discovery, finding):
        click.echo(f"sealgate: {line}", err=True)
    settings = _settings(exchange, finding)
    if as_json:
        click.echo(json.dumps({"exchange": exchange.name, **_document(discovery, finding, settings)}))
    elif settings:
        table = dotted((*exchange.at, "signing"))
        click.echo("\n".join([f"[{table}]", *(f'{name} = "{value}"' for name, value in settings.items())]))
    if finding.end is not End.FOUND:
        raise click.exceptions.Exit(1)


async def _search(exchange: ExchangeConfig, discovery: Discovery, proxy_password: Secret) -> SearchEnd:
    """Send the reads, and print each answer as it arrives."""

    def tell(heard: ProbeResult) -> None:
        click.echo(line(len(discovery.heard), heard), err=True)

    async with direct_upstream(exchange, proxy_password) as upstream:
        return await discovery.run(upstream, tell)


def _spec(exchange: ExchangeConfig, alias: str | None, target: str | None, spacing_s: float) -> ProbeSpec:
    prefix = exchange.upstream.prefix
    chosen = checked_target(target or exchange.venue.signed_read, prefix)
    method = method_of_read(exchange, chosen)
    if route_table(exchange).find(method, chosen.path[len(prefix) :]).auth is not Auth.SIGNED:
        leave_with_error(
            f"--path: {chosen.path} is a read without a signature; choose one that needs a signature"
        )
    return ProbeSpec(chosen_alias(exchange, alias), chosen.path, chosen.query or _QUERY, spacing_s, method)


def announcement(exchange: ExchangeConfig, spec: ProbeSpec, plan: Plan) -> str:
    """Return the announcement of the reads that will be sent."""
    return (
        f"It will send at most {1 + plan.most_reads} reads, one every {spec.spacing_s:g} s,\n"
        f"to {exchange.base_url}, with key {spec.alias} ({shortened(exchange.keys[spec.alias].api_key)}):\n"
        f"  GET {exchange.clock.path}, unsigned, for the clock\n"
        f"  {spec.method} {spec.target(has_query=True)}, each time signed in another way\n"
        "They change nothing, and end with the first signature that is accepted.\n"
        "The exchange counts each refused read as a failed login."
    )


def line(number: int, heard: ProbeResult) -> str:
    """Return one line: the signature tried, and the exchange's answer."""
    probe = heard.probe
    special = ""
    if probe.is_false:
        special = "deliberately wrong"
    elif probe.has_query:
        special = "query unsigned" if probe.target is SignedTarget.PATH else "query signed"
    accepted = " accepted" if heard.lesson is Lesson.ACCEPTED else ""
    way = f"{probe.way.encoding:<9}  secret: {probe.way.secret_is:<9}  {special:<16}"
    return f"{number:>2}  {way}  {heard.words}{accepted}"


def explanation(
    exchange: ExchangeConfig, spec: ProbeSpec, discovery: Discovery, finding: SearchEnd
) -> Iterator[str]:
    """Yield the result, what to do about it, and other observations."""
    venue, offset_s = exchange.venue, discovery.offset_s()
    if discovery.clock_trouble:
        yield f"{discovery.clock_trouble}; timestamps come from this machine's clock"
    elif offset_s is not None and abs(offset_s) > _FINE_S:
        side = "behind" if offset_s > 0 else "ahead of"
        yield (
            f"this machine's clock is {abs(offset_s):.1f} s {side} the exchange's; "
            "signed by the exchange's, as the gateway does"
        )
    if finding.end is not End.FOUND:
        yield ENDS[finding.end].format(
            words=finding.words,
            alias=spec.alias,
            api_key=shortened(exchange.keys[spec.alias].api_key),
            base_url=exchange.base_url,
            header_prefix=venue.header_prefix,
            path=spec.path,
            prefix=exchange.upstream.prefix,
            query=spec.query,
        )
        return
    configured = {
        "header_prefix": venue.header_prefix,
        "encoding": venue.signing.encoding,
        "secret_is": venue.signing.secret,
        "target": venue.signed_target,
    }
    changed = [name for name, value in _settings(exchange, finding).items() if configured[name] != value]
    told = "the configuration already says so"
    if changed:
        told = f"put this into sealgate.toml; it changes {', '.join(changed)}"
    yield f"found after {len(discovery.heard)} signed reads; {told}"
    read = next(one for one in discovery.heard if one.probe.way == finding.way)
    if read.lesson is Lesson.PASSED:
        yield f"the signature is right, but the exchange refuses the read itself: {read.words}"


def _settings(exchange: ExchangeConfig, finding: SearchEnd) -> dict[str, str]:
    """Return the settings of [signing] that were found; {} if no signature was accepted."""
    if finding.way is None:
        return {}
    encoding, secret_is = finding.way
    known = {
        "header_prefix": exchange.venue.header_prefix,
        "encoding": encoding.value,
        "secret_is": secret_is.value,
    }
    return known if finding.target is None else known | {"target": finding.target.value}


def _document(discovery: Discovery, finding: SearchEnd, settings: dict[str, str]) -> dict[str, object]:
    """Return the result for programs."""
    offset_s = discovery.offset_s()
    return {
        "end": finding.end.value,
        "words": finding.words,
        "signing": settings or None,
        "signed_reads": len(discovery.heard),
        "clock_offset_s": None if offset_s is None else round(offset_s, 3),
        "tried": [
            {
                **one.probe.way._asdict(),
                "target": one.probe.target,
                "has_query": one.probe.has_query,
                "is_false": one.probe.is_false,
                "verdict": one.lesson.value,
                "words": one.words,
            }
            for one in discovery.heard
        ],
    }
