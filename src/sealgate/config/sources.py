"""Sources of settings: a TOML file, the environment, flags. Each becomes a layer of one shape.

A layer is a tree like the configuration's, with the values as written. It knows how its source spells a
setting, so that an error shows what the user typed.
"""

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sealgate.config.names import PREFIX, SettingPath, dotted, variable
from sealgate.config.problems import ConfigError

FILE_VARIABLE = "SEALGATE_CONFIG"
DEFAULT = "default"  # the source of a setting that is not set
DEFAULT_FILE = "sealgate.toml"  # in the working directory
_MOST_BYTES = 16 * 1024**2  # a larger file is a mistake, or an endless device

# A Kubernetes service (or a linked container) named sealgate adds these to the environment of all its
# neighbours. They are addresses, not settings.
_SERVICE_LINK = re.compile(
    r"SEALGATE_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)"
)

# Messages of Python's parser: a string that is not closed (at the end of a line, and of the file), and a
# table that occurs twice.
_NO_VALUE = "Invalid value"  # of tomllib
_UNCLOSED = frozenset({"Illegal character '\\n'", "Unterminated string", 'Expected "\'"'})
_TWICE = re.compile(r"Cannot declare (\(.+\)) twice")
_OPEN_ARRAY = "Unclosed array"
_AT_LINE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_MOST_LINES = 500  # each costs a parse of the whole file before it
_TYPOGRAPHIC = frozenset("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f")  # from word processors


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one source; `variables` are the names in the environment, by path."""

    tree: dict[str, object] = field(default_factory=dict)
    origin: str = ""
    variables: Mapping[SettingPath, str] | None = None

    def depth(self, path: SettingPath) -> int:
        """Return how many leading parts of a path are set; everything below a plain value counts as set."""
        node: object = self.tree
        for depth, part in enumerate(path):
            if isinstance(node, dict) and part not in node:
                return depth
            node = node[part] if isinstance(node, dict) else None
        return len(path)

    def spell(self, path: SettingPath) -> str:
        """Return a setting's name together with its source."""
        return f"{self.origin}{self.name(path)}"

    def written(self, path: SettingPath) -> list[str]:
        """Return the environment's variables that set a path, or anything below it."""
        variables = self.variables or {}
        return [name for set_path, name in variables.items() if set_path[: len(path)] == path]

    def name(self, path: SettingPath) -> str:
        """Return a setting's name as this source writes it."""
        if self.variables is None:
            return dotted(path)
        for length in range(len(path), 0, -1):
            if path[:length] in self.variables:
                return ": ".join(filter(None, (self.variables[path[:length]], dotted(path[length:]))))
        return variable(path)


def read_file(file: Path) -> Layer:
    """Read a TOML file; raise ConfigError when it cannot be read or is not TOML."""
    return parse_text(read_text(file), file)


def read_text(file: Path) -> str:
    """Return the text of a configuration file; raise ConfigError when it cannot be read."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError([f"{file}: is too large for a configuration; correct the path"])
        return content.decode("utf-8-sig")  # editors on Windows put a byte order mark first
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror}; correct the path"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{file}: is not UTF-8 text; save it as UTF-8"]) from None


def parse_text(text: str, file: Path) -> Layer:
    """Return the settings of a file's text; raise ConfigError when it is not TOML."""
    try:
        return Layer(tomllib.loads(text), origin=f"{file}: ")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_error(file, text, str(error))]) from None


def _syntax_error(file: Path, text: str, message: str) -> str:
    at = _AT_LINE.search(message)
    cause = _AT_LINE.sub("", message)
    lines = text.split("\n")
    number, column = (int(at[1]), int(at[2])) if at and at[1] else (len(lines), 0)
    is_at_end = column == 0
    is_unclosed = is_at_end or cause == _OPEN_ARRAY
    # The parser searches for the end in the lines below, but the mistake is where the value begins.
    if is_unclosed:
        number = _start_of_statement(lines, number)
    line = lines[number - 1]
    # In a string that is not closed, a typographic quote in the line may have been meant to close it.
    is_open = is_unclosed or cause in _UNCLOSED
    suspect = line.partition("#")[0] if is_open else line[column - 1 : column]
    where = f"{file}:{number}: is not TOML"
    if not _TYPOGRAPHIC.isdisjoint(suspect):
        return f"{where}: a quote is typographic; write the straight \" or '"
    if twice := _TWICE.fullmatch(cause):
        table = dotted(ast.literal_eval(twice[1]))
        return f"{where}: [{table}] occurs twice; put its settings under one of them"
    return f"{where}: {_plain_cause(cause, is_at_end=is_at_end)}"


def _plain_cause(cause: str, *, is_at_end: bool) -> str:
    """Return cause and fix of a parser's error, in our words if we have some."""
    if cause in _UNCLOSED:
        return "a string is not closed; add the quote at its end"
    if cause == _OPEN_ARRAY:
        return "an array is not closed; add the ] at its end"
    if cause == _NO_VALUE:
        missing = "a value is missing or not closed; complete it"
        return missing if is_at_end else "a value is not valid; text needs quotes around it"
    return f"{cause}; correct the syntax"


def _start_of_statement(lines: Sequence[str], number: int) -> int:
    """Return the first line of the statement that contains line `number`.

    The text before it is valid TOML. For a statement of very many lines, return the last of them.
    """
    for first in range(number, max(number - _MOST_LINES, 0), -1):
        if lines[first - 1].strip() and _is_toml("\n".join((*lines[: first - 1], ""))):
            return first
    return number


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: the one given, else $SEALGATE_CONFIG, else ./sealgate.toml if it exists."""
    if file is not None:
        return file
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE])
    here = Path(DEFAULT_FILE)
    return here if here.exists() else None


def read_environment(environ: Mapping[str, str]) -> Layer:
    """Read the settings among the environment's variables: SEALGATE_, and `__` between levels.

    They are not case-sensitive, so names of keys and bots set here are in lower case.
    """
    variables: dict[SettingPath, str] = {
        tuple(name[len(PREFIX) :].lower().split("__")): name for name in environ if _is_setting(name.upper())
    }
    tree: dict[str, object] = {}
    # A table's own variable precedes its members' and stays: validation reports that both are set.
    for path, name in sorted(variables.items(), key=lambda item: len(item[0])):
        _insert(tree, path, environ[name])
    return Layer(tree, variables=variables)


def _is_setting(name: str) -> bool:
    return name.startswith(PREFIX) and name != FILE_VARIABLE and not _SERVICE_LINK.fullmatch(name)


def read_flags(overrides: Mapping[str, object]) -> Layer:
    """Read flags by dotted name, such as "listen.tcp"; None means not given."""
    tree: dict[str, object] = {}
    for name, value in overrides.items():
        if value is not None:
            _insert(tree, tuple(name.split(".")), value)
    return Layer(tree, origin="command line: ")


def _insert(tree: dict[str, object], path: SettingPath, value: object) -> None:
    *tables, name = map(str, path)
    for table in tables:
        inner = tree.setdefault(table, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree[name] = value
