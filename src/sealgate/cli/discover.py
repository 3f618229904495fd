"""`sealgate discover`: which signature scheme the exchange accepts, by a few spaced reads."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.choosing import checked_target, chosen_alias
from sealgate.cli.frame import config_option, leave, leave_with_error

if TYPE_CHECKING:
    from sealgate.cli.discovery_words import Search
    from sealgate.config import Config
    from sealgate.gateway.probe.discovery import Discovery, ProbeSpec

_QUERY = "limit=1"  # where --path has none: the most usual parameter, and one that asks for less


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
    type=click.FloatRange(0.1, 60.0),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="The distance between two requests.",
)
@click.option("--yes", "is_agreed", is_flag=True, help="Send them without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, *, is_agreed: bool, as_json: bool, **errand: Any) -> None:
    """Find out how the exchange wants requests signed, and print the settings to paste.

    It shows what it will send, and asks first. It sends only reads, 25 at most, and stops at the first
    signature that is accepted. TARGET is the path as sent, with the prefix; a query in it is used to find out
    whether the query is signed. A read that a route of the configuration names as a POST is sent as one.

    This is for the default venue, whose documents leave the scheme open. For every other venue its file
    states the scheme: see `sealgate venues show NAME`.
    """
    from sealgate.cli import discovery_words as words
    from sealgate.config import load_config
    from sealgate.config.venues import is_scheme_open
    from sealgate.gateway.platform.system import System
    from sealgate.gateway.probe.discovery import Discovery

    config = load_config(config_file)
    if not is_scheme_open(config.venue):
        leave_with_error(_known_already(config))
    chosen = _errand(config, **errand)
    discovery = Discovery(config, chosen, os.environ, System())
    click.echo(words.announcement(config, chosen, discovery.plan), err=True)
    _agree(is_agreed=is_agreed)
    search = _search(config, discovery)
    for line in words.explanation(config, chosen, search):
        click.echo(f"sealgate: {line}", err=True)
    text = words.document(config, search) if as_json else words.toml(config, search)
    if text:
        click.echo(text)
    if not search.is_found:
        raise click.exceptions.Exit(1)


def _known_already(config: "Config") -> str:
    from sealgate.config.venues import venue_text

    venue = venue_text(config.venue)
    return (
        f"nothing to find out: the file of {venue} states how requests are signed "
        f"(sealgate venues show {venue}); if signatures are refused, check the key: sealgate check"
    )


def _errand(config: "Config", alias: str | None, target: str | None, spacing_s: float) -> "ProbeSpec":
    from sealgate.core.routes import Auth
    from sealgate.gateway.probe.discovery import ProbeSpec
    from sealgate.gateway.runtime.rules import method_of_read, route_table

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


def _search(config: "Config", discovery: "Discovery") -> "Search":
    """Send the reads, and print each answer as it arrives."""
    from sealgate.cli.discovery_words import Search, line
    from sealgate.cli.loop import run
    from sealgate.core.schemes import ProbeResult, SearchEnd
    from sealgate.gateway.probe.read import direct_upstream

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
