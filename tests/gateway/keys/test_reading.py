"""A secret's bytes on their way from a descriptor: how they come, what is no secret, and what stays."""

import errno
import os
from collections.abc import Callable, Iterator

import pytest

from sealgate.gateway.keys.files import MAX_BYTES, SecretError, checked, read_all


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_what_is_there_is_read_where_the_end_is_still_open(pipe: tuple[int, int]) -> None:
    """A process that a program left behind may hold a pipe open for ever."""
    reader, writer = pipe
    os.write(writer, b"abc\n")
    assert read_all("cmd:x", reader) == b"abc"


def test_an_open_end_with_nothing_before_it(pipe: tuple[int, int]) -> None:
    with pytest.raises(SecretError, match=r"^cmd:x: is empty; put the secret there$"):
        read_all("cmd:x", pipe[0])


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


REFUSED = {
    "too large": ((b"x" * MAX_BYTES, b"y"), "is larger than 65536 bytes; let it hold only the secret"),
    "blanks": ((b" ", b"\t"), "holds nothing but white space; put the secret there"),
    "a disk that fails on it": (
        (b"ab", OSError(errno.EIO, os.strerror(errno.EIO))),
        "cannot be read: Input/output error; check the disk, or name another file",
    ),
}


@pytest.mark.parametrize(("parts", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_wiped_too(
    disk: Callable[..., Disk], parts: tuple[bytes | OSError, ...], told: str
) -> None:
    made = disk(*parts)
    with pytest.raises(SecretError) as refused:
        read_all("file:/s", 0)
    assert str(refused.value) == f"file:/s: {told}"
    assert made.left_behind == b""


def test_a_secret_is_handed_on_as_it_is() -> None:
    secret = bytearray(b" a ")
    assert checked("env:S", secret) is secret
