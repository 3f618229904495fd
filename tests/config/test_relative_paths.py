"""Relative paths of a file are taken from its folder, those of the environment and flags from here."""

import ssl
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from sealgate.cli import main
from sealgate.config import load_config
from sealgate.config.listing import all_settings
from sealgate.config.load import load_own_gateway
from sealgate.config.values import Anchored

TEXT = """
base_url = "https://api.example.com"
venue = "./mine.toml"
[listen]
unix = "bots.sock"
tls_cert = "cert.pem"
tls_key = "key.pem"
client_ca = "ca.pem"
[admin]
unix = "admin.sock"
[upstream]
ca_file = "ca.pem"
proxy = "http://grid@127.0.0.1:3128"
proxy_password = "file:proxy.password"
[limits]
redis = "file:redis.url"
[journal]
file = "journal.db"
[keys.main]
api_key = "k"
secret = "file:main.secret"
secret_passphrase = "file:main.secret-passphrase"
passphrase = "file:main.passphrase"
session = "file:main.session"
[bots.grid]
token = "file:grid.token"
"""
VENUE = """
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}{passphrase}"
[signing.headers]
Sign = "{signature}"
[signing.kinds]
ed25519 = {}
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a configuration and its files; the working directory is another one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    (folder / "mine.toml").write_text(VENUE)
    (folder / "x.toml").write_text(TEXT)
    return folder


def test_every_path_of_a_file_is_taken_from_its_folder(elsewhere: Path) -> None:
    config = load_config(elsewhere / "x.toml", environ={})
    assert config.venue.file == str(elsewhere / "mine.toml")
    assert config.listen.unix == elsewhere / "bots.sock"
    assert config.listen.tls_cert == elsewhere / "cert.pem"
    assert config.listen.tls_key == elsewhere / "key.pem"
    assert config.listen.client_ca == elsewhere / "ca.pem"
    assert config.upstream.ca_file == elsewhere / "ca.pem"
    assert config.upstream.proxy_password == f"file:{elsewhere / 'proxy.password'}"
    assert config.admin.unix == elsewhere / "admin.sock"
    assert config.limits.redis == f"file:{elsewhere}/redis.url"
    assert config.journal.file == elsewhere / "journal.db"
    key = config.keys["main"]
    assert key.secret == f"file:{elsewhere}/main.secret"
    assert key.secret_passphrase == f"file:{elsewhere}/main.secret-passphrase"
    assert key.passphrase == f"file:{elsewhere}/main.passphrase"
    assert key.session == f"file:{elsewhere}/main.session"
    assert config.bots["grid"].token == f"file:{elsewhere}/grid.token"
    assert isinstance(ssl.create_default_context(cafile=config.upstream.ca_file), ssl.SSLContext)


def test_no_setting_that_names_a_file_is_forgotten() -> None:
    """One that is added belongs into the text above."""
    names = {setting.path[-1] for setting in all_settings() if setting.mark(Anchored)}
    assert names == {
        *("venue", "unix", "tls_cert", "tls_key", "client_ca", "ca_file", "redis", "file"),
        *("secret", "secret_passphrase", "passphrase", "session", "token", "proxy_password"),
    }
    assert all(f"\n{name} = " in TEXT for name in names)


def test_a_file_in_the_working_directory_keeps_its_paths_as_they_are_written(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(elsewhere)
    (elsewhere / "x.toml").rename("sealgate.toml")
    config = load_config(None, environ={})
    assert config.journal.file == Path("journal.db")
    assert config.keys["main"].secret == "file:main.secret"


def test_environment_and_flags_are_relative_to_the_working_directory(elsewhere: Path) -> None:
    environ = {"SEALGATE_KEYS__MAIN__SECRET": "file:own.secret", "SEALGATE_JOURNAL__FILE": "own.db"}
    config = load_config(elsewhere / "x.toml", {"admin.unix": "own.sock"}, environ)
    assert config.keys["main"].secret == "file:own.secret"
    assert config.journal.file == Path("own.db")
    assert config.admin.unix == Path("own.sock")


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ('[admin]\nunix = "off"', "off"),
        ('[admin]\nunix = ""', None),
        ('[admin]\nunix = "~/admin.sock"', Path("~/admin.sock").expanduser()),
        ('[admin]\nunix = "/run/admin.sock"', Path("/run/admin.sock")),
    ],
)
def test_what_is_no_relative_path_stays(elsewhere: Path, line: str, there: object) -> None:
    key = '[keys.main]\napi_key = "k"\nsecret = "cmd:./pass main"'
    (elsewhere / "x.toml").write_text(f'base_url = "https://api.example.com"\n{key}\n{line}\n')
    config = load_config(elsewhere / "x.toml", environ={})
    assert config.admin.unix == there
    assert config.keys["main"].secret == "cmd:./pass main"


def test_a_table_of_another_shape_is_told_as_before(elsewhere: Path) -> None:
    (elsewhere / "x.toml").write_text('journal = "j"\nroutes = ["a"]\nkeys = 3\nlisten = [1]\n')
    result = CliRunner().invoke(main, ["config", "show", "--config", str(elsewhere / "x.toml")])
    assert result.exit_code == 2
    assert "journal" in result.stderr


def test_halt_and_orders_find_the_gateway_of_a_configuration_elsewhere(elsewhere: Path) -> None:
    """Also where the rest of it cannot be read."""
    own = load_own_gateway(elsewhere / "x.toml", {})
    assert own.socket == elsewhere / "admin.sock"
    assert own.identity["listen.unix"] == str(elsewhere / "bots.sock")
    (elsewhere / "x.toml").write_text(TEXT.replace("api_key", "apikey"))
    assert load_own_gateway(elsewhere / "x.toml", {}).socket == elsewhere / "admin.sock"
    result = CliRunner().invoke(main, ["halt", "--config", str(elsewhere / "x.toml")])
    assert str(elsewhere / "admin.sock") in result.stderr
