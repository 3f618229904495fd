"""A configuration of several exchanges: what each has, and what is wrong with one, in one line."""

from pathlib import Path

import pytest

from sealgate.config import Address, ConfigError, load_config
from sealgate.config.load import load_own_gateway

SPOT, PERP = '[exchanges.spot]\nvenue = "binance"\n', '[exchanges.perp]\nvenue = "bybit"\n'
KEY = '[keys.main]\napi_key = "ak"\nsecret = "env:S"\n'
OF_SPOT, OF_BOTH = f'{KEY}exchange = "spot"\n', f'{KEY}exchanges = ["spot", "perp"]\n'
SANDBOX = '[exchanges.{}]\nbase_url = "http://{}:9"\n'
ENVIRON = {
    "SEALGATE_EXCHANGES__SPOT__VENUE": "binance",
    "SEALGATE_EXCHANGES__PERP__VENUE": "bybit",
    "SEALGATE_EXCHANGES__PERP__LIMITS__KNOWN": "5/s, 100/m",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak",
    "SEALGATE_KEYS__MAIN__SECRET": "env:S",
    "SEALGATE_KEYS__MAIN__EXCHANGES": "spot, perp",
}


def test_each_starts_from_the_common_tables_and_then_from_its_venue(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(
        "[limits]\nqueue = 7\nmax_wait = 5\n[clock]\ninterval = 9\n"
        f"{SPOT}{PERP}listen = '127.0.0.1:8801'\n[exchanges.perp.limits]\nqueue = 8\n{OF_BOTH}"
    )
    config = load_config(file, environ={})
    spot, perp = config.served.values()
    assert (spot.name, spot.limits.queue, spot.limits.max_wait, spot.clock.interval) == ("spot", 7, 5, 9)
    assert (perp.name, perp.limits.queue, perp.limits.max_wait, perp.clock.interval) == ("perp", 8, 5, 9)
    assert (spot.clock.path, perp.clock.path) == ("/api/v3/time", "/v5/market/time")
    assert (spot.listen, perp.listen) == (None, Address("127.0.0.1", 8801))
    assert config.exchanges_of("main") == ("spot", "perp")


def test_a_table_of_an_exchange_replaces_what_its_venue_s_file_says_there(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(f"{SPOT}{PERP}[exchanges.perp.limits]\nknown = ['3/s']\n{OF_BOTH}")
    _, perp = load_config(file, environ={}).served.values()
    assert [(quota.n, quota.window_s) for quota in perp.limits.known] == [(3, 1.0)]
    assert perp.clock.path == "/v5/market/time"


def test_the_environment_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spot, perp = load_config(None, environ=ENVIRON).served.values()
    assert (str(spot.base_url), str(perp.base_url)) == ("https://api.binance.com", "https://api.bybit.com")
    assert [quota.n for quota in perp.limits.known] == [5, 100]
    assert (list(spot.keys), list(perp.keys)) == (["main"], ["main"])


def test_a_key_has_at_each_exchange_the_window_of_its_venue(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(f"{SPOT}{PERP}{OF_BOTH}")
    spot, perp = load_config(file, environ={}).served.values()
    assert spot.keys["main"].recv_window_ms == spot.venue.recv_window_ms == 10_000
    assert perp.keys["main"].recv_window_ms == perp.venue.recv_window_ms == 5000


# The file, variables beside it, and the only line that is told.
WRONG: dict[str, tuple[str, dict[str, str], str]] = {
    "exchange and exchanges": (
        f'{SPOT}{PERP}{OF_BOTH}exchange = "spot"\n',
        {},
        "FILE: keys.main.exchanges: cannot be combined with exchange; keep one of the two",
    ),
    "one of them in a variable": (
        f"{SPOT}{PERP}{OF_BOTH}",
        {"SEALGATE_KEYS__MAIN__EXCHANGE": "spot"},
        "FILE: keys.main.exchanges: cannot be combined with exchange; keep one of the two",
    ),
    "an empty list": (
        f"{SPOT}{KEY}exchanges = []\n",
        {},
        "FILE: keys.main.exchanges: is empty; write at least one",
    ),
    "a member twice": (
        f'{SPOT}{KEY}exchanges = ["spot", "spot"]\n',
        {},
        "FILE: keys.main.exchanges: has the same member twice; remove one",
    ),
    "a key without an exchange": (
        f"{SPOT}{PERP}{KEY}",
        {},
        'FILE: keys.main.exchange: names no exchange; write exchange = "spot" or "perp"',
    ),
    "an exchange without a key": (
        f"{SPOT}{PERP}{OF_SPOT}",
        {},
        (
            'FILE: exchanges.perp: has no key; write exchange = "perp" in one of [keys.NAME], '
            "or remove the exchange"
        ),
    ),
    "an unknown name": (
        f'{SPOT}{KEY}exchange = "sopt"\n',
        {},
        "FILE: keys.main.exchange: names sopt, which is not an exchange; did you mean spot?",
    ),
    "an unknown name among several": (
        f'{SPOT}{PERP}{KEY}exchanges = ["spot", "x"]\n',
        {},
        "FILE: keys.main.exchanges: names x, which is not an exchange; write one of spot, perp",
    ),
    "an unknown name in a variable": (
        f"{SPOT}{PERP}{OF_BOTH}",
        {"SEALGATE_KEYS__MAIN__EXCHANGES": "spot, prep"},
        "SEALGATE_KEYS__MAIN__EXCHANGES: names prep, which is not an exchange; did you mean perp?",
    ),
    "a venue beside them": (
        f'venue = "okx"\n{SPOT}{PERP}{OF_BOTH}',
        {},
        (
            "FILE: venue: cannot be combined with [exchanges]; "
            "write it below [exchanges.spot] or [exchanges.perp]"
        ),
    ),
    "an address beside them": (
        f'base_url = "https://a.example"\n{SPOT}{OF_SPOT}',
        {},
        "FILE: base_url: cannot be combined with [exchanges]; write it below [exchanges.spot]",
    ),
    "an address beside them in a variable": (
        f"{SPOT}{OF_SPOT}",
        {"SEALGATE_BASE_URL": "https://a.example"},
        "SEALGATE_BASE_URL: cannot be combined with [exchanges]; write it below [exchanges.spot]",
    ),
    "exchanges of keys, and none configured": (
        f'base_url = "https://a.example"\n{OF_SPOT}',
        {},
        "FILE: keys.main.exchange: has no effect, because there are no [exchanges.NAME]; remove it",
    ),
    "a misspelt table": (
        f"{SPOT}[exchanges.spot.limts]\nqueue = 1\n{OF_SPOT}",
        {},
        "FILE: exchanges.spot.limts: unknown setting; did you mean exchanges.spot.limits?",
    ),
    "a misspelt table in a variable": (
        f"{SPOT}{OF_SPOT}",
        {"SEALGATE_EXCHANGES__SPOT__LIMTS__QUEUE": "1"},
        (
            "SEALGATE_EXCHANGES__SPOT__LIMTS__QUEUE: unknown setting; "
            "did you mean SEALGATE_EXCHANGES__SPOT__LIMITS__QUEUE?"
        ),
    ),
    "single underscores in a variable": (
        f"{SPOT}{OF_SPOT}",
        {"SEALGATE_EXCHANGES_SPOT_LIMITS_QUEUE": "1"},
        (
            "SEALGATE_EXCHANGES_SPOT_LIMITS_QUEUE: unknown setting; "
            "did you mean SEALGATE_EXCHANGES__SPOT__LIMITS__QUEUE?"
        ),
    ),
    "a misspelt setting": (
        f"{SPOT}[exchanges.spot.limits]\nqueu = 1\n{OF_SPOT}",
        {},
        "FILE: exchanges.spot.limits.queu: unknown setting; did you mean exchanges.spot.limits.queue?",
    ),
    "a setting of another table": (
        f'{SPOT}[exchanges.spot.limits]\nprefix = "/x"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot.limits.prefix: unknown setting; did you mean exchanges.spot.upstream.prefix?",
    ),
    "a setting of the gateway": (
        f'{SPOT}[exchanges.spot.upstream]\nmax_body = "1 MiB"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot.upstream.max_body: unknown setting; did you mean listen.max_body?",
    ),
    "a misspelt setting of all": (
        f"[limits]\nqueu = 1\n{SPOT}{PERP}{OF_BOTH}",
        {},
        "FILE: limits.queu: unknown setting; did you mean limits.queue?",
    ),
    "a wrong value for all": (
        f"[limits]\nqueue = 0\n{SPOT}{PERP}{OF_BOTH}",
        {},
        "FILE: limits.queue: is not a count; write a whole number above 0",
    ),
    "a misspelt venue": (
        f'[exchanges.spot]\nvenu = "binance"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot.venu: unknown setting; did you mean exchanges.spot.venue?",
    ),
    "an unknown venue": (
        f'[exchanges.spot]\nvenue = "binanse"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot.venue: 'binanse' is not a venue; did you mean binance?",
    ),
    "an unknown venue in a variable": (
        f"[exchanges.spot]\n{OF_SPOT}",
        {"SEALGATE_EXCHANGES__SPOT__VENUE": "binanse"},
        "SEALGATE_EXCHANGES__SPOT__VENUE: 'binanse' is not a venue; did you mean binance?",
    ),
    "no address": (
        f"[exchanges.spot]\n{OF_SPOT}",
        {},
        (
            "FILE: exchanges.spot.base_url: missing; write it in the file, "
            "or set SEALGATE_EXCHANGES__SPOT__BASE_URL"
        ),
    ),
    "a name with a capital": (
        f'{SPOT}{OF_SPOT}[exchanges.Perp]\nvenue = "bybit"\n',
        {},
        (
            "FILE: exchanges.Perp: is not the name of an exchange; "
            "use 1 to 32 of a-z, 0-9, _ and -, a letter or digit first"
        ),
    ),
    "a misspelt name of the tables": (
        f'[exchange.spot]\nvenue = "binance"\n{OF_SPOT}',
        {},
        "FILE: exchange: unknown setting; did you mean exchanges?",
    ),
    "no tables": (
        f'exchanges = "spot"\n{OF_SPOT}',
        {},
        "FILE: exchanges: is not a table of tables; write [exchanges.NAME] for each",
    ),
    "a name for a table": (
        f'[exchanges]\nspot = "binance"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot: is not a table; set its members one by one",
    ),
    "two at one address of this machine": (
        f'{SPOT}listen = "127.0.0.1:8801"\n{PERP}listen = "localhost:8801"\n{OF_BOTH}',
        {},
        "FILE: exchanges.perp.listen: is also the address of exchanges.spot.listen; choose another port",
    ),
    "the address of all": (
        f'{SPOT}listen = "localhost:8787"\n{OF_SPOT}',
        {},
        "FILE: exchanges.spot.listen: is also the address of listen.tcp; choose another port",
    ),
    "an open address without bots": (
        f'{SPOT}listen = "0.0.0.0:8801"\n{OF_SPOT}',
        {},
        (
            "FILE: exchanges.spot.listen: is reachable from other machines; "
            "add [bots.NAME] with a token, or listen on 127.0.0.1"
        ),
    ),
    "one exchange twice": (
        f'{SPOT}[exchanges.perp]\nvenue = "binance"\n{OF_BOTH}',
        {},
        "FILE: exchanges.perp: is the same as exchanges.spot; remove one, and give its keys to the other",
    ),
    "one exchange on this machine twice": (
        f"{SANDBOX.format('spot', 'localhost')}{SANDBOX.format('perp', '127.0.0.1')}{OF_BOTH}",
        {},
        "FILE: exchanges.perp: is the same as exchanges.spot; remove one, and give its keys to the other",
    ),
    "an exchange that is the gateway": (
        f'{SPOT}[exchanges.perp]\nbase_url = "http://localhost:8787"\n{OF_BOTH}',
        {},
        ("FILE: exchanges.perp.base_url: is this gateway itself (listen.tcp); write the exchange's URL"),
    ),
    "what only one of the venues needs": (
        f'{SPOT}[exchanges.perp]\nvenue = "okx"\n{OF_BOTH}',
        {},
        (
            "FILE: keys.main.passphrase: missing; keys of the venue okx have one: "
            'write passphrase = "file:/path"'
        ),
    ),
    "what none of the venues needs": (
        f'{SPOT}{PERP}{OF_BOTH}uid = "7"\n',
        {},
        "FILE: keys.main.uid: has no effect: the venue binance and bybit requires none",
    ),
}


@pytest.mark.parametrize(("text", "environ", "told"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_one_line_with_its_source_and_the_nearest_name(
    text: str, environ: dict[str, str], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, environ=environ)
    assert str(caught.value).replace(str(file), "FILE").splitlines() == [told]


RIGHT = {
    "two products at one address": (
        '[exchanges.spot]\nbase_url = "http://127.0.0.1:9"\n'
        '[exchanges.perp]\nbase_url = "http://127.0.0.1:9"\nupstream.prefix = "/perp"\nclock.path = "/t"\n'
    ),
    "two venues at one address": '[exchanges.spot]\nvenue = "woo"\n[exchanges.perp]\nvenue = "woo-v1"\n',
    "free ports": f'{SPOT}listen = "127.0.0.1:0"\n{PERP}listen = "127.0.0.1:0"\n',
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_what_looks_alike_and_is_not(text: str, tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(text + OF_BOTH)
    assert list(load_config(file, environ={}).served) == ["spot", "perp"]


@pytest.mark.parametrize("mistake", ["", "qqq = 1\n"])
def test_commands_know_the_gateway_of_several_even_by_a_configuration_with_a_mistake(
    mistake: str, tmp_path: Path
) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(
        f"{mistake}{SPOT}{SANDBOX.format('mine', '127.0.0.1')}{KEY}exchanges = ['spot', 'mine']\n"
    )
    own = load_own_gateway(file, {})
    assert own.identity["base_url"] == "https://api.binance.com http://127.0.0.1:9"
    assert (own.trouble is not None) == bool(mistake)
