"""Who the bots are, and what of their tokens stays: digests."""

import hashlib
import os
from typing import Any

import pytest

from rig.station import make_config
from sealgate.core.routes import Permission
from sealgate.gateway.keys.parts import Roster, read_roster
from sealgate.gateway.keys.sources import SecretError

ENVIRON = {"GRID": "token-of-grid", "WATCH": "token-of-watch", "TWIN": "token-of-grid"}
KEYS = {alias: {"api_key": f"ak-{alias}", "secret": "env:S"} for alias in ("main", "alt")}


def roster(bots: dict[str, Any], **tables: Any) -> Roster:
    return read_roster(make_config("https://api.example.com", keys=KEYS, bots=bots, **tables), ENVIRON)


def test_a_bot_is_found_by_each_of_its_proofs() -> None:
    found = roster(
        {
            "grid": {"token": "env:GRID", "key": "alt", "may": ["read", "keys"], "weight": 2},
            "watch": {"uid": 1001},
        }
    )
    grid, watch = found.named["grid"], found.named["watch"]
    assert found.tokens == {hashlib.sha256(b"token-of-grid").digest(): grid}
    assert found.users == {1001: watch}
    assert (grid.name, grid.keys, grid.weight) == ("grid", ("alt",), 2.0)
    assert grid.may == {Permission.READ, Permission.KEYS}
    assert watch.keys == ("main", "alt"), "without a key of its own it has all of them"


def test_without_bots_nobody_is_known() -> None:
    found = roster({})
    assert (found.tokens, found.users, found.named) == ({}, {}, {})


def test_a_token_of_two_bots_is_refused_by_their_names() -> None:
    with pytest.raises(SecretError) as refused:
        roster({"grid": {"token": "env:GRID"}, "copy": {"token": "env:TWIN"}})
    assert str(refused.value) == "env:TWIN: the bots grid and copy have the same token; give each its own"


def test_a_token_that_is_not_there() -> None:
    with pytest.raises(SecretError, match="env:GONE: the variable is not set; set GONE"):
        roster({"grid": {"token": "env:GONE"}})


@pytest.mark.parametrize(
    ("listen", "local"),
    [({}, frozenset({os.geteuid(), 0})), ({"unix": "/run/s/bots.sock", "unix_mode": "0660"}, None)],
    ids=["ours alone", "its mode decides"],
)
def test_who_is_local(listen: dict[str, str], local: frozenset[int] | None) -> None:
    assert roster({}, listen=listen).local_users == local
