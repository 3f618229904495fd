"""`sealgate token`: bot tokens."""

import click

from sealgate.cli.frame import unused_config_option
from sealgate.machine.system import random_token


@click.group("token")
def command() -> None:
    """Make tokens for bots."""


@command.command()
@unused_config_option
def new() -> None:
    """Print a new random token of 256 bits."""
    click.echo(random_token())
