"""What a command was asked for, checked against the configuration."""

from sealgate.config import Config
from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target
from sealgate.machine.terminal import leave_with_error


def chosen_alias(config: Config, alias: str | None) -> str:
    """Return the alias that was given with --key, else the only one; leave with exit code 2 without it."""
    if alias is not None:
        return known_alias(config, alias)
    if len(config.keys) > 1:
        leave_with_error(f"there are several keys; choose one with --key: {', '.join(config.keys)}")
    return next(iter(config.keys))


def known_alias(config: Config, alias: str) -> str:
    """Return an alias that is one; leave with exit code 2 where it is not."""
    if alias not in config.keys:
        leave_with_error(f"--key: there is no key {alias!r}; choose one of {', '.join(config.keys)}")
    return alias


def checked_target(raw: str, prefix: str) -> Target:
    """Return a target that the gateway would send; leave with exit code 2 where it would not."""
    try:
        return parse_target(raw, prefix)
    except Refusal as refusal:
        leave_with_error(f"{refusal.slug}: {refusal.detail} {refusal.advice}")
