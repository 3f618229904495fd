"""What runs recipes: an exchange that knows the real key alone, and the gateway of a user."""

import asyncio
import base64
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from rig.fake_venues import API_KEY, PASSPHRASE, SECRET, Fake, running_fake
from rig.fences import ROOT
from sealgate.config import load_config
from sealgate.server.gateway import Gateway, running_gateway
from venues.private_keys import FORMS, key_of

EXAMPLES = ROOT / "examples"
ADDRESS, TOKEN = "http://127.0.0.1:8787", "example-token-of-a-bot-01234567890123456789"


def secret_at(name: str) -> str:
    """Return a secret as an exchange hands it out: in base64, a private key, or any text."""
    if name == "coinbase":
        return FORMS["old-pem"](key_of("es256", "real"))
    return base64.b64encode(SECRET.encode()).decode() if name == "kraken" else SECRET


@asynccontextmanager
async def venue_and_gateway(
    folder: Path, name: str, *, bot: str = 'token = "env:TOKEN"'
) -> AsyncIterator[tuple[Fake, str]]:
    """Run an exchange, and a gateway with the configuration that a user would write for it.

    Yield the address of the bot, which has one setting, or none of its own.
    """
    secret = secret_at(name)
    environ = {"SECRET": secret, "PASSPHRASE": PASSPHRASE, "TOKEN": TOKEN}
    async with running_fake(name, secret=secret) as fake:
        lines = [
            *(f'venue = "{name}"', f'base_url = "{fake.base_url}"', 'listen.tcp = "127.0.0.1:0"'),
            f'upstream.streams = "{fake.base_url.replace("http", "ws", 1)}"',
            *('admin = { tcp = "127.0.0.1:0", unix = "off" }', "[keys.main]", f'api_key = "{API_KEY}"'),
            'secret = "env:SECRET"',
            *(['passphrase = "env:PASSPHRASE"'] if name in ("okx", "kucoin", "bitget") else []),
            *(["[bots.grid]", bot] if bot else []),
        ]
        (folder / "sealgate.toml").write_text("\n".join(lines))
        config = load_config(folder / "sealgate.toml", environ={})
        async with running_gateway(config, environ=environ) as gateway:
            yield fake, gateway.listeners.bot_urls.get("grid", f"http://{gateway.address}")


@asynccontextmanager
async def several(
    folder: Path, file: str = "sealgate.toml", **places: str
) -> AsyncIterator[tuple[Mapping[str, Fake], Gateway]]:
    """Run the exchanges of a file of examples/exchanges, by their names, and the gateway of that file.

    Each key has a secret of its own. `places` are variables of the gateway.
    """
    text = (EXAMPLES / "exchanges" / file).read_text()
    (folder / "sealgate.toml").write_text(text)
    tree = tomllib.loads(text)
    places |= {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0"}
    secrets = {"grid.token": TOKEN, "okx.passphrase": PASSPHRASE}
    fakes: dict[str, Fake] = {}
    async with AsyncExitStack() as stack:
        for alias, key in tree["keys"].items():
            secret = base64.b64encode(f"secret of {alias}".encode()).decode()
            secrets[f"{alias}.secret"] = secret
            for name in key.get("exchanges") or [key["exchange"]]:
                fake = running_fake(tree["exchanges"][name]["venue"], key["api_key"], secret)
                fakes[name] = await stack.enter_async_context(fake)
                at, address = f"SEALGATE_EXCHANGES__{name.upper()}__", fakes[name].base_url
                places |= {
                    f"{at}BASE_URL": address,
                    f"{at}UPSTREAM__STREAMS": address.replace("http", "ws", 1),
                }
        for name, secret in secrets.items():
            (folder / name).write_text(secret)
            (folder / name).chmod(0o600)
        config = load_config(folder / "sealgate.toml", environ=places)
        yield fakes, await stack.enter_async_context(running_gateway(config))


async def run(text: str, *program: str, **environ: str) -> str:
    """Run a program, Python unless another is named, in a process of its own: ccxt brings much along."""
    process = await asyncio.create_subprocess_exec(
        *(program or (sys.executable, "-W", "error", "-")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **environ},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    assert process.returncode == 0, err.decode()
    return out.decode()


def assert_only_the_real_key_arrived(fake: Fake, orders: int = 1) -> None:
    assert fake.refused == [], fake.refused
    assert len(fake.orders) == orders
    assert "made-up" not in repr(fake.seen)
    assert "bWFkZS11cA" not in repr(fake.seen)
    assert TOKEN not in repr(fake.seen)
    assert "made-up" not in repr(fake.messages)
    assert TOKEN not in repr(fake.messages)
