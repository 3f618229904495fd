"""`sealgate config`: the settings as they hold, and their JSON Schema; `init` is in a module of its own."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from sealgate.cli.frame import Program, config_option, json_option, unused_config_option

_COMMANDS = {
    "init": ("sealgate.cli.init", "Set up a gateway, or add an exchange to one."),
    "show": ("sealgate.cli.config:show", "Show every setting's value and where it comes from."),
    "schema": ("sealgate.cli.config:schema", "Print the JSON Schema of the file, for editors."),
}


@click.group("config", cls=Program, table=_COMMANDS)
def command() -> None:
    """Set up a gateway, show the values in effect, print the schema."""


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
