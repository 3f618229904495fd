"""Each venue's logins on streams: what reaches the exchange of an unmodified client's, with dummy keys.

Nobody here wrote an expected value: it is what ccxt.pro sends with the real key at the time found in what
arrived. For a new row, see stream_calls.py.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rig.station import make_config
from sealgate.http.headers import Head
from sealgate.machine.system import System
from sealgate.server.gateway import running_gateway
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import read_orders
from sealgate.venues.routes import Lane, Permission
from sealgate.venues.streams import MessageSigning
from sealgate.venues.venue import Venue
from venues.stream_bots import UUID, Key, bot_of, dial_at_once, dial_gateway, key_for, run, sign_its_own
from venues.stream_calls import LOGINS, MARKETS, UNHELD, Login
from venues.stream_keys import HANDED_OUT
from venues.stream_through import (
    Arrived,
    ScriptedExchange,
    at,
    is_signed_by,
    put,
    rule_of,
    scripted_exchange,
    signed_by_file,
    stream_of,
    tapped,
    times_of,
)
from venues.through import FILES, family, named, venue_of

BOT_MS = 1_690_000_000_387  # the bot's clock is years behind
TOKEN = "a-token-of-thirty-two-letters-0001"
NOW_MS = 1_790_000_000_387

ROWS = LOGINS | HANDED_OUT

Prepare = Callable[[Any], None]


def venue_for(name: str) -> Venue:
    """Return the venue of a row."""
    return named(re.split("[: ]", name)[0])


def keys_for(name: str) -> tuple[Key, Key]:
    """Return the real key of a row, and the dummy one."""
    return key_for(name, ROWS[name], "real"), key_for(name, ROWS[name], "dummy")


def lines_of(texts: Iterable[str]) -> list[str]:
    """Return the longest line of each text, as messages break the lines of a private key in other ways."""
    return [max(text.splitlines(), key=len) for text in texts]


async def sent_by_ccxt(
    exchange: ScriptedExchange,
    key: Key,
    clock: dict[int, int],
    uuid: str = UUID,
    prepare: Prepare = lambda _: None,
) -> Arrived:
    """Return what ccxt.pro sends when it dials the exchange at once.

    `clock` is its time, in ms, by the number of the messages that it has sent.
    """
    exchange.forget()

    def now_ms() -> int:
        sent = len(exchange.streams[0].messages) if exchange.streams else 0
        return clock[max((count for count in clock if count <= sent), default=min(clock))]

    bot = bot_of(exchange.login, key, now_ms, uuid)
    hosts = dial_at_once(bot, exchange.port)
    prepare(bot)
    await run(bot, exchange.login.call, exchange.until_enough())
    exchange.stream.host = hosts[0]
    return exchange.stream


async def expected(exchange: ScriptedExchange, arrived: Arrived, came: Arrived, real: Key) -> Any:
    """Return what has to arrive of what `came` from a bot: what ccxt.pro sends with the real key.

    It does that at the times, and with the drawn text, that are found in what arrived.
    """
    login = exchange.login
    clock = times_of(login, arrived.tree) or {0: BOT_MS}
    uuid = at(arrived.tree, login.uuid) if login.uuid else UUID
    sent = await sent_by_ccxt(exchange, real, clock, uuid)
    if login.own_in:
        of_real, of_bot = (at(one.tree, login.own[0]) for one in (sent, came))
        sent = await sent_by_ccxt(
            exchange, real, clock, uuid, lambda bot: sign_its_own(bot, of_real, of_bot, login.own_in)
        )
    tree = sent.tree
    for pointer in login.own:
        put(tree, pointer, at(came.tree, pointer))
    for pointer in login.drops:
        parent, _, name = pointer.rpartition("/")
        del at(tree, parent)[name]
    return without(login, tree)


def without(login: Login, tree: Any) -> Any:
    """Return a tree without the headers that a row leaves out."""
    headers = {name: one for name, one in tree["headers"].items() if name not in login.leaves_out}
    return {**tree, "headers": headers}


@pytest.mark.parametrize("name", ROWS)
async def test_what_ccxt_sends_depends_on_key_and_time_alone(name: str) -> None:
    login, (real, dummy) = ROWS[name], keys_for(name)
    async with scripted_exchange(login) as exchange:
        first = await sent_by_ccxt(exchange, real, {0: BOT_MS})
        assert len(first.messages) == login.sends
        again = await sent_by_ccxt(exchange, real, {0: BOT_MS})
        assert again.tree == first.tree
        later = await sent_by_ccxt(exchange, real, {0: NOW_MS})
        assert later.tree != first.tree if login.clock else later.tree == first.tree or login.own
        other = await sent_by_ccxt(exchange, dummy, {0: BOT_MS})
        assert (other.tree == first.tree) == bool(login.rest)  # what is signed there is the request for a key
    for sent, ms in ((first, BOT_MS), (later, NOW_MS)):
        assert all(abs(found - ms) < 1000 for found in times_of(login, sent.tree).values())
    assert is_signed_by(first, login, real, "real")


@pytest.mark.parametrize("name", ROWS)
async def test_by_the_venues_file_it_is_what_ccxt_sends_with_the_real_key(name: str) -> None:
    login, (real, dummy) = ROWS[name], keys_for(name)
    async with scripted_exchange(login) as exchange:
        came = await sent_by_ccxt(exchange, dummy, {0: BOT_MS})
        arrived = signed_by_file(venue_for(name), login, real, came, NOW_MS)
        assert without(login, arrived.tree) == await expected(exchange, arrived, came, real)
    assert is_signed_by(arrived, login, real, "real")
    assert not login.uuid or at(arrived.tree, login.uuid) == f"{NOW_MS}"
    assert not any(text in repr((arrived, arrived.tree)) for text in lines_of(dummy))


def kindless(name: str) -> str:
    """Return the name of a row without its kind of key."""
    return re.sub(r":\w+", "", name)


@pytest.mark.parametrize(
    ("name", "other"),
    [(one, two) for one in LOGINS for two in LOGINS if one != two and kindless(one) == kindless(two)],
)
async def test_a_dummy_key_of_another_kind_does_as_well(name: str, other: str) -> None:
    login, (real, _), (_, dummy) = ROWS[name], keys_for(name), keys_for(other)
    async with scripted_exchange(ROWS[other]) as exchange:
        came = await sent_by_ccxt(exchange, dummy, {0: BOT_MS})
    arrived = signed_by_file(venue_for(name), login, real, came, NOW_MS)
    async with scripted_exchange(login) as exchange:
        assert without(login, arrived.tree) == await expected(exchange, arrived, came, real)
    assert not any(text in repr((arrived, arrived.tree)) for text in lines_of(dummy))


def emptied(own: Any, other: Any) -> Any:
    """Return a message without what it has of a key: what `other`, with another key, has not."""
    if isinstance(own, dict):
        return {name: emptied(one, other[name]) for name, one in own.items()}
    if isinstance(own, list):
        return [emptied(*both) for both in zip(own, other, strict=True)]
    if isinstance(own, str) and own.startswith("{"):
        return json.dumps(emptied(json.loads(own), json.loads(other)))
    return own if own == other else ""


def written(message: Any) -> str:
    """Write JSON as ccxt does: some exchanges sign it as it is written."""
    return json.dumps(message, separators=(",", ":"))


@pytest.mark.parametrize("name", ROWS)
async def test_empty_texts_do_as_well_as_those_of_a_dummy_key(name: str) -> None:
    login, (real, dummy) = ROWS[name], keys_for(name)
    async with scripted_exchange(login) as exchange:
        came, other = [await sent_by_ccxt(exchange, key, {0: BOT_MS}) for key in (dummy, real)]
    both = zip(map(json.loads, came.messages), map(json.loads, other.messages), strict=True)
    bare = replace(came, messages=[written(emptied(*messages)) for messages in both])
    of_bare, of_dummy = (signed_by_file(venue_for(name), login, real, one, NOW_MS) for one in (bare, came))
    assert of_bare.tree == of_dummy.tree


@asynccontextmanager
async def gateway_before(exchange: ScriptedExchange, name: str, real: Key) -> AsyncIterator[int]:
    """Run a gateway for a row, with the real key; yield the port for its bot."""
    config = make_config(
        f"http://127.0.0.1:{exchange.port}",
        venue=venue_for(name).name,
        upstream={"streams": f"ws://127.0.0.1:{exchange.port}"},
        clock={"required": False, "grace": 0},
        keys={
            "main": {
                "api_key": real.api_key,
                "secret": "env:SECRET",
                "passphrase": "env:PASSPHRASE",
                "uid": real.uid,
            }
        },
        bots={
            "grid": {"token": "env:TOKEN", "may": ["read", "trade", "keys"]}  # a token that trades needs keys
            | ({"listen": "127.0.0.1:0"} if exchange.login.proof == "listen" else {})
        },
    )
    environ = {"SECRET": real.secret, "PASSPHRASE": real.passphrase, "TOKEN": TOKEN}
    async with running_gateway(config, environ=environ) as gateway:
        gateway.services.untried.clear()  # or it reads with the key by itself
        url = gateway.listeners.bot_urls.get("grid", str(gateway.address))
        yield int(url.rpartition(":")[2])


@pytest.mark.parametrize("name", ROWS)
async def test_what_arrives_is_what_ccxt_sends_with_the_real_key(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    login, (real, dummy) = ROWS[name], keys_for(name)
    async with scripted_exchange(login) as exchange:
        came = await sent_by_ccxt(exchange, dummy, {0: BOT_MS})
        stream_of(venue_for(name), came)
        exchange.forget()
        async with gateway_before(exchange, name, real) as port, tapped(port) as tap:
            bot = bot_of(login, dummy, lambda: BOT_MS)
            dial_gateway(bot, login, tap.port, TOKEN)
            await run(bot, login.call, exchange.until_enough())
        arrived, asked = exchange.stream, exchange.asked
        assert without(login, arrived.tree) == await expected(exchange, arrived, came, real)
    assert is_signed_by(arrived, login, real, "real")
    assert not any(text in repr((arrived, arrived.tree, asked)) for text in (*lines_of(dummy), TOKEN))
    assert tap.got
    assert not any(text.encode() in tap.got for text in lines_of((real.secret,)))
    logged = capsys.readouterr().out
    assert "stream_closed" in logged
    handed_out = re.findall(r'"(\w{12,})"', json.dumps(login.rest))  # as listen keys are
    assert not any(text in logged for text in (*lines_of((*dummy, *real)), TOKEN, *handed_out))
    assert not login.uuid or at(arrived.tree, login.uuid) != UUID
    now_ms = System().wall() * 1000
    assert all(abs(found - now_ms) < 200_000 for found in times_of(login, arrived.tree).values())


@pytest.mark.parametrize("name", [name for name in LOGINS if name.endswith(("order", "edit", "cancel"))])
async def test_what_ccxt_orders_is_an_order_that_a_policy_reads(name: str) -> None:
    login, dummy = LOGINS[name], keys_for(name)[1]
    async with scripted_exchange(login) as exchange:
        came = await sent_by_ccxt(exchange, dummy, {0: BOT_MS})
    stream, text = stream_of(venue_for(name), came), came.messages[-1]
    rule, route = stream.find(stream.clear(text), Kind(login.kind))
    assert rule is not None
    assert route.needs is Permission.TRADE
    if name.endswith("cancel"):
        assert (route.lane, route.is_cancel) == (Lane.CANCEL, True)
        return
    assert route.lane is Lane.ORDER
    assert route.order is not None
    (terms,) = read_orders(route.order, None, text.encode(), Head({}, b""))
    assert (terms.size, terms.price) == (
        Decimal(3),
        None if route.order.price is None else Decimal("65000.5"),
    )
    assert terms.symbol in {market["id"] for market in MARKETS}


def signed_in(venue: Venue) -> Iterator[tuple[str, MessageSigning, Iterable[Kind]]]:
    """Yield what a venue's file signs on streams: its name, how it is signed, and by which keys."""
    for stream in venue.streams:
        if stream.handshake is not None:
            yield f"{stream.label} handshake", stream.handshake, venue.schemes
        for rule in stream.messages:
            if rule.signing is not None:
                yield rule.routes[0].template, rule.signing, rule.kinds or venue.schemes


