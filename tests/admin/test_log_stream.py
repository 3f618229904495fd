"""The log's way out, with a reader that stalls."""

import io
import os
import threading

import pytest

from sealgate.admin import log_stream
from sealgate.admin.log_stream import LogStream

PATIENCE_S = 30.0


class Stalling(io.StringIO):
    """A stream whose writes wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def write(self, text: str) -> int:
        self.begun.set()
        self.go_on.wait(PATIENCE_S)
        return super().write(text)


def lost(count: int) -> str:
    return f"lost {count}"


def test_what_is_written_comes_out_in_order() -> None:
    target = io.StringIO()
    stream = LogStream(target, lost)
    for number in range(1000):
        stream.write(f"{number}\n")
    stream.flush()
    stream.close()
    assert target.getvalue().splitlines() == [str(number) for number in range(1000)]
    assert not stream.isatty()


def test_nobody_waits_for_a_reader_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines wait up to the bound, what goes beyond is counted, and the log says so when it moves on."""
    monkeypatch.setattr(log_stream, "_MOST_CHARACTERS", 100)
    target = Stalling()
    stream = LogStream(target, lost)
    stream.write("first\n")
    assert target.begun.wait(PATIENCE_S)
    for _ in range(50):
        stream.write("123456789\n")
    target.go_on.set()
    stream._queue.put("")
    while stream._queue.qsize():
        pass
    stream.write("last\n")
    stream.close()
    written = target.getvalue().splitlines()
    assert written == ["first", *["123456789"] * 9, "lost 41", "last"]


@pytest.mark.parametrize("failing", ["a closed pipe", "a closed stream"])
def test_a_reader_that_is_gone_stops_nothing(failing: str) -> None:
    read, write = os.pipe()
    target = os.fdopen(write, "w")
    os.close(read)
    if failing == "a closed stream":
        target.close()
    stream = LogStream(target, lost)
    stream.write("nobody reads this\n")
    stream.write("nor this\n")
    stream.close()
    assert not stream._thread.is_alive()
    if failing == "a closed pipe":
        with pytest.raises(BrokenPipeError):
            target.close()


def test_what_waits_goes_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the thread rests: it may not fall behind."""
    monkeypatch.setattr(log_stream, "_REST_S", PATIENCE_S)
    target = Stalling()
    stream = LogStream(target, lost)
    stream.write("first\n")
    assert target.begun.wait(PATIENCE_S)
    for number in range(100):
        stream.write(f"{number}\n")
    target.go_on.set()
    stream.close()
    assert target.getvalue().splitlines() == ["first", *map(str, range(100))]
