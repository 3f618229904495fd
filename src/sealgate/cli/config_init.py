"""`sealgate config init`: a commented starter file."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.choosing import found_venue
from sealgate.cli.frame import leave_with_error

if TYPE_CHECKING:
    from sealgate.core.venues.venue import Venue

DEFAULT_FILE = "sealgate.toml"
_MODE = 0o600


@click.command("init")
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default=Path(DEFAULT_FILE),
    show_default=True,
    help="Where to write it.",
)
@click.option(
    "--venue",
    "venue_name",
    metavar="NAME",
    help="The exchange: a name that `sealgate venues` lists, or the path of a file.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(file: Path, venue_name: str | None, *, force: bool) -> None:
    """Write a commented configuration file, readable by you alone, with every setting in it.

    With --venue it is for that exchange, and has what the exchange wants of a key. A file that is there is
    left alone unless --force is given.
    """
    from sealgate.config.starter import starter_text
    from sealgate.config.venues import default_venue

    venue = default_venue() if venue_name is None else found_venue(venue_name)
    try:
        _write(file, starter_text(venue, _from(file, venue.file)), is_forced=force)
    except FileExistsError:
        leave_with_error(f"{file} exists already and was not changed; pass another --config FILE, or --force")
    click.echo(f"wrote {file}; next:")
    for step in _steps(file, venue):
        click.echo(f"- {step}")


def _steps(file: Path, venue: "Venue") -> Iterator[str]:
    asked = [
        "" if venue.base_url else "base_url",
        "keys.main.api_key",
        "keys.main.uid" * venue.signing.needs("uid"),
    ]
    yield f"set {' and '.join(filter(None, asked))} in it"
    yield f"store the secret in {file.with_name('main.secret')} (chmod 600)"
    if venue.signing.needs("passphrase"):
        yield f"store the passphrase in {file.with_name('main.passphrase')} (chmod 600)"
    option = "" if file == Path(DEFAULT_FILE) else f" --config {shlex.quote(str(file))}"
    yield f"see what is missing: sealgate check{option}"


def _from(file: Path, venue_file: str) -> str:
    """Return how a configuration file names a venue's file, "" where it is a built-in one."""
    if "/" not in venue_file:
        return ""
    is_beside = file.parent.resolve() == Path.cwd().resolve()
    return venue_file if is_beside else str(Path(venue_file).absolute())


def _write(file: Path, text: str, *, is_forced: bool) -> None:
    """Write it whole under another name first: a full disk must not cost the old one."""
    if not is_forced and os.path.lexists(file):
        raise FileExistsError
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.touch(_MODE, exist_ok=False)
    try:
        draft.write_text(text)
        draft.replace(file) if is_forced else os.link(draft, file)  # which fails where one came meanwhile
    finally:
        draft.unlink(missing_ok=True)
