"""All that one configuration makes of the gateway's parts: frozen, and replaced as a whole by a reload."""

from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.config import Config, ExchangeConfig
from sealgate.exchange.exchange import Exchange
from sealgate.orders.policy import PolicyMemory
from sealgate.request.admission import Rules


@dataclass(frozen=True, slots=True)
class Backend:
    """One exchange, with the settings and rules that a configuration gives it: what a pipeline works with."""

    config: ExchangeConfig
    rules: Rules
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Generation:
    """The exchanges of a configuration, by name. `policies` is what its bots have used of theirs."""

    config: Config
    policies: PolicyMemory
    backends: Mapping[str, Backend]
