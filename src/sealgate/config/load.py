"""The way in: find the file, read the sources, validate the whole, and name every problem by its source."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from sealgate.config.consistency import inconsistencies
from sealgate.config.listing import anchored
from sealgate.config.names import SettingPath, dotted, variable
from sealgate.config.problems import MISSING, UNKNOWN, ConfigError, Problem, nearest_variable, problems_of
from sealgate.config.settings import Admin, Listen
from sealgate.config.sources import (
    DEFAULT_FILE,
    Layer,
    find_file,
    parse_text,
    read_environment,
    read_file,
    read_flags,
)
from sealgate.config.tree import Config

# What tells where the gateway is, and which; the second are also settings of each of several exchanges.
_TELLING_PLACES = ("admin.unix", "listen.tcp", "listen.unix", "admin.tcp")
_TELLING_EXCHANGES = ("venue", "environment", "base_url")
_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and where it came from: the file that was read, if any, and its layers, first wins."""

    config: Config
    file: Path | None
    layers: tuple[Layer, ...]


def load_config(
    file: Path | None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Load the configuration: flags before environment before file before defaults.

    `file` is the one that the user named; without it $SEALGATE_CONFIG, else ./sealgate.toml if there is one.
    `overrides` are flags by dotted name ("listen.tcp"), None for one that was not given; `environ` is the
    process's own unless given. Raises ConfigError, whose text has one line per problem and no secret.
    """
    return load_with_sources(file, overrides, environ).config


def load_with_sources(
    file: Path | None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Load as `load_config` does, and tell the sources, too."""
    environ = os.environ if environ is None else environ
    if environ.get("PYDANTIC_SETTINGS_DEBUG"):  # with it, pydantic-settings logs the value of every setting
        raise ConfigError(["PYDANTIC_SETTINGS_DEBUG: would write settings to the log; unset it"])
    found = find_file(file, environ)
    layers = (read_flags(overrides), read_environment(environ), _read_file(found))
    return Loaded(_whole(layers, has_file=found is not None), found, layers)


def load_text(text: str, file: Path, environ: Mapping[str, str]) -> Config:
    """Load a configuration as if a file had this text. Raises ConfigError."""
    layer = parse_text(text, file)
    in_file = replace(layer, tree=anchored(layer.tree, file.parent))
    return _whole((read_environment(environ), in_file), has_file=True)


def config_of(tree: dict[str, object]) -> Config:
    """Make a configuration of settings that a program has put together. Raises ConfigError."""
    return _whole((Layer(tree),), has_file=True)


def _whole(layers: tuple[Layer, ...], *, has_file: bool) -> Config:
    try:
        config = Config.of_trees([layer.tree for layer in layers])
    except ValidationError as error:
        problems = _told_once(problems_of(error), layers)
        if not has_file:
            problems = [_without_file(problem) for problem in problems]
    else:
        problems = inconsistencies(config)
        if not problems:
            return config
    # Raised here, outside the handler: a chained error would carry values into a traceback.
    raise ConfigError(_lines(problems, layers))


def _told_once(problems: list[Problem], layers: tuple[Layer, ...]) -> list[Problem]:
    """Leave out what an exchange has only taken over from the common tables, where it is wrong already."""
    common = {problem.path for problem in problems}
    return [
        problem
        for problem in problems
        if problem.path[:1] != ("exchanges",)
        or problem.path[2:] not in common
        or any(layer.depth(problem.path) == len(problem.path) for layer in layers)
    ]


def _read_file(found: Path | None) -> Layer:
    """Read a file, if there is one. What it names relatively stands in its own folder, or below."""
    if found is None:
        return Layer()
    layer = read_file(found)
    return replace(layer, tree=anchored(layer.tree, found.parent))


def is_configured(file: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether there is a configuration at all: a file, or a setting in the environment."""
    return find_file(file, environ) is not None or bool(read_environment(environ).tree)


def load_admin(file: Path | None, environ: Mapping[str, str]) -> Admin:
    """Return the table `admin` of a configuration, its defaults where there is none at all.

    Who asks a gateway may have another terminal than the one that has its variables. Raises ConfigError.
    """
    return load_config(file, environ=environ).admin if is_configured(file, environ) else Admin()


@dataclass(frozen=True, slots=True)
class OwnGateway:
    """How a configuration's own gateway is found, and recognized.

    `socket` is `admin.unix`. `identity` is what that gateway says of itself: `base_url` and `addresses_of`;
    it is empty if there is no configuration, or none that tells. `trouble` is what is wrong with the
    configuration, None if nothing is.
    """

    socket: Path | str | None = None
    identity: Mapping[str, str] = field(default_factory=dict)
    trouble: ConfigError | None = None


def addresses_of(listen: Listen, admin: Admin) -> dict[str, str]:
    """Return where a gateway is set to listen, except the admin socket: setting -> address, "" for none."""
    return {
        "listen.tcp": str(listen.tcp or ""),
        "listen.unix": str(listen.unix.absolute() if listen.unix else ""),
        "admin.tcp": str(admin.tcp or ""),
    }


def load_own_gateway(file: Path | None, environ: Mapping[str, str]) -> OwnGateway:
    """Read what a command must know of the gateway that it is for.

    Raises ConfigError if not even `admin.unix` can be read: anything else can wait until orders are halted.
    """
    # 1. A configuration without a mistake.
    try:
        config = load_config(file, environ=environ)
    except ConfigError as error:
        trouble = error
    else:
        return OwnGateway(config.admin.unix, _identity(config))
    # 2. None at all, which is no mistake here.
    layers = (read_environment(environ), _read_file(find_file(file, environ)))
    if not any(layer.tree for layer in layers):
        return OwnGateway()
    # 3. One with a mistake: what matters is read as if nothing else were written.
    named = [table for layer in layers if isinstance(table := layer.tree.get("exchanges"), Mapping)]
    exchanges = list(dict.fromkeys(name for table in named for name in table))
    tables = [f"exchanges.{name}." for name in exchanges] or [""]
    telling = [
        *_TELLING_PLACES,
        "environment",
        *(table + name for table in tables for name in _TELLING_EXCHANGES),
    ]
    written = {name: _written(name, layers) for name in telling}
    unix = written["admin.unix"]
    try:
        socket = Admin.model_validate({} if unix is None else {"unix": unix}).unix
    except ValidationError:
        raise trouble from None
    any_key = {"api_key": "any", "secret": "env:ANY", **({"exchanges": exchanges} if exchanges else {})}
    try:
        tree = read_flags({**written, "keys": {"any": any_key}}).tree
        return OwnGateway(socket, _identity(Config.of_trees([tree])), trouble)
    except ValidationError:
        return OwnGateway(socket, trouble=trouble)


def _identity(config: Config) -> dict[str, str]:
    return {"base_url": config.exchange_urls, **addresses_of(config.listen, config.admin)}


def _written(name: str, layers: tuple[Layer, ...]) -> object:
    """Return what the first source that has a setting says, None where none has it."""
    path = tuple(name.split("."))
    for layer in layers:
        if layer.depth(path) == len(path):
            value: object = layer.tree
            for part in path:
                value = value[part] if isinstance(value, Mapping) else None
            return value
    return None


def _without_file(problem: Problem) -> Problem:
    """Say where the file was looked for, where it is the exchange that nobody named."""
    if problem.path != ("base_url",) or not problem.text.startswith(MISSING):
        return problem
    where = f"missing: no {DEFAULT_FILE} in {Path.cwd()}"
    return replace(problem, text=f"{where}; make one with `sealgate config init`, or set SEALGATE_BASE_URL")


def check_whole(config: Config) -> None:
    """Check across tables what was put together of several configurations. Raises ConfigError."""
    if problems := inconsistencies(config):
        raise ConfigError([f"{dotted(problem.path)}: {problem.text}" for problem in problems])


def _lines(problems: Iterable[Problem], layers: tuple[Layer, ...]) -> list[str]:
    """Tell each problem in the words of its source: the one that set it, or most of what is around it."""
    told: list[tuple[Problem, str, str | None]] = []  # with where it is, and what is meant
    for problem in problems:
        source = max(layers, key=lambda layer: layer.depth(problem.path))
        written = source.written(problem.path) if problem.text == UNKNOWN else ()
        if written:  # a variable is told by its whole name, even if only the end of it is unknown
            told += [(problem, name, nearest_variable(name)) for name in written]
        else:
            is_set_there = source.depth(problem.path) > 0
            where = source.spell(problem.path) if is_set_there else dotted(problem.path)
            told.append((problem, where, source.name(problem.meant) if problem.meant else None))
    hints = {meant for _, _, meant in told if meant}
    hides_exchanges = any(problem.path == ("exchanges",) for problem, _, _ in told) or any(
        hint.startswith((dotted(("exchanges",)), variable(("exchanges",)))) for hint in hints
    )
    return [
        f"{where}: {problem.text}" + (f"; did you mean {meant}?" if meant else "")
        for problem, where, meant in told
        if not problem.text.startswith(MISSING)
        or not (_is_hidden(problem.path, hints) or (problem.path == ("base_url",) and hides_exchanges))
    ]


def _is_hidden(missing: SettingPath, hints: Container[str]) -> bool:
    """Whether a setting is missing because it is misspelt, or the venue is that would have an address."""
    venue = [(*missing[:-1], "venue")] if missing[-1] == "base_url" else []
    return any(dotted(path) in hints or variable(path) in hints for path in (missing, *venue))
