"""From a bot's upgrade to the open stream: admission, limits, and the exchange's own handshake."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, unquote_plus

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.http.headers import Head, plain_name, sort_reply
from sealgate.http.parser import RequestHead
from sealgate.http.server import Incoming
from sealgate.http.websocket import (
    accept_fault,
    accept_of,
    check_offer,
    key_of,
    offer_lines,
    offered_protocols,
    without_offer,
)
from sealgate.orders.outcome import Conclusion, UpstreamError
from sealgate.request.admission import Ticket, choose_key, credentials, unknown_exchange
from sealgate.request.context import OWN, QUEUE, UPSTREAM, RequestContext
from sealgate.request.pipeline import Pipeline
from sealgate.request.replies import Reply, passed_on
from sealgate.streams.access import Asker, Wanted, check_open, find_wanted
from sealgate.streams.life import OpenStream
from sealgate.streams.own_token import OwnToken
from sealgate.streams.registry import Streams
from sealgate.streams.signing import StreamSigner
from sealgate.streams.tally import FAILED, HUNG_UP, OK, OPENED, REFUSED
from sealgate.venues.replies import NO_REPLY
from sealgate.venues.routes import Auth, Lane, Route
from sealgate.venues.stream_sealer import SignedHandshake

_LIMITED_S = 10.0  # without an opening, where the exchange refuses one for its limit and states no time
# What the answer to a signed upgrade says of the login in it.
_LOGINS = {101: OK, 401: FAILED, 403: FAILED}
# Of a 101: what is the gateway's own, and what a client might act on.
_NOT_PASSED = (b"sec-websocket-accept", b"sec-websocket-extensions", b"set-cookie", b"location")
_NO_HANDSHAKE = SignedHandshake({}, {}, "")


class StreamOpener:
    """Opens streams, and hands them to the registry."""

    def __init__(self, registry: Streams) -> None:
        self._registry = registry
        self._desk = registry.desk
        self._system = registry.desk.system

    async def open(
        self, request: Incoming, pipeline: Pipeline, target: str, context: RequestContext
    ) -> Reply:
        """Return the 101 that opens a stream, or what the exchange answered instead. Raises Refusal."""
        result = "internal_error"
        try:
            reply = await self._open(request, pipeline, target, context)
            result = OPENED if reply.stream is not None else REFUSED
        except Refusal as refusal:
            result = refusal.slug
            raise
        except asyncio.CancelledError:
            result = HUNG_UP if context.refusal is None else context.refusal.slug
            raise
        finally:
            if context.bot is not None:
                labels = context.exchange, context.bot, context.route, result
                self._desk.tally.opened[labels] += 1
        return reply

    async def _open(
        self, request: Incoming, pipeline: Pipeline, target: str, context: RequestContext
    ) -> Reply:
        config, exchange, now = pipeline.backend.config, pipeline.backend.exchange, self._system.now()
        # 1. Who asks, is it an upgrade, and of which stream?
        context.exchange, context.carrier = config.name, exchange.upstream
        head = RequestHead(
            request.head.method, target, request.head.version, without_offer(request.head.fields)
        )
        bot, fields = pipeline.identify_with_fields(head, request, context)
        if request.connection.has_surplus:
            raise Refusal("bad_request", "The client sent data after the upgrade, before the reply.")
        key, protocols = check_offer(request.head), offered_protocols(request.head)
        sent = None if pipeline.backend.rules.local is not None else credentials(fields)
        token = b"" if sent is None else sent[1]
        if any(map(OwnToken(token).is_in, (target.encode("latin-1"), fields.passed, *protocols))):
            detail = "The bot's gateway token is in a part of the upgrade that goes to the exchange."
            raise Refusal("bot_forbidden", detail, advice="Send it only in X-Gateway-Token or Authorization.")
        if not bot.keys:
            raise unknown_exchange(bot)
        wanted = find_wanted(target, config.venue, config.venue.stream_hosts(config.environment))
        check_open(bot, wanted.stream)
        # 2. With which key, and may it be opened now?
        alias, label = choose_key(bot, fields), wanted.stream.label
        live_key = exchange.live_keys[alias]
        route = Route(label, wanted.stream.needs, Auth.SIGNED, Lane.READ, is_cancel=True, is_named=True)
        ticket = Ticket(bot, alias, route, "GET", wanted.target, fields, None)
        context.breaker = live_key.breaker
        context.admitted(ticket, pipeline.max_wait_s, pipeline.total_timeout_s)
        if pipeline.is_draining:
            raise Refusal("draining", "The gateway is shutting down.")
        pipeline.standing.check(ticket, context, now)
        # 3. The exchange's own handshake.
        host, path = wanted.host, wanted.target.path
        signer = StreamSigner(pipeline, live_key, host, path, self._desk.books, self._system)
        with self._registry.room():
            await self._wait_for_opening(pipeline, context)
            answer, connection = await self._shake_hands(wanted, signer, fields, protocols, context)
            if wanted.stream.handshake is not None and (login := _LOGINS.get(answer.status)):
                self._desk.tally.logins[config.name, alias, login] += 1
                if login == FAILED:
                    pipeline.learner.learn_of_login(alias, answer.status, answer.body, context.sent_at)
            if answer.status != HTTPStatus.SWITCHING_PROTOCOLS:
                self._note_refusal(pipeline, answer, context)
                return passed_on(answer)
            # 4. The stream.
            stream = OpenStream(
                self._desk,
                context.request_id,
                wanted,
                Asker(bot, fields, token),
                signer,
                request.connection,
                connection,
            )
            self._registry.begin(stream)
        return _switching(key, answer, stream)

    async def _wait_for_opening(self, pipeline: Pipeline, context: RequestContext) -> None:
        """Wait until the exchange lets one more stream be opened, and count it. Raises Refusal."""
        openings = self._registry.openings_of(pipeline.backend.config)
        while (wait_s := openings.wait_s(now := self._system.now())) > 0:
            if now + wait_s > context.give_up_at:
                raise Refusal(
                    "rate_limited",
                    "The exchange lets no more streams be opened from this address for a while "
                    "(limits.stream_opens).",
                    retry_after_s=wait_s,
                )
            context.enter(QUEUE, now)
            await self._system.sleep(wait_s)
            context.enter(OWN, self._system.now())
        openings.opened(now)

    async def _shake_hands(
        self,
        wanted: Wanted,
        signer: StreamSigner,
        fields: Head,
        protocols: list[bytes],
        context: RequestContext,
    ) -> tuple[Answer, UpstreamConnection]:
        """Connect, and ask the exchange for the upgrade. Raises Refusal where it does not answer."""
        context.enter(UPSTREAM, self._system.now())
        host = signer.pipeline.backend.exchange.stream_hosts.of(wanted.host)
        connection = await host.open()
        if isinstance(connection, Failure):
            raise _failed(connection, context, self._system.now())
        try:
            signed = _NO_HANDSHAKE
            if wanted.stream.handshake is not None:
                signed = await signer.handshake(wanted.stream.handshake, context.give_up_at)
            key, now = key_of(self._system.unique()), self._system.now()
            first = f"GET {_target(wanted, signed)} HTTP/1.1\r\nHost: {host.authority}\r\n{host.headers}"
            lines = _without(fields.passed, signed.headers) + _lines(signed.headers)
            data = first.encode("ascii") + lines + offer_lines(key, protocols) + b"\r\n"
            context.sends(now, may_be_stopped=True)
            left_s = max(0.0, min(signer.pipeline.total_timeout_s, context.ends_at - now))
            answer = await connection.exchange(data, left_s, is_head=False, may_switch=True)
        except BaseException:
            connection.close()
            raise
        context.came_back(self._system.now())
        if isinstance(answer, Failure):
            raise _failed(answer, context, self._system.now())
        is_open = answer.status == HTTPStatus.SWITCHING_PROTOCOLS
        if not is_open:
            context.concludes(Conclusion.REFUSED)
        else:
            fault = accept_fault(answer.head.passed, key, protocols)
            if fault or not connection.has_switched:
                connection.close()
                told = fault or "its reply 101 does not switch to WebSocket"
                raise Refusal("upstream_broken", f"The stream could not be opened: {told}.")
            context.concludes(Conclusion.DONE)
        return answer, connection

    def _note_refusal(self, pipeline: Pipeline, answer: Answer, context: RequestContext) -> None:
        """Note the exchange's error, and open no stream for a while after a refusal for the limit."""
        clock = pipeline.backend.exchange.clock
        stated_s = clock.taught_by(answer.verdict, answer.head).retry_after_s
        error = UpstreamError(answer.verdict, context.sent_at, stated_s, clock.error_s())
        context.upstream_errors += (error,)
        if answer.verdict.is_limited:
            wait_s = stated_s or _LIMITED_S
            self._registry.openings_of(pipeline.backend.config).refused(self._system.now() + wait_s)


