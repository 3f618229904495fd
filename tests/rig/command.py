"""A command run to its end in a thread of this process, beside a sandbox that this process runs."""

import asyncio
from collections.abc import Mapping

from click.testing import CliRunner, Result

from sealgate.cli import main
from sealgate.sandbox.server import Sandbox


def environ_of(sandbox: Sandbox, **more: str) -> dict[str, str]:
    """Return the configuration for a sandbox's ready-made key; `more` are names without SEALGATE_."""
    return {
        "SEALGATE_BASE_URL": sandbox.base_url,
        "SEALGATE_KEYS__MAIN__API_KEY": sandbox.api_key,
        "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
        "SEALGATE_KEYS__MAIN__SESSION": "env:EXCHANGE_SESSION",
        "EXCHANGE_SECRET": sandbox.api_secret,
        "EXCHANGE_SESSION": sandbox.session_token,
        **{f"SEALGATE_{name}": value for name, value in more.items()},
    }


async def ended_command(*arguments: str, environ: Mapping[str, str], width: int = 80) -> Result:
    """Run `sealgate ARGUMENTS`. No error may get out, nor a value of the environment that is secret."""
    env = {**environ, "COLUMNS": str(width)}
    result = await asyncio.to_thread(CliRunner().invoke, main, arguments, env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for name in ("EXCHANGE_SECRET", "EXCHANGE_SESSION"):
        assert not environ.get(name) or environ[name] not in result.output
    return result
