"""The configuration as users meet it: sources in, a tree or lines of problems out."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.backends import the_exchange
from sealgate.config import Address, Config, ConfigError, load_config
from sealgate.config.load import OwnGateway, load_admin, load_own_gateway

ONE_KEY = {
    "SEALGATE_BASE_URL": "https://api.example.com/",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
}

WHOLE = """
base_url = "https://api.example.com/base/"

[listen]
tcp = "127.0.0.1:1"
hosts = ["localhost"]
max_body = "2 MiB"
body_timeout = 1.5

[admin]
tcp = ""
hosts = ["metrics.example"]

[upstream]
prefix = "/api/"
connect_timeout = 1
total_timeout = 2
max_connections = 3
ca_file = "CA_FILE"

[signing]
header_prefix = "X-MINE-"
encoding = "base64url"
secret_is = "sha256hex"
target = "path_and_query"

[clock]
path = "/api/now"
field = "/serverTime"
interval = 5
grace = 0
required = false

[limits]
replay_429 = "reads"
max_wait = 0

[log]
level = "debug"
format = "json"

[journal]
keep = 3600
max_size = "1 GiB"
on_failure = "continue"

[keys.main]
api_key = "ak-main"
secret = "file:/run/secrets/main"
session = "env:SESSION"
recv_window_ms = 1000

[keys.alt]
api_key = "ak-alt"
secret = "cmd:pass show alt"

[bots.grid]
token = "file:/run/secrets/grid"
key = "alt"
may = ["read"]

[bots.scalper]
token = "env:SCALPER"
keys = ["main", "alt"]

[[routes]]
match = "POST /api/orders/query"
needs = "read"
lane = "read"
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    ca_file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(ca_file)
    file = tmp_path / "sealgate.toml"
    file.write_text(WHOLE.replace("CA_FILE", str(ca_file)))
    return file


def lines_of(text: str, environ: Mapping[str, str], file: Path, **overrides: object) -> list[str]:
    """Load what must fail and return its lines, the file called FILE."""
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, overrides, environ)
    return str(caught.value).replace(str(file), "FILE").splitlines()


def test_the_environment_alone_is_enough_for_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(None, environ=ONE_KEY)
    assert str(config.base_url) == "https://api.example.com"
    assert config.keys["main"].secret == "env:EXCHANGE_SECRET"
    assert config.listen.tcp == Address("127.0.0.1", 8787)
    assert config.listen.max_body == 1048576
    assert config.upstream.prefix == "/v1/trade"
    assert config.keys["main"].recv_window_ms == 5000
    assert config.bots == {}


def test_every_setting_of_a_file(written: Path) -> None:
    config = load_config(written, environ={})
    assert the_exchange(config).base_url.path == "/base"
    assert config.listen.tcp == Address("127.0.0.1", 1)
    assert config.listen.hosts == ("localhost",)
    assert (config.listen.max_body, config.listen.body_timeout) == (2097152, 1.5)
    assert config.admin.tcp is None
    assert config.upstream.prefix == "/api"
    assert config.upstream.ca_file == written.with_name("ca.pem")
    assert config.upstream.max_connections == 3
    assert config.signing.encoding == "base64url"
    assert config.signing.target == "path_and_query"
    assert (config.clock.field, config.clock.grace, config.clock.required) == ("/serverTime", 0, False)
    assert (config.limits.replay_429, config.limits.max_wait) == ("reads", 0)
    assert (config.log.level, config.log.format) == ("debug", "json")
    journal = config.journal
    assert (journal.file, journal.keep, journal.on_failure) == (None, 3600.0, "continue")
    assert journal.max_size == 1024**3
    assert config.keys["main"].session == "env:SESSION"
    assert config.bots["grid"].may == {"read"}
    assert config.bots["scalper"].may == {"read", "trade"}
    assert (config.routes[0].method, config.routes[0].path) == ("POST", "/api/orders/query")


def test_flags_go_before_environment_before_file(written: Path) -> None:
    environ = {"SEALGATE_LISTEN__TCP": "127.0.0.1:2", "SEALGATE_LISTEN__HOSTS": "a.example, b.example"}
    config = load_config(written, {"listen.tcp": "127.0.0.1:3", "admin.tcp": None}, environ)
    assert config.listen.tcp == Address("127.0.0.1", 3)
    assert config.listen.hosts == ("a.example", "b.example")
    assert config.listen.body_timeout == 1.5


