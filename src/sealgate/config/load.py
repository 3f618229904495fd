"""Load the configuration: find the file, read the sources, validate, and name each problem by its source."""

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

# The settings that locate and identify a gateway; the second group also exists per exchange.
_TELLING_PLACES = ("admin.unix", "listen.tcp", "listen.unix", "admin.tcp")
_TELLING_EXCHANGES = ("venue", "environment", "base_url")
_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with its sources: the file, if one was read, and the layers, the strongest first."""

    config: Config
    file: Path | None
    layers: tuple[Layer, ...]


def load_config(
    file: Path | None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Load the configuration: flags override the environment, which overrides the file and the defaults.

    `file` is the one that the user named; without it, $SEALGATE_CONFIG, else ./sealgate.toml if it exists.
    `overrides` are flags by dotted name ("listen.tcp"), None if not given. `environ` defaults to the
    process's own. Raises ConfigError, whose text has one line per problem and no secret.
    """
    return load_with_sources(file, overrides, environ).config


def load_with_sources(
    file: Path | None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Load as `load_config` does, and return the sources as well."""
    environ = os.environ if environ is None else environ
    if environ.get("PYDANTIC_SETTINGS_DEBUG"):  # with it, pydantic-settings logs the value of every setting
        raise ConfigError(["PYDANTIC_SETTINGS_DEBUG: it would write settings to the log; unset it"])
    found = find_file(file, environ)
    layers = (read_flags(overrides), read_environment(environ), _read_file(found))
    return Loaded(_whole(layers, has_file=found is not None), found, layers)


def load_text(text: str, file: Path, environ: Mapping[str, str]) -> Config:
    """Load a configuration as if a file had this text. Raises ConfigError."""
    layer = parse_text(text, file)
    in_file = replace(layer, tree=anchored(layer.tree, file.parent))
    return _whole((read_environment(environ), in_file), has_file=True)


def config_of(tree: dict[str, object]) -> Config:
    """Make a configuration from settings assembled by a program. Raises ConfigError."""
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
    """Leave out problems of settings that an exchange inherited: they are reported at the common table."""
    common = {problem.path for problem in problems}
    return [
        problem
        for problem in problems
        if problem.path[:1] != ("exchanges",)
        or problem.path[2:] not in common
        or any(layer.depth(problem.path) == len(problem.path) for layer in layers)
    ]


def _read_file(found: Path | None) -> Layer:
    """Read a file, if there is one; resolve its relative paths from its own folder."""
    if found is None:
        return Layer()
    layer = read_file(found)
    return replace(layer, tree=anchored(layer.tree, found.parent))


def is_configured(file: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether any configuration exists: a file, or a setting in the environment."""
    return find_file(file, environ) is not None or bool(read_environment(environ).tree)


def load_admin(file: Path | None, environ: Mapping[str, str]) -> Admin:
    """Return the table `admin` of a configuration, or the defaults if there is no configuration.

    A client may run in another terminal, without the gateway's environment variables. Raises ConfigError.
    """
    return load_config(file, environ=environ).admin if is_configured(file, environ) else Admin()


@dataclass(frozen=True, slots=True)
class OwnGateway:
    """How to find and recognize a configuration's own gateway.

    `socket` is `admin.unix`. `identity` is what that gateway reports of itself: `base_url` and
    `addresses_of`; it is empty if there is no configuration, or none that can be read. `trouble` is the
    configuration's problem, or None.
    """

    socket: Path | str | None = None
    identity: Mapping[str, str] = field(default_factory=dict)
    trouble: ConfigError | None = None


def addresses_of(listen: Listen, admin: Admin) -> dict[str, str]:
    """Return a gateway's listen addresses, except the admin socket: setting -> address, "" for none."""
    return {
        "listen.tcp": str(listen.tcp or ""),
        "listen.unix": str(listen.unix.absolute() if listen.unix else ""),
        "admin.tcp": str(admin.tcp or ""),
    }


def load_own_gateway(file: Path | None, environ: Mapping[str, str]) -> OwnGateway:
    """Read the settings with which a command finds its gateway.

    Raises ConfigError only if `admin.unix` itself cannot be read: other problems can wait until orders are
    halted.
    """
    # 1. A valid configuration.
    try:
        config = load_config(file, environ=environ)
    except ConfigError as error:
        trouble = error
    else:
        return OwnGateway(config.admin.unix, _identity(config))
    # 2. No configuration, which is not an error here.
    layers = (read_environment(environ), _read_file(find_file(file, environ)))
    if not any(layer.tree for layer in layers):
        return OwnGateway()
    # 3. An invalid configuration: read the settings needed here as if nothing else were written.
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
    """Return a setting's value in the first source that sets it, or None."""
    path = tuple(name.split("."))
    for layer in layers:
        if layer.depth(path) == len(path):
            value: object = layer.tree
            for part in path:
                value = value[part] if isinstance(value, Mapping) else None
            return value
    return None


def _without_file(problem: Problem) -> Problem:
    """Add the place where the file was looked for, if the missing setting is the exchange."""
    if problem.path != ("base_url",) or not problem.text.startswith(MISSING):
        return problem
    where = f"missing: no {DEFAULT_FILE} in {Path.cwd()}"
    return replace(problem, text=f"{where}; make one with `sealgate config init`, or set SEALGATE_BASE_URL")


def check_whole(config: Config) -> None:
    """Check a configuration that was assembled from several, across tables. Raises ConfigError."""
    if problems := inconsistencies(config):
        raise ConfigError([f"{dotted(problem.path)}: {problem.text}" for problem in problems])


def _lines(problems: Iterable[Problem], layers: tuple[Layer, ...]) -> list[str]:
    """Name each problem as its source does: the source that sets it, or most of the settings around it."""
    told: list[tuple[Problem, str, str | None]] = []  # problem, its place, and the setting probably meant
    for problem in problems:
        source = max(layers, key=lambda layer: layer.depth(problem.path))
        written = source.written(problem.path) if problem.text == UNKNOWN else ()
        if written:  # name a variable in full, even if only its end is unknown
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
    """Whether a setting is missing only because it, or the venue that would supply it, is misspelt."""
    venue = [(*missing[:-1], "venue")] if missing[-1] == "base_url" else []
    return any(dotted(path) in hints or variable(path) in hints for path in (missing, *venue))
