"""What the middle of the pipeline works with, made without sockets: an admitted request, a key, a reply."""

import asyncio
import math

from rig.verdicts import judged
from sealgate.config.venues import default_venue
from sealgate.exchange.answer import Answer, Remainder
from sealgate.http.flow import Body, Flow
from sealgate.http.headers import HeaderRules, sort_reply
from sealgate.keys.bot import Bot
from sealgate.keys.key import Secret, SigningKey
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.request.admission import Rules, Ticket, authorise
from sealgate.venues.routes import Permission, RouteTable

PREFIX = "/v1/trade"
BOT = Bot("grid", ("main",), frozenset(Permission))
_HEADERS = HeaderRules(default_venue().own_headers)
_RULES = Rules(PREFIX, frozenset(), {}, None, RouteTable(default_venue().routes), _HEADERS, max_body=1024)


def ticket(call: str, *fields: tuple[bytes, bytes], bot: Bot = BOT) -> Ticket:
    """Return the ticket of a call such as "POST /order", with the path behind the prefix."""
    method, _, path = call.partition(" ")
    return authorise(bot, method, PREFIX + path, _HEADERS.sort(fields), _RULES)


def signing_key(session: str | None = None) -> SigningKey:
    """Return the key `main`, with a session token if one is given."""
    material = KeyMaterial("ak-public-1", bytearray(b"correct horse battery staple"))
    sealer = sealer_of(default_venue(), material, "https://api.example.com")
    return SigningKey("main", "ak-public-1", 5000, sealer, None if session is None else Secret(session))


def answer(
    status: int, body: bytes = b"", *fields: tuple[bytes, bytes], remainder: Remainder | None = None
) -> Answer:
    """Return a reply of the exchange."""
    return Answer(status, "Phrase", sort_reply(fields), body, judged(status, body), remainder)


def remainder(ends: list[str]) -> Remainder:
    """Return what is left of a large reply, which notes in `ends` what becomes of its connection."""
    body = Body(Flow(asyncio.get_running_loop()))
    return Remainder(
        body, math.inf, lambda: ends.append("released"), lambda: ends.append("closed"), lambda: False
    )
