"""The text of a configuration file with an exchange added: each line that was there stays, comments too.

A file about one exchange is turned into one with `[exchanges]` first. A change that would need more than new
lines, moved lines and longer table headers is refused: the caller has the file as it was.
"""

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sealgate.config.names import OF_EXCHANGE
from sealgate.machine.findings import listed

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BRACKETS = re.compile(r"^(\s*\[\[?\s*)")

Table = tuple[str, ...]


class NotAddedError(ValueError):
    """A file is written in a way that cannot be changed line by line. `str()` says what is in the way."""


@dataclass(slots=True)
class _Statement:
    """A comment, a blank line, a header or a setting, with its lines. `path` is () for the first two."""

    text: str
    path: Table = ()
    is_header: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """A file's new text, and each change in a sentence."""

    text: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchange to add: its name, the tables to write at the end, and the alias of its key.

    `has_key` says that the file has that key already. `bots` are those of the file that get the key.
    """

    name: str
    tables: str
    key: str
    has_key: bool = False
    bots: Sequence[str] = field(default=())


def with_exchange(text: str, only: str, new: Exchange) -> Added:
    """Return a valid file's text with an exchange added; `only` is what the file's one exchange is called.

    Raises NotAddedError.
    """
    tree = tomllib.loads(text)
    document, changes = _Document(text), list[str]()
    # 1. A file about one exchange: its settings go below its table, and each key says where it is valid.
    if "exchanges" not in tree:
        changes += _into_several(document, tree, only)
    # 2. The new exchange's key: one of its own, or one that the file has, which is then valid at both.
    if new.has_key:
        valid = _exchanges_of(tree["keys"][new.key], only)
        line = f"exchanges = {json.dumps([*valid, new.name])}"
        document.put(("keys", new.key), ("exchange", "exchanges"), line)
        changes.append(f"keys.{new.key} is also valid at the new exchange: {line}")
    # 3. Bots that name no key have all of them: those that they had are written down, or they would get more.
    for bot, settings in tree.get("bots", {}).items():
        had = [settings["key"]] if "key" in settings else settings.get("keys") or [*tree["keys"]]
        gets = bot in new.bots and new.key not in had
        if gets or (not new.has_key and not {"key", "keys"} & settings.keys()):
            keys = [*had, new.key] if gets else had
            line = f'key = "{keys[0]}"' if len(keys) == 1 else f"keys = {json.dumps(keys)}"
            document.put(("bots", bot), ("key", "keys"), line)
            changes.append(f"bots.{bot} may use {' and '.join(keys)}: {line}")
    document.append(new.tables)
    return Added(document.text, tuple(changes))


def _exchanges_of(key: Mapping[str, Any], only: str) -> list[str]:
    return [key["exchange"]] if "exchange" in key else key.get("exchanges") or [only]


def _into_several(document: "_Document", tree: Mapping[str, Any], name: str) -> Iterator[str]:
    """Turn a file about one exchange into one with a table for it; yield what was changed."""
    moved = [setting for setting in OF_EXCHANGE if setting in tree]
    document.move_below(f"exchanges.{name}")
    if moved:
        yield f"{listed(moved)} moved below [exchanges.{name}]: for that exchange alone"
    for alias in tree.get("keys", {}):
        line = f'exchange = "{name}"'
        document.put(("keys", alias), (), line)
        yield f"keys.{alias} is valid there: {line}"


class _Document:
    """The statements of a TOML file, in order."""

    def __init__(self, text: str) -> None:
        self._statements = list(_statements(text))

    @property
    def text(self) -> str:
        """Return the whole file."""
        return "".join(one.text for one in self._statements)

    def append(self, text: str) -> None:
        """Add tables at the end, behind a blank line."""
        last = self._statements[-1].text if self._statements else "\n"
        ending = "" if last.endswith("\n") else "\n"
        self._statements.append(_Statement(f"{ending}\n{text}"))

    def put(self, table: Table, names: Sequence[str], line: str) -> None:
        """Write a setting into a table, in the place of one of these names, else as its first.

        Raises NotAddedError where the table has no header of its own, or a setting has several lines.
        """
        start = next((at for at, one in enumerate(self._statements) if _is_header_of(one, table)), None)
        if start is None:
            raise NotAddedError(f"{'.'.join(table)} does not stand below a header [{'.'.join(table)}]")
        for at in range(start + 1, len(self._statements)):
            found = self._statements[at]
            if found.is_header:
                break
            if found.path and found.path[0] in names:
                if "\n" in found.text.rstrip("\r\n"):
                    raise NotAddedError(f"{'.'.join(table)}.{found.path[0]} is written on several lines")
                found.text = f"{line}{_comment_behind(found.text)}\n"
                return
        header = self._statements[start]
        if not header.text.endswith("\n"):
            header.text += "\n"
        self._statements.insert(start + 1, _Statement(f"{line}\n", (line.partition(" ")[0],)))

    def move_below(self, table: str) -> None:
        """Put what belongs to the file's one exchange below its table, with the comments above each."""
        first = next((at for at, one in enumerate(self._statements) if one.is_header), len(self._statements))
        kept, moved, above = list[_Statement](), list[_Statement](), list[_Statement]()
        rest = self._statements[first:]
        last = kept
        for one in self._statements[:first]:
            if one.path:
                last = moved if one.path[0] in OF_EXCHANGE else kept
                last += [*above, one]
                above = []
            elif one.text.strip():
                above.append(one)
            else:  # comments before a blank line are about no setting
                last += [*above, one]
                above = []
        for one in (*kept[-1:], *moved[-1:]):
            one.text = one.text if one.text.endswith("\n") else f"{one.text}\n"
        if kept and kept[-1].text.strip():
            kept.append(_Statement("\n"))
        if moved and moved[-1].text.strip() and rest:
            moved.append(_Statement("\n"))
        for one in rest:
            if one.is_header and one.path[0] in OF_EXCHANGE:
                one.text = _BRACKETS.sub(rf"\g<1>{table}.", one.text)
        header = _Statement(f"[{table}]\n", tuple(table.split(".")), is_header=True)
        self._statements = [*kept, header, *moved, *above, *rest]


def _is_header_of(statement: _Statement, table: Table) -> bool:
    return statement.is_header and statement.path == table


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of a file: one ends where its lines are TOML by themselves."""
    lines = ""
    for line in _LINE.findall(text):
        lines += line
        try:
            tree = tomllib.loads(lines)
        except tomllib.TOMLDecodeError:
            continue
        is_header = lines.lstrip().startswith("[")
        yield _Statement(lines, _path(tree) if is_header else (*tree,), is_header)
        lines = ""


def _path(tree: Any) -> Table:
    """Return the path of a header, which is all that is in this tree."""
    path: list[str] = []
    while tree:
        [(name, tree)] = tree.items()
        path.append(name)
        tree = tree[0] if isinstance(tree, list) else tree
    return tuple(path)


def _comment_behind(text: str) -> str:
    """Return the comment at the end of a setting's line, with the blanks before it."""
    for mark in re.finditer(r"\s*#", text):
        with contextlib.suppress(tomllib.TOMLDecodeError):  # else it stands in a text
            tomllib.loads(text[: mark.start()])
            return text[mark.start() :].rstrip("\r\n")
    return ""
