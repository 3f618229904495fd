"""`sealgate config init`: a commented starter file."""

import os
from pathlib import Path

import click

from sealgate.cli.frame import leave_with_error

_MODE = 0o600


@click.command("init")
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default=Path("sealgate.toml"),
    show_default=True,
    help="Where to write it.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(file: Path, *, force: bool) -> None:
    """Write a commented configuration file, readable by you alone, with every setting in it.

    A file that is there is left alone unless --force is given.
    """
    from sealgate.config.starter import starter_text

    try:
        _write(file, starter_text(), is_forced=force)
    except FileExistsError:
        leave_with_error(
            f"{file} is there already, and was not changed; give another --config FILE, or --force"
        )
    click.echo(f"wrote {file}")
    click.echo("Now set base_url and keys.main.api_key in it, store the secret where keys.main.secret points")
    click.echo("(chmod 600), and look what is missing: sealgate check")


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
