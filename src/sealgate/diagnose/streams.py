"""Log in on a stream with a key: connect, send the login, wait for the reply, and close.

Nothing else is sent. The message is made only from the venue's file.
"""

import asyncio
import contextlib
import json
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from sealgate.config import ExchangeConfig
from sealgate.diagnose.causes import WholeReply
from sealgate.diagnose.logins import (
    Attempt,
    Outcome,
    outcome_of,
    reply_over_stream,
    secrets_in,
    secrets_of,
)
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.destination import Destination
from sealgate.exchange.failure import Failure
from sealgate.exchange.stream_hosts import StreamHost, StreamHosts
from sealgate.http.websocket import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    BotFrames,
    BotMessage,
    accept_fault,
    close_frame,
    code_and_reason,
    frame,
    key_of,
    offer_lines,
)
from sealgate.keys.key import SigningKey
from sealgate.machine.system import System
from sealgate.venues.conditions import holds
from sealgate.venues.document import pick
from sealgate.venues.replies import unpacked
from sealgate.venues.stream_logins import LoginPlan, first_message
from sealgate.venues.stream_sealer import Moment, SignedHandshake, StreamSealer
from sealgate.venues.streams import MessageRule
from sealgate.venues.unsignable import UnsignableError

_REPLY_S: Final = 10.0  # for the reply to a login
_CLOSING_S: Final = 2.0  # for the exchange's close
_MOST_BYTES: Final = 1024 * 1024  # of a message
_MOST_TEXT: Final = 64 * 1024  # of a message after decompression
_UNAUTHORIZED: Final = int(HTTPStatus.UNAUTHORIZED)
_IN_ORDER: Final = frozenset({1000, 1001, 1005})  # close codes without information


class _ClosedError(Exception):
    """The exchange has closed the stream; `str()` says how."""


