"""docs/internals/design.md against the code: what it names is there, and each trip goes as it says.

A trip is made on real sockets while every call below `src/sealgate` is noted; the steps of the page must be
among them in their order.
"""

import ast
import asyncio
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

import sealgate
from bench.trips import NAMED, PAGE, Step, file_of, picture, trips
from rig.bot import request
from rig.compiled import needs_sources
from rig.station import API_KEY, ENVIRON, Station, running_station
from rig.upstream import Upstream, hold_until, running_upstream, say, say_and_abort
from rig.wire import OK, reply
from sealgate.core.clock import BURST

ROOT = Path(sealgate.__file__).parent
TEXT = PAGE.read_text()
TRIPS = trips(TEXT)

READ = request(target=b"/v1/trade/symbols/list")
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
ORDER = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: grid-1", body=b'{"symbol":"BTC"}')
LIMITED = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 1")

Call = tuple[str, str]  # file below `src/sealgate`, name of the function


class Calls:
    """Notes calls of our own functions, in all threads, as long as it is on."""

    def __init__(self) -> None:
        self.made: list[Call] = []
        self._root = f"{ROOT}/"

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._root):
            self.made.append((code.co_filename.removeprefix(self._root), code.co_name))

    @contextmanager
    def noted(self) -> Iterator[None]:
        self.made.clear()
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def first_missing(steps: Iterable[Step], made: Sequence[Call]) -> str | None:
    """Return the first step that no call made after the one before it, None if all were made in order."""
    at = -1
    for step in steps:
        try:
            at = made.index((step.file, step.function), at + 1)
        except ValueError:
            return f"{step.number}. {step.file}: {step.function}"
    return None


@cache
def functions(file: Path) -> set[str]:
    """Return the names of all functions and methods of a file; none of one that is not there."""
    if not file.is_file():
        return set()
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def not_there(page: str) -> list[str]:
    """Return the functions that a page names and the code does not have."""
    named = NAMED.findall(page)
    return [f"{file}: {function}" for file, function in named if function not in functions(ROOT / file)]


def unnamed_rooms(page: str) -> set[str]:
    rooms = {path.stem for path in (ROOT / "gateway").iterdir() if not path.name.startswith("__")}
    return {room for room in rooms if f"`{room}`" not in page}


def test_every_function_that_is_named_is_there() -> None:
    assert len(NAMED.findall(TEXT)) > 100
    assert not_there(TEXT) == []


def test_every_room_is_named() -> None:
    assert unnamed_rooms(TEXT) == set()


def test_there_are_six_trips_with_their_pictures() -> None:
    assert [trip.number for trip in TRIPS] == [1, 2, 3, 4, 5, 6]
    for trip in TRIPS:
        assert file_of(trip).read_text() == picture(trip), "scripts/bench trips --write"
        assert f"]({file_of(trip).name})" in TEXT


def test_the_search_for_what_is_not_there_can_fail() -> None:
    assert not_there("1. `core/target.py: sing` and `core/singing.py: sign`") == [
        "core/target.py: sing",
        "core/singing.py: sign",
    ]
    assert "journal" in unnamed_rooms(TEXT.replace("`journal`", "the file"))
    with pytest.raises(ValueError, match="is not step 3"):
        trips("## Trip 1: an order\n\n1. `a.py: a` is\n3. `b.py: b` is\n\n## Next")


def test_the_search_for_steps_can_fail() -> None:
    made = [("a.py", "a"), ("b.py", "b"), ("a.py", "a")]
    steps = [Step(1, "a.py", "a"), Step(2, "b.py", "b"), Step(3, "a.py", "a")]
    assert first_missing(steps, made) is None
    assert first_missing([*steps, Step(4, "b.py", "b")], made) == "4. b.py: b"
    assert first_missing(steps[1:], made[:2]) == "3. a.py: a"
    assert first_missing([Step(1, "made/up.py", "step")], made) == "1. made/up.py: step"


def stored(folder: Path, secret: str) -> Path:
    """Put a secret into the file for it, by a rename, as one that is in use is replaced."""
    new = folder / "new"
    new.write_text(f"{secret}\n")
    new.chmod(0o600)
    return new.rename(folder / "secret")


