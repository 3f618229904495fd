"""`sealgate venues`: the exchanges that the gateway knows, and what one of them wants."""

import json

import click

from sealgate.cli.choosing import found_venue
from sealgate.cli.frame import Suggesting

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("venues", cls=Suggesting, invoke_without_command=True)
@_JSON
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the built-in venues (exchanges), or show what one of them wants.

    Without a command it lists them.
    """
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@command.command("list", short_help="List the built-in venues.")
@_JSON
def list_(*, as_json: bool) -> None:
    """List the built-in venues: how each is signed, and what its file was verified with."""
    _list(as_json=as_json)


@command.command(short_help="Show what a venue wants, and its file.")
@click.argument("name")
@click.option("--summary", "is_short", is_flag=True, help="Leave out the file itself.")
@_JSON
def show(name: str, *, is_short: bool, as_json: bool) -> None:
    """Show what a venue wants: address, key, signed text, clock, limits, replies; then its file.

    NAME is a built-in venue, or the path of a file of yours, which is checked. The summary is written as
    comments, so what is printed can be saved, changed and used: venue = "./mine.toml".
    """
    from sealgate.cli.venue_screen import show_json, show_text
    from sealgate.config.venues import venue_source

    venue = found_venue(name)
    if as_json:
        click.echo(json.dumps(show_json(venue) | {"file": venue_source(venue)}))
    elif is_short:
        click.echo(show_text(venue))
    else:
        click.echo(f"{_as_comments(show_text(venue))}\n\n{venue_source(venue).rstrip()}")


def _list(*, as_json: bool) -> None:
    from sealgate.cli.venue_screen import list_json, list_text
    from sealgate.config.venues import DEFAULT_VENUE, built_in_venue, venue_names

    names = venue_names()
    venues = [built_in_venue(name) for name in sorted(names, key=lambda name: name != DEFAULT_VENUE)]
    click.echo(json.dumps(list_json(venues)) if as_json else list_text(venues))


def _as_comments(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())
