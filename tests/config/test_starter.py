import re
from pathlib import Path

import pytest

from sealgate.config import load_config
from sealgate.config.effective import effective
from sealgate.config.listing import all_settings, toml_text
from sealgate.config.load import load_with_sources
from sealgate.config.sources import DEFAULT
from sealgate.config.starter import WIDTH, leftovers, starter_of_several, starter_text
from sealgate.config.venues import built_in_venue, venue_names

HIDDEN = re.compile(r"^#(?=[\w\[])", re.MULTILINE)
# Commented out, these show an example, as their default is none.
NEEDS = (
    "streams =",
    "stream_opens =",
    *("account", "tls_", "client_ca", "ca_file", "unix", "uid", "session", "token", "keys ="),
    *("file =", "known", "cmd_env", "source", "proxy", "headers = {", "environment"),
    *("kind = ", "secret_passphrase"),
)


def test_it_is_valid_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(starter_text())
    loaded = load_with_sources(file, environ={})
    changed = {one.name for one in effective(loaded) if one.source != DEFAULT}
    assert changed == {"base_url", "keys.main.api_key", "keys.main.secret"}


@pytest.mark.parametrize("name", venue_names())
def test_it_is_valid_for_every_venue_and_has_what_a_key_needs(tmp_path: Path, name: str) -> None:
    venue = built_in_venue(name)
    file = tmp_path / "sealgate.toml"
    file.write_text(starter_text(venue))
    loaded = load_with_sources(file, environ={})
    changed = {one.name for one in effective(loaded) if one.source == str(file)}
    assert changed == {
        *(() if name == "service" else ("venue",)),
        *(() if venue.base_url else ("base_url",)),
        *(
            f"keys.main.{one}"
            for one in ("api_key", "secret", "passphrase", "uid")
            if venue.signing.needs(one)
        ),
        "keys.main.secret",
    }
    assert loaded.config.venue.name == name
    assert name == "service" or f"The exchange: {venue.title}." in file.read_text()


@pytest.mark.parametrize("name", ["okx", "phemex", "krakenfutures", "bitmart"])
def test_what_is_commented_out_for_another_venue_is_its_default(tmp_path: Path, name: str) -> None:
    head, _, _ = starter_text(built_in_venue(name)).partition("#[bots.grid]")
    lines = [
        line for line in HIDDEN.sub("", head).splitlines() if not line.startswith(NEEDS) or "uid" in line
    ]
    file, before = tmp_path / "sealgate.toml", tmp_path / "before.toml"
    file.write_text("\n".join(lines))
    before.write_text(head)
    assert load_config(file, environ={}) == load_config(before, environ={})


@pytest.mark.parametrize(
    ("name", "pools"),
    [
        ("binance", ["weight", "orders", "sapi-address", "sapi-account"]),
        ("okx", ["place", "amend", "cancel", "orders"]),
        ("service", []),
    ],
)
def test_published_limits_of_pools_are_in_it_as_comments(tmp_path: Path, name: str, pools: list[str]) -> None:
    """Where no pool has all requests, `limits.known` would be an error."""
    text, file = starter_text(built_in_venue(name)), tmp_path / "sealgate.toml"
    file.write_text(re.sub(r"^#(\[limits.pools.*|known = .*)", r"\1", text, flags=re.MULTILINE))
    (served,) = load_config(file, environ={}).served.values()
    assert re.findall(r"^#\[limits.pools.(.*)\]", text, re.MULTILINE) == pools
    has_known = "\n#known = " in text.partition("#[limits.pools.")[0]
    assert has_known == (served.venue.limits.whole is not None)


def test_every_setting_is_in_it() -> None:
    names = re.findall(r"^#?(\w+) = ", starter_text(), re.MULTILINE)
    # The default venue has none of these.
    only_elsewhere = {
        *("keys.*.passphrase", "keys.*.uid", "environment"),
        *("keys.*.kind", "keys.*.secret_passphrase"),
    }
    of_several = {"exchange", "exchanges", "policies", "pools"}
    shown = [
        setting
        for setting in all_settings()
        if setting.name not in only_elsewhere and of_several.isdisjoint(setting.path)
    ]
    assert sorted(names) == sorted(str(setting.path[-1]) for setting in shown)


def test_what_is_commented_out_is_the_default(tmp_path: Path) -> None:
    """Bots and routes apart, each line may lose its sign and nothing changes."""
    head, _, _ = starter_text().partition("#[bots.grid]")
    lines = [line for line in HIDDEN.sub("", head).splitlines() if not line.startswith(NEEDS)]
    file = tmp_path / "sealgate.toml"
    file.write_text("\n".join(lines))
    before = tmp_path / "before.toml"
    before.write_text(starter_text())
    written, plain = load_config(file, environ={}), load_config(before, environ={})
    # The settings of [signing] are overrides, with none as their default; the venue has them in it.
    assert written.model_copy(update={"signing": plain.signing}) == plain