class _Talk:
    """The messages of one stream."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        self._frames = BotFrames(_MOST_BYTES, is_exchange=True)
        self._came: asyncio.Queue[BotMessage | None] = asyncio.Queue()  # None: the stream has ended
        connection.take_over(self._receive, lambda: self._came.put_nowait(None))

    def _receive(self, data: bytes) -> None:
        self._frames.add(data)
        while (message := self._frames.next()) is not None:
            if message.opcode is PING:
                self._write(frame(PONG, message.data, is_masked=True))
            elif message.opcode is not PONG:
                self._came.put_nowait(message)
        if self._frames.fault is not None:
            self._came.put_nowait(None)

    def _write(self, data: bytes) -> None:
        if self._connection.transport is not None:
            self._connection.transport.write(data)

    def send(self, text: str) -> None:
        """Send a text message."""
        self._write(frame(TEXT, text.encode("utf-8"), is_masked=True))

    async def next_text(self) -> str:
        """Wait for a message, and return its text, decompressed if necessary. Raises _ClosedError."""
        while True:
            message = await self._came.get()
            if message is None:
                raise _ClosedError("it closed the connection without a reason")
            if message.opcode is CLOSE:
                raise _ClosedError(_close_words(message))
            data = message.data if message.opcode is TEXT else unpacked(message.data, b"gzip", _MOST_TEXT)
            with contextlib.suppress(UnicodeDecodeError):
                if data:
                    return data.decode("utf-8")

    async def close(self) -> str:
        """Close the stream; return how the exchange had closed it before, "" if it had not."""
        self._write(close_frame(1000, "", is_masked=True))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                while (message := await self._came.get()) is not None:
                    if message.opcode is CLOSE:
                        code, _ = code_and_reason(message.data)
                        return "" if code in _IN_ORDER else _close_words(message)
        return ""


def _close_words(message: BotMessage) -> str:
    code, reason = code_and_reason(message.data)
    return f"it closed the stream: {code} {reason}".rstrip()


class StreamLogins:
    """Logs in at one exchange. Create it inside a running loop."""

    def __init__(self, config: ExchangeConfig, destination: Destination, system: System) -> None:
        instead = config.upstream.streams
        self._hosts = StreamHosts(destination, "" if instead is None else str(instead))
        self._system = system

    async def attempt(self, login: LoginPlan, key: SigningKey, moment: Moment) -> Attempt:
        """Log in once. Raises UnsignableError."""
        began = self._system.now()
        trial = _Trial(self._hosts.of(login.host), login, key, moment, self._system.unique())
        outcome, text, reply = await trial.run(self._hosts.destination)
        took_ms = round((self._system.now() - began) * 1000)
        way = "the login" if login.rule is not None else "the signed handshake"
        address = f"{login.host}{login.path or login.stream.templates[0]}"
        return Attempt(way, address, outcome, took_ms, text, reply, tuple(trial.hidden))


Came = tuple[Outcome, str, WholeReply | None]


class _Trial:
    """One login. `hidden` are its parts that must not be shown."""

    def __init__(
        self, host: StreamHost, login: LoginPlan, key: SigningKey, moment: Moment, unique: str
    ) -> None:
        self._host = host
        self._login = login
        self._key = key
        self._moment = moment
        self._unique = unique
        self._sealer = StreamSealer(key.sealer, login.host, login.path or "/")
        self.hidden = {key.api_key}

    async def run(self, destination: Destination) -> Came:
        """Connect, log in and close. Raises UnsignableError."""
        # 1. The handshake, signed if the venue's file says so.
        upgrade = self._upgrade()
        connection = await self._host.open()
        if isinstance(connection, Failure):
            return Outcome.UNREACHABLE, connection.detail, None
        try:
            answer = await connection.exchange(
                upgrade, destination.total_timeout_s, is_head=False, may_switch=True
            )
            if isinstance(answer, Failure):
                return Outcome.UNREACHABLE, answer.detail, None
            if answer.status != HTTPStatus.SWITCHING_PROTOCOLS:
                outcome = Outcome.LIMITED if answer.verdict.is_limited else Outcome.REFUSED
                return outcome, "", WholeReply(answer.status, answer.body, answer.verdict)
            fault = accept_fault(answer.head.passed, key_of(self._unique), [])
            if fault or not connection.has_switched:
                return Outcome.UNREACHABLE, fault or "its reply 101 does not switch to WebSocket", None
            # 2. The login, and the reply to it.
            talk = _Talk(connection)
            outcome, text, status = await self._log_in(talk)
            # 3. The close.
            closed = await talk.close()
            if outcome is Outcome.ACCEPTED and closed:
                outcome, text, status = Outcome.REFUSED, closed, _UNAUTHORIZED
            if outcome in {Outcome.REFUSED, Outcome.LIMITED}:
                return outcome, text, reply_over_stream(destination.replies, status, text)
            return outcome, text, None
        finally:
            connection.close()

    def _upgrade(self) -> bytes:
        """Return the bytes of the upgrade request."""
        signing, signed = self._login.stream.handshake, SignedHandshake({}, {}, "")
        if signing is not None:
            signed = self._sealer.handshake(signing, self._moment)
            self.hidden.update(secrets_of([*signed.headers.values(), *signed.query.values()]))
        path = signed.path or self._login.path
        if not path:
            raise UnsignableError(f"the path has a uid; set keys.{self._key.alias}.uid")
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in signed.query.items())
        target = f"{path}?{query}" if query else path
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.headers.items() if value)
        own = f"Host: {self._host.authority}\r\n{self._host.headers}User-Agent: sealgate\r\n"
        head = f"GET {target} HTTP/1.1\r\n{own}{lines}"
        return head.encode("utf-8") + offer_lines(key_of(self._unique), []) + b"\r\n"

    async def _log_in(self, talk: _Talk) -> tuple[Outcome, str, int]:
        """Send the login, if it is a message, and wait for the reply; return outcome, text and status."""
        rule, last = self._login.rule, ""
        if rule is None or rule.signing is None:
            return Outcome.ACCEPTED, "", 0
        is_asked = "challenge" in rule.signing.names()
        sent = self._challenge_message() if is_asked else self._signed(rule)
        try:
            async with asyncio.timeout(_REPLY_S):
                talk.send(sent)
                while True:
                    last = await talk.next_text()
                    if is_asked and (challenge := self._challenge_in(last)):
                        is_asked, self._moment = False, self._moment._replace(challenge=challenge)
                        sent = self._signed(rule)
                        talk.send(sent)
                        continue
                    if rule.reply is None:
                        return Outcome.UNSAID, last, 0
                    found = outcome_of(rule.reply, sent, last)
                    if found is not None and not (is_asked and found[0] is Outcome.ACCEPTED):
                        return found[0], last, found[1]
        except TimeoutError:
            return Outcome.SILENT if rule.reply else Outcome.UNSAID, last, 0
        except _ClosedError as error:
            return Outcome.REFUSED, str(error), _UNAUTHORIZED

    def _signed(self, rule: MessageRule) -> str:
        """Return the text of the signed login."""
        sent = self._sealer.sign(first_message(rule, self._unique), rule.signing, rule.drops, self._moment)
        if rule.signing is not None:
            self.hidden.update(secrets_in(sent, rule.signing))
        return sent

    def _challenge_message(self) -> str:
        """Return the message that requests a challenge, with the API key if the venue's file says so."""
        stream = self._login.stream
        text = "" if stream.challenge is None else stream.challenge.message
        rule, _ = stream.find(stream.clear(text), self._key.sealer.signer.kind)
        return text if rule is None else self._sealer.sign(text, rule.signing, rule.drops, self._moment)

    def _challenge_in(self, text: str) -> str:
        """Return the challenge in a message of the exchange, "" if there is none."""
        challenge = self._login.stream.challenge
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(text)
            if challenge is not None and holds(challenge.when, document):
                return str(pick(document, challenge.at) or "")
        return ""
