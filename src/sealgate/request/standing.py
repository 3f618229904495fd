"""Whether an admitted request may be sent now: halts, firewalls' refusals, refused keys."""

from typing import Final

from sealgate.errors import Refusal
from sealgate.orders.halts import is_stoppable
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.generation import Backend
from sealgate.request.halting import Halting
from sealgate.venues.routes import Auth

_SIGNED: Final = Auth.SIGNED


class Standing:
    """Whether requests to one exchange may be sent at this moment."""

    def __init__(self, backend: Backend, halting: Halting) -> None:
        self._name = backend.config.name
        self._exchange = backend.exchange
        self._halting = halting

    def check_new(self, ticket: Ticket) -> None:
        """Raise Refusal `draining` for a new order while the gateway is shutting down."""
        if self._halting.is_draining and is_stoppable(ticket.route):
            raise Refusal("draining", "The gateway is shutting down.")

    def check(self, ticket: Ticket, context: RequestContext, now: float) -> None:
        """Raise Refusal `halted`, `rate_limited` after a firewall's refusal, or `key_disabled`.

        It is called before each wait and again right before the first byte. Requests that wait in between are
        stopped by the halt or the breaker itself: see `InFlightRequests.stop`.
        """
        self._halting.check(ticket, self._name)
        gates = self._exchange.gates
        if gates.firewall.is_alert:
            gates.check_firewall(ticket.bot.name, route_name(ticket), now)
        # The gateway's own reads have no breaker, because they test disabled keys.
        if context.breaker is not None and ticket.route.auth is _SIGNED:
            context.breaker.check()


def route_name(ticket: Ticket) -> str:
    """Return the name under which a firewall's refusal pauses a request: its route, else its path."""
    return f"{ticket.method} {ticket.route.template if ticket.route.is_named else ticket.target.path}"
