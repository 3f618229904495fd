"""`sealgate config init`: the first configuration, with its secret and a bot's token; or one more exchange.

Nothing is written before the last question was answered, and then all files or none (machine/new_files.py).
"""

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import found_venue
from sealgate.cli.questions import can_ask
from sealgate.machine.findings import listed
from sealgate.machine.terminal import leave, leave_with_error

if TYPE_CHECKING:
    from sealgate.cli.adding import Written
    from sealgate.cli.answers import Answering

DEFAULT_FILE = "sealgate.toml"
_FILE = click.Path(dir_okay=False, path_type=Path)
_OR_STDIN = "FILE|-"
_WIDTH = 78


def _venues(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a venue."""
    from sealgate.config.venues import venue_names

    return [name for name in venue_names() if name.startswith(incomplete)]


@click.command("init")
@click.option(
    "--config",
    "file",
    type=_FILE,
    metavar="FILE",
    default=Path(DEFAULT_FILE),
    show_default=True,
    help="Where to write it, or which file to add an exchange to.",
)
@click.option(
    "--venue",
    "venues",
    metavar="NAME",
    shell_complete=_venues,
    multiple=True,
    help="The exchange: a name that `sealgate venues` lists, or the path of a file. For several, repeat it.",
)
@click.option(
    "--environment", metavar="NAME", help="Its test or demo network; `live` for the exchange itself."
)
@click.option("--base-url", metavar="URL", help="Its address, if it is not the venue's.")
@click.option("--api-key", metavar="KEY", help="The API key, which is no secret.")
@click.option(
    "--secret-file",
    metavar=_OR_STDIN,
    help="The file with the secret or private key, which stays where it is; - is standard input.",
)
@click.option(
    "--secret-passphrase-file", metavar=_OR_STDIN, help="The passphrase of an encrypted private key."
)
@click.option(
    "--passphrase-file", metavar=_OR_STDIN, help="The passphrase that some exchanges give with an API key."
)
@click.option("--uid", metavar="ID", help="The account's id or memo, if the exchange requires one.")
@click.option("--key", metavar="ALIAS", help="Use this key of the file for the exchange that is added.")
@click.option("--bot", metavar="NAME", help="A bot, which gets a token: a new one, or one of the file.")
@click.option("--no-input", is_flag=True, help="Ask nothing, as if this were no terminal.")
@click.option(
    "--all", "has_all", is_flag=True, help="Write the file with every setting, to be filled in by hand."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def command(
    file: Path,
    venues: tuple[str, ...],
    *,
    no_input: bool,
    has_all: bool,
    force: bool,
    **options: str | None,
) -> None:
    """Set up a gateway: ask for the exchange and its API key, and write all files that are needed.

    On a terminal it asks for whatever no option says. It writes a short configuration, the secret and a token
    for one bot, readable by you alone, and prints what to do next. If the file exists, the exchange is added
    to it, and all that is in it stays. Ctrl-C at any question leaves everything as it was.

    Without a terminal, or with --no-input, the options have to say it all. With none of them, or with --all,
    it writes the commented file with every setting, to be filled in by hand.

    A secret is never an option's value, as other users can see those: it is typed unseen, comes from standard
    input, or stays in a file of yours.
    """
    given = {name: value for name, value in options.items() if value is not None}
    asks = can_ask() and not no_input and not has_all
    if has_all and given:
        raise click.UsageError("--all is for a file to fill in: give it --venue, --config and --force alone.")
    if not asks and not given:
        from sealgate.cli.commented_file import write_starter

        write_starter(file, venues, is_forced=force)
        return

    from sealgate.cli.answers import Answering
    from sealgate.machine.process import forbid_core_dumps

    forbid_core_dumps()
    _check_place(file, is_forced=force)
    if not asks and len(venues) > 1:
        raise click.UsageError("Give one --venue with its key, then run this again to add the next.")
    answering = Answering(file, given, asks=asks, is_forced=force)
    try:
        before = None if force else _existing(file)
        if asks:
            click.echo(_welcome(file, before))
        written = _answered(answering, venues, before)
        _write(answering, written, before)
    except (KeyboardInterrupt, EOFError):
        click.echo()
        leave("stopped; nothing was written")
    _tell(answering, written, is_new=before is None)


def _welcome(file: Path, before: str | None) -> str:
    if before is None and not file.exists():
        return f"This writes {file.absolute()}.\nCtrl-C at any question leaves nothing behind.\n"
    if before is None:
        return f"This replaces {file}.\nCtrl-C at any question leaves it as it is.\n"
    return f"This adds an exchange to {file}.\nCtrl-C at any question leaves it as it is.\n"


def _check_place(file: Path, *, is_forced: bool) -> None:
    """Leave if secrets cannot be in the folder of this file, or the file is another user's."""
    from sealgate.machine.paths import way_fault

    folder = file.absolute().parent
    folder.stat()  # an OSError names it
    if file.is_symlink():
        leave_with_error(f"{file} is a symbolic link and was not changed; pass the file itself with --config")
    if (fault := way_fault(file, may_be_sticky=False)) is not None:
        leave_with_error(f"{file}: {fault[0]}; {fault[1]}")
    if not os.access(folder, os.W_OK | os.X_OK):
        leave_with_error(f"{folder} is not writable; choose another --config FILE")
    if not is_forced and file.exists() and (owner := file.stat().st_uid) != os.geteuid():
        leave_with_error(f"{file} belongs to user {owner}; run this as that user")


def _existing(file: Path) -> str | None:
    """Return the text of a file that is there. Raises ConfigError."""
    from sealgate.config.sources import read_text

    return read_text(file) if file.exists() else None


def _answered(answering: "Answering", venues: Sequence[str], before: str | None) -> "Written":
    """Answer for each exchange, and return the configuration that has them all."""
    from sealgate.cli.adding import first, one_more

    text, changes = before, list[str]()
    for name in venues or ("",):
        venue = found_venue(name) if name else answering.venue()
        written = first(answering, venue) if text is None else one_more(answering, venue, text)
        text, changes = written.text, [*changes, *written.changes]
    return written._replace(changes=tuple(changes))


def _write(answering: "Answering", written: "Written", before: str | None) -> None:
    """Write the secrets, then the configuration that names them; leave if a file has come, or has changed."""
    from sealgate.config.load import load_text
    from sealgate.machine.new_files import write_files

    file = answering.file
    load_text(written.text, file, os.environ)  # an error says what is wrong
    if before is not None and _existing(file) != before:
        leave_with_error(f"{file} was changed by someone else meanwhile; nothing was written, run this again")
    files = {**answering.secrets.files, file: written.text.encode()}
    try:
        replaced = [*files] if answering.is_forced else [] if before is None else [file]
        write_files(files, replaced, as_before=file)
    except FileExistsError as error:
        leave_with_error(f"{error.filename2 or error.filename} exists already; nothing was changed")


def _tell(answering: "Answering", written: "Written", *, is_new: bool) -> None:
    """Say what was changed, which files are new, and what is next."""
    from sealgate.cli.next_steps import next_steps
    from sealgate.config.load import load_text

    file = answering.file
    click.echo()
    if not is_new:
        click.echo(f"Changed {file}:")
        for change in written.changes:
            click.echo(textwrap.fill(f"- {change}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    if new := [str(one) for one in (*((file,) if is_new else ()), *answering.secrets.files)]:
        click.echo(f"Wrote {listed(new)}. Only you can read {'it' if len(new) == 1 else 'them'}.")
    click.echo()
    config = load_text(written.text, file, os.environ)
    for line in next_steps(config, file, written.exchange, written.bot, is_new=is_new):
        click.echo(line)
