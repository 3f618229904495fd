"""Which reference is read by whom; the files, commands and credentials have tests of their own."""

import os
import sys
from types import ModuleType

import pytest

from sealgate.gateway.keys.sources import SecretError, read_secret


class Ring(ModuleType):
    """A package `keyring` with one entry."""

    def __init__(self, entry: object) -> None:
        super().__init__("keyring")
        self._entry = entry

    def get_password(self, service: str, name: str) -> object:
        """Return the entry "main" of the service "bots/live"."""
        return self._entry if (service, name) == ("bots/live", "main") else None


def test_an_entry_is_taken_as_utf_8_and_its_service_may_have_slashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Ring("pässword"))
    assert read_secret("keyring:bots/live/main", {}) == "pässword".encode()


@pytest.mark.parametrize("entry", ["s3cret\udcff", 5], ids=["no UTF-8", "no text"])
def test_an_entry_that_is_no_text_is_not_repeated(monkeypatch: pytest.MonkeyPatch, entry: object) -> None:
    """The error that Python raises there has all of it, and would show it in a traceback."""
    monkeypatch.setitem(sys.modules, "keyring", Ring(entry))
    with pytest.raises(SecretError, match=r"bots/live/main: the keyring cannot be read \(\w+\); ") as refused:
        read_secret("keyring:bots/live/main", {})
    assert "s3cret" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_variable_that_is_no_utf_8_keeps_its_bytes() -> None:
    """The system's environment has bytes, and gives them as text with surrogates."""
    assert read_secret("env:S", {"S": os.fsdecode(b"a\xff")}) == b"a\xff"


NO_REFERENCE = {
    "no scheme": "/run/secrets/main",
    "an unknown scheme": "vault:main",
    "no file": "file:",
    "no variable": "env:A=B",
    "no program": "cmd: ",
    "an open quote": "cmd:pass 'show",
    "no credential": "systemd:a/b",
    "no entry": "keyring:main",
}


@pytest.mark.parametrize("reference", NO_REFERENCE.values(), ids=NO_REFERENCE)
def test_what_is_no_reference_is_told_with_cause_and_fix(reference: str) -> None:
    with pytest.raises(SecretError, match=r"^secret: .+; .+"):
        read_secret(reference, {})
