"""The parts of the gateway made from one configuration: frozen, and replaced as a whole by a reload."""

from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.config import Config, ExchangeConfig
from sealgate.exchange.exchange import Exchange
from sealgate.orders.policy import PolicyMemory
from sealgate.request.admission import Rules


@dataclass(frozen=True, slots=True)
class Backend:
    """One exchange with its settings and rules from one configuration, for a pipeline."""

    config: ExchangeConfig
    rules: Rules
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Generation:
    """The exchanges of a configuration, by name. `policies` has the bots' use of their policies."""

    config: Config
    policies: PolicyMemory
    backends: Mapping[str, Backend]
