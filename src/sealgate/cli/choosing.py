"""What commands share that take a key of the configuration, a target or a venue."""

from typing import TYPE_CHECKING

from sealgate.cli.frame import leave_with_error

if TYPE_CHECKING:
    from sealgate.config import Config
    from sealgate.core.target import Target
    from sealgate.core.venues.venue import Venue


def chosen_alias(config: "Config", alias: str | None) -> str:
    """Return the alias that was given with --key, else the only one; leave with exit code 2 without it."""
    if alias is not None:
        return known_alias(config, alias)
    if len(config.keys) > 1:
        leave_with_error(f"there are several keys; choose one with --key: {', '.join(config.keys)}")
    return next(iter(config.keys))


def known_alias(config: "Config", alias: str) -> str:
    """Return an alias that is one; leave with exit code 2 where it is not."""
    if alias not in config.keys:
        leave_with_error(f"--key: there is no key {alias!r}; choose one of {', '.join(config.keys)}")
    return alias


def found_venue(name: str) -> "Venue":
    """Return the venue of a name or of a file's path; leave with exit code 2 where there is none."""
    from sealgate.config.venues import parse_venue

    try:
        return parse_venue(name)
    except ValueError as error:
        leave_with_error(str(error))


def checked_target(raw: str, prefix: str) -> "Target":
    """Return a target that the gateway would send; leave with exit code 2 where it would not."""
    from sealgate.core.target import parse_target
    from sealgate.errors import Refusal

    try:
        return parse_target(raw, prefix)
    except Refusal as refusal:
        leave_with_error(f"{refusal.slug}: {refusal.detail} {refusal.reason.advice}")


def shortened(api_key: str) -> str:
    """Return an API key's id as people tell it apart: its two ends."""
    return api_key if len(api_key) <= 12 else f"{api_key[:4]}…{api_key[-4:]}"  # noqa: PLR2004 - no gain below
