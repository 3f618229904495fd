"""`sealgate config schema`: the JSON Schema of the configuration file."""

import json

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema (draft 4) of the configuration file.

    Write it beside the file, and name it in the file's first line: #:schema ./sealgate.schema.json

    Editors with Taplo, such as VS Code with Even Better TOML, then complete and check as you type.
    """
    from sealgate.config.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
