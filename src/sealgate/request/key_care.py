"""Care for one key of a generation: test it once, again while in doubt or disabled, and read its expiry.

A key that no bot has used successfully yet is tested once after the start, so that a wrong secret is reported
before the first order. The reply is processed like the reply to a bot's request. Nothing waits for the test
or fails because of it: no reply, or a reply about something else, proves nothing about a key.
"""

from http import HTTPStatus

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.keys.key_breaker import fix_of
from sealgate.keys.key_health import KeyVerdict, is_mismatch, judge_key, key_fault
from sealgate.keys.key_records import KeyRecord, KeyState, find_record
from sealgate.machine.findings import RENEW
from sealgate.machine.system import System
from sealgate.request.own_reads import Deliverer, ask
from sealgate.venues.routes import Lane

_LOOK_S = 1.0
_FIRST_READ_S = 5.0  # bots that wait for the gateway go first, and their requests test the key as well
_READ_AGAIN_S = 3600.0
_DENIED = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
)  # it lacks a permission, or is unknown
# Events logged, once an hour, about a faulty key.
_TROUBLES = {
    KeyState.INACTIVE: "key_inactive",
    KeyState.ENDED: "key_expired",
    KeyState.ENDS_SOON: "key_expires_soon",
}

log = structlog.get_logger("sealgate.keys")


class KeyCare:
    """Runs while its pipeline is the current one.

    `key` has the names of exchange and key. `untried` are the keys not yet tested since the start; it is
    shared with the cares of other keys, and with those after a reload.
    """

    def __init__(
        self, pipeline: Deliverer, key: tuple[str, str], untried: set[tuple[str, str]], system: System
    ) -> None:
        self._pipeline = pipeline
        self._key = key
        exchange, self._alias = key
        self._where = {"exchange": exchange, "key": self._alias}
        self._live_key = pipeline.backend.exchange.live_keys[self._alias]
        self._untried = untried
        venue = pipeline.backend.config.venue
        self._signed_read, self._key_list = venue.signed_read, venue.key_list
        self._system = system
        self._try_at = self._read_at = system.now() + _FIRST_READ_S

    async def run(self) -> None:
        """Check once a second."""
        while True:
            await self._system.sleep(_LOOK_S)
            await self._try_again()
            await self._try_new()
            await self._read_due()

    async def _try_again(self) -> None:
        """Send a signed read if the key is in doubt or disabled, and the next test is due.

        The breaker logs a key that is accepted again, or disabled now.
        """
        breaker = self._live_key.breaker
        doubt, was_disabled = breaker.state.doubt, breaker.state.fault is not None
        if not breaker.try_again():
            return
        if doubt is not None and not self._signed_read:  # the key stays in use, see keys/key_health.py
            cause = f"{doubt.value}; the venue's file names no read in reads.signed that could confirm it"
            log.error("key_refused", **self._where, cause=cause, fix=fix_of(doubt, self._alias))
            return
        answer = await self._ask(self._signed_read)
        if answer is None:
            return
        fault = key_fault(answer.verdict)
        if fault is not None and was_disabled:
            fix = fix_of(fault, self._alias)
            log.warning("key_still_disabled", **self._where, cause=fault.value, fix=fix)
        elif fault is None and (breaker.state.fault or breaker.state.doubt) is not None:
            self._log_unread(self._signed_read, answer)
        elif fault is None and doubt is not None:
            cause = f"in one reply, {doubt.value}; a later reply shows that the key is accepted"
            log.warning("key_kept", **self._where, cause=cause)

    async def _try_new(self) -> None:
        """Send a signed read once the gateway has been ready for a while, unless bots have used the key.

        If a reload interrupts the read, the next care sends it.
        """
        if self._key not in self._untried:
            return
        if self._live_key.breaker.state.is_unknown and self._signed_read:
            if not self._may_try():
                return
            await self._try()
        self._untried.remove(self._key)

    def _may_try(self) -> bool:
        now = self._system.now()
        clock, key = self._pipeline.backend.exchange.clock, self._live_key.key
        if key.needs_clock and not clock.is_good_for(key.recv_window_ms, now):
            self._try_at = now + _FIRST_READ_S
        return now >= self._try_at and not self._pipeline.is_draining

    async def _try(self) -> None:
        try:
            answer = await self._answer(self._signed_read)
        except Refusal as refusal:
            log.info("key_not_proven", **self._where, cause=refusal.detail)
            return
        # The breaker logs faults and refused signatures.
        if not is_mismatch(answer.verdict) and key_fault(answer.verdict) is None:
            is_good = judge_key(answer.status, answer.verdict) is KeyVerdict.ACCEPTED
            event = "key_tried" if is_good else "key_not_proven"
            write = log.warning if answer.status in _DENIED else log.info
            write(event, **self._where, cause=f"a signed read was answered {answer.status}")

    async def _read_due(self) -> None:
        now = self._system.now()
        if self._live_key.key.session is not None and self._key_list and now >= self._read_at:
            self._read_at = now + _READ_AGAIN_S
            await self._read_record()

    async def _read_record(self) -> None:
        """Learn from the key's record in the exchange's list."""
        answer = await self._ask(self._key_list)
        if answer is None:
            return
        if answer.status != HTTPStatus.OK:
            self._log_unread(self._key_list, answer)
        elif (record := find_record(answer.body, self._live_key.key.api_key)) is not None:
            self._live_key.breaker.record = record
            self._warn(record)
        else:
            fix = f"check keys.{self._alias}.session: it must belong to the key's user"
            cause = "the exchange's list does not have it"
            log.warning("key_not_listed", **self._where, cause=cause, fix=fix)

    async def _ask(self, path: str) -> Answer | None:
        """Return the reply; if there is none, log that and return None."""
        try:
            return await self._answer(path)
        except Refusal as refusal:
            log.warning("key_not_asked_about", **self._where, path=path, cause=refusal.detail)
            return None

    def _log_unread(self, path: str, answer: Answer) -> None:
        cause = f"the answer was {answer.status}"
        log.warning("key_not_asked_about", **self._where, path=path, cause=cause)

    async def _answer(self, path: str) -> Answer:
        asked_at = self._system.now()
        answer = await ask(self._pipeline, self._alias, path, Lane.READ, self._system)
        if path == self._signed_read:
            self._live_key.breaker.conclude(answer.verdict, asked_at)
        return answer

    def _warn(self, record: KeyRecord) -> None:
        now = self._pipeline.backend.exchange.clock.server_now()
        days = round(record.days_left(now), 1) if record.expires_at is not None else None
        event = _TROUBLES.get(record.state(now))
        if event is not None:
            log.warning(event, **self._where, days=days, cause="the exchange's list says so", fix=RENEW)
