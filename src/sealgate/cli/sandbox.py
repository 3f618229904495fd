"""`sealgate sandbox`: run the sandbox exchange on this machine.

The options are made from `SandboxSettings`, which imports only the standard library; the sandbox itself is
imported when the command runs.
"""

import asyncio
import errno
import json
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from sealgate.cli.frame import AddressParam, FiniteRange, unused_config_option
from sealgate.machine.terminal import leave_with_error, plain_cause
from sealgate.sandbox.settings import Option, SandboxSettings

if TYPE_CHECKING:
    from sealgate.config import Address
    from sealgate.sandbox.server import Sandbox

MAX_COST = 10**6
# Options of the sandbox that a gateway must share -> the variable that sets it there.
_GATEWAY_SETTINGS = {
    "signature_encoding": "SEALGATE_SIGNING__ENCODING",
    "secret_is": "SEALGATE_SIGNING__SECRET_IS",
    "signed_target": "SEALGATE_SIGNING__TARGET",
    "recv_window_ms": "SEALGATE_KEYS__MAIN__RECV_WINDOW_MS",
}
_OF_ITS_OUTPUT = (errno.EPIPE, errno.ENOSPC)


class Cost(click.ParamType[tuple[str, int]]):
    """`METHOD /path=N`."""

    name = "'method /path=n'"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Split at the last equals sign."""
        if isinstance(value, tuple):
            return value
        route, _, cost = str(value).rpartition("=")
        if not route or not cost.isdecimal() or int(cost) > MAX_COST:
            self.fail(f"{value!r} is not METHOD /path=N, as in 'POST /v1/trade/order=2'", param, ctx)
        return route, int(cost)


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per setting."""
    hints = get_type_hints(SandboxSettings, include_extras=True)
    for setting in reversed(fields(SandboxSettings)):
        kind, about = get_args(hints[setting.name])
        flag, is_many = f"--{setting.name.replace('_', '-')}", get_origin(kind) is tuple
        command = click.option(
            f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
            setting.name,
            type=_type(kind, about),
            default=setting.default,
            show_default=not is_many,
            multiple=is_many,
            help=about.help,
        )(command)
    return command


def _type(kind: Any, about: Option) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if get_origin(kind) is tuple:
        return Cost()
    if kind is int:
        return click.IntRange(int(about.least), int(about.most))
    return FiniteRange(about.least, about.most) if kind is float else kind


@click.command("sandbox")
@unused_config_option
@click.option(
    "--listen",
    type=AddressParam(),
    default="127.0.0.1:8790",
    show_default=True,
    help="The address to listen on; port 0 chooses a free port.",
)
@click.option(
    "--db",
    default="",
    metavar="FILE",
    help="Keep keys, sessions, orders, positions and balances in this file.  [default: in memory]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line once it listens.")
@settings_options
def command(listen: "Address", db: str, *, as_json: bool, **choices: Any) -> None:
    """Run a sandbox exchange, with an API of its own, on this machine.

    It prints a ready-made API key, secret and session token, and runs until Ctrl-C. You can change limits,
    faults, prices and the clock while it runs, under /_sandbox; /openapi.json describes the whole API.
    """
    from sealgate.sandbox.control import CostError
    from sealgate.sandbox.store import StoreError

    settings = SandboxSettings(**choices)
    try:
        asyncio.run(_run(settings, listen, db, as_json=as_json))
    except StoreError as error:
        leave_with_error(str(error))
    except CostError as error:
        leave_with_error(f"--limit-costs: {error}")
    except OSError as error:
        if error.errno in _OF_ITS_OUTPUT:
            raise
        leave_with_error(
            f"cannot listen on {listen}: {plain_cause(error)}; choose another with --listen HOST:PORT"
        )


async def _run(settings: SandboxSettings, listen: "Address", db: str, *, as_json: bool) -> None:
    from sealgate.machine.loop import stop_event
    from sealgate.sandbox.server import running_sandbox

    stop = stop_event(ends_on_hangup=True)
    async with running_sandbox(settings, listen=(listen.host, listen.port), db=db) as sandbox:
        names = ("base_url", "api_key", "api_secret", "session_token", "user_address")
        document = json.dumps({name: getattr(sandbox, name) for name in names})
        click.echo(document if as_json else _for_people(sandbox, settings))
        await stop.wait()


def _exports(sandbox: "Sandbox", settings: SandboxSettings) -> str:
    """Return the lines that configure a gateway for this sandbox; the fourth only if options were changed."""
    key, first = "SEALGATE_KEYS__MAIN__", SandboxSettings()
    lines = [
        f"SEALGATE_BASE_URL={sandbox.base_url} SEALGATE_UPSTREAM__STREAMS={sandbox.streams_url}",
        f"{key}API_KEY={sandbox.api_key}",
        f"{key}SECRET=env:EXCHANGE_SECRET EXCHANGE_SECRET={sandbox.api_secret}",
    ]
    changed = [
        f"{variable}={getattr(settings, name)}"
        for name, variable in _GATEWAY_SETTINGS.items()
        if getattr(settings, name) != getattr(first, name)
    ]
    if changed:
        lines.append(" ".join(changed))
    return "\n".join(f"export {line}" for line in lines)


def _for_people(sandbox: "Sandbox", settings: SandboxSettings) -> str:
    return f"""\
base_url       {sandbox.base_url}
api_key        {sandbox.api_key}
api_secret     {sandbox.api_secret}
session_token  {sandbox.session_token}
user_address   {sandbox.user_address}

To use it, paste these lines into the shell that runs `sealgate serve`:
{_exports(sandbox, settings)}

A passkey token, to send as X-PASSKEY-TOKEN with one key change:
  curl -X POST -H 'Authorization: Bearer {sandbox.session_token}' {sandbox.base_url}/_sandbox/passkey
Its API: {sandbox.base_url}/openapi.json   Stop it with Ctrl-C."""
