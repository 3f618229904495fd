"""Serve one request from its head to its record: write the pipeline's reply, or a problem document.

Every request ends in one `Outcome`, reported after the reply was sent; log and metrics are its readers.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.answer import BrokenReplyError
from sealgate.http.headers import plain_name
from sealgate.http.server import Incoming
from sealgate.http.websocket import offers_websocket
from sealgate.machine.findings import program_named
from sealgate.machine.system import System
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.request.admission import PROOFS
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.bots import client_of
from sealgate.request.context import BOT, OWN, InFlightRequests, RequestContext
from sealgate.request.pipeline import Pipeline
from sealgate.request.replies import Reply, Switched, closing_bytes, problem, write_reply
from sealgate.request.router import Router
from sealgate.request.strangers import WrongTokens, origin_of
from sealgate.venues.error_shapes import ErrorShape

log = structlog.get_logger("sealgate.handler")

Report = Callable[[Outcome], None]
OpenStream = Callable[[Incoming, Pipeline, str, RequestContext], Awaitable[Reply]]
_UNKNOWN: Final = Conclusion.UNKNOWN  # looked up once, as in context.py
_GONE = 499  # the record's status if the bot disconnected before the reply, as in nginx
_DELAY_S = 0.005
_MOST = 16  # at once
# What is refused of these is no call of an exchange.
_NO_CALLS = frozenset({"method_refused", "host_refused", "browser_refused"})


class Handler:
    """Receives the requests of a listener; `report` gets every ended request, `open_stream` the upgrades.

    Each request uses the `router` at the time of its arrival; a reload replaces it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is one part of the gateway
        self,
        router: Router,
        in_flight: InFlightRequests,
        books: Bookkeeping,
        system: System,
        report: Report,
        open_stream: OpenStream,
    ) -> None:
        self.router = router
        self._in_flight = in_flight
        self._books = books
        self._system = system
        self._report = report
        self._open_stream = open_stream
        self._wrong_tokens = WrongTokens()

    async def handle(self, request: Incoming, own: str = "") -> bool:
        """Serve one request of a bot, and return whether its connection may stay.

        `own` is the exchange whose own address was reached, "" at the common ones.
        """
        stream = await self._respond(request, own)
        if isinstance(stream, bool):
            return stream
        await stream.run()
        return False

    async def _respond(self, request: Incoming, own: str) -> bool | Switched:
        """Answer a request; return whether its connection may stay, or the stream that takes it over."""
        bot = request.connection
        context = RequestContext(self._system.request_id(), self._system.now(), request.head.method, bot.task)
        bot.on_hang_up = context.hang_up
        reply: Reply | None = None
        is_written = False
        self._in_flight.begin(context)
        try:
            reply = await self._answer(request, own, context)
            if reply.remainder is None:
                self._books.ended(context, reply)
            else:
                context.enter(BOT, self._system.now())
            is_last = self.router.halting.is_draining
            may_stay = await write_reply(request, reply, context.notes(), is_last=is_last)
            is_written = True
            # Out of the block: behind it `reply` would be known to be one, compiled in `finally`, too.
            return may_stay if reply.stream is None else reply.stream  # noqa: TRY300
        except (ConnectionError, asyncio.CancelledError):
            if not context.is_over and reply is not None:
                context.cut(None)  # the rest is not read, so it is unknown whether the reply was complete
            return False
        except BrokenReplyError as error:
            context.cut(str(error))
            return False
        finally:
            bot.on_hang_up = None
            if not context.is_over:
                self._books.ended(context, None)
            self._in_flight.end(context)
            context.end(_status(reply, context), self._system.now())
            self._report(context)
            if not is_written:
                _abandon_stream(reply)

    @property
    def inflight(self) -> int:
        """The number of requests in progress, including those of bots that have disconnected."""
        return len(self._in_flight)

    def refuse_malformed(self, refusal: Refusal, own: str = "") -> bytes:
        """Return the reply to input that could not be parsed, and report it; `own` is as with `handle`."""
        context = RequestContext(self._system.request_id(), self._system.now(), "other")
        context.exchange = own or self.router.common
        context.refusal = refusal
        shape = self.router.errors_of("", own)
        shape = None if shape is None else replace(shape, statuses={})
        reply = problem(refusal, context.request_id, self._system.wall(), shape)
        context.end(refusal.reason.status, self._system.now())
        self._report(context)
        return closing_bytes(reply, context.notes())

    async def _answer(self, request: Incoming, own: str, context: RequestContext) -> Reply:
        """Carry the request; turn any refusal or fault into a problem document."""
        delay_s = 0.0
        shape: ErrorShape | None = None
        try:
            pipeline, target = self.router.choose(request, own, context)
            if offers_websocket(request.head):
                return await self._open_stream(request, pipeline, target, context)
            return await pipeline.carry(request, target, context)
        except Refusal as refusal:
            context.refusal = refusal.with_traceback(None)  # its frames hold the head
            delay_s, shape = self._delay_s(request, refusal), self._shape(request, own, refusal.slug)
            # A malformed request may end at another place than the parser assumed.
            request.may_stay = request.may_stay and context.bot is not None and refusal.slug != "bad_request"
            if context.bot is None:  # for unauthenticated clients, keep little while their reply is delayed
                context.client = client_of(request.connection.transport, request.connection.peer)
                context.user_agent = _user_agent(request)
                request.release()
                request.connection.take_no_more()
        except asyncio.CancelledError:
            if context.refusal is None or not context.take_back_stop():
                raise
            shape = self._shape(request, own, context.refusal.slug)
        except ConnectionError:
            raise
        except Exception:
            with contextlib.suppress(Exception):  # the log itself may have failed
                log.exception("internal_error", request_id=context.request_id, exchange=context.exchange)
            context.refusal = Refusal("internal_error", "The gateway failed while handling this request.")
            shape = self._shape(request, own, context.refusal.slug)
        if delay_s:
            await self._system.sleep(delay_s)
        context.enter(OWN, self._system.now())  # ends the stage in which it was refused, such as the queue
        is_unknown = context.conclusion is _UNKNOWN
        return problem(context.refusal, context.request_id, self._system.wall(), shape, is_unknown=is_unknown)

    def _shape(self, request: Incoming, own: str, slug: str) -> ErrorShape | None:
        """Return how the exchange of a request states errors, None where none is known.

        The status stays the reason's where a client sees nothing else, where any but 101 means the same, and
        for what is no call of an exchange: a 200 to CONNECT would open a tunnel.
        """
        shape = self.router.errors_of(request.head.target, own)
        if shape is None:
            return None
        is_bare = request.head.method == "HEAD" or offers_websocket(request.head) or slug in _NO_CALLS
        return replace(shape, statuses={}) if is_bare else shape

    def _delay_s(self, request: Incoming, refusal: Refusal) -> float:
        """Return the delay of a refusal: only for a wrong token, not for a missing one."""
        if refusal.slug != "bot_unauthenticated":
            return 0.0
        if PROOFS.isdisjoint(plain_name(name) for name, _ in request.head.fields):
            return 0.0
        client = client_of(request.connection.transport, request.connection.peer)
        return self._wrong_tokens.note(origin_of(client), self._system.now())


