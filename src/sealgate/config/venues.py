"""The setting `venue`, and the settings that its file provides.

A venue is the name of a built-in file, or the path of the user's own. The file provides base URL, prefix,
clock, limits and timestamps, unless the configuration sets them.
"""

import contextlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sealgate import venues
from sealgate.config.files import expand_home, from_folder
from sealgate.config.names import COMMON, SettingPath
from sealgate.config.venue_names import explain
from sealgate.venues.environments import Environment
from sealgate.venues.venue import Venue, read_venue

DEFAULT_VENUE = "service"

_FOLDER = Path(venues.__file__).parent / "files"
_NOWHERE = "https://venue.invalid"  # RFC 6761: this name never resolves
_MOST_BYTES = 1024**2


def venue_names() -> list[str]:
    """Return the names of the built-in venues."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


@cache
def built_in_venue(name: str) -> Venue:
    """Return a built-in venue."""
    return read_venue(*_built_in(name), _found)


def _built_in(name: str) -> tuple[str, str]:
    """Return the name and the text of the file of a built-in venue."""
    file = _FOLDER / f"{name}.toml"
    return file.name, file.read_text("utf-8")


def _found(like: str, file: str) -> tuple[str, str]:
    """Return name and text of the file that another one extends; a path is relative to that other file."""
    if is_file(like):
        path = from_folder(like, Path(file).parent)
        path = path if "/" in path else f"./{path}"
        return path, _text(path)
    if like not in (names := venue_names()):
        raise ValueError(f"{like!r} {explain(like, names)}")
    return _built_in(like)


def default_venue() -> Venue:
    """Return the default venue."""
    return built_in_venue(DEFAULT_VENUE)


def is_scheme_open(venue: Venue) -> bool:
    """Whether the exchange's documents leave the signature open, so that `discover` has to detect it."""
    return venue.name == DEFAULT_VENUE


def venue_text(venue: Venue) -> str:
    """Return a venue as a configuration names it."""
    return venue.file if "/" in venue.file else venue.name


def venue_text_in(file: Path, venue: Venue) -> str:
    """Return a venue as this configuration file names it: by an absolute path, unless the file is here."""
    text = venue_text(venue)
    is_here = file.parent.resolve() == Path.cwd().resolve()
    return text if is_here or not is_file(text) else str(Path(text).absolute())


def venue_source(venue: Venue) -> str:
    """Return the text of a venue's file."""
    file = Path(expand_home(venue.file)) if "/" in venue.file else _FOLDER / venue.file
    return file.read_text("utf-8")


def is_file(value: str) -> bool:
    """Whether a venue is given by the path of a file, not by name."""
    return "/" in value or value.endswith(".toml")


def venue_from_folder(value: str, folder: Path) -> str:
    """Return a venue from a configuration file in this folder, relative to the working directory."""
    return from_folder(value, folder) if is_file(value) else value


def parse_venue(value: object) -> Venue:
    """Read a venue by name or path; raise ValueError with file, line, cause and the nearest name."""
    if isinstance(value, Venue):
        return value
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError('is not a venue; write a name that `sealgate venues` lists, or "./mine.toml"')
    if is_file(value):
        path = value if "/" in value else f"./{value}"
        return read_venue(path, _text(path), _found)
    names = venue_names()
    if value not in names:
        raise ValueError(f"{value!r} {explain(value, names)}")
    return built_in_venue(value)


def _text(path: str) -> str:
    """Return the text of a user's file; raise ValueError with the cause and the fix."""
    try:
        with Path(expand_home(path)).open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; correct the path") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{path} is too large for a venue file; correct the path")
    return text


def settings_of(venue: Venue, environment: str = "") -> dict[SettingPath, object]:
    """Return the settings provided by a venue's file, as in a configuration of one exchange.

    An unknown environment changes nothing.
    """
    there = venue.environments.get(environment, Environment())
    base_url = there.base_url or venue.base_url
    settings: dict[SettingPath, object] = {
        ("upstream", "prefix"): venue.prefix or "/",
        ("clock", "path"): venue.clock_path,
        ("clock", "field"): venue.clock_field,
        ("keys", "*", "recv_window_ms"): venue.recv_window_ms,
    }
    if venue.limits.stream_opens:
        settings["limits", "stream_opens"] = venue.limits.stream_opens
    for pool in venue.limits.pools:
        is_whole = pool is venue.limits.whole
        path = ("limits", "known") if is_whole else ("limits", "pools", pool.name, "known")
        settings[path] = list(pool.known)
    if there.headers:
        settings["upstream", "headers"] = there.headers
    return {**settings, ("base_url",): base_url} if base_url else settings


def filled(tree: Mapping[str, object]) -> dict[str, object]:
    """Return a tree of settings filled from the venues' files and the common tables."""
    exchanges = tree.get("exchanges")
    if not isinstance(exchanges, Mapping) or not exchanges:
        return _filled(tree)
    common = {name: tree[name] for name in COMMON if name in tree}
    each = {
        name: _filled(_over(common, own)) if isinstance(own, Mapping) else own
        for name, own in exchanges.items()
    }
    return {"base_url": None, **tree, "exchanges": each}


def _filled(tree: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of one exchange, filled from the file of its venue.

    If there is no such venue, report only that, and not that the base URL is missing as well.
    """
    try:
        venue = parse_venue(tree.get("venue", DEFAULT_VENUE))
    except ValueError:
        return {"base_url": _NOWHERE, **tree}
    environment = str(tree.get("environment", ""))
    whole: Any = {**tree, "venue": venue}  # so that the file is read once
    if environment and environment not in venue.environments:  # report only that
        whole = _with(whole, ("base_url",), _NOWHERE)
    for path, value in settings_of(venue, environment).items():
        if path == ("upstream", "headers") and isinstance(value, Mapping):
            whole = _with_headers(whole, value)
        elif (
            path[0] != "keys" or "keys" in tree
        ):  # with several exchanges, the keys are outside of their tables
            whole = _with(whole, path, value)
    return dict(whole)


def _with_headers(tree: Any, headers: Mapping[str, str]) -> Any:
    """Return a tree with the headers of an environment added, except those that the configuration sets."""
    upstream = tree.get("upstream", {})
    own = upstream.get("headers", {}) if isinstance(upstream, Mapping) else None
    if isinstance(own, str):  # from an environment variable
        with contextlib.suppress(ValueError):
            own = json.loads(own)
    if not isinstance(own, Mapping):
        return tree
    named = {name.lower() for name in own}
    added = {name: value for name, value in headers.items() if name.lower() not in named}
    return {**tree, "upstream": {**upstream, "headers": {**added, **own}}}


def _over(common: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Return the common settings overridden by those of an exchange, table by table."""
    tables = {
        name: {**value, **mine} if isinstance(value, Mapping) and isinstance(mine, Mapping) else mine
        for name, value in common.items()
        if (mine := own.get(name)) is not None
    }
    return {**common, **own, **tables}


def _with(node: Any, path: SettingPath, value: object) -> Any:
    """Return a tree with a default value added at a path; leave a node that is not a table to validation."""
    name, *rest = path
    if not isinstance(node, Mapping):
        return node
    if name == "*":
        return {own: _with(inner, tuple(rest), value) for own, inner in node.items()}
    if not rest:
        return {name: value, **node}
    return {**node, name: _with(node.get(str(name), {}), tuple(rest), value)}
