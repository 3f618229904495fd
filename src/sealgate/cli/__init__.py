"""The command line: one table of commands, each in a module of its own that is imported when it is called.

`sealgate --help` and `--version` import click and nothing heavier, as people type them often.

Exit codes: 0 success, 1 a failed check or run, 2 wrong usage or configuration.
"""

import click

from sealgate import __version__
from sealgate.cli.frame import Program

# Name, the module, with the attribute where it is not `command`, and the line that --help shows.
COMMANDS = {
    "serve": ("sealgate.cli.serve", "Run the gateway."),
    "sandbox": ("sealgate.cli.sandbox", "Run a sandbox exchange on this machine, to try things out."),
    "demo": ("sealgate.cli.demo", "Run sandbox, gateway and example bots together."),
    "venues": ("sealgate.cli.venues", "List the supported exchanges, and what each requires."),
    "check": ("sealgate.cli.check", "Check settings, keys, clock and network; say how to fix faults."),
    "config": ("sealgate.cli.config", "Set up a gateway, add an exchange, show the values in effect."),
    "top": ("sealgate.cli.top", "Show limit, bots, clock and errors of the running gateway, live."),
    "sign": ("sealgate.cli.sign", "Print the headers that sign a request, and send nothing."),
    "discover": ("sealgate.cli.discover", "Detect how requests must be signed (default venue only)."),
    "keys": (
        "sealgate.cli.keys",
        "List the API keys at the exchange, audit them, make new ones.",
    ),
    "orders": ("sealgate.cli.orders", "List the orders in doubt, and settle them."),
    "halt": ("sealgate.cli.control:halt", "Halt orders immediately; reads and cancels still pass."),
    "resume": ("sealgate.cli.control:resume", "Lift a halt, so that new orders pass again."),
    "reload": ("sealgate.cli.control:reload", "Reload configuration and secrets in the running gateway."),
    "healthcheck": ("sealgate.cli.healthcheck", "Exit with 0 if the running gateway is ready."),
    "completion": ("sealgate.cli.completion", "Set up completion in your shell."),
    "token": ("sealgate.cli.token", "Make tokens for bots."),
}


@click.group(cls=Program, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="sealgate %(version)s")
def main() -> None:
    """Sign, pace and forward the requests of trading bots, and keep their API secrets."""
