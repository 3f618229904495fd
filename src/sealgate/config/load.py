"""The way in: find the file, read the sources, validate the whole, and name every problem by its source."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_settings import InitSettingsSource

from sealgate.config.consistency import inconsistencies
from sealgate.config.model import Config
from sealgate.config.paths import dotted
from sealgate.config.problems import ConfigError, Problem, problems_of
from sealgate.config.sources import Layer, find_file, read_environment, read_file, read_flags

_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


def load_config(
    file: File | None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Load the configuration: flags before environment before file before defaults.

    `file` is the one that the user named; without it $SEALGATE_CONFIG, else ./sealgate.toml if there is one.
    `overrides` are flags by dotted name ("listen.tcp"), None for one that was not given; `environ` is the
    process's own unless given. Raises ConfigError, whose text has one line per problem and no secret.
    """
    environ = os.environ if environ is None else environ
    _refuse_debugging(environ)
    found = find_file(file, environ)
    layers = (read_flags(overrides), read_environment(environ), read_file(found) if found else Layer())
    try:
        config = _build(layers)
    except ValidationError as error:
        problems = problems_of(error)
    else:
        problems = inconsistencies(config)
        if not problems:
            return config
    # Raised here, outside the handler: a chained error would carry values into a traceback.
    raise ConfigError(_lines(problems, layers))


def check_whole(config: Config) -> None:
    """Check across tables what was put together of several configurations. Raises ConfigError."""
    if problems := inconsistencies(config):
        raise ConfigError([f"{dotted(problem.path)}: {problem.text}" for problem in problems])


def _refuse_debugging(environ: Mapping[str, str]) -> None:
    # With it, pydantic-settings logs the value of every setting.
    if environ.get("PYDANTIC_SETTINGS_DEBUG"):
        raise ConfigError(["PYDANTIC_SETTINGS_DEBUG: would write settings to the log; unset it"])


def _build(layers: tuple[Layer, ...]) -> Config:
    sources = tuple(InitSettingsSource(Config, layer.tree) for layer in layers)
    return Config(_build_sources=(sources, {}))  # type: ignore[call-arg]  # mypy sees the fields alone


def _lines(problems: Iterable[Problem], layers: tuple[Layer, ...]) -> list[str]:
    return [_line(problem, layers) for problem in problems]


def _line(problem: Problem, layers: tuple[Layer, ...]) -> str:
    """Tell a problem in the words of the source that set it, or that set most of what is around it."""
    source = max(layers, key=lambda layer: layer.depth(problem.path))
    known = source.depth(problem.path) > 0
    where = source.spell(problem.path) if known else dotted(problem.path)
    hint = f"; did you mean {source.name(problem.meant)}?" if problem.meant else ""
    return f"{where}: {problem.text}{hint}"
