"""`sealgate demo`: four bots at the sandbox, with Sealgate and without."""

import click

from sealgate.cli.frame import FiniteRange, unused_config_option

PORT = click.IntRange(0, 65535)


@click.command("demo")
@unused_config_option
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    help="Stop after this many seconds.  [default: run until Ctrl-C]",
)
@click.option("--port", type=PORT, default=0, help="Where bots connect.  [default: a free port]")
@click.option("--admin-port", type=PORT, default=0, help="Metrics and status.  [default: a free port]")
@click.option("--sandbox-port", type=PORT, default=0, help="The exchange.  [default: a free port]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, everything else to stderr.")
def command(seconds: float | None, port: int, admin_port: int, sandbox_port: int, *, as_json: bool) -> None:
    """Run a sandbox exchange, the gateway and four example bots; show how they share a rate limit.

    The same four bots also run without the gateway, against a second exchange with the same limit; the
    summary at the end contrasts the two.
    """
    from sealgate.demo.show import show
    from sealgate.machine.loop import run

    run(show(seconds, port=port, admin_port=admin_port, sandbox_port=sandbox_port, as_json=as_json))
