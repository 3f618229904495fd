"""All that one configuration makes of the gateway's parts: frozen, and replaced as a whole by a reload."""

from dataclasses import dataclass

from sealgate.config import Config
from sealgate.exchange.exchange import Exchange
from sealgate.request.admission import Rules


@dataclass(frozen=True, slots=True)
class Generation:
    """What the pipeline works with."""

    config: Config
    rules: Rules
    exchange: Exchange