def test_lists_and_tables_from_the_environment(written: Path) -> None:
    environ = {
        "SEALGATE_BOTS__SCALPER__KEYS": '["alt", "main"]',
        "SEALGATE_ROUTES": '[{"match": "GET /api/x", "lane": "order"}]',
        "SEALGATE_CLOCK__REQUIRED": "true",
        "SEALGATE_LISTEN__MAX_BODY": "1 KiB",
    }
    config = load_config(written, environ=environ)
    assert config.keys_of("scalper") == ("alt", "main")
    assert [route.path for route in config.routes] == ["/api/x"]
    assert config.clock.required is True
    assert config.listen.max_body == 1024


def test_which_keys_a_bot_has(written: Path) -> None:
    config = load_config(written, environ={})
    assert config.keys_of("grid") == ("alt",)
    assert config.keys_of("scalper") == ("main", "alt")


def test_a_bot_without_a_key_has_the_only_one() -> None:
    config = load_config(None, environ={**ONE_KEY, "SEALGATE_BOTS__GRID__TOKEN": "env:GRID"})
    assert config.keys_of("grid") == ("main",)


def test_arguments_alone_make_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and the demo build a Config directly; no variable of the host must get into it."""
    monkeypatch.setenv("LISTEN", '{"max_body": 1}')
    monkeypatch.setenv("SEALGATE_LISTEN__MAX_BODY", "1")
    assert Config(base_url="https://x.example").listen.max_body == 1048576  # type: ignore[arg-type]


PROBLEMS: dict[str, tuple[str, str]] = {
    "unknown table": ("listn = 1", "FILE: listn: unknown setting; did you mean listen?"),
    "unknown setting": ("[listen]\ntpc = 1", "FILE: listen.tpc: unknown setting; did you mean listen.tcp?"),
    "setting in the wrong table": (
        "[upstream]\nmax_wait = 1",
        "FILE: upstream.max_wait: unknown setting; did you mean limits.max_wait?",
    ),
    "mode of a socket": (
        "[listen]\nunix_mode = '0666'",
        "FILE: listen.unix_mode: is not one of the choices; write '0600' or '0660'",
    ),
    "bad value": (
        "[clock]\ninterval = 0",
        "FILE: clock.interval: is not a duration; write a number of seconds above 0",
    ),
    "bad choice": (
        "[limits]\nreplay_429 = 'some'",
        "FILE: limits.replay_429: is not one of the choices; write 'all', 'reads' or 'none'",
    ),
    "bad truth value": (
        "[clock]\nrequired = 'x'",
        "FILE: clock.required: is not a boolean; write true or false",
    ),
    "value for a table": ("listen = 1", "FILE: listen: is not a table; set its members one by one"),
    "value for all bots": ("bots = 1", "FILE: bots: is not a table of tables; write [bots.NAME] for each"),
    "number for a name": ("[bots.a]\ntoken = 'env:X'\nkey = 1", "FILE: bots.a.key: is not a usable name"),
    "bad name": ("[bots.'a b']\ntoken = 'env:X'", 'FILE: bots."a b": is not a usable name'),
    "missing member": ("[keys.a]\napi_key = 'x'", "FILE: keys.a.secret: missing; write it in the file"),
    "bot without a proof": ("[bots.a]\nkey = 'main'", "FILE: bots.a: has no way to authenticate"),
    "missing member of a row": (
        "[[routes]]\nlane = 'read'",
        "FILE: routes[0].match: missing; write it in the file",
    ),
    "wrong member of a list": (
        "[listen]\nhosts = ['a:1']",
        "FILE: listen.hosts[0]: has no valid host; write a name",
    ),
    "empty list": ("[bots.a]\ntoken = 'env:X'\nmay = []", "FILE: bots.a.may: is empty; write at least one"),
    "row of routes": ("[[routes]]\nmatch = 'x'", "FILE: routes[0].match: is not METHOD and path"),
    "routes as text": ("routes = ['x']", "FILE: routes[0]: is not a table"),
    "inline secret": ("[bots.a]\ntoken = 'hunter2'", "FILE: bots.a.token: is not a reference to a secret"),
    "inline secret in a file of keys": (
        "[keys.b]\napi_key = 'x'\nsecret = 'hunter2'",
        "FILE: keys.b.secret: is not a reference",
    ),
}


@pytest.mark.parametrize(("text", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_one_line_with_file_key_cause_and_fix(text: str, told: str, tmp_path: Path) -> None:
    lines = lines_of(text, ONE_KEY, tmp_path / "x.toml")
    assert len(lines) == 1
    assert lines[0].startswith(told)
    assert "hunter2" not in lines[0]


def test_a_variable_is_told_by_its_own_name(tmp_path: Path) -> None:
    environ = {
        **ONE_KEY,
        "SEALGATE_LISTEN__TPC": "1",
        "sealgate_admin__tcp": "x",
        "SEALGATE_KEYS__ALT__API_KEY": "x",
        "SEALGATE_LOG": "debug",
    }
    lines = lines_of("", environ, tmp_path / "x.toml")
    starts = (
        "SEALGATE_LISTEN__TPC: unknown setting; did you mean SEALGATE_LISTEN__TCP?",
        "sealgate_admin__tcp: is not host:port",
        "SEALGATE_LOG: is not a table",
        "SEALGATE_KEYS__ALT__SECRET: missing",
    )
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))


def test_a_flag_is_told_as_one_and_wins_over_the_file(tmp_path: Path) -> None:
    lines = lines_of("[listen]\ntcp = '127.0.0.1:1'", ONE_KEY, tmp_path / "x.toml", **{"listen.tcp": "x"})
    assert [line.partition(": is")[0] for line in lines] == ["command line: listen.tcp"]


def test_a_problem_across_tables_is_told_by_the_strongest_source(tmp_path: Path) -> None:
    environ = {**ONE_KEY, "SEALGATE_LISTEN__TCP": "0.0.0.0:80"}
    text = "[listen]\ntcp = '127.0.0.1:1'\n[bots.a]\ntoken = 'env:T'\nkey = 'alt'"
    assert lines_of(text, environ, tmp_path / "x.toml") == [
        "FILE: bots.a.key: names alt, which is not a key; write one of main"
    ]
    [line] = lines_of("[listen]\ntcp = '127.0.0.1:1'", environ, tmp_path / "x.toml")
    assert line.startswith("SEALGATE_LISTEN__TCP: is reachable from other machines; add [bots.NAME]")


def test_nothing_configured_says_what_to_write(tmp_path: Path) -> None:
    assert lines_of("", {}, tmp_path / "x.toml") == [
        "base_url: missing; write it in the file, or set SEALGATE_BASE_URL"
    ]


def test_without_a_file_it_is_said_where_none_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load_config(None, environ={})
    told = f"base_url: missing: no sealgate.toml in {tmp_path}; make one with `sealgate config init`"
    assert str(caught.value) == f"{told}, or set SEALGATE_BASE_URL"


@pytest.mark.parametrize(
    ("text", "environ", "told"),
    [
        (
            "[keys.alt]\napikey = 'x'\nsecret = 'env:X'",
            {},
            "FILE: keys.alt.apikey: unknown setting; did you mean keys.alt.api_key?",
        ),
        (
            "",
            {"SEALGATE_KEYS__ALT__SECRET": "env:X", "SEALGATE_KEYS_ALT_API_KEY": "x"},
            "SEALGATE_KEYS_ALT_API_KEY: unknown setting; did you mean SEALGATE_KEYS__ALT__API_KEY?",
        ),
    ],
)
def test_one_misspelt_name_is_one_problem(
    text: str, environ: dict[str, str], told: str, tmp_path: Path
) -> None:
    assert lines_of(text, ONE_KEY | environ, tmp_path / "x.toml") == [told]


def test_the_settings_debug_mode_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="PYDANTIC_SETTINGS_DEBUG: it would write settings to the log; unset it"
    ):
        load_config(None, environ={**ONE_KEY, "PYDANTIC_SETTINGS_DEBUG": "1"})


@settings(deadline=None)
@given(canary=st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=16, max_size=64))
def test_no_secret_pasted_anywhere_is_repeated(canary: str) -> None:
    environ = {
        "SEALGATE_BASE_URL": f"https://user:{canary}@api.example.com",
        "SEALGATE_KEYS__MAIN__API_KEY": f" {canary}",
        "SEALGATE_KEYS__MAIN__SECRET": canary,
        "SEALGATE_KEYS__MAIN__SESSION": f"file{canary}:x",
        "SEALGATE_KEYS__MAIN__RECV_WINDOW_MS": canary + "x",
        "SEALGATE_BOTS__GRID__TOKEN": f"keyring:{canary}",
        "SEALGATE_BOTS__GRID__MAY": canary,
        "SEALGATE_SIGNING__ENCODING": canary,
        "SEALGATE_CLOCK": canary,
    }
    with pytest.raises(ConfigError) as caught:
        load_config(None, environ=environ)
    assert len(str(caught.value).splitlines()) == len(environ)
    assert canary not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SEALGATE_LISTEN_TCP", "SEALGATE_LISTEN__TCP"),
        ("SEALGATE_LISTN__TCP", "SEALGATE_LISTEN__TCP"),
        ("SEALGATE_BASEURL", "SEALGATE_BASE_URL"),
        ("SEALGATE_KEY__MAIN__API_KEY", "SEALGATE_KEYS__MAIN__API_KEY"),
        ("SEALGATE_KEYS__ALT__SECERT", "SEALGATE_KEYS__ALT__SECRET"),
        ("SEALGATE_KEYS_ALT_SECRET", "SEALGATE_KEYS__ALT__SECRET"),
        ("SEALGATE_KEYS_MY_BOT_API_KEY", "SEALGATE_KEYS__MY_BOT__API_KEY"),
        ("Sealgate_Limits__MaxWait", "SEALGATE_LIMITS__MAX_WAIT"),
        ("SEALGATE_QQQ", None),
    ],
)
def test_an_unknown_variable_names_the_nearest(name: str, meant: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, environ=ONE_KEY | {name: "x"})
    hint = f"; did you mean {meant}?" if meant else ""
    assert f"{name}: unknown setting{hint}" in str(caught.value).splitlines()


def test_without_any_configuration_the_admin_address_is_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(load_admin(None, {"SEALGATE_SERVICE_HOST": "10.0.0.1"}).tcp) == "127.0.0.1:8788"


@pytest.mark.parametrize(
    ("file", "environ"),
    [("empty.toml", {}), ("nowhere.toml", {}), (None, {"SEALGATE_LOG__LEVEL": "info"})],
    ids=["an empty file", "a file that is not there", "half of one in the environment"],
)
def test_a_configuration_that_is_broken_is_told_before_its_admin_address_is_used(
    file: str | None, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").touch()
    with pytest.raises(ConfigError):
        load_admin(Path(file) if file else None, environ)


class TestAdminSocketOfAConfiguration:
    """Who must halt a gateway at once cannot mend its configuration first."""

    def load(self, tmp_path: Path, text: str, **environ: str) -> tuple[object, str]:
        file = tmp_path / "sealgate.toml"
        file.write_text(text)
        own = load_own_gateway(file, environ)
        return own.socket, str(own.trouble or "")

    def test_without_a_mistake_nothing_is_told(self, tmp_path: Path) -> None:
        assert self.load(tmp_path, 'admin.unix = "a.sock"', **ONE_KEY) == (tmp_path / "a.sock", "")

    def test_a_mistake_elsewhere_is_told(self, tmp_path: Path) -> None:
        place, told = self.load(tmp_path, 'admin.unix = "a.sock"\n[limtis]\nqueue = 1', **ONE_KEY)
        assert place == tmp_path / "a.sock"
        assert told.endswith("sealgate.toml: limtis: unknown setting; did you mean limits?")

    def test_the_environment_comes_first(self, tmp_path: Path) -> None:
        environ = {"SEALGATE_ADMIN__UNIX": "b.sock", "SEALGATE_QQQ": "x"}
        place, _ = self.load(tmp_path, 'admin.unix = "a.sock"', **environ)
        assert place == Path("b.sock")

    def test_the_default_place_with_a_mistake_elsewhere(self, tmp_path: Path) -> None:
        place, told = self.load(tmp_path, "qqq = 1")
        assert place is None
        assert "qqq: unknown setting" in told

    @pytest.mark.parametrize("text", ['admin.unix = "a.sock', "admin.unix = 7\nqqq = 1"])
    def test_where_it_cannot_be_read_itself_nothing_is_guessed(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError, match=r"sealgate\.toml"):
            self.load(tmp_path, text, **ONE_KEY)

    def test_no_configuration_at_all_is_no_mistake(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert load_own_gateway(None, {}) == OwnGateway()

    @pytest.mark.parametrize("mistake", ["", "qqq = 1"])
    def test_what_tells_the_gateway_from_others(self, tmp_path: Path, mistake: str) -> None:
        file = tmp_path / "sealgate.toml"
        file.write_text(
            f'{mistake}\nlisten = {{ tcp = "127.0.0.1:1", unix = "/run/b.sock" }}\nadmin.tcp = ""'
        )
        assert load_own_gateway(file, ONE_KEY).identity == {
            "base_url": "https://api.example.com",
            "listen.tcp": "127.0.0.1:1",
            "listen.unix": "/run/b.sock",
            "admin.tcp": "",
        }

    def test_a_venue_tells_the_exchange_whatever_is_wrong_elsewhere(self, tmp_path: Path) -> None:
        file = tmp_path / "sealgate.toml"
        file.write_text('venue = "binance"\nkeys.main = 3\n')
        assert load_own_gateway(file, {}).identity["base_url"] == "https://api.binance.com"

    def test_what_is_wrong_tells_no_gateway_from_others(self, tmp_path: Path) -> None:
        file = tmp_path / "sealgate.toml"
        file.write_text('base_url = "https://api.example.com"\nlisten.tcp = "nowhere"\n')
        assert load_own_gateway(file, {}).identity == {}
