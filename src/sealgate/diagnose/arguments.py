"""The arguments of a command, checked against the configuration."""

from collections.abc import Callable

from sealgate.config import Config, ExchangeConfig
from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target
from sealgate.machine.nearest import nearest
from sealgate.machine.terminal import leave_with_error


def chosen_exchange(
    config: Config,
    name: str | None,
    alias: str | None = None,
    suits: Callable[[ExchangeConfig], bool] = lambda _: True,
) -> ExchangeConfig:
    """Return the exchange that a command concerns; exit with code 2 if that is ambiguous, or none fits.

    `name` was given with --exchange, `alias` with --key; `suits` selects the exchanges that the command
    serves.
    """
    exchanges = config.served
    # 1. The exchange that was named.
    if name is not None and name not in exchanges:
        near = nearest(name, exchanges)
        hint = f"did you mean {near}?" if near else f"choose one of {', '.join(exchanges)}"
        leave_with_error(f"--exchange: there is no exchange {name!r}; {hint}")
    if name is not None:
        return exchanges[name]
    # 2. The exchanges where the key is valid, and of these, the ones that the command serves.
    if alias is not None and alias not in config.keys:
        leave_with_error(f"--key: there is no key {alias!r}; choose one of {', '.join(config.keys)}")
    possible = [one for one in exchanges.values() if alias is None or alias in one.keys]
    suitable = [one for one in possible if suits(one)] or possible
    if len(suitable) > 1:
        several = "there are several exchanges" if alias is None else f"{alias} is valid at several exchanges"
        names = ", ".join(one.name for one in suitable)
        leave_with_error(f"{several}; choose one with --exchange: {names}")
    return suitable[0]


def chosen_alias(exchange: ExchangeConfig, alias: str | None) -> str:
    """Return the alias given with --key, else the only one; exit with code 2 if there are several."""
    if alias is not None:
        return known_alias(exchange, alias)
    if len(exchange.keys) > 1:
        leave_with_error(f"there are several keys; choose one with --key: {', '.join(exchange.keys)}")
    return next(iter(exchange.keys))


def known_alias(exchange: ExchangeConfig, alias: str) -> str:
    """Return the alias if its key is valid at the exchange; exit with code 2 if not."""
    if alias not in exchange.keys:
        unknown = f"{alias!r} is not a key of {exchange.name}" if exchange.at else "there is no key "
        f"{alias!r}"
        leave_with_error(f"--key: {unknown}; choose one of {', '.join(exchange.keys)}")
    return alias


def checked_target(raw: str, prefix: str) -> Target:
    """Return the parsed target; exit with code 2 if the gateway would refuse it."""
    try:
        return parse_target(raw, prefix)
    except Refusal as refusal:
        leave_with_error(f"{refusal.slug}: {refusal.detail} {refusal.advice}")
