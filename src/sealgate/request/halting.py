"""Halt orders and lift halts, with immediate effect and, with a journal, over a restart."""

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import structlog

from sealgate.errors import Refusal
from sealgate.machine.system import System
from sealgate.orders.halts import UNKNOWN, Halt, Halts, Origin, Scope, is_stoppable
from sealgate.orders.journal import Journal, JournalError
from sealgate.orders.journal.halts import read_halts, write_halts
from sealgate.request.admission import Ticket
from sealgate.request.context import InFlightRequests, RequestContext

log = structlog.get_logger("sealgate.halts")

_NO_JOURNAL = "no journal.file is set"


@dataclass(frozen=True, slots=True)
class Halted:
    """The result of a change: the halts now, the waiting orders refused, and why a restart would end it.

    `forgotten_because` is None if it survives a restart. `had_been`: no halt changed. A resume names the
    halts that it `lifted`, and the `keys` that were disabled and are used again.
    """

    halts: Halts
    refused: int = 0
    forgotten_because: str | None = None
    had_been: bool = False
    lifted: Halts = field(default_factory=Halts)
    keys: tuple[Scope, ...] = ()


class Halting:
    """The halts in force. They survive a reload; `journal` is None if there is none.

    `is_draining` is set once, when the gateway begins to shut down: from then on it accepts no new orders.
    """

    def __init__(self, in_flight: InFlightRequests, journal: Journal | None, system: System) -> None:
        self._in_flight = in_flight
        self._journal = journal
        self._system = system
        self.is_draining = False
        self.halts = Halts() if journal is None else journal.run_now(read_halts)
        for halt in self.halts:
            log.warning("orders_halted", since_ms=halt.since_ms, **_logged(halt.scope, halt.origin))

    def check(self, ticket: Ticket, exchange: str) -> None:
        """Raise Refusal `halted` if a halt stops this request to an exchange."""
        if self.halts.by_scope and (halt := _found(self.halts, ticket, exchange)) is not None:
            raise _refusal(halt)

    async def halt(self, scope: Scope, origin: Origin = UNKNOWN) -> Halted:
        """Halt the orders of a scope, including waiting ones."""
        before = self.halts
        self.halts = before.extended(scope, int(self._system.wall() * 1000), origin)
        refused = self._in_flight.stop(self._reason)
        log.warning("orders_halted", refused=refused, **_logged(scope, origin))
        return Halted(self.halts, refused, await self._keep(), had_been=self.halts is before)

    async def resume(self, scope: Scope, origin: Origin = UNKNOWN) -> Halted:
        """Lift the halts within a scope; a wider halt stays in force."""
        lifted = self.halts.within(scope)
        self.halts = self.halts.without(scope)
        if lifted:
            log.info(
                "orders_resumed",
                scope=_listed(lifted),
                still_halted=_listed(self.halts),
                **asdict(origin),
            )
        return Halted(self.halts, 0, await self._keep(), had_been=not lifted, lifted=lifted)

    def _reason(self, context: RequestContext) -> Refusal | None:
        halt = None if context.ticket is None else _found(self.halts, context.ticket, context.exchange)
        return None if halt is None else _refusal(halt)

    async def _keep(self) -> str | None:
        """Store the halts; return why they will be forgotten, None if they are stored."""
        if self._journal is None:
            return _NO_JOURNAL
        try:  # the journal's thread works in the order of the calls, so that the file ends with the latest
            await self._journal.run(partial(write_halts, halts=self.halts))
        except JournalError as error:
            log.error("halts_not_written", cause=str(error))  # noqa: TRY400 - the cause says it all
            return str(error)
        return None


def _found(halts: Halts, ticket: Ticket, exchange: str) -> Halt | None:
    return halts.find(ticket.bot.name, ticket.key, exchange) if is_stoppable(ticket.route) else None


def _refusal(halt: Halt) -> Refusal:
    scope = halt.scope
    detail = f"Orders are halted ({scope.words}). The gateway's operator can lift the halt: `{scope.resume}`."
    return Refusal("halted", detail)


def _logged(scope: Scope, origin: Origin) -> dict[str, Any]:
    """Return the fields of a halt for the log."""
    return {"scope": scope.words, **asdict(origin), "fix": f"`{scope.resume}` lifts the halt"}


def _listed(halts: Halts) -> str | None:
    return "; ".join(halt.scope.words for halt in halts) or None
