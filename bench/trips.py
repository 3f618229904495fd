"""The trips of docs/internals/design.md: their steps as the page has them, and their pictures.

A column is a room of the gateway or a part of the house, a row is a step.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.pages import INTERNALS
from bench.svg import COLOURS, drawing, line, text, title

PAGE = INTERNALS / "design.md"
NAMED = re.compile(r"`([\w/]+\.py): (\w+)`")
_SECTION = re.compile(r"^## Trip (\d): (.+?)$(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
_STEP = re.compile(rf"^(\d+)\. {NAMED.pattern}", re.MULTILINE)

# From the bot on the left to the exchange, and what is asked on the way; core, which all ask, at the end.
COLUMNS = (
    *("runtime", "probe", "listeners", "http", "bots", "request", "sharing", "journal", "clock"),
    *("upstream", "pacing", "keys", "platform", "admin", "cli", "config", "core"),
)
_LEFT, _TOP, _WIDE, _HIGH, _WORDS = 20, 60, 80, 20, 300


class Step(NamedTuple):
    """A function of a file below `src/sealgate`."""

    number: int
    file: str
    function: str

    @property
    def column(self) -> str:
        """The room or part that it stands in."""
        parts = self.file.split("/")
        return parts[1].removesuffix(".py") if parts[0] == "gateway" else parts[0]


class Trip(NamedTuple):
    """A trip by its number, its title, and its ways: lists of steps that each begin with 1."""

    number: int
    title: str
    ways: list[list[Step]]


def trips(page: str) -> list[Trip]:
    """Return the trips of a page. Raises ValueError where a list leaves out a number."""
    return [Trip(int(number), title, _ways(body)) for number, title, body in _SECTION.findall(page)]


def _ways(body: str) -> list[list[Step]]:
    ways: list[list[Step]] = []
    for number, file, function in _STEP.findall(body):
        step = Step(int(number), file, function)
        if step.number == 1:
            ways.append([])
        if step.number != len(ways[-1]) + 1:
            raise ValueError(f"{file}: {function} is not step {step.number}")
        ways[-1].append(step)
    return ways


def picture(trip: Trip) -> str:
    """Draw the first way of a trip: the way through the shell, and the questions to core on it."""
    steps = trip.ways[0]
    used = {step.column for step in steps}
    columns = [column for column in COLUMNS if column in used]
    words = _LEFT + _WIDE * len(columns) + 10
    parts = [title(_LEFT, 20, f"Trip {trip.number}: {trip.title}"), *_grid(columns, len(steps))]
    parts += _path([columns.index(step.column) for step in steps], columns.index("core"))
    parts += [text(words, _y(step.number - 1) + 4, f"{step.number} {step.function}") for step in steps]
    return drawing(words + _WORDS, _TOP + _HIGH * len(steps) + 10, trip.title, parts)


def _path(visited: Sequence[int], core: int) -> list[str]:
    places: list[int] = []
    for column in visited:
        places.append(places[-1] if column == core and places else column)
    way = " ".join(f"{_x(column):.0f},{_y(row):.0f}" for row, column in enumerate(places))
    asked = [row for row, column in enumerate(visited) if column == core]
    return [
        *(line(_x(places[row]), _y(row), _x(core), _y(row)) for row in asked),
        f'<polyline points="{way}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>',
        *(_dot(column, row, COLOURS[3 * (column == core)]) for row, column in enumerate(visited)),
    ]


def _dot(column: int, row: int, colour: str) -> str:
    return f'<circle cx="{_x(column):.0f}" cy="{_y(row):.0f}" r="4" fill="{colour}"/>'


def _grid(columns: Sequence[str], rows: int) -> list[str]:
    heads = [text(_x(at), _TOP - 15, column, "middle") for at, column in enumerate(columns)]
    return heads + [line(_x(at), _TOP - 8, _x(at), _y(rows - 1) + 8) for at in range(len(columns))]


def _x(column: int) -> float:
    return _LEFT + _WIDE * (column + 0.5)


def _y(row: int) -> float:
    return _TOP + _HIGH * (row + 0.5)


def file_of(trip: Trip) -> Path:
    """Return where the picture of a trip stands."""
    return INTERNALS / f"trip-{trip.number}.svg"


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the trips of docs/internals/design.md.")
    parser.add_argument("--write", action="store_true", help="into docs/internals/trip-1.svg and so on")
    options = parser.parse_args()
    for trip in trips(PAGE.read_text()):
        print(f"{trip.number}. {trip.title}: {', '.join(str(len(way)) for way in trip.ways)} steps")
        if options.write:
            file_of(trip).write_text(picture(trip))


if __name__ == "__main__":
    main()
