"""The circuit breaker of a key: it refuses requests while the exchange does not accept the key."""

from typing import TYPE_CHECKING

import structlog

from sealgate.core.key_breaker import BreakerState, KeyFault, is_mismatch, key_fault
from sealgate.core.routes import Auth
from sealgate.core.venues.replies import Means, Verdict
from sealgate.errors import Refusal
from sealgate.gateway.platform.system import System
from sealgate.gateway.request.context import InFlightRequests, RequestContext

if TYPE_CHECKING:
    from sealgate.core.key_records import KeyRecord

# They say nothing of a key that is known to be good.
_HARMLESS = frozenset({Means.DONE, Means.REFUSED, Means.LIMITED, Means.UNKNOWN})
_FIXES = {
    KeyFault.INVALID: "compare keys.{alias}.api_key with the app, or run `sealgate check`",
    KeyFault.ADDRESS: "add this machine's public address to the key's whitelist in the app",
}

log = structlog.get_logger("sealgate.keys")


class KeyBreaker:
    """Learns from replies whether the exchange accepts a key; a reload begins with new, closed breakers.

    `record` is what the exchange's list says of it, None as long as that is not known.
    """

    def __init__(self, alias: str, in_flight: InFlightRequests, system: System) -> None:
        self._alias = alias
        self._in_flight = in_flight
        self._system = system
        self.state = BreakerState()
        self.record: KeyRecord | None = None

    def pass_or_refuse(self) -> None:
        """Let a request pass, as the trial where the key is disabled. Raises Refusal `key_disabled`."""
        if self.state.fault is None:
            return
        now = self._system.now()
        if not self.state.may_go(now):
            raise self._refusal(self.state.fault, now)
        self.state = self.state.tried(now)

    def observe(self, status: int, verdict: Verdict, sent_at: float) -> None:
        """Take in a reply to a signed request."""
        before = self.state
        if verdict.means in _HARMLESS and before.is_proven and not before.mismatches:
            return
        now = self._system.now()
        fault = key_fault(verdict)
        if fault is not None:
            self.state = before.refused(fault, sent_at, now)
        elif is_mismatch(verdict):
            self.state = before.mismatched(verdict.advice)
        else:
            self.state = before.answered(status, verdict, sent_at, now)
        self._log_trouble(before)
        if before.fault is None and self.state.fault is not None:
            self._disabled(self.state.fault, now)
        elif before.fault is not None and self.state.fault is None:
            log.info("key_enabled", key=self._alias)

    def confirm_mismatch(self) -> None:
        """Take in that the gateway's own read was among the refused signatures, which tells enough."""
        before = self.state
        self.state = before.confirmed()
        self._log_trouble(before)

    def enable(self) -> bool:
        """Use the key again at once; return whether it rested."""
        if self.state.fault is None:
            return False
        self.state = BreakerState()
        log.info("key_enabled", key=self._alias)
        return True

    def _log_trouble(self, before: BreakerState) -> None:
        if before.trouble is None and self.state.trouble is not None:
            fix = self.state.advice
            log.error("signatures_refused", key=self._alias, cause=self.state.trouble, fix=fix)

    def _disabled(self, fault: KeyFault, now: float) -> None:
        refusal = self._refusal(fault, now)
        refused = self._in_flight.stop(lambda context: refusal if self._is_mine(context) else None)
        fix = f"{fix_of(fault, self._alias)}; it is retried automatically"
        log.error("key_disabled", key=self._alias, cause=fault.value, refused=refused or None, fix=fix)

    def _is_mine(self, context: RequestContext) -> bool:
        ticket = context.ticket
        return context.breaker is self and ticket is not None and ticket.route.auth is Auth.SIGNED

    def _refusal(self, fault: KeyFault, now: float) -> Refusal:
        wait_s = max(0.0, self.state.trial_at - now)
        return Refusal(
            "key_disabled", f"The key {self._alias} is disabled for now: {fault}.", retry_after_s=wait_s
        )


def fix_of(fault: KeyFault, alias: str) -> str:
    """Return what a person does about a key that is refused."""
    return _FIXES[fault].format(alias=alias)
