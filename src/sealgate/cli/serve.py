"""`sealgate serve`: run the gateway."""

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from sealgate.cli.frame import config_option


@click.command("serve")
@config_option
@click.option(
    "--listen", "listen_tcp", metavar="HOST:PORT", help="The address that bots connect to (listen.tcp)."
)
@click.option(
    "--admin",
    "admin_tcp",
    metavar="HOST:PORT",
    help="The address of metrics, health and the live page (admin.tcp).",
)
@click.option("--base-url", metavar="URL", help="The exchange's base URL (base_url).")
@click.option(
    "--log-level", metavar="LEVEL", help="The log level: debug, info, warning or error (log.level)."
)
def command(
    config_file: Path | None,
    listen_tcp: str | None,
    admin_tcp: str | None,
    base_url: str | None,
    log_level: str | None,
) -> None:
    """Run the gateway until SIGTERM or Ctrl-C.

    On shutdown it finishes the requests in flight, then exits with 0.
    """
    _import_structlog_alone()
    from sealgate.config import load_config
    from sealgate.machine.loop import run
    from sealgate.server.serving import serve

    flags = {
        "listen.tcp": listen_tcp,
        "admin.tcp": admin_tcp,
        "base_url": base_url,
        "log.level": log_level,
    }
    run(serve(partial(load_config, config_file, flags)))


def _import_structlog_alone() -> None:
    """Import structlog without rich, which structlog loads if present: 5 MB, for tracebacks never drawn."""
    if "rich" not in sys.modules:
        cast("dict[str, Any]", sys.modules)["rich"] = None  # raises an ImportError, which structlog handles
        importlib.import_module("structlog")
        del sys.modules["rich"]
