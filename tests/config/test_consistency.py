from collections.abc import Mapping

import pytest
import trustme

from sealgate.config import Config
from sealgate.config.consistency import inconsistencies
from sealgate.config.names import dotted

KEY = {"api_key": "ak", "secret": "env:S"}
ONE, TWO = {"main": KEY}, {"main": KEY, "alt": KEY}
BOT = {"token": "env:T"}

Tree = Mapping[str, object]

CONSISTENT: dict[str, Tree] = {
    "one key, no bots": {},
    "a bot with the only key": {"bots": {"a": BOT}},
    "bots that choose": {
        "keys": TWO,
        "bots": {"a": {**BOT, "key": "alt"}, "b": {**BOT, "keys": ["main", "alt"]}},
    },
    "open to others, with bots": {"bots": {"a": BOT}, "listen": {"tcp": "0.0.0.0:80"}},
    "open to others, with certificates": {
        "bots": {"a": {}},
        "listen": {"tcp": "0.0.0.0:80", "tls_cert": "PEM", "tls_key": "PEM", "client_ca": "PEM"},
    },
    "a Unix socket alone": {"listen": {"tcp": "", "unix": "/run/x.sock"}},
    "a Unix socket for a group": {"listen": {"unix": "/run/x.sock", "unix_mode": "0660", "unix_group": "0"}},
    "bots by user and by token": {
        "listen": {"unix": "/run/x.sock"},
        "bots": {"a": {"uid": 1}, "b": {"uid": 2, **BOT}, "c": BOT},
    },
    "addresses of bots, and no other": {
        "listen": {"tcp": ""},
        "bots": {"a": {"listen": "127.0.0.1:0"}, "b": {"listen": "[::1]:0"}, "c": {"listen": "localhost:1"}},
    },
    "both on a free port": {"listen": {"tcp": "127.0.0.1:0"}, "admin": {"tcp": "127.0.0.1:0"}},
    "a bot with a policy": {"bots": {"a": {**BOT, "policy": {"symbols": ["BTC"], "observe": True}}}},
    "a policy with a size for each symbol": {
        "bots": {"a": {**BOT, "policy": {"symbols": ["BTC"], "max_size": {"BTC": "1"}}}}
    },
    "a policy with sizes for all symbols that it lets pass": {
        "bots": {"a": {**BOT, "policy": {"max_size": {"BTC": "1", "ETH": "2"}}}}
    },
    "a window of the key's own": {"keys": {"main": {**KEY, "recv_window_ms": 1000}}},
    "a window that is sent along": {"venue": "bybit", "keys": {"main": {**KEY, "recv_window_ms": 900}}},
    "a window that the file does not know": {
        "venue": "blofin",
        "keys": {"main": {**KEY, "passphrase": "env:P", "recv_window_ms": 900}},
    },
    "the window that the exchange has": {
        "venue": "gate",
        "keys": {"main": {**KEY, "recv_window_ms": 60_000}},
    },
    "a proxy with a user and a password": {
        "upstream": {"proxy": "http://grid@127.0.0.1:3128", "proxy_password": "env:P"}
    },
    "a local address for a name": {"base_url": "https://a.example", "upstream": {"source": "127.0.0.1"}},
    "a header of one's own": {"upstream": {"headers": {"x-simulated-trading": "1"}}},
    "no admin address": {"admin": {"tcp": ""}},
    "a route inside": {"routes": [{"match": "GET /v1/trade/x", "lane": "order"}]},
    "a route that only costs more": {"routes": [{"match": "GET /v1/trade/x", "cost": 5}]},
    "a route without a prefix": {
        "upstream": {"prefix": "/"},
        "routes": [{"match": "GET /x", "needs": "trade"}],
    },
}

