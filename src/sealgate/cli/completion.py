"""`sealgate completion`: the script with which a shell completes commands and options."""

import click
from click.shell_completion import get_completion_class

from sealgate.cli.frame import unused_config_option

_NAME, _VARIABLE = "sealgate", "_SEALGATE_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@unused_config_option
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    Bash: eval "$(sealgate completion bash)" in ~/.bashrc; zsh the same in ~/.zshrc; fish: sealgate completion
    fish > ~/.config/fish/completions/sealgate.fish
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has these three
    click.echo(found(ctx.find_root().command, {}, _NAME, _VARIABLE).source())
