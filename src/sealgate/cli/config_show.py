"""`sealgate config show`: every setting as it holds, with its source."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from sealgate.cli.frame import config_option


@click.command("show")
@config_option
@click.option("--changed", "only_changed", is_flag=True, help="Leave out what is at its default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, *, only_changed: bool, as_json: bool) -> None:
    """Show every setting as it holds, and the file or variable that set it.

    References to secrets are shown, secrets are not; of an API key the beginning is.
    """
    from sealgate.cli.checking.report import setting_lines
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
