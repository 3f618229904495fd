from collections.abc import Mapping

import pytest

from sealgate.config import Config
from sealgate.config.consistency import inconsistencies
from sealgate.config.paths import dotted

KEY = {"api_key": "ak", "secret": "env:S"}
ONE, TWO = {"main": KEY}, {"main": KEY, "alt": KEY}
BOT = {"token": "env:T"}

Tree = Mapping[str, object]

CONSISTENT: dict[str, Tree] = {
    "one key, no bots": {"keys": ONE},
    "a bot with the only key": {"keys": ONE, "bots": {"a": BOT}},
    "bots that choose": {
        "keys": TWO,
        "bots": {"a": {**BOT, "key": "alt"}, "b": {**BOT, "keys": ["main", "alt"]}},
    },
    "open to others, with bots": {"keys": ONE, "bots": {"a": BOT}, "listen": {"tcp": "0.0.0.0:80"}},
    "both on a free port": {"keys": ONE, "listen": {"tcp": "127.0.0.1:0"}, "admin": {"tcp": "127.0.0.1:0"}},
    "no admin address": {"keys": ONE, "admin": {"tcp": ""}},
    "a route inside": {"keys": ONE, "routes": [{"match": "GET /v1/trade/x", "lane": "order"}]},
    "a route without a prefix": {
        "keys": ONE,
        "upstream": {"prefix": "/"},
        "routes": [{"match": "GET /x", "needs": "trade"}],
    },
}

INCONSISTENT: dict[str, tuple[Tree, str, str]] = {
    "no key": ({}, "keys", "names no key"),
    "nobody to listen to": ({"keys": ONE, "listen": {"tcp": ""}}, "listen.tcp", "turns off the only address"),
    "one address twice": (
        {"keys": ONE, "admin": {"tcp": "127.0.0.1:8787"}},
        "admin.tcp",
        "is the address of listen.tcp",
    ),
    "open to others": (
        {"keys": ONE, "listen": {"tcp": "[::]:80"}},
        "listen.tcp",
        "is reachable from other machines",
    ),
    "two keys, no bots": ({"keys": TWO}, "keys", "names several keys"),
    "key and keys": (
        {"keys": TWO, "bots": {"a": {**BOT, "key": "alt", "keys": ["alt"]}}},
        "bots.a.keys",
        "stands beside key",
    ),
    "no choice among two": (
        {"keys": TWO, "bots": {"a": BOT}},
        "bots.a",
        "chooses no key; add key, one of main, alt",
    ),
    "unknown key": (
        {"keys": ONE, "bots": {"a": {**BOT, "key": "alt"}}},
        "bots.a.key",
        "names alt, which is no key",
    ),
    "unknown key among keys": (
        {"keys": ONE, "bots": {"a": {**BOT, "keys": ["main", "alt"]}}},
        "bots.a.keys",
        "names alt, which is no key",
    ),
    "a route outside": (
        {"keys": ONE, "routes": [{"match": "GET /v1/tradex", "lane": "read"}]},
        "routes[0].match",
        "is outside upstream.prefix",
    ),
    "a route that changes nothing": (
        {"keys": ONE, "routes": [{"match": "GET /v1/trade/x"}]},
        "routes[0]",
        "changes nothing",
    ),
}


def config(tree: Tree) -> Config:
    return Config.model_validate({"base_url": "https://x.example", **tree})


@pytest.mark.parametrize("tree", CONSISTENT.values(), ids=CONSISTENT)
def test_consistent(tree: Tree) -> None:
    assert inconsistencies(config(tree)) == []


@pytest.mark.parametrize(("tree", "where", "told"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent(tree: Tree, where: str, told: str) -> None:
    [problem] = inconsistencies(config(tree))
    assert dotted(problem.path) == where
    assert problem.text.startswith(told)
    assert "; " in problem.text


def test_the_prefix_must_not_come_twice() -> None:
    config = Config.model_validate({"base_url": "https://api.example.com/v1/trade", "keys": ONE})
    (problem,) = inconsistencies(config)
    assert dotted(problem.path) == "base_url"
    assert "leave out /v1/trade" in problem.text
