"""`sealgate config`: a starter file, the settings as they hold, and their JSON Schema."""

import click

from sealgate.cli.frame import Program

_COMMANDS = {
    "init": ("sealgate.cli.config_init", "Write a commented starter file."),
    "show": ("sealgate.cli.config_show", "Show every setting's value and where it comes from."),
    "schema": ("sealgate.cli.config_schema", "Print the JSON Schema of the file, for editors."),
}


@click.group("config", cls=Program, table=_COMMANDS)
def command() -> None:
    """Write a starter file, show the values in effect, print the schema."""
