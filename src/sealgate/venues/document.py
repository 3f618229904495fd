"""A venue's file as tables that are read key by key: each error names file, line, cause and nearest name."""

import copy
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sealgate.machine.nearest import did_you_mean
from sealgate.venues.templates import Template, TemplateError, parse_template

POINTER = re.compile(r"(/([^/~]|~[01])*)+")  # but for the whole document's
FIELD_NAME = re.compile(r"[A-Za-z0-9_\-]+")  # of an HTTP header
_NAME = r"""(?:"[^"]*"|'[^']*'|[\w\-]+)"""
_HEADER = re.compile(rf"\s*\[(\[)?\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]")
_NAMES = re.compile(_NAME)
_KEY = re.compile(rf"\s*({_NAME})\s*=")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_KINDS = {str: "a text", bool: "true or false", int: "a whole number", list: "a list", dict: "a table"}


def pick(document: object, pointer: str) -> object:
    """Return what stands at a pointer, None where there is nothing; "" is the whole document."""
    for token in pointer.split("/")[1:]:
        document = _child(document, token.replace("~1", "/").replace("~0", "~"))
    return document


def pick_each(document: object, pointer: str) -> list[object]:
    """Return all that stands at a pointer, in which * means each value of a list."""
    return [value for value in pick_all(document, pointer) if value is not None]


def pick_all(document: object, pointer: str) -> list[object]:
    """Return the same, with None for each place where there is nothing, and for what is no list."""
    found = [document]
    for step in pointer.split("/")[1:]:
        if step == "*":
            found = [value for one in found for value in (one if isinstance(one, list) else [None])]
        else:
            found = [_child(one, step.replace("~1", "/").replace("~0", "~")) for one in found]
    return found


def _child(document: object, name: str) -> object:
    if isinstance(document, dict):
        return document.get(name)
    if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
        return document[int(name)]
    return None


Path = tuple[str | int, ...]
Origin = tuple["Document", Path]  # a file, and where something stands in it


class VenueError(ValueError):
    """A venue's file that cannot be used; the message is one line: file, line, cause and what is valid."""


