"""Keeps our clock of the exchange: asks for the time at intervals, and at once when a sample is wanted.

The keeper has a connection of its own, kept open between samples: a sample neither waits behind orders nor
takes a connection from them.
"""

import asyncio
import contextlib
from dataclasses import dataclass, replace
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
from sealgate.limits.pool import SCOUT_S
from sealgate.limits.scheduler import Gates, Permit
from sealgate.machine.findings import REACH, WAIT
from sealgate.machine.system import System
from sealgate.venues.replies import Means, Scope
from sealgate.venues.routes import Lane
from sealgate.venues.server_time import ServerTime, UnreadableTimeError, parse_http_date, parse_server_time

_ANY_PATH = "/"  # only the Date of the reply is wanted, whatever its status
_LOOK_S = 1.0

log = structlog.get_logger("sealgate.clock")


@dataclass(frozen=True, slots=True)
class TimeSource:
    """Where to ask for the time, and how often. `field` is a JSON pointer; with "" the time is searched for.

    `path` is "" where the exchange has no time path: then the `Date` of any reply gives it, to half a second.
    """

    path: str
    field: str
    interval_s: float


class ClockKeeper:
    """Feeds a clock with samples. `upstream` is the keeper's own, and is closed with it.

    Its requests pass the pools of open requests, as those of bots do. While one of these is closed, or no key
    may be used, it asks nothing: the clock then relies on its bound, which slowly widens.
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

    async def run(self) -> None:
        """Take samples until cancelled."""
        try:
            while True:
                try:
                    await self._take_sample()
                except Exception:  # a reply that breaks us must not end the samples
                    log.exception("clock_sample_failed", exchange=self._clock.exchange)
                    self._sampling = self._sampling.failed()
                    self._clock.trouble = "a reply of the exchange could not be processed"
                await self._rest()
        finally:
            await self._upstream.close()

    async def _rest(self) -> None:
        """Return when the next sample is due, or is wanted sooner."""
        # 1. While the gate is shut, look at it every second: a timer may not count a suspend.
        while (left_s := self._shut_until() - self._system.now()) > 0:
            if self._clock.error_s() is None:
                self._note("not asked: the exchange has blocked this IP address or key", fix=WAIT)
            await self._system.sleep(min(left_s, _LOOK_S))
            self._clock.due.set()
        # 2. `soonest_s` passes however urgently a sample is wanted. (The bound of a Date is always poor, and
        #    no reason to hurry.)
        error_s = self._clock.error_s() if self._source.path else None
        gap = self._sampling.gap(self._source.interval_s, error_s or 0.0)
        await self._system.sleep(gap.soonest_s)
        # 3. The rest of the gap ends as soon as a sample is wanted.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(gap.latest_s - gap.soonest_s):
                await self._clock.due.wait()
        self._clock.due.clear()

    def _shut_until(self) -> float:
        """Return until when nothing is asked: no key may be used, or open requests are paused.

        After a pause a bot's request goes first, and alone, unless it needs a better clock for that.
        """
        gates = self.gates
        own = gates.scheduler.paused_until(gates.of_time, gates.of_open.subjects)
        until = max(gates.shut_until, own)
        if self._clock.not_ready is None:
            until = max(until, gates.reopened_at + SCOUT_S)
        return max(until, gates.firewall.paused_until(OWN_BOT, self._source.path))

    async def _take_sample(self) -> None:
        timeout_s, now = self._upstream.destination.total_timeout_s, self._system.now()
        if self._shut_until() > now:
            return
        scheduler, id_ = self.gates.scheduler, self._system.request_id()
        pools, subjects = self.gates.of_time, self.gates.of_open.subjects
        claim = Claim(
            id_, OWN_BOT, Lane.CANCEL, now + timeout_s, is_read=True, pools=pools, subjects=subjects
        )
        try:
            permit = scheduler.pass_at_once(claim, now) or await scheduler.pass_through(claim)
        except Refusal as refusal:
            self._failed(refusal.detail, fix=WAIT)
            return
        if isinstance(permit, Permit):  # never Shared: no other request is like this one
            with permit:
                await self._ask(permit, timeout_s)

    async def _ask(self, permit: Permit, timeout_s: float) -> None:
        # 1. Connect first, so that the sample's interval holds nothing but the request and its reply.
        connection = await self._upstream.connect(Lane.CANCEL, timeout_s)
        if isinstance(connection, Failure):
            self._failed(connection.detail, fix=connection.detail.partition("; ")[2] or REACH)
            return
        sent = self._system.now()
        if permit.is_paused(sent):
            connection.release()
            return
        # 2. Ask.
        permit.has_waited = True
        permit.goes(sent)
        request = self._upstream.head("GET", self._source.path or _ANY_PATH) + b"\r\n"
        answer = await connection.exchange(request, timeout_s, is_head=False)
        if isinstance(answer, Failure):
            self._failed(answer.detail, fix=REACH)
            return
        if answer.remainder is not None:
            answer.remainder.abandon()
        # 3. Tell the gates what the reply says about limits, and the clock what time it states.
        received = self._system.now()
        self._tell_gates(answer, permit, sent, received)
        self._clock.turned_away(answer.verdict.advice if answer.verdict.means is Means.COUNTRY else "")
        try:
            found = self._time_in(answer, sent, received)
        except UnreadableTimeError as error:
            _, fix = refused_unsigned(answer.status, answer.verdict)
            self._failed(str(error), fix or "check base_url, clock.path and clock.field")
            return
        self._sampling = self._sampling.taken((received - sent + found.resolution) / 2)
        self._clock.observe(Sample(sent, received, found.seconds, found.resolution))
        if self._clock.trouble is not None:
            self._clock.trouble = None
            offset_ms = round(self._clock.offset_s() * 1000, 1)
            error_ms = self._clock.error_ms(received)
            log.info(
                "clock_synced",
                exchange=self._clock.exchange,
                offset_ms=offset_ms,
                error_ms=error_ms,
                field=found.field,
            )

    def _tell_gates(self, answer: Answer, permit: Permit, sent: float, received: float) -> None:
        """Report what a reply says about limits."""
        verdict, path = answer.verdict, self._source.path or _ANY_PATH
        taught = self._clock.taught_by(verdict, answer.head)
        if verdict.is_limited and (scope := verdict.shuts_out(Scope.ADDRESS)) is not None:
            taught = replace(taught, shuts_out=self.gates.of_open.shut_out_by(scope))
        permit.answered(taught, received)
        if verdict.means is Means.FIREWALL:
            if self._source.path:  # some exchanges always refuse the page at the root
                self.gates.refused_by_firewall(OWN_BOT, path, sent, received, verdict.wait)
        elif self.gates.firewall.is_alert:
            self.gates.firewall.accepted(OWN_BOT, path, sent)

    def _time_in(self, answer: Answer, sent: float, received: float) -> ServerTime:
        """Return the time that a reply states. Raises UnreadableTimeError."""
        is_exchanges_own = answer.verdict.means is not Means.COUNTRY  # else of what stands in front of it
        date = date_in(answer) if is_exchanges_own else None
        # There are two cases:
        # 1. The exchange has a time path. A Date is only used while nothing better is known.
        if self._source.path:
            try:
                return time_in(answer, self._source.field)
            except UnreadableTimeError as error:
                if date is not None:
                    self._clock.observe_date(Sample(sent, received, date, 1.0))
                raise UnreadableTimeError(f"{self._source.path}: {error}") from None
        # 2. It has none: the Date of any reply that the exchange itself wrote.
        if not is_exchanges_own:
            raise UnreadableTimeError(refused_unsigned(answer.status, answer.verdict)[0])
        if date is None or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise UnreadableTimeError(
                f"the exchange has no path for its time, and its reply {answer.status} has no Date header"
            )
        return ServerTime(date, 1.0, "Date")

    def _failed(self, trouble: str, fix: str) -> None:
        self._sampling = self._sampling.failed()
        self._note(trouble, fix)

    def _note(self, trouble: str, fix: str) -> None:
        """Log a trouble that is new since the last sample."""
        if trouble == self._clock.trouble:
            return
        self._clock.trouble = trouble
        meanwhile = "signing continues with the known time" if self._clock.error_s() is not None else None
        exchange = self._clock.exchange
        log.warning("clock_trouble", exchange=exchange, cause=trouble, fix=fix, meanwhile=meanwhile)


def date_in(answer: Answer) -> float | None:
    """Return the time in the Date header of a reply, None if there is none."""
    date = next((value for name, value in answer.head.passed if name.lower() == b"date"), b"")
    return parse_http_date(date.decode("latin-1"))


def time_in(answer: Answer, field: str) -> ServerTime:
    """Return the time in a reply of `/time`; `field` is as in `TimeSource`. Raises UnreadableTimeError."""
    if answer.status != HTTPStatus.OK:
        raise UnreadableTimeError(refused_unsigned(answer.status, answer.verdict)[0])
    return parse_server_time(answer.body, field)
