"""Keeps the clock on the exchange's: asks `/time` again and again, and at once when it is wanted.

It has a connection of its own, kept open over the interval, so that a sample neither waits behind orders nor
takes the place of one.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock import Sample, Sampling
from sealgate.exchange.failure import Failure
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.pool import Upstream
from sealgate.exchange.refused_reads import refused_unsigned
from sealgate.limits.claims import OWN_BOT, Claim
from sealgate.limits.pacer import SCOUT_S
from sealgate.limits.scheduler import Gates, Permit
from sealgate.machine.findings import REACH, WAIT
from sealgate.machine.system import System
from sealgate.venues.replies import Means
from sealgate.venues.routes import Lane
from sealgate.venues.server_time import ServerTime, UnreadableTimeError, parse_http_date, parse_server_time

_ANYWHERE = "/"  # of which the Date is all that is wanted, whatever the status
_LOOK_S = 1.0

log = structlog.get_logger("sealgate.clock")


@dataclass(frozen=True, slots=True)
class TimeSource:
    """Where the time is asked for, and how often. `field` is a JSON pointer, "" finds the time by itself.

    `path` is "" where the exchange has none: then the `Date` of any reply says the time, to half a second.
    """

    path: str
    field: str
    interval_s: float


class ClockKeeper:
    """Feeds a clock. `upstream` is the keeper's own, and is closed with it.

    Its requests pass the gate of open requests, as bots' do. While no key may be used it asks nothing: the
    clock coasts on its bound.
    """

    def __init__(
        self, source: TimeSource, clock: KeptClock, upstream: Upstream, gates: Gates, system: System
    ) -> None:
        self.gates = gates
        self._source = source
        self._clock = clock
        self._upstream = upstream
        self._system = system
        self._sampling = Sampling()
        self._field: str | None = None

    async def run(self) -> None:
        """Take samples until cancelled."""
        try:
            while True:
                try:
                    await self._take_sample()
                except Exception:  # whatever a reply does to us, the next one is asked for
                    log.exception("clock_sample_failed")
                    self._sampling = self._sampling.failed()
                    self._clock.trouble = "a reply of the exchange could not be processed"
                await self._rest()
        finally:
            await self._upstream.close()

    async def _rest(self) -> None:
        while (left_s := self._shut_until() - self._system.now()) > 0:
            if self._clock.error_s() is None:
                self._log("not asked: the exchange has shut out this address or key", fix=WAIT)
            await self._system.sleep(min(left_s, _LOOK_S))  # a timer may not count suspend
            self._clock.due.set()
        error_s = self._clock.error_s() if self._source.path else None  # a Date stays poor: no hurry for more
        gap = self._sampling.gap(self._source.interval_s, error_s or 0.0)
        await self._system.sleep(gap.soonest_s)  # nothing shortens this, however many want a sample
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(gap.latest_s - gap.soonest_s):
                await self._clock.due.wait()
        self._clock.due.clear()

    def _shut_until(self) -> float:
        """Return until when nothing is asked: no key may be used, or open requests have a pause.

        After a pause a bot's request goes first, and alone, unless it needs a better clock for that.
        """
        until = max(self.gates.shut_until, self.gates.of_open.paused_until)
        if self._clock.not_ready is None:
            until = max(until, self.gates.reopened_at + SCOUT_S)
        return max(until, self.gates.firewall.paused_until(OWN_BOT, self._source.path))

    async def _take_sample(self) -> None:
        timeout_s, now = self._upstream.destination.total_timeout_s, self._system.now()
        if self._shut_until() > now:
            return
        scheduler = self.gates.of_open
        claim = Claim(self._system.request_id(), OWN_BOT, Lane.CANCEL, now + timeout_s, is_read=True)
        try:
            permit = scheduler.pass_at_once(claim, now) or await scheduler.pass_through(claim)
        except Refusal as refusal:
            self._sampling = self._sampling.failed()
            self._log(refusal.detail, fix=WAIT)
            return
        if isinstance(permit, Permit):  # and no Shared: nothing is like it
            with permit:
                await self._ask(permit, timeout_s)

    async def _ask(self, permit: Permit, timeout_s: float) -> None:
        connection = await self._upstream.connect(Lane.CANCEL, timeout_s)
        sent = self._system.now()
        answer: Answer | Failure
        if isinstance(connection, Failure):
            answer = connection
        elif permit.is_paused(sent):
            connection.release()
            return
        else:
            request = self._upstream.head("GET", self._source.path or _ANYWHERE) + b"\r\n"
            permit.has_waited = True
            permit.goes(sent)
            answer = await connection.exchange(request, timeout_s, is_head=False)
        if isinstance(answer, Answer):
            self._tell(answer, permit, sent)
        if isinstance(answer, Failure):
            self._sampling = self._sampling.failed()
            self._log(answer.detail, fix=REACH)
        else:
            trouble = self._read(answer, sent, self._system.now())
            _, fix = refused_unsigned(answer.status, answer.verdict)
            self._log(trouble, fix=fix or "check base_url, clock.path and clock.field")

    def _tell(self, answer: Answer, permit: Permit, sent: float) -> None:
        """Let the gate know what a reply says of the limit; all close if the address is shut out."""
        permit.answered(self._clock.taught_by(answer.verdict, answer.head), self._system.now())
        if answer.verdict.shuts_out_address(is_open=True):
            self.gates.hold(permit.paused_until)
        self._clock.turned_away(answer.verdict.advice if answer.verdict.means is Means.COUNTRY else "")
        path, now, wait = self._source.path or _ANYWHERE, self._system.now(), answer.verdict.wait
        if answer.verdict.means is Means.FIREWALL:
            if self._source.path:  # a page at the root says nothing: some exchanges always refuse it
                self.gates.refused_by_firewall(OWN_BOT, path, sent, now, wait)
        elif self.gates.firewall.is_alert:
            self.gates.firewall.accepted(OWN_BOT, path, sent)

    def _read(self, answer: Answer, sent: float, received: float) -> str | None:
        """Take a reply of `/time` in; return what is wrong with it, None if nothing is."""
        if answer.remainder is not None:
            answer.remainder.abandon()
        if not self._source.path:
            return self._read_date(answer, sent, received)
        try:
            found = time_in(answer, self._source.field)
        except UnreadableTimeError as error:
            self._sampling = self._sampling.failed()
            if answer.verdict.means is not Means.COUNTRY:  # then it is the time of what stands in front of it
                self._try_date(answer, sent, received)
            return f"{self._source.path}: {error}"
        self._sampling = self._sampling.taken((received - sent) / 2)
        self._field = found.field
        self._clock.observe(Sample(sent, received, found.seconds, found.resolution))
        return None

    def _read_date(self, answer: Answer, sent: float, received: float) -> str | None:
        seconds = date_in(answer)
        if answer.verdict.means is Means.COUNTRY:
            self._sampling = self._sampling.failed()
            return refused_unsigned(answer.status, answer.verdict)[0]
        if seconds is None or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._sampling = self._sampling.failed()
            return f"the exchange has no time path, and its answer {answer.status} has no Date"
        self._sampling = self._sampling.taken((received - sent) / 2)
        self._field = "Date"
        self._clock.observe(Sample(sent, received, seconds, 1.0))
        return None

    def _try_date(self, answer: Answer, sent: float, received: float) -> None:
        seconds = date_in(answer)
        if seconds is not None:
            self._clock.observe_date(Sample(sent, received, seconds, 1.0))

    def _log(self, trouble: str | None, fix: str) -> None:
        """Log what has changed since the last sample."""
        if trouble == self._clock.trouble:
            return
        self._clock.trouble = trouble
        if trouble is not None:
            meanwhile = "signing goes on with what is known" if self._clock.error_s() is not None else None
            log.warning("clock_trouble", cause=trouble, fix=fix, meanwhile=meanwhile)
            return
        offset_ms, error_ms = (
            round(self._clock.offset_s() * 1000, 1),
            self._clock.error_ms(self._system.now()),
        )
        log.info("clock_synced", offset_ms=offset_ms, error_ms=error_ms, field=self._field)


def date_in(answer: Answer) -> float | None:
    """Return what the Date header of a reply says, None where it says nothing."""
    date = next((value for name, value in answer.head.passed if name.lower() == b"date"), b"")
    return parse_http_date(date.decode("latin-1"))


def time_in(answer: Answer, field: str) -> ServerTime:
    """Return the time in a reply of `/time`; `field` is as in `TimeSource`. Raises UnreadableTimeError."""
    if answer.status != HTTPStatus.OK:
        raise UnreadableTimeError(refused_unsigned(answer.status, answer.verdict)[0])
    return parse_server_time(answer.body, field)
