"""Secrets as Kubernetes, Docker, systemd and a desktop's keyring hand them out."""

import os
import sys
from pathlib import Path

import keyring
import keyring.errors
import pytest

from sealgate.keys import files as secret_files
from sealgate.keys.sources import SecretError, read_secret

CANARY = "c4n4ry-0123456789abcdef"
STRANGER = 4711

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def refusal(reference: str, **environ: str) -> str:
    with pytest.raises(SecretError) as caught:
        read_secret(reference, environ)
    told = str(caught.value)
    assert CANARY not in told
    assert "; " in told
    return told


def write(file: Path, content: str = CANARY, mode: int = 0o600) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.touch(mode=mode)
    file.write_text(content)
    file.chmod(mode)
    return file


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Return a folder as the kubelet fills it."""
    write(tmp_path / "..2026_11_21" / "main", mode=0o400)
    (tmp_path / "..data").symlink_to("..2026_11_21")
    (tmp_path / "main").symlink_to("..data/main")
    return tmp_path


def test_a_kubernetes_volume_and_its_rotation(volume: Path) -> None:
    assert read_secret(f"file:{volume}/main", {}) == CANARY.encode()
    write(volume / "..2026_11_22" / "main", "new", 0o400)
    (volume / "..data_tmp").symlink_to("..2026_11_22")
    (volume / "..data_tmp").replace(volume / "..data")
    assert read_secret(f"file:{volume}/main", {}) == b"new"


@needs_root
@pytest.mark.parametrize("link", ["main", "..data"])
def test_a_link_that_a_stranger_made_is_refused(volume: Path, link: str) -> None:
    os.chown(volume / link, STRANGER, -1, follow_symlinks=False)
    assert refusal(f"file:{volume}/main") == (
        f"file:{volume}/main: leads through {volume}/{link}, "
        f"a link that belongs to user {STRANGER}, neither this one nor root; name the file itself"
    )


@needs_root
def test_links_are_followed_as_the_kernel_does(tmp_path: Path) -> None:
    """Through `..` after a link, absolute targets, and a stranger's link that is not on the way."""
    write(tmp_path / "deep" / "secret")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "into").symlink_to(tmp_path / "deep")
    (tmp_path / "a" / "foreign").symlink_to("/nowhere")
    os.chown(tmp_path / "a" / "foreign", STRANGER, -1, follow_symlinks=False)
    reference = f"file:{tmp_path}/a/into/../deep/secret"
    assert read_secret(reference, {}) == CANARY.encode()
    os.chown(tmp_path / "a" / "into", STRANGER, -1, follow_symlinks=False)
    assert f"leads through {tmp_path}/a/into, a link" in refusal(reference)
    assert read_secret(f"file:{tmp_path}/deep/secret", {}) == CANARY.encode()


def test_links_in_a_circle_are_told_by_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "cannot be opened: Too many levels of symbolic links" in refusal(f"file:{tmp_path}/a")


def test_the_fix_for_a_mount_that_nobody_can_chmod() -> None:
    mounted = os.stat_result((0o100644, 0, 0, 1, 0, STRANGER, 10, 0, 0, 0))
    with pytest.raises(
        SecretError, match=r"is open to others \(mode 0644\); mount it with mode 0440 and a group"
    ):
        secret_files.check_file("file:/s", "/s", mounted, is_read_only=True)


def test_a_credential_of_systemd(tmp_path: Path) -> None:
    write(tmp_path / "main", f"{CANARY}\n", 0o400)
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert read_secret("systemd:main", environ) == CANARY.encode()
    assert "there is no file" in refusal("systemd:other", **environ)
    (tmp_path / "main").chmod(0o440)  # how the mask of an access list looks
    assert read_secret("systemd:main", environ) == CANARY.encode()
    (tmp_path / "main").chmod(0o444)
    assert "is open to others (mode 0444), so systemd did not make it; " in refusal("systemd:main", **environ)


def test_no_credentials_outside_of_a_service() -> None:
    told = refusal("systemd:main")
    assert told.startswith("systemd:main: systemd hands no credentials to this process; ")
    assert "systemd-run --pipe --wait -p LoadCredential=main:FILE" in told


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return the entries of a keyring in memory, by service and name; an exception is raised."""
    entries: dict[str, object] = {"sealgate/main": CANARY, "sealgate/blank": " "}

    def get_password(service: str, name: str) -> object:
        entry = entries.get(f"{service}/{name}")
        if isinstance(entry, Exception):
            raise entry
        return entry

    monkeypatch.setattr(keyring, "get_password", get_password)
    return entries


def test_an_entry_of_the_keyring(ring: dict[str, object]) -> None:
    ring["bots/live/main"] = "pässword"
    assert read_secret("keyring:sealgate/main", {}) == CANARY.encode()
    assert read_secret("keyring:bots/live/main", {}) == "pässword".encode()
    assert refusal("keyring:sealgate/other") == (
        "keyring:sealgate/other: the keyring has no such entry; keyring set sealgate other"
    )
    assert "contains only white space" in refusal("keyring:sealgate/blank")


def test_a_keyring_that_is_locked(ring: dict[str, object]) -> None:
    ring["sealgate/main"] = keyring.errors.KeyringLocked(CANARY)
    assert "the keyring cannot be read (KeyringLocked); unlock it" in refusal("keyring:sealgate/main")


@pytest.mark.parametrize("entry", [f"{CANARY}\udcff", 5], ids=["no UTF-8", "no text"])
def test_an_entry_that_is_no_text_is_not_repeated(ring: dict[str, object], entry: object) -> None:
    """The error that Python raises there has all of it, and would show it in a traceback."""
    ring["sealgate/main"] = entry
    with pytest.raises(SecretError, match=r"sealgate/main: the keyring cannot be read \(\w+\); ") as refused:
        read_secret("keyring:sealgate/main", {})
    assert CANARY not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_keyring_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert refusal("keyring:sealgate/main") == (
        "keyring:sealgate/main: the package keyring is not installed; "
        f"install keyring, 25 or later, into {sys.prefix}, or use another source"
    )