def _failed(failure: Failure, context: RequestContext, now: float) -> Refusal:
    """Note why the exchange did not answer, and return what its bot is told."""
    if not failure.is_own:
        context.upstream_errors += (UpstreamError(NO_REPLY[failure.kind.value], now),)
        context.attempts = 1
    if failure.is_unsent:
        return Refusal("upstream_unreachable", f"The stream could not be opened: {failure.detail}.")
    slug = "upstream_timeout" if failure.kind is FailureKind.LATE else "upstream_broken"
    return Refusal(slug, f"The stream could not be opened: {failure.detail}.")


def _target(wanted: Wanted, signed: SignedHandshake) -> str:
    """Return path and query of the upgrade, with what is signed in the place of the bot's own."""
    path, query = signed.path or wanted.target.path, wanted.target.query or ""
    own = [one for one in query.split("&") if one and _name(one) not in signed.query]
    own += [f"{name}={quote(value, safe='')}" for name, value in signed.query.items()]
    return f"{path}?{'&'.join(own)}" if own else path


def _name(parameter: str) -> str:
    return unquote_plus(parameter.partition("=")[0])


def _without(lines: bytes, headers: Mapping[str, str]) -> bytes:
    """Return header lines without those of these names."""
    if not headers:
        return lines
    names = {plain_name(name.encode("ascii")) for name in headers}
    kept = [
        line for line in lines.split(b"\r\n") if line and plain_name(line.partition(b":")[0]) not in names
    ]
    return b"".join(line + b"\r\n" for line in kept)


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value).encode()


def _switching(key: bytes, answer: Answer, stream: OpenStream) -> Reply:
    """Return the 101 to a bot; what the exchange's own has besides is passed on."""
    fields = [field for field in sort_reply(answer.head.passed).passed if field[0].lower() not in _NOT_PASSED]
    fields += [
        (b"Upgrade", b"websocket"),
        (b"Connection", b"Upgrade"),
        (b"Sec-WebSocket-Accept", accept_of(key)),
    ]
    reply = Reply(int(HTTPStatus.SWITCHING_PROTOCOLS), "Switching Protocols", fields, b"")
    reply.stream = stream
    return reply
