"""The circuit breaker of a key: it refuses requests while the exchange is known not to accept the key."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from sealgate.errors import Refusal
from sealgate.keys.key_health import BreakerState, KeyFault, is_mismatch, key_fault
from sealgate.machine.system import System
from sealgate.venues.replies import Means, Verdict

if TYPE_CHECKING:
    from sealgate.keys.key_records import KeyRecord

# They say nothing of a key that is known to be good.
_HARMLESS = frozenset({Means.DONE, Means.REFUSED, Means.LIMITED, Means.UNKNOWN})
_FIXES = {
    KeyFault.INVALID: "compare keys.{alias}.api_key with the exchange's list, or run `sealgate check`",
    KeyFault.ADDRESS: "add this machine's public IP address to the key's whitelist at the exchange",
}

log = structlog.get_logger("sealgate.keys")

Stop = Callable[["KeyBreaker", Refusal], int]


class KeyBreaker:
    """Learns from replies whether the exchange accepts a key; a reload begins with new, closed breakers.

    `stop` ends the signed requests with this key that wait, and returns how many. `record` is the entry of
    the key in the exchange's list, None as long as that is not known.
    """

    def __init__(self, exchange: str, alias: str, stop: Stop, system: System) -> None:
        self._exchange = exchange
        self._alias = alias
        self._stop = stop
        self._system = system
        self.state = BreakerState()
        self.record: KeyRecord | None = None

    def check(self) -> None:
        """Raise Refusal `key_disabled` while the exchange does not take the key."""
        if self.state.fault is not None:
            raise self._refusal(self.state.fault, self._system.now())

    def observe(self, status: int, verdict: Verdict, sent_at: float) -> None:
        """Take in a reply to a signed request; none disables the key by itself, see `conclude`."""
        before = self.state
        if verdict.means in _HARMLESS and before.is_proven and not before.mismatches and before.doubt is None:
            return
        now = self._system.now()
        doubt = key_fault(verdict)
        if doubt is not None:
            self.state = before.doubted(doubt, sent_at, now)
        elif is_mismatch(verdict):
            self.state = before.mismatched(verdict.advice)
        else:
            self.state = before.answered(status, verdict, sent_at, now)
        self._log_change(before, now)

    def try_again(self) -> bool:
        """Return whether a signed read of the gateway's own is due, and count it as sent if it is."""
        now = self._system.now()
        if not self.state.is_trial_due(now):
            return False
        self.state = self.state.tried(now)
        return True

    def conclude(self, verdict: Verdict, asked_at: float) -> None:
        """Learn from the reply to the gateway's own signed read, which tells more than any other reply.

        A refusal confirms the doubt. A missing permission shows that the exchange knows the key: it is told
        of reads that are harmless, and never of a key that does not exist.
        """
        before, now = self.state, self._system.now()
        fault = key_fault(verdict)
        if fault is not None:
            self.state = before.refused(fault, asked_at, now)
        elif is_mismatch(verdict):
            self.state = before.confirmed()
        elif verdict.means is Means.PERMISSION:
            self.state = before.taken(now, is_proven=before.is_proven)
        self._log_change(before, now)

    def enable(self) -> bool:
        """Use the key again at once; return whether it rested."""
        if self.state.fault is None:
            return False
        self.state = BreakerState()
        log.info("key_enabled", exchange=self._exchange, key=self._alias)
        return True

    def hasten(self) -> None:
        """Let the gateway's next read of a disabled key go at once."""
        if self.state.fault is not None:
            self.state = replace(self.state, trial_at=self._system.now())

    def _log_change(self, before: BreakerState, now: float) -> None:
        if before.trouble is None and self.state.trouble is not None:
            log.error(
                "signatures_refused",
                exchange=self._exchange,
                key=self._alias,
                cause=self.state.trouble,
                fix=self.state.advice,
            )
        if before.fault is None and self.state.fault is not None:
            self._disabled(self.state.fault, now)
        elif before.fault is not None and self.state.fault is None:
            log.info("key_enabled", exchange=self._exchange, key=self._alias)

    def _disabled(self, fault: KeyFault, now: float) -> None:
        refusal = self._refusal(fault, now)
        refused = self._stop(self, refusal)
        log.error(
            "key_disabled",
            exchange=self._exchange,
            key=self._alias,
            cause=fault.value,
            refused=refused or None,
            fix=f"{fix_of(fault, self._alias)}; the gateway tests the key again automatically",
        )

    def _refusal(self, fault: KeyFault, now: float) -> Refusal:
        wait_s = max(0.0, self.state.trial_at - now)
        return Refusal(
            "key_disabled", f"The key {self._alias} is disabled for now: {fault}.", retry_after_s=wait_s
        )


def fix_of(fault: KeyFault, alias: str) -> str:
    """Return the fix for a refused key."""
    return _FIXES[fault].format(alias=alias)
