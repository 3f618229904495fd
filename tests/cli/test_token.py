from base64 import urlsafe_b64decode

from click.testing import CliRunner

from sealgate.cli import main


def new_token() -> str:
    result = CliRunner().invoke(main, ["token", "new"])
    assert result.exit_code == 0
    assert result.stdout.endswith("\n")
    return result.stdout[:-1]


def test_a_token_has_256_bits_and_needs_no_quoting() -> None:
    token = new_token()
    assert len(urlsafe_b64decode(token + "=")) == 32
    assert token.replace("-", "").replace("_", "").isalnum()


def test_no_token_comes_twice() -> None:
    assert len({new_token() for _ in range(20)}) == 20


def test_an_unknown_command_of_the_group_names_the_nearest() -> None:
    result = CliRunner().invoke(main, ["token", "nwe"])
    assert result.exit_code == 2
    assert "Did you mean 'new'?" in result.stderr
