"""Read prices for the policies that need them, while no bot reads prices through the gateway."""

import structlog

from sealgate.errors import Refusal
from sealgate.machine.system import System
from sealgate.orders.price_reads import PriceReads
from sealgate.orders.prices import Prices
from sealgate.request.own_reads import Deliverer, ask
from sealgate.venues.routes import Lane

_LOOK_S = 1.0
_FIX = "name a read of one symbol in [reads] prices of a venue file of your own: a reply may have 256 KiB"

log = structlog.get_logger("sealgate.policy")


class PriceCare:
    """Runs while its pipeline is the current one. `prices` are those of its exchange."""

    def __init__(self, pipeline: Deliverer, prices: Prices, system: System) -> None:
        backend = pipeline.backend
        self._pipeline = pipeline
        self._prices = prices
        policies = (policy for guard in backend.rules.guards.values() for policy in guard.policies)
        named = (policy.named_symbols for policy in policies if policy.value_rule is not None)
        self._reads = PriceReads(backend.config.venue.price_reads, frozenset().union(*named))
        self._system = system
        self._exchange = backend.config.name

    async def run(self) -> None:
        """Check once a second."""
        while True:
            await self._system.sleep(_LOOK_S)
            if self._pipeline.is_draining:
                continue
            if (alias := self._key_in_use()) is None:
                continue
            for target in self._reads.due(self._prices, self._system.now()):
                await self._read(target, alias)

    def _key_in_use(self) -> str | None:
        """Return the first key that is not disabled: only `KeyCare` tests disabled keys."""
        keys = self._pipeline.backend.exchange.live_keys
        return next((alias for alias, key in keys.items() if key.breaker.state.fault is None), None)

    async def _read(self, target: str, alias: str) -> None:
        path = target.partition("?")[0]
        rules = self._pipeline.backend.rules
        route = rules.routes.find("GET", path[len(rules.prefix) :])
        try:
            answer = await ask(self._pipeline, alias, target, Lane.READ, self._system)
        except Refusal as refusal:
            log.warning("prices_not_asked", exchange=self._exchange, path=path, cause=refusal.detail)
            return
        if route.prices is None or not answer.is_success:
            log.warning(
                "prices_not_asked",
                exchange=self._exchange,
                path=path,
                cause=f"the answer was {answer.status}",
            )
            return
        body = answer.body if answer.remainder is None else None
        self._prices.learn(
            (target, b""), route.prices, body, answer.head.content_coding, now=self._system.now()
        )
        self._prices.read()
        for unread in self._prices.new_faults():
            log.warning("prices_not_read", exchange=self._exchange, path=unread, fix=_FIX)
