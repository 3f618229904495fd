"""`sealgate config`: a starter file, the settings as they hold, and their JSON Schema."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import Program, config_option, found_venue, json_option, unused_config_option
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.key_kinds import Kind

if TYPE_CHECKING:
    from sealgate.venues.venue import Venue

_COMMANDS = {
    "init": ("sealgate.cli.config:init", "Write a commented starter file."),
    "show": ("sealgate.cli.config:show", "Show every setting's value and where it comes from."),
    "schema": ("sealgate.cli.config:schema", "Print the JSON Schema of the file, for editors."),
}
DEFAULT_FILE = "sealgate.toml"
_MODE = 0o600
_LONGEST_NAME = 32


@click.group("config", cls=Program, table=_COMMANDS)
def command() -> None:
    """Write a starter file, show the values in effect, print the schema."""


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
    "venue_names",
    metavar="NAME",
    multiple=True,
    help="The exchange: a name that `sealgate venues` lists, or the path of a file. For several, repeat it.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(file: Path, venue_names: tuple[str, ...], *, force: bool) -> None:
    """Write a commented configuration file, readable by you alone, with every setting in it.

    With --venue, it is for that exchange, with the settings that its keys need; with several, for a gateway
    that serves them all. An existing file is not changed unless you pass --force.
    """
    from sealgate.config.starter import starter_of_several, starter_text
    from sealgate.config.venues import default_venue

    venues = [found_venue(name) for name in venue_names] or [default_venue()]
    names = _exchange_names(venues) if len(venues) > 1 else [""]
    texts = [_from(file, venue.file) for venue in venues]
    several = dict(zip(names, zip(venues, texts, strict=True), strict=True))
    text = starter_of_several(several) if len(venues) > 1 else starter_text(venues[0], texts[0])
    try:
        _write(file, text, is_forced=force)
    except FileExistsError:
        leave_with_error(f"{file} exists already and was not changed; pass another --config FILE, or --force")
    click.echo(f"wrote {file}; next:")
    for step in _steps(file, dict(zip(names, venues, strict=True))):
        click.echo(f"- {step}")


def _exchange_names(venues: "Sequence[Venue]") -> list[str]:
    """Return what the file calls the exchanges: as their venues, as far as a name may be long."""
    names: list[str] = []
    for venue in venues:
        name = venue.name[:_LONGEST_NAME]
        if name in names:
            leave_with_error(f"--venue: {name} is there twice; give each exchange once")
        names.append(name)
    return names


def _steps(file: Path, venues: "Mapping[str, Venue]") -> Iterator[str]:
    """Yield what is to be done. The venues are by the name of their exchange, "" for one alone."""
    keys = {name or "main": venue for name, venue in venues.items()}
    urls = [
        f"exchanges.{name}.base_url" if name else "base_url"
        for name, venue in venues.items()
        if not venue.base_url
    ]
    wanted = [
        f"keys.{alias}.{setting}"
        for alias, venue in keys.items()
        for setting in ("api_key", "uid")
        if venue.signing.needs(setting)
    ]
    if urls or wanted:
        yield f"set {_listed([*urls, *wanted])} in it"
    secrets = [str(file.with_name(f"{alias}.secret")) for alias in keys]
    kinds = {kind for venue in venues.values() for kind in venue.schemes}
    words = ["secret"] if Kind.HMAC in kinds else []
    if kinds - {Kind.HMAC}:
        words.append("private key")
    stored = " or ".join(word if len(keys) == 1 else f"{word}s" for word in words)
    yield f"store the {stored} in {_listed(secrets)} (chmod 600)"
    for alias, venue in keys.items():
        if venue.signing.needs("passphrase"):
            yield f"store the passphrase in {file.with_name(f'{alias}.passphrase')} (chmod 600)"
    if len(keys) > 1:
        token = shlex.quote(str(file.with_name("grid.token")))
        yield f"make the bot's token: (umask 077; sealgate token new > {token})"
    option = "" if file == Path(DEFAULT_FILE) else f" --config {shlex.quote(str(file))}"
    yield f"see what is missing: sealgate check{option}"


def _listed(words: "Sequence[str]") -> str:
    """Return "a", "a and b" or "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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


@click.command("schema")
@unused_config_option
def schema() -> None:
    """Print the JSON Schema (draft 4) of the configuration file.

    Write it beside the file, and name it in the file's first line: #:schema ./sealgate.schema.json

    Editors with Taplo, such as VS Code with Even Better TOML, then complete and check as you type.
    """
    from sealgate.config.editor_schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))


@click.command("show")
@config_option
@click.option("--changed", "only_changed", is_flag=True, help="Leave out settings at their defaults.")
@json_option
def show(config_file: Path | None, *, only_changed: bool, as_json: bool) -> None:
    """Show the value of every setting, and the file or variable that set it.

    References to secrets are shown, secrets are not; of an API key only the beginning is shown.
    """
    from sealgate.cli.report import setting_lines
    from sealgate.config.effective import effective
    from sealgate.config.load import load_with_sources
    from sealgate.config.sources import DEFAULT

    settings = effective(load_with_sources(config_file))
    shown = [one for one in settings if not only_changed or one.source != DEFAULT]
    if as_json:
        click.echo(json.dumps({"settings": [asdict(one) for one in shown]}))
        return
    for line in setting_lines(shown):
        click.echo(line)
