from pathlib import Path

import pytest

from sealgate.config.names import SettingPath, dotted, variable
from sealgate.config.problems import ConfigError, nearest_setting
from sealgate.config.sources import Layer, find_file, read_environment, read_file, read_flags


def test_the_environment_becomes_a_tree_in_any_case() -> None:
    layer = read_environment(
        {
            "SEALGATE_BASE_URL": "https://x",
            "sealgate_Listen__TCP": "127.0.0.1:1",
            "SEALGATE_KEYS__MAIN__API_KEY": "k",
            "PATH": "/bin",
            "NOT_SEALGATE_X": "1",
        }
    )
    assert layer.tree == {
        "base_url": "https://x",
        "listen": {"tcp": "127.0.0.1:1"},
        "keys": {"main": {"api_key": "k"}},
    }


def test_the_file_variable_and_service_links_are_no_settings() -> None:
    layer = read_environment(
        {
            "SEALGATE_CONFIG": "/etc/sealgate.toml",
            "SEALGATE_SERVICE_HOST": "10.0.0.1",
            "SEALGATE_SERVICE_PORT": "8787",
            "SEALGATE_SERVICE_PORT_BOTS": "8787",
            "SEALGATE_PORT": "tcp://10.0.0.1:8787",
            "SEALGATE_PORT_8787_TCP": "tcp://10.0.0.1:8787",
            "SEALGATE_PORT_8787_TCP_ADDR": "10.0.0.1",
        }
    )
    assert layer.tree == {}


@pytest.mark.parametrize(
    "names", [("SEALGATE_LISTEN", "SEALGATE_LISTEN__TCP"), ("SEALGATE_LISTEN__TCP", "SEALGATE_LISTEN")]
)
def test_a_table_set_as_a_value_is_kept_for_validation_to_refuse(names: tuple[str, str]) -> None:
    assert read_environment(dict.fromkeys(names, "x")).tree == {"listen": "x"}


def test_flags_by_dotted_name_and_none_is_not_given() -> None:
    assert read_flags({"listen.tcp": "x", "base_url": None}).tree == {"listen": {"tcp": "x"}}


def test_a_layer_knows_how_much_of_a_path_it_has_set() -> None:
    layer = Layer({"keys": {"main": {"secret": "x"}}, "routes": "[…]"})
    assert layer.depth(("keys", "main", "secret")) == 3
    assert layer.depth(("keys", "main", "api_key")) == 2
    assert layer.depth(("listen", "tcp")) == 0
    assert layer.depth(("routes", 0, "match")) == 3


def test_each_source_spells_a_setting_in_its_own_way() -> None:
    path = ("routes", 0, "match")
    assert Layer(origin="a.toml: ").spell(path) == "a.toml: routes[0].match"
    assert read_flags({}).spell(("listen", "tcp")) == "command line: listen.tcp"
    environment = read_environment({"sealgate_routes": "[]"})
    assert environment.spell(path) == "sealgate_routes: [0].match"
    assert environment.spell(("listen", "tcp")) == "SEALGATE_LISTEN__TCP"


def test_the_file_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_file(None, {}) is None
    (tmp_path / "sealgate.toml").touch()
    assert find_file(None, {}) == Path("sealgate.toml")
    assert find_file(None, {"SEALGATE_CONFIG": "b.toml"}) == Path("b.toml")
    assert find_file(Path("a.toml"), {"SEALGATE_CONFIG": "b.toml"}) == Path("a.toml")


TYPOGRAPHIC = "a quote is typographic; write the straight \" or '"
CURLY = (
    *(
        "a = “okx”",
        "a = \u2018okx\u2019",
        "a = „okx“",
        "“a” = 1",
        "[“a”]",
        "a = [“read”]",
        'a = ["read", “trade”]',
    ),
    *('a = "okx”', "a = 'okx\u2019", 'a = ["read”]', 'a = ["read”, "trade"]', "a = {b = “x”}"),
)


def test_a_byte_order_mark_before_the_first_setting_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(b'\xef\xbb\xbfvenue = "okx"\r\n')
    assert read_file(file).tree == {"venue": "okx"}


def test_typographic_quotes_inside_a_text_are_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('a = "“x”"\n')
    assert read_file(file).tree == {"a": "“x”"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[listen\n", ":1: is not TOML"),
        (b"a = 1\nb = = 2\n", ":2: is not TOML"),
        (b"a = 1\na = 2\n", ":2: is not TOML"),
        (b"a = '", ":1: is not TOML: a string is not closed; add the quote"),
        (b'a = "x\nb = 1\n', ":1: is not TOML: a string is not closed; add the quote"),
        (b'a = "x', ":1: is not TOML: a string is not closed; add the quote"),
        (b'b = 1\na = """x\nc = 1\n', ":2: is not TOML: a string is not closed; add the quote"),
        (b'b = 1\nmay = ["read"\n', ":2: is not TOML: an array is not closed; add the ] at its end"),
        (b'may = ["read"\n# x\n\n[bots.a]\n', ":1: is not TOML: an array is not closed; add the ]"),
        (b'b = 1\r\nmay = [\r\n  "read",\r\n', ":2: is not TOML: a value is missing or not closed"),
        (b"b = 1\na =", ":2: is not TOML: a value is missing or not closed; complete it"),
        (b"b = 1\n[listen", ":2: is not TOML: Expected ']'"),
        (b"b = bybit\n", ":1: is not TOML: a value is not valid; text needs quotes around it"),
        *((f"b = 1\n{line}\n".encode(), f":2: is not TOML: {TYPOGRAPHIC}") for line in CURLY),
        ("a = bybit # “x”".encode(), ":1: is not TOML: a value is not valid; text needs quotes around it"),
        (b"[keys.main]\n[keys.main]\n", ":2: is not TOML: [keys.main] occurs twice; put"),
        (b"[keys.'a b']\n[keys.'a b']\n", ':2: is not TOML: [keys."a b"] occurs twice; put'),
        (b"a = '\xff'", ": is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_file(file)
    assert str(caught.value).startswith(f"{file}{told}")
    assert "\n" not in str(caught.value)


def test_a_device_that_never_ends() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: is too large for a configuration; correct the path"):
        read_file(Path("/dev/zero"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for file, cause in ((tmp_path / "no.toml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError, match=f"{file}: cannot be read: {cause}"):
            read_file(file)


def test_a_path_as_toml_writes_it() -> None:
    assert dotted(("keys", "main", "secret")) == "keys.main.secret"
    assert dotted(("routes", 0, "match")) == "routes[0].match"
    assert dotted(("keys", "a b", "secret")) == 'keys."a b".secret'


def test_a_path_as_the_environment_writes_it() -> None:
    assert variable(("base_url",)) == "SEALGATE_BASE_URL"
    assert variable(("keys", "main", "api_key")) == "SEALGATE_KEYS__MAIN__API_KEY"


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        (("listn",), ("listen",)),
        (("BASE_URL",), ("base_url",)),
        (("listen", "tpc"), ("listen", "tcp")),
        (("keys", "main", "secrets"), ("keys", "main", "secret")),
        (("keys", "secret", "api_kye"), ("keys", "secret", "api_key")),
        (("bots", "keys", "tokn"), ("bots", "keys", "token")),
        (("routes", 3, "need"), ("routes", 3, "needs")),
        (("upstream", "max_wait"), ("limits", "max_wait")),
        (("grace",), ("clock", "grace")),
        (("qqq",), None),
    ],
)
def test_the_setting_that_is_probably_meant(unknown: SettingPath, meant: SettingPath | None) -> None:
    assert nearest_setting(unknown) == meant
