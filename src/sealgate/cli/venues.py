"""`sealgate venues`: the exchanges that the gateway knows, and what one of them wants."""

import json
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import Suggesting, leave_with_error

if TYPE_CHECKING:
    from sealgate.core.venues.venue import Venue

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


@command.command("list")
@_JSON
def list_(*, as_json: bool) -> None:
    """List the built-in venues: how each is signed, and what its file was verified against."""
    _list(as_json=as_json)


@command.command()
@click.argument("name")
@click.option("--summary", "is_short", is_flag=True, help="Leave out the file itself.")
@_JSON
def show(name: str, *, is_short: bool, as_json: bool) -> None:
    """Show what a venue wants: address, key, signed text, clock, limits, replies; then its file.

    NAME is a built-in venue, or the path of a file of yours, which is checked. The summary is written as
    comments, so what is printed can be saved, changed and used: venue = "./mine.toml".
    """
    from sealgate.cli.venue_screen import show_json, show_text

    venue, text = _found(name)
    if as_json:
        click.echo(json.dumps(show_json(venue) | {"file": text}))
    else:
        click.echo(show_text(venue) if is_short else _as_comments(show_text(venue)) + f"\n\n{text.rstrip()}")


def _list(*, as_json: bool) -> None:
    from sealgate.cli.venue_screen import list_json, list_text
    from sealgate.core.venues.venue import read_venue

    venues = [read_venue(f"{name}.toml", _text(name)) for name in _names()]
    click.echo(json.dumps(list_json(venues)) if as_json else list_text(venues))


def _found(name: str) -> "tuple[Venue, str]":
    """Return a venue and its file's text; leave with exit code 2 where it is none."""
    from sealgate.core.venues.venue import VenueError, read_venue

    file = name if "/" in name or name.endswith(".toml") else f"{name}.toml"
    try:
        text = _text(name) if name in _names() else Path(file).read_text("utf-8") if file == name else ""
        if text:
            return read_venue(file, text), text
    except VenueError as error:
        leave_with_error(str(error))
    except UnicodeDecodeError:
        leave_with_error(f"{name}: is not UTF-8 text; save it as UTF-8")
    near = get_close_matches(name.lower(), _names(), n=1)
    hint = f"did you mean {near[0]}?" if near else "`sealgate venues` lists them"
    raise click.UsageError(f"There is no venue {name!r}; {hint}")


def _names() -> list[str]:
    """Return the names of the built-in venues, the default first."""
    names = (file.name.removesuffix(".toml") for file in files("sealgate.core.venues").iterdir())
    return sorted(
        (name for name in names if "." not in name and not name.startswith("_")), key=_default_first
    )


def _default_first(name: str) -> tuple[bool, str]:
    return name != "service", name


def _text(name: str) -> str:
    return files("sealgate.core.venues").joinpath(f"{name}.toml").read_text("utf-8")


def _as_comments(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())
