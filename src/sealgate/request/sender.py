"""One attempt: stamp, record, sign and send a request once it has a connection."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import CLOSED_UNUSED, UpstreamConnection
from sealgate.exchange.exchange import LiveKey
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.http.headers import content_length, without_coding
from sealgate.keys.key import STATES_LENGTH, SigningKey, bearer_line
from sealgate.limits.scheduler import Permit
from sealgate.machine.aside import run_aside
from sealgate.machine.system import System
from sealgate.request.admission import Ticket
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import RequestContext
from sealgate.request.generation import Backend
from sealgate.request.shared_reads import SharedReads
from sealgate.request.standing import Standing
from sealgate.venues.own_parameters import body_type
from sealgate.venues.routes import Auth
from sealgate.venues.unsignable import UnsignableError

# Looked up once, as in context.py.
_SESSION: Final = Auth.SESSION
_SIGNED: Final = Auth.SIGNED
_KEY: Final = Auth.KEY
_FRESH = 1 / 3  # of `recv_window_ms` a timestamp may age before it goes: the clock may be off by half of it


class Sender:
    """Sends the attempts at one exchange, each once."""

    def __init__(
        self,
        backend: Backend,
        books: Bookkeeping,
        standing: Standing,
        shared_reads: SharedReads,
        system: System,
    ) -> None:
        self._exchange = backend.exchange
        self._total_timeout_s = backend.config.upstream.total_timeout
        self._books = books
        self._standing = standing
        self._shared_reads = shared_reads
        self._system = system

    async def send(
        self,
        ticket: Ticket,
        body: bytes,
        connection: UpstreamConnection,
        permit: Permit,
        context: RequestContext,
    ) -> Answer | Failure | None:
        """Stamp, record, sign and send a request.

        Return the reply or the failure, None if nothing was sent and the request must wait again.
        """
        is_sent = False
        live_key = self._exchange.live_keys[ticket.key]
        now = self._system.now() if permit.has_waited else permit.began
        try:
            # 1. Reserve rising nonces in the journal before they are used.
            if live_key.nonces.is_number and ticket.route.auth is _SIGNED:
                now = await self._reserve(live_key, permit, now)
            # 2. Stamp. After the stamp, only the journal is waited for, because it records the fence.
            self._stamp(ticket, live_key, body, now, context)
            # 3. Record an order.
            if self._books.must_record(ticket):
                permit.has_waited = True
                await self._record(ticket, live_key, body, context)
                now = self._system.now()
            timeout_s = self.time_left_s(context, now)
            # 4. Sign. Between the nonce and the first byte nothing may be waited for but a slow signature,
            # which would hold up all other requests.
            data = await self._sealed(ticket, live_key, body, permit, context)
            # 5. If there was any wait, check again whether it may be sent at this moment.
            is_too_old = False
            if permit.has_waited:
                now = self._system.now()
                self._standing.check(ticket, context, now)
                timeout_s = self.time_left_s(context, now)
                if permit.is_paused(now):
                    return None
                is_too_old = not context.may_be_lost and not connection.life.carries_order(now)
            # 6. Is the connection still usable?
            if is_too_old or not connection.is_alive():
                if not connection.life.has_rested:  # a new one: treat it like one that cannot be opened
                    return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)
                context.needs_new_connection = True
                return None
            # 7. Send.
            is_sent = True
        finally:
            if not is_sent:  # the connection serves the next request
                connection.release()
        if ticket.route.share_s:
            self._shared_reads.sent(permit.share(), ticket, body, now)
        permit.goes(now)
        conclusion = context.conclusion
        # A request that may execute, or that others wait for, continues even if the bot disconnects.
        context.sends(now, may_be_stopped=ticket.is_read and permit.shared is None)
        attempt = await connection.exchange(
            data, timeout_s, is_head=ticket.method == "HEAD", is_order=not ticket.is_read
        )
        if isinstance(attempt, Failure) and attempt.is_unsent:  # the first write failed
            context.conclusion = conclusion
        return attempt

    def time_left_s(self, context: RequestContext, now: float) -> float:
        """Return how long an attempt may take. Raises Refusal `deadline_exceeded` if no time is left."""
        time_left_s = context.ends_at - now
        if time_left_s <= 0:
            raise Refusal("deadline_exceeded", "The deadline of this request has passed.")
        if context.validity is not None:
            context.validity.check(now)
        return min(self._total_timeout_s, time_left_s)

    async def _reserve(self, live_key: LiveKey, permit: Permit, now: float) -> float:
        """Reserve nonces in the journal if the next one is not reserved; return the time afterwards."""
        now_ms = self._exchange.clock.timestamp_ms(now)
        if not self._books.must_reserve(live_key.nonces, now_ms):
            return now
        permit.has_waited = True
        key = self._exchange.clock.exchange, live_key.key.alias
        await self._books.reserve(live_key.nonces, key, now_ms)
        return self._system.now()

    def _stamp(
        self, ticket: Ticket, live_key: LiveKey, body: bytes, now: float, context: RequestContext
    ) -> None:
        """Choose the timestamp, and note the fence: the time until which the exchange can accept it."""
        key, clock = live_key.key, self._exchange.clock
        content = key.sealer.content(ticket.method, ticket.target, body)
        now_ms = clock.timestamp_ms(now)
        if context.validity is None:
            context.timestamp_ms = live_key.stamps.take(now_ms, content)
        else:
            context.timestamp_ms = context.validity.stamp(clock.known, live_key.stamps, content, now)
        fence_ms = context.timestamp_ms + key.recv_window_ms + clock.error_ms(now)
        context.fence_ms = fence_ms if key.has_fence else 0
        self._books.signed(context)

    async def _sealed(
        self, ticket: Ticket, live_key: LiveKey, body: bytes, permit: Permit, context: RequestContext
    ) -> bytes:
        """Return the bytes of a request; slow signatures are made in a thread."""
        head, key, timestamp_ms = self._exchange.upstream.head, live_key.key, context.timestamp_ms
        nonce = live_key.nonces.take(timestamp_ms)
        if key.sealer.signer.is_slow:
            permit.has_waited = True
            return await run_aside(partial(sealed_request, head, ticket, key, timestamp_ms, nonce, body))
        return sealed_request(head, ticket, key, timestamp_ms, nonce, body)

    async def _record(self, ticket: Ticket, live_key: LiveKey, body: bytes, context: RequestContext) -> None:
        """Record an order. If a slow journal makes its timestamp too old, stamp and record it once more.

        Raises Refusal `halted` if that does not help, `deadline_exceeded` if it takes too long.
        """
        fresh_s = _FRESH * live_key.key.recv_window_ms / 1000
        for is_last in (False, True):
            since = self._system.now()
            server_ms = int(self._exchange.clock.server_now() * 1000)
            try:
                async with asyncio.timeout(self.time_left_s(context, since)):
                    await self._books.intent(ticket, body, context, server_ms)
            except TimeoutError:
                detail = "The journal could not record the order in time."
                raise Refusal("deadline_exceeded", detail) from None
            took_s = self._system.now() - since
            if took_s < fresh_s:
                return
            if is_last:
                took = f"The journal took {took_s:.1f} s to record the order"
                raise Refusal("halted", f"{took}, and by then its timestamp was too old.")
            self._stamp(ticket, live_key, body, self._system.now(), context)


def sealed_request(  # noqa: PLR0913, PLR0917 - all that the bytes are made of
    head: Callable[[str, str], bytes],
    ticket: Ticket,
    key: SigningKey,
    timestamp_ms: int,
    nonce: bytes,
    body: bytes,
) -> bytes:
    """Return the bytes of a request; `head` makes its request line and Host.

    A session route needs a key with a session token, which was checked before. Raises Refusal if the exchange
    has no way to sign such a request.
    """
    raw, proof = ticket.target.raw, b""
    if ticket.route.auth is _SIGNED:
        try:
            kept, came = ticket.head.kept, body
            proof, raw, body, type_line = key.sealer.sign(
                timestamp_ms, nonce, ticket.method, ticket.target, came
            )
            if came or type_line:  # the bot's Content-Type also applies to a body begun by the gateway
                declared = body_type(kept.get(b"content-type"), kept.get(b"content-encoding"))
                key.sealer.check_declared(came or body, declared)
        except UnsignableError as error:
            raise Refusal("bad_request", f"The request cannot be signed: {error}.") from None
        if type_line and b"content-type" not in kept:
            proof += type_line
    elif ticket.route.auth is _KEY:
        proof = key.sealer.key_lines()
    elif ticket.route.auth is _SESSION and key.session is not None:
        proof = bearer_line(key.session)
    passed = ticket.head.passed
    if ticket.route.streams_at is not None:
        passed = without_coding(passed)
    has_length = body or ticket.method in STATES_LENGTH
    length = content_length(len(body)) if has_length else b""
    return b"".join((head(ticket.method, raw), passed, length, proof, b"\r\n", body))
