"""Who a bot is by its connection: its user on the Unix socket, the name in its certificate."""

import contextlib
import hashlib

import pytest

from sealgate.config.venues import default_venue
from sealgate.core.admission import Bot, Peer, Rules, authenticate, identify
from sealgate.core.headers import Head, HeaderRules
from sealgate.core.routes import Permission, RouteTable
from sealgate.errors import Refusal

MAY = frozenset({Permission.READ})
GRID, WATCH, LOCAL = Bot("grid", ("main",), MAY), Bot("watch", ("main",), MAY), Bot("local", ("main",), MAY)
HEADERS = HeaderRules(default_venue().own_headers)


def rules(local_users: frozenset[int] | None = None, *, has_bots: bool = True) -> Rules:
    return Rules(
        prefix="/v1/trade",
        hosts=frozenset({"localhost"}),
        bots={hashlib.sha256(b"watch-token").digest(): WATCH} if has_bots else {},
        local=None if has_bots else LOCAL,
        routes=RouteTable(default_venue().routes),
        headers=HEADERS,
        max_body=1000,
        users={1001: GRID} if has_bots else {},
        named={"grid": GRID, "watch": WATCH} if has_bots else {},
        local_users=local_users,
    )


def head(token: str | None = None) -> Head:
    fields = [(b"Host", b"localhost")]
    return HEADERS.sort([*fields, (b"Authorization", f"Bearer {token}".encode())] if token else fields)


def who(peer: Peer, token: str | None, known: Rules) -> Bot | None:
    """Return the bot, None for a stranger."""
    with contextlib.suppress(Refusal):
        return identify(head(token), known, peer)
    return None


BOTS = {
    "by user": (Peer(uid=1001), None, GRID),
    "another user": (Peer(uid=1002), None, None),
    "root is no bot": (Peer(uid=0), None, None),
    "a token on the Unix socket": (Peer(uid=1002), "watch-token", WATCH),
    "a token goes before the user": (Peer(uid=1001), "watch-token", WATCH),
    "a wrong token is wrong for a known user, too": (Peer(uid=1001), "wrong", None),
    "by certificate": (Peer(name="grid"), None, GRID),
    "a certificate of nobody": (Peer(name="mallory"), None, None),
    "a certificate without a name": (Peer(name=""), None, None),
    "certificate and token of one bot": (Peer(name="watch"), "watch-token", WATCH),
    "a token of another bot than the certificate": (Peer(name="grid"), "watch-token", None),
    "a token does not help a certificate of nobody": (Peer(name=""), "watch-token", None),
    "a certificate does not help a wrong token": (Peer(name="watch"), "wrong", None),
    "TCP alone": (Peer(), None, None),
}


@pytest.mark.parametrize(("peer", "token", "bot"), BOTS.values(), ids=BOTS)
def test_bots_by_their_connection(peer: Peer, token: str | None, bot: Bot | None) -> None:
    assert who(peer, token, rules()) is bot


LOCALS = {
    "TCP": (Peer(), frozenset({0, 1000}), LOCAL),
    "our own user": (Peer(uid=1000), frozenset({0, 1000}), LOCAL),
    "another user": (Peer(uid=1001), frozenset({0, 1000}), None),
    "another user where the socket's mode decides": (Peer(uid=1001), None, LOCAL),
}


@pytest.mark.parametrize(("peer", "users", "bot"), LOCALS.values(), ids=LOCALS)
def test_who_is_local_without_bots(peer: Peer, users: frozenset[int] | None, bot: Bot | None) -> None:
    assert who(peer, None, rules(users, has_bots=False)) is bot


def test_what_is_kept_of_a_head_is_kept_for_its_peer_alone() -> None:
    same, known = head(), rules()
    assert authenticate(same, "GET", (1, 1), known, Peer(uid=1001)) is GRID
    for peer in (Peer(uid=1002), Peer(), Peer(name="")):
        with pytest.raises(Refusal, match="bot_unauthenticated"):
            authenticate(same, "GET", (1, 1), known, peer)
    assert authenticate(same, "GET", (1, 1), known, Peer(name="watch")) is WATCH
