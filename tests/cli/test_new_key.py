"""`sealgate keys new`: real files, written by a process of its own."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from sealgate.keys.private_keys import read_private_key
from sealgate.venues.key_kinds import Kind

KINDS = ["ed25519", "rsa", "es256"]


def new(folder: Path, *arguments: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sealgate", "keys", "new", *arguments],
        cwd=folder,
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("umask", [0, 0o777])
@pytest.mark.parametrize("kind", KINDS)
def test_it_writes_a_key_for_its_owner_alone_and_prints_the_public_key(
    tmp_path: Path, kind: str, umask: int
) -> None:
    made = new(tmp_path, "--kind", kind, umask=umask)
    assert made.returncode == 0, made.stderr
    (file,) = tmp_path.iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode)) == (f"{kind}.pem", 0o600)
    pem = file.read_bytes()
    assert pem.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    public = load_pem_private_key(pem, None).public_key()
    assert made.stdout.encode() == public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    key = read_private_key(bytearray(pem))
    assert key is not None
    assert key.kind is Kind(kind)
    assert f'secret = "file:{file.name}"' in made.stderr
    assert not any(line in made.stderr for line in pem.decode().splitlines())


@pytest.mark.parametrize("bits", ["2048", "3072"])
def test_an_rsa_key_is_as_long_as_asked_for(tmp_path: Path, bits: str) -> None:
    made = new(tmp_path, "--kind", "rsa", "--bits", bits, "--out", "a.pem")
    assert made.returncode == 0, made.stderr
    assert load_pem_private_key((tmp_path / "a.pem").read_bytes(), None).key_size == int(bits)  # type: ignore[union-attr]


IN_THE_WAY = {
    "a file": lambda file: file.write_text("mine"),
    "a link to a file": lambda file: file.symlink_to("other"),
    "a link to nowhere": lambda file: file.symlink_to("gone"),
}


@pytest.mark.parametrize("make", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_there_is_not_changed(tmp_path: Path, make: object) -> None:
    assert callable(make)
    (tmp_path / "other").write_text("another's")
    file = tmp_path / "ed25519.pem"
    make(file)
    before = {one.name: one.is_symlink() or one.read_text() for one in tmp_path.iterdir()}
    made = new(tmp_path, "--kind", "ed25519")
    assert made.returncode == 1
    assert made.stdout == ""
    assert made.stderr == (
        "sealgate: error: ed25519.pem exists already and was not changed; pass another --out FILE\n"
    )
    assert {one.name: one.is_symlink() or one.read_text() for one in tmp_path.iterdir()} == before
    assert (tmp_path / "other").read_text() == "another's"


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "for all"
    folder.mkdir()
    folder.chmod(0o757)
    made = new(tmp_path, "--kind", "es256", "--out", "for all/key.pem")
    assert made.returncode == 2
    assert "for all/key.pem: others may write to its folder" in made.stderr
    assert [*folder.iterdir()] == []


def test_a_file_that_cannot_be_written_is_not_left_behind(tmp_path: Path) -> None:
    made = new(tmp_path, "--kind", "ed25519", "--out", "nowhere/key.pem")
    assert made.returncode == 2
    assert made.stderr == "sealgate: error: nowhere/key.pem: No such file or directory\n"
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); from sealgate.cli import main; main()"
    )
    command = [sys.executable, "-c", limited, "keys", "new", "--kind", "ed25519"]
    full = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert full.stderr.startswith("sealgate: error: ")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--kind", "es256", "--bits", "2048"], "--bits applies only to RSA"),
        (["--kind", "rsa", "--bits", "1024"], "'1024' is not one of '2048', '3072', '4096'"),
        (["--kind", "hmac"], "'hmac' is not one of 'ed25519', 'rsa', 'es256'"),
        ([], "Missing option '--kind'"),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, arguments: list[str], told: str) -> None:
    made = new(tmp_path, *arguments)
    assert made.returncode == 2
    assert told in made.stderr
    assert [*tmp_path.iterdir()] == []
