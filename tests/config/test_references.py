from pathlib import Path

import pytest

from sealgate.config.references import parse_reference, split_command, split_entry


@pytest.mark.parametrize(
    "reference",
    [
        "file:/run/secrets/main",
        "file:a b",
        "env:EXCHANGE_SECRET",
        "cmd:pass show exchange",
        "cmd:'a b' c",
        "systemd:main",
        "systemd:exchange.main-2",
        "keyring:sealgate/main",
        "keyring:https://exchange.example/main",
    ],
)
def test_references(reference: str) -> None:
    assert parse_reference(reference) == reference


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("s3cr3t-canary", "is not a reference to a secret"),
        ("s3cr3t:canary", "is not a reference to a secret"),
        ("FILE:/s3cr3t", "is not a reference to a secret"),
        ("", "is not a reference to a secret"),
        ("s3cr3t" * 1000, "is not a reference to a secret; put"),
        ("~s3cr3t", "is not a reference to a secret; put"),
        ("s3cr3t\n", "is not a reference to a secret; put"),
        (7, "is not a reference to a secret"),
        ("systemd:", "names no credential"),
        ("systemd:../s3cr3t", "names no credential"),
        ("systemd:..", "names no credential"),
        ("systemd:.", "names no credential"),
        ("systemd:s3cr3t x", "names no credential"),
        ("keyring:s3cr3t", "names no entry"),
        ("keyring:/s3cr3t", "names no entry"),
        ("keyring:s3cr3t/", "names no entry"),
        ("keyring:s3cr3t/\n", "names no entry"),
        ("file:~s3cr3t/x", "begins with a ~ that names no home"),
        ("file:", "names no file"),
        ("file:/s3cr3t\0", "names no file"),
        ("env:", "names no variable"),
        ("env:s3cr3t-x", "names no variable"),
        ("cmd:", "names no program"),
        ("cmd:  ", "names no program"),
        ("cmd:'' s3cr3t", "names no program"),
        ("cmd:echo 's3cr3t", "open quote"),
    ],
)
def test_refuses_and_does_not_echo(value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause) as caught:
        parse_reference(value)
    assert "s3cr3t" not in str(caught.value)


def test_the_name_of_a_file_lacks_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.secret").touch()
    with pytest.raises(
        ValueError, match=r'a file\'s name, not a reference to a secret; write "file:main\.secret"$'
    ):
        parse_reference("main.secret")


def test_a_command_is_split_as_a_shell_would() -> None:
    assert split_command("vault kv get -field='a b' secret/x") == [
        "vault",
        "kv",
        "get",
        "-field=a b",
        "secret/x",
    ]


def test_the_home_is_expanded_as_no_shell_does_it_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/gate")
    assert parse_reference("file:~/main.secret") == "file:/home/gate/main.secret"
    assert parse_reference("file:/a/~/b") == "file:/a/~/b"


def test_the_service_of_an_entry_may_have_slashes() -> None:
    assert split_entry("https://exchange.example/main") == ("https://exchange.example", "main")
