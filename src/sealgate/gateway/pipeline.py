"""The pipeline: the way of one request, top to bottom, in `Pipeline._carry`.

Every request ends in one `Outcome`, reported after the reply has left; log and metrics are its readers.
"""

import asyncio
import contextlib
from collections.abc import Callable

import structlog
from aiohttp import web

from sealgate.core import admission
from sealgate.core.admission import Ticket
from sealgate.core.attempts import (
    RATE_LIMITED,
    TIMESTAMP,
    TOO_MANY_REQUESTS,
    Again,
    Deliver,
    Failure,
    GiveUp,
    after_failure,
    after_reply,
    is_timestamp_refusal,
)
from sealgate.core.limit_reply import limit_reply
from sealgate.core.outcome import Outcome
from sealgate.core.pacing.claims import Claim
from sealgate.core.routes import Auth, Lane
from sealgate.errors import Refusal
from sealgate.gateway.answer import Answer, BrokenReplyError
from sealgate.gateway.host import Host
from sealgate.gateway.incoming import read_body
from sealgate.gateway.journey import Journey
from sealgate.gateway.replies import Reply, Written, closing_bytes, passed_on, problem, write_reply
from sealgate.gateway.sealing import check_session, sealed_fields
from sealgate.gateway.server import on_hang_up
from sealgate.gateway.tree import Tree
from sealgate.gateway.turnstile import Turn
from sealgate.gateway.upstream import Line, Outgoing, give_back

log = structlog.get_logger("sealgate.pipeline")

Report = Callable[[Outcome], None]
_GONE = 499  # the record's status where the bot did not wait for one; nginx's number for it


