"""A secret's bytes on their way from a descriptor: how they come, what is no secret, and what stays."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.station import make_config
from sealgate.keys import files as secret_files
from sealgate.keys import sources as secret_command
from sealgate.keys.files import read_all
from sealgate.keys.parts import read_parts
from sealgate.keys.sources import MAX_BYTES, SecretError, read_secret, wipe

URL = "https://exchange.example"
CANARY = "c4n4ry-0123456789abcdef"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.touch(mode=0o600)
    file.write_text(f"{CANARY}\n")
    return file


def refusal(reference: str) -> str:
    """Return the one line that is told about a reference, after a look that it tells nothing else."""
    with pytest.raises(SecretError) as caught:
        read_secret(reference, os.environ)
    told = str(caught.value)
    assert CANARY not in told
    assert "\n" not in told
    assert "; " in told
    return told


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"abc", b"abc"),
        (b"abc\n", b"abc"),
        (b"abc\r\n", b"abc"),
        (b"abc\n\n", b"abc\n"),
        (b"abc\r", b"abc\r"),
        (b" a b \n", b" a b "),
        (b"\x00\xff\n", b"\x00\xff"),
        (b"x" * MAX_BYTES, b"x" * MAX_BYTES),
        (b"0\x04\x02\x02\x00\n", b"0\x04\x02\x02\x00\n"),  # DER, whose last byte is no line end
        (b"0\x04\x02\x02\x00\n\n", b"0\x04\x02\x02\x00\n"),
        (b"0\x06\x02\x04\x00\x00\r\n", b"0\x06\x02\x04\x00\x00\r\n"),
        (b"0Babcdef" + b"x" * 59 + b"\n", b"0Babcdef" + b"x" * 59),  # a text that states its length
    ],
)
def test_a_file_without_its_last_line_end(secret_file: Path, content: bytes, secret: bytes) -> None:
    secret_file.write_bytes(content)
    assert read_secret(f"file:{secret_file}", {}) == bytearray(secret)


def test_a_relative_path_is_relative_to_the_working_directory(
    secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(secret_file.parent)
    assert read_secret("file:secret", {}) == CANARY.encode()
    assert refusal("file:nothing") == (
        f"file:nothing: there is no file {secret_file.parent}/nothing; create it, or correct the path"
    )


def test_a_link_is_followed_and_its_target_checked(secret_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(secret_file)
    assert read_secret(f"file:{link}", {}) == CANARY.encode()
    secret_file.chmod(0o644)
    assert refusal(f"file:{link}") == f"file:{link}: is open to others (mode 0644); chmod 600 {link}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o444])
def test_a_file_open_to_others_is_refused_with_the_fix(secret_file: Path, mode: int) -> None:
    # Group 1 is none of root's, so that 0640 is no mount for our group when root runs the tests.
    if os.geteuid() == 0:
        os.chown(secret_file, -1, 1)
    secret_file.chmod(mode)
    assert refusal(f"file:{secret_file}").endswith(f"(mode {mode:04o}); chmod 600 {secret_file}")


def status(mode: int, uid: int, gid: int, size: int = 10) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, uid, gid, size, 0, 0, 0))


REGULAR, FOLDER = 0o100000, 0o040000
US, OUR_GROUP, OTHERS = 1000, 1001, 2000

ALLOWED = {
    "ours": status(REGULAR | 0o600, US, OUR_GROUP),
    "ours, read only": status(REGULAR | 0o400, US, OTHERS),
    "root's": status(REGULAR | 0o400, 0, 0),
    "mounted by Kubernetes or Docker": status(REGULAR | 0o440, 0, OUR_GROUP),
}
REFUSED = {
    "a folder": (status(FOLDER | 0o700, US, OUR_GROUP), "is not a regular file"),
    "another user's": (status(REGULAR | 0o600, OTHERS, OUR_GROUP), f"chown {US} /s"),
    "our group may read ours": (status(REGULAR | 0o640, US, OUR_GROUP), "chmod 600 /s"),
    "root's, for another group": (
        status(REGULAR | 0o440, 0, OTHERS),
        f"chgrp {OUR_GROUP} /s && chmod 440 /s",
    ),
    "root's, group may write": (status(REGULAR | 0o460, 0, OUR_GROUP), "chmod 440 /s"),
    "root's, for everybody": (status(REGULAR | 0o444, 0, OUR_GROUP), "chmod 440 /s"),
    "too large": (status(REGULAR | 0o600, US, OUR_GROUP, MAX_BYTES + 1), "is larger than 65536 bytes"),
}


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: US)
    monkeypatch.setattr(os, "getegid", lambda: OUR_GROUP)
    monkeypatch.setattr(os, "getgroups", lambda: [OUR_GROUP])


@pytest.mark.usefixtures("somebody")
@pytest.mark.parametrize("found", ALLOWED.values(), ids=ALLOWED)
def test_allowed_owners_and_modes(found: os.stat_result) -> None:
    secret_files.check_file("file:/s", "/s", found)


@pytest.mark.usefixtures("somebody")
@pytest.mark.parametrize(("found", "told"), REFUSED.values(), ids=REFUSED)
def test_refused_owners_and_modes(found: os.stat_result, told: str) -> None:
    with pytest.raises(SecretError, match=r"^file:/s: .+; ") as caught:
        secret_files.check_file("file:/s", "/s", found)
    assert told in str(caught.value)


def test_what_is_no_secret_file(tmp_path: Path, secret_file: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, mode=0o600)
    assert "is not a regular file" in refusal(f"file:{pipe}")
    assert "is not a regular file" in refusal(f"file:{tmp_path}")
    assert "cannot be opened: Not a directory" in refusal(f"file:{secret_file}/x")
    for content in (b"", b"\n", b"\r\n"):
        secret_file.write_bytes(content)
        assert "is empty" in refusal(f"file:{secret_file}")
    for content in (b" ", b"\t \n", b"\n\n"):
        secret_file.write_bytes(content)
        assert "contains only white space" in refusal(f"file:{secret_file}")


def test_a_variable() -> None:
    assert read_secret("env:S", {"S": f"{CANARY}ü"}) == f"{CANARY}ü".encode()


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "the variable is not set; set S"),
        ({"S": ""}, "is empty; put the secret there"),
        ({"S": "  "}, "contains only white space; put the secret there"),
    ],
)
def test_a_variable_that_is_not_there(environ: dict[str, str], told: str) -> None:
    with pytest.raises(SecretError) as caught:
        read_secret("env:S", environ)
    assert str(caught.value) == f"env:S: {told}"


def test_a_command_runs_without_a_shell_and_with_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    assert read_secret("cmd:printenv CANARY", os.environ, ("CANARY",)) == CANARY.encode()
    assert read_secret("cmd:echo '$HOME  *;'", os.environ) == b"$HOME  *;"
    assert "cmd:cat: is empty" in refusal("cmd:cat")


def test_a_command_gets_only_the_environment_that_any_program_needs() -> None:
    """Not the secrets of others that stand there, unless they are named."""
    usual = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/ops",
        "USER": "ops",
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
        "TMPDIR": "/home/ops/tmp",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "TZ": "UTC",
    }
    secrets = {
        "EXCHANGE_SECRET": CANARY,
        "VAULT_TOKEN": "v",
        "VAULT_ADDR": "a",
        "SEALGATE_X": "y",
        "PATHS": "z",
    }

    def given(*cmd_env: str) -> dict[str, str]:
        lines = read_secret("cmd:env", {**usual, **secrets}, cmd_env).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    assert given() == usual
    assert given("VAULT_ADDR", "ABSENT") == {**usual, "VAULT_ADDR": "a"}
    assert given("VAULT_*") == {**usual, "VAULT_ADDR": "a", "VAULT_TOKEN": "v"}


@pytest.mark.parametrize("place", ["secret", "passphrase", "session", "token", "redis"])
def test_every_reference_of_a_configuration_gets_what_cmd_env_names(place: str) -> None:
    environ = {"PATH": os.environ["PATH"], "S": "c2VjcmV0", "NEEDED": "redis://h:1/0"}
    command = "cmd:printenv NEEDED"
    key = {"api_key": "ak", "secret": "env:S", "passphrase": "env:S", "session": "env:S"}
    tables: dict[str, Any] = {
        "venue": "okx",
        "keys": {"main": {**key, **({place: command} if place in key else {})}},
        "bots": {"grid": {"token": command if place == "token" else "env:S"}},
        "limits": {"redis": command if place == "redis" else ""},
    }
    read_parts(make_config(URL, **tables, cmd_env=["NEEDED"]), environ)
    with pytest.raises(SecretError, match=r"cmd:printenv: ended with exit code 1; .+ in cmd_env"):
        read_parts(make_config(URL, **tables), environ)


def test_a_command_may_leave_a_process_behind() -> None:
    assert read_secret("cmd:sh -c 'sleep 2 & echo x'", os.environ) == b"x"


def test_a_large_secret_of_a_command() -> None:
    assert read_secret("cmd:printf %20000d 7", os.environ) == b" " * 19999 + b"7"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"no-such-program {CANARY}", "cmd:no-such-program: cannot be run: No such file or directory; "),
        (f"sh -c 'echo {CANARY}; exit 3'", "cmd:sh: ended with exit code 3; run it by hand"),
        (f"sh -c 'echo {CANARY} >&2; exit 1'", "cmd:sh: ended with exit code 1; "),
        ("sh -c 'kill -9 $$'", "cmd:sh: ended with exit code -9; "),
        ("true", "cmd:true: is empty; "),
    ],
)
def test_a_command_that_fails(command: str, told: str) -> None:
    assert refusal(f"cmd:{command}").startswith(told)


def test_an_error_names_a_command_without_its_arguments() -> None:
    assert str(SecretError("cmd:'a b' --password=x", "cause", "fix")) == "cmd:a b: cause; fix"


@pytest.mark.parametrize("command", ["sleep 60", "sh -c 'trap \"\" TERM; sleep 60'", "yes"])
def test_a_command_that_does_not_end(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_command, "COMMAND_TIMEOUT_S", 0.1)
    assert "did not end within 0.1 s" in refusal(f"cmd:{command}")


@pytest.mark.parametrize("reference", [CANARY, f"vault:{CANARY}", f"{CANARY}:x"])
def test_what_is_no_reference_is_not_repeated(reference: str) -> None:
    assert refusal(reference).startswith("secret: ")


def test_a_wiped_secret_is_zeros_in_the_same_place(secret_file: Path) -> None:
    secret = read_secret(f"file:{secret_file}", {})
    with memoryview(secret) as place:
        wipe(secret)
        assert bytes(place) == bytes(len(CANARY))


class Disk:
    """What is read comes in these parts; `places` is where they were put, empty bytes are the end."""

    def __init__(self, *parts: bytes | OSError) -> None:
        self._parts = [*parts]
        self._place: list[bytearray] = []

    def readv(self, _: int, views: list[memoryview]) -> int:
        """Stand in for `os.readv`."""
        self._place = [views[0].obj]  # type: ignore[list-item] # the buffer that is read into
        part = self._parts.pop(0) if self._parts else b""
        if isinstance(part, OSError):
            raise part
        views[0][: len(part)] = part
        return len(part)

    @property
    def left_behind(self) -> bytes:
        """What stands in the buffer now, without the zeros."""
        return bytes(self._place[0]).strip(b"\0")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Disk]:
    def with_parts(*parts: bytes | OSError) -> Disk:
        made = Disk(*parts)
        monkeypatch.setattr(os, "readv", made.readv)
        return made

    return with_parts


def test_parts_are_put_together_and_nothing_stays_in_their_place(disk: Callable[..., Disk]) -> None:
    made = disk(b"ab", b"c\r", b"\n")
    assert read_all("file:/s", 0) == b"abc"
    assert made.left_behind == b""


UNREAD = {
    "too large": ((b"x" * MAX_BYTES, b"y"), "is larger than 65536 bytes; store only the secret in it"),
    "blanks": ((b" ", b"\t"), "contains only white space; put the secret there"),
    "a disk that fails on it": (
        (b"ab", OSError(errno.EIO, os.strerror(errno.EIO))),
        "cannot be read: Input/output error; check the disk, or name another file",
    ),
}


@pytest.mark.parametrize(("parts", "told"), UNREAD.values(), ids=UNREAD)
def test_what_is_refused_is_wiped_too(
    disk: Callable[..., Disk], parts: tuple[bytes | OSError, ...], told: str
) -> None:
    made = disk(*parts)
    with pytest.raises(SecretError) as refused:
        read_all("file:/s", 0)
    assert str(refused.value) == f"file:/s: {told}"
    assert made.left_behind == b""


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