def test_bots_and_routes_are_examples_that_work(tmp_path: Path) -> None:
    head, mark, tail = starter_text().partition("#[bots.grid]")
    lines = [line for line in HIDDEN.sub("", mark + tail).splitlines() if not line.startswith("keys =")]
    file = tmp_path / "sealgate.toml"
    file.write_text("\n".join((head, *lines)))
    config = load_config(file, environ={"SEALGATE_LISTEN__UNIX": "bots.sock"})
    assert (config.bots["grid"].key, config.routes[0].lane) == ("main", "read")


SEVERAL = ("binance", "okx", "bitmart", "service")


def of_several(*names: str) -> str:
    return starter_of_several({name: (built_in_venue(name), "") for name in names})


def test_for_several_exchanges_it_is_valid_and_has_what_each_key_needs(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(of_several(*SEVERAL))
    loaded = load_with_sources(file, environ={})
    changed = {one.name for one in effective(loaded) if one.source == str(file)}
    assert changed == {
        *(f"exchanges.{name}.venue" for name in SEVERAL if name != "service"),
        "exchanges.service.base_url",
        *(f"keys.{name}.{one}" for name in SEVERAL for one in ("api_key", "secret", "exchange")),
        *("keys.okx.passphrase", "keys.bitmart.uid", "bots.grid.token", "bots.grid.keys"),
    }
    assert loaded.config.keys_of("grid") == SEVERAL
    told = [cause for cause, _ in leftovers(loaded.config.served.values())]
    assert told == [
        "exchanges.service.base_url is still the example, https://service.example.com",
        *(f"keys.{name}.api_key is still the placeholder" for name in ("binance", "okx", "bitmart")),
        *("keys.bitmart.uid is still the placeholder", "keys.service.api_key is still the placeholder"),
    ]


def test_all_venues_can_be_in_one_file(tmp_path: Path) -> None:
    """None is the same as another, or needs what the others refuse."""
    file = tmp_path / "sealgate.toml"
    file.write_text(of_several(*venue_names()))
    assert list(load_config(file, environ={}).served) == venue_names()


def test_for_several_exchanges_each_setting_is_explained_once() -> None:
    lines = [
        line
        for line in of_several(*SEVERAL).splitlines()
        if line.startswith("# ") and not line.startswith("# The exchange:")
    ]
    assert len(lines) > len(all_settings()) / 2
    descriptions = [line for line in lines if line.endswith(".")]
    assert {line for line in descriptions if descriptions.count(line) > 1} == set()


def test_what_is_commented_out_for_several_exchanges_is_the_default(tmp_path: Path) -> None:
    """Each line may lose its sign and nothing changes: none overrides what the venues' files say."""
    head, _, tail = of_several("okx", "bybit").partition("#[bots.grid.policy]")
    tables = tail[tail.index("[listen]") :].partition("#[[exchanges")[0]
    lines = [
        line
        for line in HIDDEN.sub("", head + tables).splitlines()
        if not line.startswith((*NEEDS, "listen = ")) or line.startswith(("token", "keys ="))
    ]
    file, before = tmp_path / "sealgate.toml", tmp_path / "before.toml"
    file.write_text("\n".join(lines))
    before.write_text(head + tables)
    written, plain = load_config(file, environ={}), load_config(before, environ={})
    assert written.served == plain.served
    assert written.with_tables(keys=plain.keys) == plain


def test_the_route_for_several_exchanges_is_an_example_that_works(tmp_path: Path) -> None:
    head, mark, tail = of_several("service", "okx").partition("#[[exchanges.service.routes]]")
    file = tmp_path / "sealgate.toml"
    file.write_text(head + HIDDEN.sub("", mark + tail))
    service, okx = load_config(file, environ={}).served.values()
    assert (service.routes[0].path, okx.routes) == ("/v1/trade/orders/query", ())


def test_lines_are_not_too_long() -> None:
    for text in (starter_text(), of_several(*SEVERAL)):
        assert max(map(len, text.splitlines())) <= WIDTH + 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (True, "true"),
        ('a "b"', '"a \\"b\\""'),
        (["a", "b"], '["a", "b"]'),
        ([], "[]"),
        ("ä", '"ä"'),
    ],
)
def test_values_as_toml_writes_them(value: object, text: str) -> None:
    assert toml_text(value) == text
