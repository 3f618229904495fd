"""docs/internals/design.md against the code: what it names is there."""

import ast
from functools import cache
from pathlib import Path

import pytest

import sealgate
from bench.trips import NAMED, PAGE, file_of, picture, trips

ROOT = Path(sealgate.__file__).parent
TEXT = PAGE.read_text()
TRIPS = trips(TEXT)


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
    inside = {path.name.partition(".")[0] for path in (ROOT / "gateway").iterdir()}
    return {room for room in inside - {"__init__", "__pycache__"} if f"`{room}`" not in page}


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
