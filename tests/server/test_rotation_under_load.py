"""Keys are rotated again and again while bots trade: no request fails, and none is badly signed."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from sealgate.config import Config
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway
from sealgate.server.reload import ReloadError

ORDER = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}
ROTATIONS = 10
BETWEEN = 40  # answers between two rotations
BOTS = 8


@dataclass(frozen=True)
class Pair:
    """An API key and its secret."""

    api_key: str
    secret: str


async def new_pair(session: aiohttp.ClientSession, sandbox: Sandbox) -> Pair:
    """Make another key of the same user, as its owner does in the app."""
    bearer = {"Authorization": f"Bearer {sandbox.session_token}"}
    async with session.post(f"{sandbox.base_url}/_sandbox/passkey", headers=bearer) as reply:
        token = (await reply.json())["passkey_token"]
    headers = {**bearer, "X-PASSKEY-TOKEN": token}
    body = {"permissions": ["read", "trade"]}
    async with session.post(f"{sandbox.base_url}/v1/trade/api-keys", json=body, headers=headers) as reply:
        made = await reply.json()
    return Pair(made["api_key"], made["api_secret"])


class Rotation:
    """The configuration as an operator edits it: the key in the file, its secret in another."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._base_url = sandbox.base_url
        self._folder = folder
        self._number = 0
        self._api_key = ""

    def use(self, pair: Pair) -> None:
        self._number += 1
        self._api_key = pair.api_key
        file = self._folder / str(self._number)
        file.touch(0o600)
        file.write_text(pair.secret)

    def load(self) -> Config:
        key = {"api_key": self._api_key, "secret": f"file:{self._folder / str(self._number)}"}
        tree = {"base_url": self._base_url, "listen": {"tcp": "127.0.0.1:0"}, "keys": {"main": key}}
        return Config.model_validate(tree)


class Load:
    """Bots that send orders and reads in turn until told to stop, and count the answers by status."""

    def __init__(self, session: aiohttp.ClientSession, gateway: Gateway) -> None:
        self._session = session
        self._url = f"http://{gateway.address}/v1/trade"
        self._is_over = False
        self.statuses: Counter[int] = Counter()
        self._news = asyncio.Condition()

    async def run(self) -> None:
        while not self._is_over:
            async with self._session.post(f"{self._url}/order", json=ORDER) as reply:
                await self._count(reply.status)
            async with self._session.get(f"{self._url}/symbols/list") as reply:
                await self._count(reply.status)

    async def _count(self, status: int) -> None:
        self.statuses[status] += 1
        async with self._news:
            self._news.notify_all()

    async def answers(self, count: int) -> None:
        """Wait for so many more."""
        until = self.statuses.total() + count
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: self.statuses.total() >= until)

    def stop(self) -> None:
        self._is_over = True


async def test_no_request_fails_while_keys_are_rotated(tmp_path: Path) -> None:
    async with (
        running_sandbox(SandboxSettings(limit_kind="none")) as sandbox,
        aiohttp.ClientSession() as session,
    ):
        rotation = Rotation(sandbox, tmp_path)
        pairs = [Pair(sandbox.api_key, sandbox.api_secret), await new_pair(session, sandbox)]
        rotation.use(pairs[0])
        async with running_gateway(rotation.load(), environ={}, load=rotation.load) as gateway:
            load = Load(session, gateway)
            bots = [asyncio.create_task(load.run()) for _ in range(BOTS)]
            for number in range(1, ROTATIONS + 1):
                await load.answers(BETWEEN)
                rotation.use(pairs[number % 2])
                assert await gateway.reloader.reload("the test") == ()
            rotation.use(Pair(pairs[0].api_key, "not the secret"))
            with pytest.raises(ReloadError, match="the exchange refuses the signature"):
                await gateway.reloader.reload("the test")
            await load.answers(BETWEEN)
            load.stop()
            await asyncio.gather(*bots)
        async with session.get(f"{sandbox.base_url}/_sandbox/journal") as reply:
            entries = (await reply.json())["entries"]
    assert set(load.statuses) == {200}
    unauthorized = [(entry["verdict"], entry["target"]) for entry in entries if entry["status"] == 401]
    assert unauthorized == [("signature_invalid", "/v1/trade/symbols/list")]  # the trial of the wrong one
    used = Counter(entry["headers"].get("X-SERVICE-APIKEY") for entry in entries)
    assert min(used[pair.api_key] for pair in pairs) > ROTATIONS * BETWEEN / 4
