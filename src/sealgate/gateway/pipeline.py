"""The pipeline: the way of one request, top to bottom, in `Pipeline._carry`.

Every request ends in one `Outcome`, reported after the reply has left; log and metrics are its readers.
"""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from sealgate.core import admission
from sealgate.core.admission import Ticket
from sealgate.core.attempts import RATE_LIMITED, TIMESTAMP, Again, Deliver, Failure, GiveUp
from sealgate.core.pacing.claims import Claim
from sealgate.core.routes import Auth, Lane
from sealgate.errors import Refusal
from sealgate.gateway.answer import Answer, BrokenReplyError
from sealgate.gateway.bot_connection import Incoming
from sealgate.gateway.host import Host
from sealgate.gateway.incoming import read_body
from sealgate.gateway.journey import Journey, Stage
from sealgate.gateway.learning import judge_failure, judge_reply, observe
from sealgate.gateway.replies import Reply, closing_bytes, passed_on, problem, write_reply
from sealgate.gateway.sealing import check_session, sealed_request
from sealgate.gateway.tree import Tree
from sealgate.gateway.turnstile import Turn
from sealgate.gateway.upstream_connection import UpstreamConnection

log = structlog.get_logger("sealgate.pipeline")

Report = Callable[[Journey, int, float], None]  # what ended, the status of its reply, when
_GONE = 499  # the record's status where the bot did not wait for one; nginx's number for it


