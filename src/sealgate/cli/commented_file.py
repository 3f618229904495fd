"""The commented file with every setting, for `config init --all`, and what has to be set in it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from sealgate.cli.frame import found_venue
from sealgate.cli.next_steps import config_option_for
from sealgate.config.names import LONGEST_NAME
from sealgate.config.starter import starter_of_several, starter_text
from sealgate.config.venues import default_venue, venue_text_in
from sealgate.machine.findings import listed
from sealgate.machine.new_files import write_files
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.key_kinds import Kind
from sealgate.venues.venue import Venue


def write_starter(file: Path, venue_names: Sequence[str], *, is_forced: bool) -> None:
    """Write the file for these exchanges, and say what has to be set in it."""
    venues = [found_venue(name) for name in venue_names] or [default_venue()]
    names = _exchange_names(venues) if len(venues) > 1 else [""]
    texts = [venue_text_in(file, venue) for venue in venues]
    several = dict(zip(names, zip(venues, texts, strict=True), strict=True))
    text = starter_of_several(several) if len(venues) > 1 else starter_text(venues[0], texts[0])
    try:
        write_files({file: text.encode()}, [file] if is_forced else (), as_before=file)
    except FileExistsError:
        fix = "pass another --config FILE or --force, or add an exchange to it (see --help)"
        leave_with_error(f"{file} exists already and was not changed; {fix}")
    click.echo(f"wrote {file}; next:")
    for step in _steps(file, dict(zip(names, venues, strict=True))):
        click.echo(f"- {step}")


def _exchange_names(venues: Sequence[Venue]) -> list[str]:
    """Return what the file calls the exchanges: as their venues, as far as a name may be long."""
    names: list[str] = []
    for venue in venues:
        name = venue.name[:LONGEST_NAME]
        if name in names:
            leave_with_error(f"--venue: {name} is there twice; give each exchange once")
        names.append(name)
    return names


def _steps(file: Path, venues: Mapping[str, Venue]) -> Iterator[str]:
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
        yield f"set {listed([*urls, *wanted])} in it"
    secrets = [str(file.with_name(f"{alias}.secret")) for alias in keys]
    kinds = {kind for venue in venues.values() for kind in venue.schemes}
    words = ["secret"] if Kind.HMAC in kinds else []
    if kinds - {Kind.HMAC}:
        words.append("private key")
    stored = " or ".join(word if len(keys) == 1 else f"{word}s" for word in words)
    yield f"store the {stored} in {listed(secrets)} (chmod 600)"
    for alias, venue in keys.items():
        if venue.signing.needs("passphrase"):
            yield f"store the passphrase in {file.with_name(f'{alias}.passphrase')} (chmod 600)"
    if len(keys) > 1:
        token = shlex.quote(str(file.with_name("grid.token")))
        yield f"make the bot's token: (umask 077; sealgate token new > {token})"
    yield f"see what is missing: sealgate check{config_option_for(file)}"