def left_by_a_kill(folder: Path) -> Path:
    """Copy the journal as it is at this moment: that is what a kill leaves behind."""
    left = folder / "left"
    left.mkdir()
    for part in folder.glob("journal.db*"):
        shutil.copy(part, left)
    return left


@asynccontextmanager
async def rested_station(upstream: Upstream, folder: Path) -> AsyncIterator[Station]:
    """Run a gateway with a journal, a connection that is open, and a clock that wants no sample soon."""
    keys = {"main": {"api_key": API_KEY.decode(), "secret": f"file:{stored(folder, 'first')}"}}
    journal = {"file": str(folder / "journal.db")}
    async with running_station(upstream, ENVIRON, keys=keys, journal=journal) as station:
        await station.until(lambda: len(upstream.asked_time) >= BURST)
        await station.ask(READ)
        yield station


async def succeeds(station: Station, _: Path) -> None:
    assert (await station.ask(ORDER)).outcome == "done"


async def meets_a_429(station: Station, _: Path) -> None:
    paused = asyncio.Event()
    station.upstream.answers += [hold_until(paused, say(LIMITED)), say(OK), say(OK)]
    order = asyncio.ensure_future(station.ask(ORDER))
    await station.upstream.until_received(2)
    paused.set()
    await station.until(lambda: station.gateway.status().keys[0].pause_s > 0)
    assert (await station.ask(CANCEL)).attempts == 1
    assert (await order).attempts == 2


async def loses_its_reply(station: Station, _: Path) -> None:
    station.upstream.answers.append(say_and_abort(b""))
    assert (await station.ask(ORDER)).outcome == "unknown"


async def reloads(station: Station, folder: Path) -> None:
    stored(folder, "second")
    await station.until(lambda: station.gateway.reloader.results["ok"] == 1)


async def is_stepped(station: Station, _: Path) -> None:
    upstream = station.upstream
    upstream.skew_ms = 3_600_000
    detail = b"Timestamp outside recv_window (5000ms). Server time: %d" % upstream.now_ms()
    upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail":"%b"}' % detail)))
    assert (await station.ask(ORDER)).attempts == 2


async def is_set(station: Station, _: Path) -> None:
    host = station.gateway.system
    wall, asked = host.wall, len(station.upstream.asked_time)
    host.wall = lambda: wall() + 3600.0  # type: ignore[method-assign] # the clock of the machine is set
    await station.until(lambda: host.now() - station.gateway.generation.clock._host_clocks.boot > 0.05)
    assert (await station.ask(ORDER)).attempts == 1
    await station.until(lambda: len(station.upstream.asked_time) > asked)


async def is_killed(station: Station, folder: Path) -> None:
    never = asyncio.Event()
    station.upstream.answers.append(hold_until(never, say(OK)))
    order = asyncio.ensure_future(station.ask(ORDER))
    await station.upstream.until_received(2)
    left = left_by_a_kill(folder)
    never.set()
    await order
    async with rested_station(station.upstream, left) as again:
        assert (await again.ask(ORDER)).reason == "upstream_broken"


Scene = Callable[[Station, Path], Awaitable[None]]
SCENES: list[tuple[int, list[Scene]]] = [
    (1, [succeeds]),
    (2, [meets_a_429]),
    (3, [loses_its_reply]),
    (4, [reloads]),
    (5, [is_stepped, is_set]),
    (6, [is_killed]),
]


def ways() -> Iterator[object]:
    for trip, (number, scenes) in zip(TRIPS, SCENES, strict=True):
        for way, scene in zip(trip.ways, scenes, strict=True):
            yield pytest.param(way, scene, id=f"{number}-{scene.__name__}")


@needs_sources
@pytest.mark.parametrize(("way", "scene"), list(ways()))
async def test_a_trip_goes_as_the_page_says(way: list[Step], scene: Scene, tmp_path: Path) -> None:
    calls = Calls()
    threading.setprofile(calls)  # the journal's thread begins with the gateway
    try:
        async with running_upstream() as upstream, rested_station(upstream, tmp_path) as station:
            with calls.noted():
                await scene(station, tmp_path)
                station.gateway.reporter.flush()
    finally:
        threading.setprofile(None)
    assert first_missing(way, calls.made) is None