def _status(reply: Reply | None, context: RequestContext) -> int:
    """Return the status of the record: a refusal's own, whatever the exchange's shape made of it."""
    if reply is None:
        return _GONE
    return reply.status if context.refusal is None else context.refusal.reason.status


def _abandon_stream(reply: Reply | None) -> None:
    """End the stream of a 101 that never reached the bot."""
    if reply is not None and reply.stream is not None:
        reply.stream.abandon()


def _user_agent(request: Incoming) -> str | None:
    sent = [value for name, value in request.head.fields if name.lower() == b"user-agent"]
    return program_named(sent[0]) if sent else None


Reader = Callable[[Sequence[Outcome]], None]


class Reporter:
    """Collects the records of ended requests; each of `readers` gets all of them, in order.

    A log line and a dozen counters cost a tenth of a small request. They are written a moment later, so that
    no bot waits for them, and in small batches, so that no request waits behind many.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = list(readers)
        self._ended: list[Outcome] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, reader: Reader) -> None:
        """Add a reader."""
        self._readers.append(reader)

    def report(self, outcome: Outcome) -> None:
        """Accept the record of an ended request; the readers get it within milliseconds."""
        self._ended.append(outcome)
        if len(self._ended) == 1:
            self._timer = asyncio.get_running_loop().call_later(_DELAY_S, self.flush)
        elif len(self._ended) == _MOST:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Give the readers the records so far."""
        if self._timer is not None:  # otherwise it would fire in the middle of a later batch
            self._timer.cancel()
            self._timer = None
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        for reader in self._readers:
            try:
                reader(ended)
            except Exception:  # a full disk under the log must not stop the metrics, nor the gateway
                with contextlib.suppress(OSError):
                    log.exception("reader_failed")
