import pytest

from sealgate.config.references import parse_reference, split_command


@pytest.mark.parametrize(
    "reference",
    ["file:/run/secrets/main", "file:a b", "env:EXCHANGE_SECRET", "cmd:pass show exchange", "cmd:'a b' c"],
)
def test_references(reference: str) -> None:
    assert parse_reference(reference) == reference


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("s3cr3t-canary", "is no reference to a secret"),
        ("s3cr3t:canary", "is no reference to a secret"),
        ("FILE:/s3cr3t", "is no reference to a secret"),
        ("", "is no reference to a secret"),
        (7, "is no reference to a secret"),
        ("systemd:s3cr3t", "uses systemd:, which this version does not have"),
        ("keyring:s3cr3t", "uses keyring:, which this version does not have"),
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


def test_a_command_is_split_as_a_shell_would() -> None:
    assert split_command("vault kv get -field='a b' secret/x") == [
        "vault",
        "kv",
        "get",
        "-field=a b",
        "secret/x",
    ]