class Document:
    """One file: its name for messages, its text, and what TOML makes of it."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._lines = text.splitlines()
        self.origins: Mapping[Path, Origin] = {}
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = _AT_LINE.search(str(error))
            line = int(found[1]) if found and found[1] else len(self._lines)
            cause = _AT_LINE.sub("", str(error)).strip()
            raise VenueError(f"{file}:{line}: not valid TOML: {cause}") from None

    def with_data(self, data: dict[str, Any], origins: Mapping[Path, Origin]) -> "Document":
        """Return the file with other data; `origins` says of it where what stands at a path was written."""
        other = copy.copy(self)
        other.data, other.origins = data, origins
        return other

    def error(self, path: Path, cause: str) -> VenueError:
        """Return the error of what stands at a path, or of the table that should have it."""
        document, written = self.origin(path)
        return VenueError(f"{document.file}:{document.line(written)}: {cause}")

    def origin(self, path: Path) -> Origin:
        """Return the file in which something was written, and its path there."""
        for length in range(len(path), -1, -1):
            if (origin := self.origins.get(path[:length])) is not None:
                document, written = origin
                return document.origin((*written, *path[length:]))
        return self, path

    def line(self, path: Path) -> int:
        """Return the line of what stands at a path of this file, or of the table that should have it."""
        best, at = 0, 1
        for number, place in _places(self._lines):
            if len(place) > best and place == path[: len(place)]:
                best, at = len(place), number
        return at


def _places(lines: Iterable[str]) -> Iterator[tuple[int, Path]]:
    """Yield (line, path) of every table and key; the tables of a list are counted, in each table anew."""
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(lines, 1):
        if header := _HEADER.match(line):
            table = ()
            names = [name.strip("\"'") for name in _NAMES.findall(header[2])]
            for depth, name in enumerate(names, 1):
                table = (*table, name)
                if header[1] and depth == len(names):
                    counts[table] = counts.get(table, -1) + 1
                    yield number, table  # the list itself stands where its first table does
                if table in counts:
                    table = (*table, counts[table])
            yield number, table
        elif key := _KEY.match(line):
            yield number, (*table, key[1].strip("\"'"))


class Table:
    """One table of a file. Every key in it must be among `keys`."""

    def __init__(self, document: Document, path: Path, data: Mapping[str, Any], keys: Iterable[str]) -> None:
        self.document, self.path, self.data = document, path, data
        valid = list(keys)
        for key in data:
            if key not in valid:
                raise self.error(key, f"unknown key {key}; {did_you_mean(key, valid)}")

    @property
    def file(self) -> str:
        """The file in which the table is written."""
        return self.document.origin(self.path)[0].file

    @property
    def is_built_in(self) -> bool:
        """Whether that file comes with the program: a user's own is named by its path."""
        return "/" not in self.file

    def error(self, key: str | None, cause: str) -> VenueError:
        """Return the error of a key, or of the table."""
        return self.document.error(self.path if key is None else (*self.path, key), cause)

    def text(self, key: str, default: str | None = None, choices: Iterable[str] = ()) -> str:
        """Return a text; without a default it must be there."""
        value = self._typed(key, str, default)
        valid = list(choices)
        if valid and value not in valid:
            raise self.error(key, f"{key} = {value!r} is unknown; {did_you_mean(value, valid)}")
        return str(value)

    def integer(self, key: str, default: int = 0) -> int:
        """Return a whole number of 0 or more."""
        value = int(self._typed(key, int, default))
        if value < 0:
            raise self.error(key, f"{key} is below 0")
        return value

    def number(self, key: str, default: float) -> float:
        """Return a number above 0."""
        value = self.data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.error(key, f"{key} must be a number above 0")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return a true or false, false where it is absent."""
        return bool(self._typed(key, bool, default=False))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text alone is a list of one."""
        value = self.data.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise self.error(key, f"{key} must be a text or a list of texts")
        return tuple(values)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        values = self._typed(key, list, [])
        if not all(type(one) is int for one in values):
            raise self.error(key, f"{key} must be a list of whole numbers")
        return tuple(values)

    def table(self, key: str, keys: Iterable[str] | None = None) -> "Table":
        """Return a table, an empty one where it is absent; `keys` None: they are names of the file's own."""
        data = self._typed(key, dict, {})
        return Table(self.document, (*self.path, key), data, data if keys is None else keys)

    def tables(self, key: str, keys: Iterable[str] | None = None) -> list["Table"]:
        """Return the tables of a list; `keys` None: they are names of the file's own."""
        valid = None if keys is None else list(keys)
        rows = self._typed(key, list, [])
        if not all(isinstance(row, dict) for row in rows):
            raise self.error(key, f"{key} must be a list of tables")
        return [Table(self.document, (*self.path, key, at), row, valid or row) for at, row in enumerate(rows)]

    def checked(self, key: str, pattern: "re.Pattern[str]", what: str, default: str | None = None) -> str:
        """Return a text that a pattern must match whole, unless it is the default."""
        value = self.text(key, default)
        if value != default and not pattern.fullmatch(value):
            raise self.error(key, f"{key} = {value!r} is not {what}")
        return value

    def pattern(self, key: str, *, finds: bool = True) -> "re.Pattern[str]":
        """Return a regular expression, with one group if it finds something in a text in any case."""
        try:
            pattern = re.compile(self.text(key), re.IGNORECASE if finds else re.NOFLAG)
        except re.error as error:
            raise self.error(key, f"{key} is not a regular expression: {error}") from None
        if finds and pattern.groups != 1:
            raise self.error(key, f"{key} must have one group, for what is found")
        return pattern

    def template(self, key: str, text: str, names: Iterable[str]) -> Template:
        """Read a text that stands at a key as a template that may mention `names`."""
        try:
            return parse_template(text, names)
        except TemplateError as error:
            raise self.error(key, f"{key}: {error}") from None

    def _typed(self, key: str, kind: type, default: Any) -> Any:
        value = self.data.get(key, default)
        if value is None:
            raise self.error(None, f"{key} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"{key} must be {_KINDS[kind]}")
        return value