class Pipeline:
    """Carries the requests of one tree; `report` gets every Outcome."""

    def __init__(self, tree: Tree, host: Host, report: Report) -> None:
        self._tree = tree
        self._host = host
        self._report = report
        self.inflight = 0
        self.is_draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request of a bot: aiohttp's request handler."""
        journey = Journey(self._host.request_id(), self._host.now(), request.method, request.task)
        on_hang_up(request, journey.hang_up)
        status = _GONE
        self._enter()
        try:
            reply = await self._answer(request, journey)
            status = reply.status
            return await self._write(request, reply, journey)
        except (ConnectionError, asyncio.CancelledError):
            return Written(keep_alive=False)
        except BrokenReplyError as error:
            journey.cut(str(error))
            return Written(keep_alive=False)
        finally:
            self._leave()
            on_hang_up(request, None)
            self._report(journey.outcome(status, self._host.now()))

    async def _write(self, request: web.BaseRequest, reply: Reply, journey: Journey) -> Written:
        since = self._host.now()
        try:
            return await write_reply(request, reply, journey.fields(), is_last=self.is_draining)
        finally:
            if reply.remainder is not None:
                journey.bot_s += self._host.now() - since

    def _enter(self) -> None:
        self.inflight += 1
        self._idle.clear()

    def _leave(self) -> None:
        self.inflight -= 1
        if self.inflight == 0:
            self._idle.set()

    async def wait_until_idle(self, at_most_s: float) -> None:
        """Return when no request is under way, those of bots that are gone included, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._idle.wait()

    def refuse_malformed(self, refusal: Refusal) -> bytes:
        """Return the reply to what could not even be parsed, and report it."""
        journey = Journey(self._host.request_id(), self._host.now(), "other", refusal=refusal)
        reply = problem(refusal, journey.request_id, self._host.wall())
        self._report(journey.outcome(reply.status, self._host.now()))
        return closing_bytes(reply, journey.fields())

    async def _answer(self, request: web.BaseRequest, journey: Journey) -> Reply:
        """Carry the request; what stops it on the way becomes a problem document."""
        try:
            return await self._carry(request, journey)
        except Refusal as refusal:
            journey.refusal = refusal
        except ConnectionError:
            raise
        except Exception:
            with contextlib.suppress(Exception):  # the log may be what failed
                log.exception("internal_error", request_id=journey.request_id)
            journey.refusal = Refusal("internal_error", "The gateway failed on this request.")
        return problem(journey.refusal, journey.request_id, self._host.wall())

    async def _carry(self, request: web.BaseRequest, journey: Journey) -> Reply:
        """Admit -> read -> wait -> connect -> stamp and sign -> send -> learn -> reply.

        The stamp comes after every wait, the one for a connection included.
        """
        ticket = self._admit(request, journey)
        body = await self._read(request, journey)
        while True:
            with await self._wait(ticket, journey) as turn:
                line = await self._connect(ticket, journey)
                if turn.is_paused:  # it began while there was no connection yet
                    give_back(line)
                    continue
                attempt = await self._send(ticket, body, line, turn, journey)
                answer = self._learn(ticket, attempt, turn, journey)
            if answer is not None:
                return passed_on(answer)

    def _admit(self, request: web.BaseRequest, journey: Journey) -> Ticket:
        rules = self._tree.rules
        head = rules.headers.sort(request.raw_headers)
        journey.request_id = admission.request_id(head) or journey.request_id
        admission.guard(head, request.method, request.version, rules)
        journey.bot = admission.identify(head, rules)
        ticket = admission.authorise(journey.bot, request.method, request.raw_path, head, rules)
        check_session(ticket, self._tree.desks[ticket.key].key)
        journey.admitted(ticket, self._tree.limits.max_wait_s, self._tree.limits.total_timeout_s)
        if self.is_draining and ticket.route.lane is Lane.ORDER:
            raise Refusal("draining", "The gateway is shutting down.")
        return ticket

    async def _read(self, request: web.BaseRequest, journey: Journey) -> bytes:
        since = self._host.now()
        try:
            return await read_body(request, self._tree.rules.max_body, self._tree.limits.body_timeout_s)
        finally:
            journey.bot_s += self._host.now() - since

    async def _wait(self, ticket: Ticket, journey: Journey) -> Turn:
        since = self._host.now()
        try:
            await self._hold_back(journey)
            if ticket.route.auth is Auth.OPEN:
                return await self._tree.open_turnstile.pass_through(_claim(ticket, journey))
            desk = self._tree.desks[ticket.key]
            await self._tree.clock.wait_until_good(journey.give_up_at, desk.key.recv_window_ms)
            return await desk.turnstile.pass_through(_claim(ticket, journey))
        finally:
            journey.queue_s += self._host.now() - since

    async def _hold_back(self, journey: Journey) -> None:
        """Wait for what a resend waits for: the backoff, or a fresh sample of the clock."""
        if journey.resends and journey.resends[-1] == TIMESTAMP:
            await self._tree.clock.wait_for_resync(journey.give_up_at)
        elif (left := journey.not_before - self._host.now()) > 0:
            await self._host.sleep(left)

    async def _connect(self, ticket: Ticket, journey: Journey) -> Line | Failure:
        since = self._host.now()
        try:
            return await self._tree.upstream.connect(ticket.route.lane, self._time_left_s(journey, since))
        finally:
            journey.upstream_s += self._host.now() - since

    async def _send(
        self, ticket: Ticket, body: bytes, line: Line | Failure, turn: Turn, journey: Journey
    ) -> Answer | Failure:
        since = self._host.now()
        try:
            timeout_s = self._time_left_s(journey, since)
        except Refusal:  # the connection came too late: nothing was sent, and it serves the next
            give_back(line)
            raise
        journey.attempts += 1
        if isinstance(line, Failure):
            return line
        turn.is_used = journey.is_under_way = True
        journey.may_be_stopped = ticket.is_read  # what may execute is finished, also for a bot that hung up
        journey.sent_at = since
        try:
            fields = self._stamp_and_sign(ticket, body, journey)
            request = Outgoing(ticket.method, ticket.target.raw, fields, body)
            return await line.exchange(request, timeout_s)
        finally:
            journey.upstream_s += self._host.now() - since

    def _time_left_s(self, journey: Journey, now: float) -> float:
        time_left_s = journey.ends_at - now
        if time_left_s <= 0:
            raise Refusal("deadline_exceeded", "The time for this request is over.")
        return min(self._tree.limits.total_timeout_s, time_left_s)

    def _stamp_and_sign(self, ticket: Ticket, body: bytes, journey: Journey) -> bytes:
        desk = self._tree.desks[ticket.key]
        content = hash((ticket.method, ticket.target.raw, body))
        timestamp_ms = desk.stamps.take(self._tree.clock.timestamp_ms(), content)
        journey.fence_ms = timestamp_ms + desk.key.recv_window_ms + self._tree.clock.error_ms()
        return sealed_fields(ticket, desk.key, timestamp_ms, body)

    def _learn(
        self, ticket: Ticket, attempt: Answer | Failure, turn: Turn, journey: Journey
    ) -> Answer | None:
        """Take in what the attempt says; return the reply to pass on, None to go round once more.

        Raises Refusal where it is given up.
        """
        journey.is_under_way, journey.may_be_stopped = False, True
        if isinstance(attempt, Answer):
            self._observe(attempt, turn, journey)
        verdict = self._verdict(ticket, attempt, journey)
        journey.concludes(verdict.conclusion)
        if isinstance(verdict, GiveUp):
            raise Refusal(verdict.slug, verdict.detail)
        if isinstance(verdict, Again):
            self._prepare_resend(verdict, attempt, journey)
            return None
        return attempt if isinstance(attempt, Answer) else None

    def _observe(self, answer: Answer, turn: Turn, journey: Journey) -> None:
        """Let the pacer and the clock learn from a reply."""
        turn.settle(limit_reply(answer.status, answer.fields, self._tree.clock.server_now()))
        if answer.status == TOO_MANY_REQUESTS:
            journey.upstream_429s += 1
        elif is_timestamp_refusal(answer.status, answer.body):
            is_second = TIMESTAMP in journey.resends
            self._tree.clock.refused(answer.body, journey.sent_at, is_second=is_second)
        else:
            self._tree.clock.was_accepted()

    def _verdict(
        self, ticket: Ticket, attempt: Answer | Failure, journey: Journey
    ) -> Deliver | Again | GiveUp:
        if isinstance(attempt, Failure):
            resends = journey.resends.count(attempt.fate.value)
            time_left_s = journey.give_up_at - self._host.now()
            return after_failure(attempt, is_read=ticket.is_read, resends=resends, time_left_s=time_left_s)
        return after_reply(
            attempt.status,
            attempt.body,
            is_read=ticket.is_read,
            replay=self._tree.limits.replay,
            has_resynced=TIMESTAMP in journey.resends,
        )

    def _prepare_resend(self, again: Again, attempt: Answer | Failure, journey: Journey) -> None:
        if isinstance(attempt, Answer) and attempt.remainder is not None:
            attempt.remainder.abandon()
        if journey.has_hung_up:
            raise asyncio.CancelledError
        journey.resends.append(again.reason)
        journey.not_before = self._host.now() + again.after_s


def _claim(ticket: Ticket, journey: Journey) -> Claim:
    return Claim(
        id=journey.own_id,
        bot=ticket.bot.name,
        lane=ticket.route.lane,
        give_up_at=journey.give_up_at,
        weight=ticket.bot.weight,
        cost=ticket.route.cost,
        is_read=ticket.is_read,
        is_again=RATE_LIMITED in journey.resends,
    )