class Pipeline:
    """Carries the requests of one tree; `report` gets everything that ends."""

    def __init__(self, tree: Tree, host: Host, report: Report) -> None:
        self._tree = tree
        self._host = host
        self._report = report
        self.inflight = 0
        self.is_draining = False
        self._idle: asyncio.Event | None = None

    async def handle(self, request: Incoming) -> bool:
        """Serve one request of a bot, and return whether its connection may stay."""
        bot = request.connection
        journey = Journey(self._host.request_id(), self._host.now(), request.method, bot.task)
        bot.on_hang_up = journey.hang_up
        status = _GONE
        self.inflight += 1
        try:
            reply = await self._answer(request, journey)
            status = reply.status
            return await self._write(request, reply, journey)
        except (ConnectionError, asyncio.CancelledError):
            return False
        except BrokenReplyError as error:
            journey.cut(str(error))
            return False
        finally:
            bot.on_hang_up = None
            self._leave()
            self._report(journey, status, self._host.now())

    async def _write(self, request: Incoming, reply: Reply, journey: Journey) -> bool:
        if reply.remainder is not None:
            journey.enter(Stage.BOT, self._host.now())
        return await write_reply(request, reply, journey.notes(), is_last=self.is_draining)

    def _leave(self) -> None:
        self.inflight -= 1
        if self.inflight == 0 and self._idle is not None:
            self._idle.set()

    async def wait_until_idle(self, at_most_s: float) -> None:
        """Return when no request is under way, those of bots that are gone included, or the time is over."""
        self._idle = asyncio.Event()
        if self.inflight == 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._idle.wait()

    def refuse_malformed(self, refusal: Refusal) -> bytes:
        """Return the reply to what could not even be parsed, and report it."""
        journey = Journey(self._host.request_id(), self._host.now(), "other")
        journey.refusal = refusal
        reply = problem(refusal, journey.request_id, self._host.wall())
        self._report(journey, reply.status, self._host.now())
        return closing_bytes(reply, journey.notes())

    async def _answer(self, request: Incoming, journey: Journey) -> Reply:
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

    async def _carry(self, request: Incoming, journey: Journey) -> Reply:
        """Admit -> read -> wait -> connect -> stamp and sign -> send -> learn -> reply.

        The stamp comes after every wait, the one for a connection included.
        """
        ticket = self._admit(request, journey)
        body = await self._read(ticket, request, journey)
        while True:
            with await self._wait(ticket, journey) as turn:
                connection = await self._connect(ticket, turn, journey)
                if connection is None:
                    continue
                attempt = await self._send(ticket, body, connection, turn, journey)
                answer = self._learn(ticket, attempt, turn, journey)
            if answer is not None:
                return passed_on(answer)

    def _admit(self, request: Incoming, journey: Journey) -> Ticket:
        rules = self._tree.rules
        head = rules.headers.sort(request.fields)
        journey.request_id = admission.request_id(head) or journey.request_id
        journey.bot = admission.greet(head, request.method, request.version, rules)
        ticket = admission.authorise(journey.bot, request.method, request.target, head, rules)
        check_session(ticket, self._tree.desks[ticket.key].key)
        journey.admitted(ticket, self._tree.limits.max_wait_s, self._tree.limits.total_timeout_s)
        if self.is_draining and ticket.route.lane is Lane.ORDER:
            raise Refusal("draining", "The gateway is shutting down.")
        return ticket

    async def _read(self, ticket: Ticket, request: Incoming, journey: Journey) -> bytes:
        is_there = request.content.is_eof()
        if not is_there:
            journey.enter(Stage.BOT, self._host.now())
        body = await read_body(
            request,
            self._tree.rules.max_body,
            self._tree.limits.body_timeout_s,
            expects_continue=b"expect" in ticket.head.kept,
        )
        if not is_there:
            journey.enter(Stage.OWN, self._host.now())
        return body

    async def _wait(self, ticket: Ticket, journey: Journey) -> Turn:
        journey.enter(Stage.QUEUE, now := self._host.now())
        if journey.resends:
            await self._hold_back(journey)
        turnstile = self._tree.open_turnstile
        if ticket.route.auth is not Auth.OPEN:
            desk = self._tree.desks[ticket.key]
            turnstile = desk.turnstile
            if journey.resends or not self._tree.clock.is_good_for(desk.key.recv_window_ms, now):
                await self._tree.clock.wait_until_good(journey.give_up_at, desk.key.recv_window_ms)
        turn = await turnstile.pass_through(_claim(ticket, journey))
        journey.enter(Stage.OWN, self._host.now())
        return turn

    async def _hold_back(self, journey: Journey) -> None:
        """Wait for what a resend waits for: the backoff, or a fresh sample of the clock."""
        if journey.resends[-1] == TIMESTAMP:
            await self._tree.clock.wait_for_resync(journey.give_up_at)
        elif (left := journey.not_before - self._host.now()) > 0:
            await self._host.sleep(left)

    async def _connect(
        self, ticket: Ticket, turn: Turn, journey: Journey
    ) -> UpstreamConnection | Failure | None:
        """Return a connection, None where a pause began while there was none yet."""
        lane, upstream = ticket.route.lane, self._tree.upstream
        if (idle := upstream.take(lane)) is not None:
            return idle
        journey.enter(Stage.UPSTREAM, now := self._host.now())
        connection = await upstream.connect(lane, self._time_left_s(journey, now))
        if not turn.is_paused:
            return connection
        _give_back(connection)
        return None

    async def _send(
        self,
        ticket: Ticket,
        body: bytes,
        connection: UpstreamConnection | Failure,
        turn: Turn,
        journey: Journey,
    ) -> Answer | Failure:
        now = self._host.now()
        try:
            timeout_s = self._time_left_s(journey, now)
        except Refusal:  # the connection came too late: nothing was sent, and it serves the next
            _give_back(connection)
            raise
        journey.attempts += 1
        if isinstance(connection, Failure):
            return connection
        turn.is_used = True
        journey.sends(now, is_read=ticket.is_read)
        data = self._stamp_and_sign(ticket, body, journey)
        return await connection.exchange(data, timeout_s, is_head=ticket.method == "HEAD")

    def _time_left_s(self, journey: Journey, now: float) -> float:
        time_left_s = journey.ends_at - now
        if time_left_s <= 0:
            raise Refusal("deadline_exceeded", "The time for this request is over.")
        return min(self._tree.limits.total_timeout_s, time_left_s)

    def _stamp_and_sign(self, ticket: Ticket, body: bytes, journey: Journey) -> bytes:
        desk, clock = self._tree.desks[ticket.key], self._tree.clock
        content = hash((ticket.method, ticket.target.raw, body))
        timestamp_ms = desk.stamps.take(clock.timestamp_ms(journey.sent_at), content)
        journey.fence_ms = timestamp_ms + desk.key.recv_window_ms + clock.error_ms(journey.sent_at)
        start = self._tree.upstream.head(ticket.method, ticket.target.raw)
        return sealed_request(start, ticket, desk.key, timestamp_ms, body)

    def _learn(
        self, ticket: Ticket, attempt: Answer | Failure, turn: Turn, journey: Journey
    ) -> Answer | None:
        """Take in what the attempt says; return the reply to pass on, None to go round once more.

        Raises Refusal where it is given up.
        """
        now = self._host.now()
        journey.came_back(now)
        verdict: Deliver | Again | GiveUp
        if isinstance(attempt, Answer):
            observe(attempt, turn, journey, self._tree.clock)
            verdict = judge_reply(attempt, ticket, journey, self._tree.limits.replay)
        else:
            verdict = judge_failure(attempt, ticket, journey, now)
        journey.concludes(verdict.conclusion)
        if isinstance(verdict, GiveUp):
            raise Refusal(verdict.slug, verdict.detail)
        if isinstance(verdict, Again):
            _prepare_resend(verdict, attempt, journey, now)
            return None
        return attempt if isinstance(attempt, Answer) else None


def _prepare_resend(again: Again, attempt: Answer | Failure, journey: Journey, now: float) -> None:
    if isinstance(attempt, Answer) and attempt.remainder is not None:
        attempt.remainder.abandon()
    if journey.has_hung_up:
        raise asyncio.CancelledError
    journey.resends += (again.reason,)
    journey.not_before = now + again.after_s


def _claim(ticket: Ticket, journey: Journey) -> Claim:
    bot, route = ticket.bot, ticket.route
    is_again = RATE_LIMITED in journey.resends
    return Claim(
        journey.own_id,
        bot.name,
        route.lane,
        journey.give_up_at,
        bot.weight,
        route.cost,
        ticket.is_read,
        is_again,
    )


def _give_back(connection: UpstreamConnection | Failure) -> None:
    """Leave an unused connection to the next, if there is one."""
    if isinstance(connection, UpstreamConnection):
        connection.release()
