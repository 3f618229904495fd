"""The lines of docs/secrets.md for `cmd:`, against stand-ins for the programs, as `cmd_env` lets them run."""

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rig import password_managers
from rig.password_managers import OP_TOKEN, SECRET, VAULT_ADDR, VAULT_TOKEN
from sealgate.cli import main
from sealgate.keys.sources import SecretError, read_secret

PAGE = (Path(__file__).parents[2] / "docs" / "secrets.md").read_text()
ROWS = re.findall(r"^\| [^|`]+ \| `(cmd:(\w+) [^`]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)
REFERENCES = {program: reference for reference, program, _ in ROWS}
PASSED = {program: json.loads(names) for _, program, names in ROWS}
CODES = {(program, int(code)) for program, code in re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)}
LOGGED_IN = {
    "op": {"OP_SERVICE_ACCOUNT_TOKEN": OP_TOKEN},
    "vault": {"VAULT_ADDR": VAULT_ADDR, "VAULT_TOKEN": VAULT_TOKEN},
    "aws": {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "wJal", "AWS_REGION": "eu-central-1"},
}
# What goes wrong: the program, variables in place of the login's, what of the line is another, the exit code.
FAILURES = [
    ("op", {"OP_SERVICE_ACCOUNT_TOKEN": "ops_revoked"}, ("", ""), 1),
    ("op", {}, ("op://bots", "op://others"), 1),
    ("op", {}, ("main/secret", "main/password"), 1),
    ("vault", {"VAULT_ADDR": "https://127.0.0.1:8200"}, ("", ""), 2),
    ("vault", {"VAULT_TOKEN": "hvs.expired"}, ("", ""), 2),
    ("vault", {}, (" main", " other"), 2),
    ("vault", {}, ("-field=secret", "-field=password"), 1),
    ("aws", {"AWS_SECRET_ACCESS_KEY": ""}, ("", ""), 253),
    ("aws", {"AWS_REGION": ""}, ("", ""), 253),
    ("aws", {"AWS_SESSION_TOKEN": "expired"}, ("", ""), 254),
    ("aws", {}, ("--secret-id main", "--secret-id other"), 254),
]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what the gateway has of the environment, another secret included; programs are found in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    text = f"#!{sys.executable} -I\n{Path(password_managers.__file__).read_text()}"
    for program in LOGGED_IN:
        (folder / program).write_text(text)
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return {"PATH": str(folder), "HOME": str(tmp_path), "EXCHANGE_SECRET": "of another key"}


def told(reference: str, environ: dict[str, str], cmd_env: list[str]) -> str:
    with pytest.raises(SecretError) as caught:
        read_secret(reference, environ, cmd_env)
    return str(caught.value)


@pytest.mark.parametrize("program", LOGGED_IN)
def test_the_pages_line_reads_the_secret(program: str, environ: dict[str, str], tmp_path: Path) -> None:
    whole = environ | LOGGED_IN[program]
    assert read_secret(REFERENCES[program], whole, PASSED[program]) == SECRET.encode()
    got = set((tmp_path / f"{program}.env").read_text().splitlines())
    assert got >= LOGGED_IN[program].keys()
    assert "EXCHANGE_SECRET" not in got


@pytest.mark.parametrize(("program", "code"), [("op", 1), ("vault", 2), ("aws", 253)])
def test_without_cmd_env_nobody_is_logged_in(program: str, code: int, environ: dict[str, str]) -> None:
    """The message says where to look, and nothing of what the program printed."""
    said = told(REFERENCES[program], environ | LOGGED_IN[program], [])
    assert said == (
        f"cmd:{program}: ended with exit code {code}; run it by hand as this user to see what it says, and "
        "name the variables that it needs in cmd_env"
    )


@pytest.mark.parametrize(("program", "changes", "other", "code"), FAILURES)
def test_what_goes_wrong_is_told_by_the_exit_code(
    program: str, changes: dict[str, str], other: tuple[str, str], code: int, environ: dict[str, str]
) -> None:
    reference = REFERENCES[program].replace(*other) if other[0] else REFERENCES[program]
    said = told(reference, environ | LOGGED_IN[program] | changes, PASSED[program])
    assert f"cmd:{program}: ended with exit code {code}; " in said


def test_the_page_has_these_exit_codes_and_no_other() -> None:
    assert {(program, code) for program, _, _, code in FAILURES} == CODES


def test_a_login_in_the_home_folder_needs_no_variables(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".vault-token").write_text(VAULT_TOKEN)
    whole = environ | {"VAULT_ADDR": VAULT_ADDR}
    assert read_secret(REFERENCES["vault"], whole, ["VAULT_ADDR"]) == SECRET.encode()
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("[default]\naws_secret_access_key = wJal\n")
    assert "exit code 253" in told(REFERENCES["aws"], environ, [])  # no region yet
    (tmp_path / ".aws/config").write_text("[default]\nregion = eu-central-1\n")
    assert read_secret(REFERENCES["aws"], environ, []) == SECRET.encode()


def test_check_tries_them_without_the_network(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(
        f'venue = "bybit"\ncmd_env = {json.dumps(PASSED["op"])}\n'
        f'[keys.main]\napi_key = "0123456789abcdef"\nsecret = "{REFERENCES["op"]}"\n'
    )
    command = ["check", "--offline", "--config", str(file)]
    logged_out = CliRunner().invoke(main, command, env=environ)
    assert logged_out.exit_code == 1
    assert "cmd:op: ended with exit code 1" in " ".join(logged_out.output.split())
    logged_in = CliRunner().invoke(main, command, env=environ | LOGGED_IN["op"])
    assert "ended with exit code" not in logged_in.output
    assert SECRET not in logged_in.output + logged_out.output