INCONSISTENT: dict[str, tuple[Tree, str, str]] = {
    "a bot by the name of those that are none": (
        {"bots": {"unknown": BOT}},
        "bots.unknown",
        "is the name for unauthenticated clients",
    ),
    "a bot that would be taken for a stranger": (
        {"bots": {"stranger": BOT}},
        "bots.stranger",
        "is the name for unauthenticated clients",
    ),
    "no key": ({"keys": {}}, "keys", "names no key"),
    "a local address of another family": (
        {"base_url": "https://[2001:db8::7]", "upstream": {"source": "127.0.0.1"}},
        "upstream.source",
        "is IPv4, but base_url is IPv6; write an address of the same kind",
    ),
    "a local address of another family than the proxy's": (
        {"upstream": {"source": "127.0.0.1", "proxy": "socks5://[2001:db8::7]:1080"}},
        "upstream.source",
        "is IPv4, but proxy is IPv6; write an address of the same kind",
    ),
    "a password without a proxy": (
        {"upstream": {"proxy_password": "env:P"}},
        "upstream.proxy_password",
        "has no effect without a user; write it in proxy, as in http://USER@HOST:3128",
    ),
    "a proxy that is the gateway": (
        {"upstream": {"proxy": "http://127.0.0.1:8787"}},
        "upstream.proxy",
        "is this gateway itself (listen.tcp)",
    ),
    "a header by which the venue signs": (
        {"upstream": {"headers": {"x-service-apikey": "1"}}},
        "upstream.headers.x-service-apikey",
        "is a header that the venue service uses for signing; remove it",
    ),
    "a prefix that comes twice": (
        {"base_url": "https://api.example.com/v1/trade"},
        "base_url",
        "ends in upstream.prefix, which bots' paths already have; remove /v1/trade",
    ),
    "a window that the exchange does not let a key have": (
        {"venue": "okx", "keys": {"main": {**KEY, "passphrase": "env:P", "recv_window_ms": 5000}}},
        "keys.main.recv_window_ms",
        "differs from okx",
    ),
    "a passphrase for what has none": (
        {"keys": {"main": {**KEY, "secret_passphrase": "env:P"}}},
        "keys.main.secret_passphrase",
        "has no effect: the secret of an HMAC key is not encrypted; remove it",
    ),
    "a kind of keys that the venue does not take": (
        {"keys": {"main": {**KEY, "kind": "rsa"}}},
        "keys.main.kind",
        "is not accepted by the venue service; write hmac",
    ),
    "a policy with a symbol that has no size": (
        {"bots": {"a": {**BOT, "policy": {"symbols": ["BTC", "ETH"], "max_size": {"BTC": "1"}}}}},
        "bots.a.policy.max_size",
        "has no size for ETH, so every order in it would be refused; add one",
    ),
    "a policy with a size for a symbol that it refuses": (
        {"bots": {"a": {**BOT, "policy": {"symbols": ["B"], "max_size": {"B": "1", "E": "1"}}}}},
        "bots.a.policy.max_size.E",
        "has no effect, because symbols does not allow it; add it there",
    ),
    "nobody to listen to": ({"listen": {"tcp": ""}}, "listen.tcp", "turns off the only address"),
    "a group that is not named": (
        {"listen": {"unix": "/run/x.sock", "unix_mode": "0660"}},
        "listen.unix_mode",
        "admits a group; name it in listen.unix_group",
    ),
    "a group that is not let in": (
        {"listen": {"unix": "/run/x.sock", "unix_group": "0"}},
        "listen.unix_group",
        'has no effect; set listen.unix_mode to "0660"',
    ),
    "a policy that only observes": (
        {"bots": {"a": {**BOT, "policy": {"observe": True}}}},
        "bots.a.policy.observe",
        "has no effect; add a rule, such as symbols",
    ),
    "a policy that is empty": (
        {"bots": {"a": {**BOT, "policy": {}}}},
        "bots.a.policy",
        "has no rule, so it restricts nothing; add one, such as symbols",
    ),
    "a policy that says no to its only rule": (
        {"bots": {"a": {**BOT, "policy": {"reduce_only": False}}}},
        "bots.a.policy",
        "has no rule, so it restricts nothing; add one, such as symbols",
    ),
    "a group without a socket": (
        {"listen": {"unix_mode": "0660", "unix_group": "0"}},
        "listen.unix_mode",
        "has no effect; name a socket in listen.unix",
    ),
    "a certificate without a key": (
        {"listen": {"tls_cert": "PEM"}},
        "listen.tls_cert",
        "has no key; name its file in listen.tls_key",
    ),
    "a key without a certificate": (
        {"listen": {"tls_key": "PEM"}},
        "listen.tls_key",
        "has no certificate; name its file in listen.tls_cert",
    ),
    "client certificates without TLS": (
        {"bots": {"a": BOT}, "listen": {"client_ca": "PEM"}},
        "listen.client_ca",
        "needs TLS",
    ),
    "client certificates without bots": (
        {"listen": {"tls_cert": "PEM", "tls_key": "PEM", "client_ca": "PEM"}},
        "listen.client_ca",
        "names bots, but there are none",
    ),
    "TLS for nobody": (
        {"listen": {"tcp": "", "unix": "/run/x.sock", "tls_cert": "PEM", "tls_key": "PEM"}},
        "listen.tls_cert",
        "has no effect; listen.tcp is off",
    ),
    "a bot that anybody could be": (
        {"bots": {"a": {}}},
        "bots.a",
        "has no way to authenticate; add token, uid for listen.unix, or an address in listen",
    ),
    "a bot at the address of all": (
        {"bots": {"a": {"listen": "localhost:8787"}}},
        "bots.a.listen",
        "is also the address of listen.tcp; choose another port",
    ),
    "a bot at the admin address": (
        {"bots": {"a": {"listen": "127.0.0.1:8788"}}},
        "bots.a.listen",
        "is also the address of admin.tcp; choose another port",
    ),
    "two bots at one address": (
        {"bots": {"a": {"listen": "127.0.0.1:1"}, "b": {"listen": "localhost:1"}}},
        "bots.b.listen",
        "is also the address of bots.a.listen; choose another port",
    ),
    "the exchange at a bot's address": (
        {"base_url": "http://127.0.0.1:1", "bots": {"a": {"listen": "127.0.0.1:1"}}},
        "base_url",
        "is this gateway itself (bots.a.listen)",
    ),
    "TLS for bots' own addresses, which have none": (
        {
            "listen": {"tcp": "", "tls_cert": "PEM", "tls_key": "PEM"},
            "bots": {"a": {"listen": "127.0.0.1:1"}},
        },
        "listen.tls_cert",
        "has no effect; listen.tcp is off",
    ),
    "a user without a socket": (
        {"bots": {"a": {"uid": 1}}},
        "bots.a.uid",
        "has no effect; name a socket in listen.unix",
    ),
    "one user twice": (
        {"listen": {"unix": "/run/x.sock"}, "bots": {"a": {"uid": 1}, "b": {"uid": 1}}},
        "bots.b.uid",
        "is also the uid of a",
    ),
    "one address twice": (
        {"admin": {"tcp": "127.0.0.1:8787"}},
        "admin.tcp",
        "is also the address of listen.tcp",
    ),
    "open to others": ({"listen": {"tcp": "[::]:80"}}, "listen.tcp", "is reachable from other machines"),
    "two keys, no bots": ({"keys": TWO}, "keys", "names several keys"),
    "key and keys": (
        {"keys": TWO, "bots": {"a": {**BOT, "key": "alt", "keys": ["alt"]}}},
        "bots.a.keys",
        "cannot be combined with key",
    ),
    "no choice among two": (
        {"keys": TWO, "bots": {"a": BOT}},
        "bots.a",
        "chooses no key; add key, one of main, alt",
    ),
    "unknown key": ({"bots": {"a": {**BOT, "key": "alt"}}}, "bots.a.key", "names alt, which is not a key"),
    "unknown key among keys": (
        {"bots": {"a": {**BOT, "keys": ["main", "alt"]}}},
        "bots.a.keys",
        "names alt, which is not a key",
    ),
    "a route outside": (
        {"routes": [{"match": "GET /v1/tradex", "lane": "read"}]},
        "routes[0].match",
        "is outside upstream.prefix",
    ),
    "a route that changes nothing": (
        {"routes": [{"match": "GET /v1/trade/x"}]},
        "routes[0]",
        "changes nothing; add needs, lane, cost or share_s",
    ),
    "an order that is shared": (
        {"routes": [{"match": "POST /v1/trade/order", "share_s": 1}]},
        "routes[0].share_s",
        'applies only to reads; add needs = "read"',
    ),
    "a read that trades and is shared": (
        {"routes": [{"match": "GET /v1/trade/x", "needs": "trade", "share_s": 1}]},
        "routes[0].share_s",
        "applies only to reads",
    ),
}


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file with certificate and key, for the settings that say PEM here."""
    file = tmp_path_factory.mktemp("tls") / "all.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(file)
    return str(file)


def config(tree: Tree, pem: str) -> Config:
    listen = tree.get("listen")
    if isinstance(listen, dict):
        tree = {**tree, "listen": {name: pem if value == "PEM" else value for name, value in listen.items()}}
    return Config.model_validate({"base_url": "https://x.example", "keys": ONE, **tree})


@pytest.mark.parametrize("tree", CONSISTENT.values(), ids=CONSISTENT)
def test_consistent(tree: Tree, pem: str) -> None:
    assert inconsistencies(config(tree, pem)) == []


@pytest.mark.parametrize(("tree", "where", "told"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent(tree: Tree, where: str, told: str, pem: str) -> None:
    [problem] = inconsistencies(config(tree, pem))
    assert dotted(problem.path) == where
    assert problem.text.startswith(told)
    assert "; " in problem.text


@pytest.mark.parametrize(
    ("url", "listen", "admin", "told"),
    [
        ("http://127.0.0.1:8787", "127.0.0.1:8787", "", "listen.tcp"),
        ("http://localhost:8787", "127.0.0.1:8787", "", "listen.tcp"),
        ("http://LOCALHOST:8787/api", "[::1]:8787", "", "listen.tcp"),
        ("http://[::1]:8788", "127.0.0.1:8787", "127.0.0.1:8788", "admin.tcp"),
        ("http://127.0.0.1:8787", "[::]:8787", "", "listen.tcp"),
        ("http://127.0.0.9:8787", "0.0.0.0:8787", "", "listen.tcp"),
        ("https://gate.example", "gate.example:443", "", "listen.tcp"),
        ("http://127.0.0.1:8786", "127.0.0.1:8787", "127.0.0.1:8788", None),
        ("https://api.example:8787", "0.0.0.0:8787", "", None),
        ("http://127.0.0.2:8787", "127.0.0.1:8787", "", None),
        ("http://127.0.0.1:8787", "127.0.0.1:0", "127.0.0.1:0", None),
    ],
)
def test_the_exchange_is_not_the_gateway_itself(url: str, listen: str, admin: str, told: str | None) -> None:
    tree = {"base_url": url, "bots": {"a": BOT}, "listen": {"tcp": listen}, "admin": {"tcp": admin}}
    problems = inconsistencies(Config.model_validate({"keys": ONE, **tree}))
    text = f"is this gateway itself ({told}); write the exchange's URL"
    assert [(dotted(problem.path), problem.text) for problem in problems] == (
        [("base_url", text)] if told else []
    )
