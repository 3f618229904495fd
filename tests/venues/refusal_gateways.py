"""Gateways that refuse, each for another reason, before scripted exchanges of many venues."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from aiohttp import web
from aiohttp.test_utils import RawTestServer

from sealgate.config import Config
from sealgate.config.venues import built_in_venue
from sealgate.orders.halts import Scope
from sealgate.server.gateway import Gateway, running_gateway
from venues.client_record import KINDS
from venues.through import load, printed_by

TOKEN, READER = "token-of-the-bot-grid-0123456789", "token-of-the-bot-eyes-0123456789"
_NEVER = "http://127.0.0.1:9"  # the port of `discard`, where nothing listens


class Door(NamedTuple):
    """Where a bot asks, and the token that it has to show there."""

    url: str
    token: str


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    """Be an exchange of the kind that its address names: /fine, /limited or /silent."""
    kind = request.path.split("/")[1]
    await request.read()
    if kind == "limited":
        return web.json_response({}, status=429, headers={"Retry-After": "60"})
    if kind == "silent":
        assert request.transport is not None
        request.transport.abort()
    return web.json_response({})


def _config(
    kind: str, base_url: str, keys: Mapping[str, tuple[str, ...]], listen: Mapping[str, str]
) -> Config:
    limits = {"known": ["1/3600s" if kind == "slow" else "5000/1s"]}
    exchanges = {
        name: {
            "venue": name,
            "base_url": f"{base_url}/{name}",
            "limits": {**limits, "pools": {pool.name: limits for pool in built_in_venue(name).limits.pools}},
        }
        for name in keys
    }
    bot = {"keys": list(keys)}
    return Config.model_validate(
        {
            "listen": {"tcp": "127.0.0.1:0", **listen},
            "admin": {"tcp": "127.0.0.1:0", "unix": "off"},
            "clock": {"required": False, "grace": 0},
            # Where nothing can be reached it is spent, elsewhere the refusal does not depend on it.
            "limits": {"max_wait": 0.3 if kind == "away" else 10.0},
            "exchanges": exchanges,
            "keys": {
                name: {
                    "exchange": name,
                    "api_key": api_key,
                    "secret": f"env:SECRET_{number}",
                    **({"passphrase": f"env:PASSPHRASE_{number}"} if passphrase else {}),
                    **({"uid": uid} if uid else {}),
                }
                for number, (name, (api_key, _, passphrase, uid)) in enumerate(keys.items())
            },
            "bots": {
                "grid": {**bot, "token": "env:TOKEN"},
                "eyes": {**bot, "token": "env:READER", "may": ["read"]},
            },
        }
    )


def real_keys(venues: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return a key of each venue: API key, secret, passphrase and uid."""
    cases = load(printed_by("venues.oracle", "1", "1", *venues))
    return {venue: tuple(one or "" for one in cases[venue][0]["key"]) for venue in venues}


@asynccontextmanager
async def refusing_gateways(
    venues: Iterable[str], tls: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Door]]:
    """Run them; yield the door of each kind, whose address is followed by `/` and the name of a venue."""
    keys = real_keys(venues)
    environ = {"TOKEN": TOKEN, "READER": READER}
    for number, (_, secret, passphrase, _) in enumerate(keys.values()):
        environ |= {f"SECRET_{number}": secret, f"PASSPHRASE_{number}": passphrase}
    tokens = {"": "", "grid": TOKEN, "eyes": READER}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(RawTestServer(_answer))
        gateways: dict[str, Gateway] = {}
        for _, kind, _ in KINDS.values():
            if kind not in gateways:
                mode = "fine" if kind in ("halted", "slow") else kind
                base_url = _NEVER if kind == "away" else f"http://127.0.0.1:{server.port}/{mode}"
                gateways[kind] = await stack.enter_async_context(
                    running_gateway(_config(kind, base_url, keys, tls or {}), environ=environ)
                )
        await gateways["halted"].halt(Scope(bot="grid"))
        scheme = "https" if tls else "http"
        yield {
            name: Door(f"{scheme}://{gateways[kind].address}", tokens[bot])
            for name, (_, kind, bot) in KINDS.items()
        }
