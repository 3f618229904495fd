"""`sealgate demo`: four bots at the sandbox, with Sealgate and without."""

import click

from sealgate.cli.frame import FiniteRange, unused_config_option

PORT = click.IntRange(0, 65535)


@click.command("demo")
@unused_config_option
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    help="End after this many seconds; else Ctrl-C ends it.",
)
@click.option("--port", type=PORT, default=0, help="Where bots connect.  [default: a free port]")
@click.option("--admin-port", type=PORT, default=0, help="Metrics and status.  [default: a free port]")
@click.option("--sandbox-port", type=PORT, default=0, help="The exchange.  [default: a free port]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, all else to stderr.")
def command(seconds: float | None, port: int, admin_port: int, sandbox_port: int, *, as_json: bool) -> None:
    """Run an exchange, the gateway and four example bots, and show what the shared rate limit does to them.

    The same four bots also run without the gateway, against a second exchange with the same limit; the
    summary at the end contrasts the two.
    """
    from sealgate.demo.show import show
    from sealgate.machine.loop import run

    run(show(seconds, port=port, admin_port=admin_port, sandbox_port=sandbox_port, as_json=as_json))
