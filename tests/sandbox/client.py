"""A bot, an app and a hand-driven clock, for tests against a running sandbox."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from yarl import URL

from sealgate.sandbox.clock import iso
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.system import System

PREFIX = "/v1/trade"
START_S = 2_000_000_000.0

BUY = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}


class ManualHost(System):
    """A host whose time moves only by `advance`, and by sleeping, which takes no real time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = START_S
        self.slept: list[float] = []

    def wall_ms(self) -> int:
        return round(self.now_s * 1000)

    def steady_s(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def detail(self) -> Any:
        return self.body["detail"]


@dataclass(frozen=True)
class Credential:
    api_key: str
    secret: str


@dataclass(frozen=True)
class Bot:
    """One user: signs with a key, and does what the app does with session and passkey."""

    sandbox: Sandbox
    system: ManualHost
    http: aiohttp.ClientSession
    key: Credential
    session_token: str
    address: str

    def using(self, created: Mapping[str, Any]) -> "Bot":
        """Give the same user with another key."""
        return replace(self, key=Credential(created["api_key"], created["api_secret"]))

    async def send(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        url = URL(self.sandbox.base_url + target, encoded=True)
        async with self.http.request(method, url, data=body or None, headers=headers) as response:
            text = await response.text()
            return Answer(response.status, json.loads(text) if text else None, response.headers)

    def signing_headers(
        self, method: str, target: str, body: bytes = b"", *, at_ms: int = 0
    ) -> dict[str, str]:
        """Sign as spec.md says: timestamp + METHOD + path without the prefix + body."""
        timestamp = str(at_ms or self.system.wall_ms())
        return self.headers_for(timestamp, f"{timestamp}{method}{target.partition('?')[0]}".encode() + body)

    def headers_for(self, timestamp: str, message: bytes) -> dict[str, str]:
        """Give the three headers, with a signature over any message."""
        signature = hmac.new(self.key.secret.encode(), message, hashlib.sha256).hexdigest()
        return {
            "X-SERVICE-APIKEY": self.key.api_key,
            "X-SERVICE-TIMESTAMP": timestamp,
            "X-SERVICE-SIGNATURE": signature,
        }

    async def signed(self, method: str, target: str, value: Any = None, **options: Any) -> Answer:
        """Send a signed request; `at_ms` sets its timestamp, `headers` are added."""
        body = b"" if value is None else json.dumps(value).encode()
        headers = self.signing_headers(method, target, body, at_ms=options.get("at_ms", 0))
        return await self.send(method, PREFIX + target, body, headers | options.get("headers", {}))

    async def get(self, target: str, **options: Any) -> Answer:
        return await self.signed("GET", target, **options)

    async def post(self, target: str, value: Any, **options: Any) -> Answer:
        return await self.signed("POST", target, value, **options)

    async def order(self, **changes: Any) -> Answer:
        return await self.post("/order", BUY | changes)

    async def session(self, method: str, target: str, value: Any = None, *, passkey: str = "") -> Answer:
        """Send a request with the session token, and with a passkey token if one is given."""
        headers = {"Authorization": f"Bearer {self.session_token}"}
        if passkey:
            headers["X-PASSKEY-TOKEN"] = passkey
        body = b"" if value is None else json.dumps(value).encode()
        return await self.send(method, PREFIX + target, body, headers)

    async def app(self, method: str, target: str, value: Any = None) -> Answer:
        """Send a request as the app does, with a fresh passkey token."""
        return await self.session(method, target, value, passkey=await self.passkey())

    async def passkey(self) -> str:
        headers = {"Authorization": f"Bearer {self.session_token}"}
        answer = await self.send("POST", "/_sandbox/passkey", headers=headers)
        return str(answer.body["passkey_token"])

    async def control(self, method: str, name: str, value: Any = None) -> Answer:
        """Call the sandbox's own part."""
        body = b"" if value is None else json.dumps(value).encode()
        return await self.send(method, f"/_sandbox/{name}", body)

    async def create(self, **fields: Any) -> dict[str, Any]:
        """Create a key, which must succeed."""
        answer = await self.app("POST", "/api-keys", fields)
        assert answer.status == 200, answer
        return dict(answer.body)

    async def records(self) -> dict[str, dict[str, Any]]:
        """Give the listed keys, by api_key."""
        answer = await self.session("GET", "/api-keys")
        return {record["api_key"]: record for record in answer.body["keys"]}

    async def audit(self, api_key: str, query: str = "") -> Any:
        answer = await self.session("GET", f"/api-keys/{api_key}/audit{query}")
        assert answer.status == 200, answer
        return answer.body

    async def other_user(self, **state: bool) -> "Bot":
        """Another user, with a session and no key."""
        grant = (await self.control("POST", "users", state)).body
        return replace(self, session_token=grant["session_token"], address=grant["user_address"])

    async def journal(self) -> list[dict[str, Any]]:
        answer = await self.control("GET", "journal")
        return list(answer.body["entries"])

    def check(self, answer: Answer, status: int, detail: object) -> None:
        """Assert that it is this error, in the stated shape, at this time."""
        assert (answer.status, answer.body) == (
            status,
            {"detail": detail, "timestamp": iso(self.system.wall_ms())},
        )


@asynccontextmanager
async def bot_at_sandbox(
    *, db: str = "", system: ManualHost | None = None, **settings: Any
) -> AsyncIterator[Bot]:
    """Run a sandbox, without a rate limit unless one is asked for, and a bot with the ready-made user."""
    system = system or ManualHost()
    choices = SandboxSettings(**({"limit_kind": "none"} | settings))
    # No idle connections: a fault that ends one must not meet the next request.
    connector = aiohttp.TCPConnector(force_close=True)
    async with (
        running_sandbox(choices, db=db, system=system) as sandbox,
        aiohttp.ClientSession(connector=connector, auto_decompress=False) as http,
    ):
        key = Credential(sandbox.api_key, sandbox.api_secret)
        yield Bot(sandbox, system, http, key, sandbox.session_token, sandbox.user_address)
