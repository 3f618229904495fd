"""`sealgate serve`: the gateway."""

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from sealgate.cli.frame import config_option


@click.command("serve")
@config_option
@click.option("--listen", "listen_tcp", metavar="HOST:PORT", help="Where bots connect (listen.tcp).")
@click.option(
    "--admin", "admin_tcp", metavar="HOST:PORT", help="Where metrics and health are read (admin.tcp)."
)
@click.option("--base-url", metavar="URL", help="The exchange (base_url).")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error (log.level).")
def command(
    config_file: Path | None,
    listen_tcp: str | None,
    admin_tcp: str | None,
    base_url: str | None,
    log_level: str | None,
) -> None:
    """Run the gateway until SIGTERM or Ctrl-C; it then answers what is in flight and exits with 0."""
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
    """Import structlog without rich, which it loads if it can: 5 MB, for tracebacks that are never drawn."""
    if "rich" not in sys.modules:
        cast("dict[str, Any]", sys.modules)["rich"] = None  # an ImportError, which structlog provides for
        importlib.import_module("structlog")
        del sys.modules["rich"]
