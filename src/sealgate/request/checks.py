"""Extra checks that only some requests need: policy, validity, prices."""

import structlog

from sealgate.exchange.answer import Answer
from sealgate.machine.system import System
from sealgate.orders.policy import Checks
from sealgate.orders.prices import Prices
from sealgate.orders.validity import begin_validity
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.generation import Backend
from sealgate.venues.routes import Auth

log = structlog.get_logger("sealgate.policy")

_SIGNED = Auth.SIGNED
_FEWER_PRICES = (
    "policy.max_notional cannot use this reply, because it is too large; let the bot read the prices of "
    "fewer symbols at once (at most 256 KiB, decompressed)"
)


class OrderChecks:
    """Checks orders against X-Gateway-Valid-Ms and the policy of their bot."""

    def __init__(self, backend: Backend, system: System) -> None:
        self._backend = backend
        self._system = system

    async def check(
        self, ticket: Ticket, checks: Checks, body: bytes, since: float, context: RequestContext
    ) -> None:
        """Check an order whose head was read at `since`, and count it as used. Raises Refusal."""
        live_key, clock = self._backend.exchange.live_keys[ticket.key], self._backend.exchange.clock
        # 1. Fix when its X-Gateway-Valid-Ms ends: no wait that follows extends it.
        if checks.valid_ms:
            key = live_key.key
            window_ms = key.recv_window_ms if key.dates_back and ticket.route.auth is _SIGNED else None
            context.validity = begin_validity(checks.valid_ms, since, key.alias, window_ms)
            context.give_up_at = min(context.give_up_at, context.validity.until)
        if checks.guard is None:
            return
        # 2. Count the orders of an earlier run, by the exchange's clock, which the order itself needs as
        #    well.
        policies, name = self._backend.rules.policies, self._backend.config.name
        if policies.is_undated(name):
            await clock.wait_until_good(context.give_up_at, live_key.key.recv_window_ms)
            policies.date(name, clock.server_now(), self._system.now())
        # 3. Apply the policies; one in dry run reports why it would have refused.
        passed = checks.guard.admit(ticket.route, ticket.target, ticket.head, body, self._system.now())
        context.detail = passed.observed
        if passed.used is not None:
            context.used = checks.guard.usage, passed.used


def learn_prices(
    prices: Prices, ticket: Ticket, body: bytes, answer: Answer, context: RequestContext
) -> None:
    """Learn prices from a fresh reply: those of a stored one may have been replaced since."""
    shape = ticket.route.prices
    if shape is not None and context.shared is None and answer.is_success:
        replied = answer.body if answer.remainder is None else None
        coding = answer.head.content_coding
        prices.learn((ticket.target.raw, body), shape, replied, coding, now=context.sent_at)
    for path in prices.new_faults():
        log.warning("prices_not_read", exchange=context.exchange, path=path, fix=_FEWER_PRICES)
