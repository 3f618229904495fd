"""The settings that only a restart changes: what has been opened with them stays open over a reload."""

from collections.abc import Iterator

from sealgate.config import Config

_FREE = {
    "listen": frozenset({"hosts", "max_body", "body_timeout", "drain"}),
    "limits": frozenset({"known", "replay_429", "max_wait", "queue"}),
}
_FIXED_TABLES = ("listen", "admin", "journal", "log", "limits")


def with_fixed(config: Config, running: Config) -> Config:
    """Return the new configuration with those settings as they run."""
    tables = {name: _kept(name, config, running) for name in _FIXED_TABLES}
    return config.model_copy(update=tables)


def waiting_for_restart(config: Config, running: Config) -> tuple[str, ...]:
    """Return the names of settings that have changed, and take effect only after a restart."""
    return tuple(f"{table}.{name}" for table, name in _differences(config, running))


def _kept(table: str, config: Config, running: Config) -> object:
    differing = {name: getattr(getattr(running, table), name) for name in _fixed_names(table, config)}
    return getattr(config, table).model_copy(update=differing)


def _differences(config: Config, running: Config) -> Iterator[tuple[str, str]]:
    for table in _FIXED_TABLES:
        for name in _fixed_names(table, config):
            if getattr(getattr(config, table), name) != getattr(getattr(running, table), name):
                yield table, name


def _fixed_names(table: str, config: Config) -> list[str]:
    free = _FREE.get(table, frozenset())
    return [name for name in type(getattr(config, table)).model_fields if name not in free]