def excuse(venue: Venue, kind: Kind) -> str | None:
    """Return the entry of UNHELD for a venue's keys of a kind, or for those of the venue that it is like."""
    names = (f"{name}:{kind}" for name in (venue.name, family(venue.name)))
    return next((name for name in names if name in UNHELD), None)


def test_every_kind_of_key_that_signs_on_a_venues_streams_has_a_row() -> None:
    held = {(venue_for(name).name, login.kind) for name, login in ROWS.items()}
    missing = {
        excuse(venue, kind) or f"{venue.name}:{kind}"
        for venue in map(venue_of, FILES)
        for *_, kinds in signed_in(venue)
        for kind in kinds
        if (venue.name, kind) not in held
    }
    assert missing == {name for name in UNHELD if " " not in name}


async def test_each_way_in_which_a_file_signs_is_in_a_row() -> None:
    held: dict[str, list[MessageSigning | None]] = {}
    for name, login in ROWS.items():
        async with scripted_exchange(login) as exchange:
            came = await sent_by_ccxt(exchange, keys_for(name)[1], {0: BOT_MS})
        stream = stream_of(venue_for(name), came)
        rules = [rule for message in came.messages if (rule := rule_of(stream, message, login.kind))]
        ways = held.setdefault(family(venue_for(name).name), [])
        ways += [stream.handshake, *(rule.signing for rule in rules)]
    missing = {
        f"{venue.name} {what}"
        for venue in map(venue_of, FILES)
        for what, way, kinds in signed_in(venue)
        if way not in held.get(family(venue.name), ()) and not all(excuse(venue, kind) for kind in kinds)
    }
    assert missing == {name for name in UNHELD if " " in name}
