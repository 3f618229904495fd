"""Fuzz a whole gateway: odd requests go in, and what a recording upstream receives is held against them.

    scripts/bench fuzz_target --minutes 20

A conversation is one to four requests on one connection, each with an id of its own in its target. Odd about
them are header names that some server could read as the gateway's, with every byte in the place of `-`;
framing that is misspelled, contradictory, broken off or of HTTP/1.0; methods that are not forwarded, CONNECT
and TRACE among them; trailers; and whole requests hidden in bodies. Each conversation is played in one piece,
byte by byte, in pieces and cut in two; one in `CUT_EVERYWHERE` is cut in two at every place.

What must hold is in `_check_arrival` and `_check_answers`. The first violation ends the run with all that is
needed to play it again; the same seed makes the same bytes.
"""

import argparse
import asyncio
import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from random import Random

from rig.oracle import signature
from rig.readings import check_one_reading
from rig.station import API_KEY, SECRET, Station, running_station
from rig.upstream import Act, Received, running_upstream, say
from rig.wire import PATIENCE_S, Fields, let_pass, reply
from sealgate.http.target import Target

CUT_EVERYWHERE = 16
_AT_ONCE = 8  # conversations
_REMEMBERED = 5_000  # plays, so that what arrives late is found, too
_QUIET_S = 0.2  # after which a bot hangs up, where the gateway may wait for more
_PATIENT = {"head_timeout": 600, "body_timeout": 600}  # so that the gateway closes only what must be closed
_ID = re.compile(rb"([0-9]{12})([mh][0-9]+)")
_PREFIX = "/v1/trade"
_ORDER = b"/v1/trade/order/"
_EVIL = b"EVIL"  # in the value of each field that must not arrive
_MARKS = b"!#$%&'*+-.^_`|~"  # what a name may have besides letters and digits (RFC 9110 section 5.6.2)
_FORWARDED = (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE")
_STATES_LENGTH = (b"POST", b"PUT", b"PATCH")
_REFUSED = (b"CONNECT", b"CONNECT", b"TRACE", b"TRACE", b"OPTIONS", b"PROPFIND", b"LINK", b"M-SEARCH")
_SEAL = (b"X-SERVICE-APIKEY", b"X-SERVICE-TIMESTAMP", b"X-SERVICE-SIGNATURE")
_FRAMING = (b"Content-Length", b"Transfer-Encoding")
_OWN = (*_SEAL, b"Host", b"Content-Length")
# Fields that go no further: the first are only dropped, for the second a request may be refused.
_DROPPED = (
    *_SEAL,
    *(
        b"X-Service-New",
        b"X-Gateway-Outcome",
        b"X-Gateway-Error",
        b"X-HTTP-Method-Override",
        b"X-HTTP-Method",
    ),
    *(b"X-Method-Override", b"X-Original-URL", b"X-Rewrite-URL", b"X-Forwarded-For", b"X-Forwarded-Host"),
    *(b"X-Real-IP", b"X-Accel-Redirect", b"Proxy-Authorization", b"Proxy-Connection", b"X-Passkey-Token"),
    *(b"Keep-Alive", b"Forwarded", b"Cookie", b"TE", b"True-Client-IP"),
)
_ACTED_ON = (
    *(b"X-Gateway-Key", b"X-Gateway-Deadline-Ms", b"Sec-Fetch-Site", b"Origin", b"Expect"),
    *(b"Idempotency-Key", *_FRAMING),
)
_FORBIDDEN = (
    *_DROPPED,
    *_ACTED_ON,
    *(b"Host", b"Connection", b"Upgrade", b"Trailer", b"Authorization", b"X-Gateway-Request-Id"),
)
_FORBIDDEN_PREFIXES = (
    *(b"X-SERVICE-", b"X-GATEWAY-", b"X-FORWARDED-", b"X-HTTP-", b"X-ORIGINAL-", b"X-REWRITE-", b"PROXY-"),
)
_HARMLESS = (
    b"Accept",
    b"accept-ENCODING",
    b"User-Agent",
    b"X-Request-Id",
    b"X.Own_Name",
    b"X-Servicekey",
    b"X~",
)
_TARGETS = (b"", b"", b"?a=%2B&a=+", b"?b[]=%20%3A", b"/cancel", b"/x%20y?c", b"?d=/..//%2e%2e/")
_BAD_TARGETS = (b"/../x", b"//x", b"/%2e%2e/x", b"/..;/x", b"/%2Fx", b"\\x", b"?", b"#x", b"/%zz", b"/\xe9")

# What servers make of a name on its way to the application: CGI, PHP, lighttpd's CGI.
MANGLINGS: dict[str, Callable[[bytes], bytes]] = {
    "_": lambda name: name.upper().replace(b"-", b"_"),
    ".": lambda name: name.upper().translate(bytes.maketrans(b"-.", b"__")),
    "all": lambda name: re.sub(rb"[^0-9A-Z]", b"_", name.upper()),
}


class FoundError(Exception):
    """Something that must hold does not."""


def _demand(is_so: bool, what: str) -> None:
    if not is_so:
        raise FoundError(what)


@dataclass(frozen=True)
class Line:
    """A header line as it is written, and the field that arrives of it, if any."""

    raw: bytes
    arrives: tuple[bytes, bytes] | None = None


@dataclass
class Message:
    """A request as it is written. `name` ends its id.

    `is_served`: it arrives, if its turn comes; `is_dead`: it never does. `is_last`: what follows is no
    request; `may_be_last`: it may be taken for none. `is_broken_off`: the gateway waits for the rest.
    """

    name: bytes
    method: bytes
    target: bytes
    version: bytes
    lines: list[Line] = field(default_factory=list)
    body: bytes = b""
    framed: bytes = b""
    is_served: bool = True
    is_dead: bool = False
    is_last: bool = False
    may_be_last: bool = False
    is_broken_off: bool = False

    @property
    def raw(self) -> bytes:
        head = (b"%b %b %b" % (self.method, self.target, self.version), *(line.raw for line in self.lines))
        return b"\r\n".join(head) + b"\r\n\r\n" + self.framed

    @property
    def arriving(self) -> Fields:
        return tuple(line.arrives for line in self.lines if line.arrives is not None)

    def refuse(self) -> None:
        """Note that it must not arrive."""
        self.is_served, self.is_dead = False, True


class Writer:
    """Makes up conversations. `tag` stands before all ids; the same chance makes the same but for it."""

    def __init__(self, chance: Random, tag: bytes, bytes_in_names: set[int]) -> None:
        self._chance = chance
        self._order = _ORDER + tag
        self._tag = tag
        self._bytes_in_names = bytes_in_names  # that stood in the place of `-`
        self._framings = (
            *(self._add_no_body, self._add_no_body, self._add_length, self._add_length, self._add_length),
            *(self._add_chunks, self._add_chunks, self._add_chunks),
            *(self._add_wrong_framing, self._add_half_a_body),
        )

    def conversation(self) -> list[Message]:
        """Return the messages of one connection."""
        messages = [self._message(b"m%d" % index) for index in range(self._chance.choice((1, 1, 2, 3, 4)))]
        if messages[-1].is_last and self._chance.random() < 0.5:
            behind = Message(b"m9", b"POST", self._order + b"m9", b"HTTP/1.1")
            behind.lines += [Line(b"Host: localhost"), Line(b"Content-Length: 0")]
            messages.append(behind)
        return messages

    def _message(self, name: bytes) -> Message:
        message = self._start(name)
        self._add_harmless(message)
        self._add_connection(message)
        for _ in range(self._chance.choice((0, 0, 1, 1, 2, 4))):
            self._add_forbidden(message)
        self._chance.choice(self._framings)(message)
        if self._chance.random() < 0.7:
            self._chance.shuffle(message.lines)
        if message.method == b"CONNECT":
            message.is_last, message.is_broken_off = True, False
        return message

    def _start(self, name: bytes) -> Message:
        chance = self._chance
        method = chance.choice(_REFUSED if chance.random() < 0.15 else _FORWARDED)
        version = b"HTTP/1.0" if chance.random() < 0.2 else b"HTTP/1.1"
        message = Message(name, method, self._order + name + chance.choice(_TARGETS), version)
        if chance.random() < 0.05:
            message.target = self._order + name + chance.choice(_BAD_TARGETS)
            message.refuse()
        if method in _REFUSED:
            message.refuse()
        if method == b"CONNECT" and chance.random() < 0.7:
            message.target = b"localhost:80"
        return message

    def _add_harmless(self, message: Message) -> None:
        chance = self._chance
        names = chance.sample(_HARMLESS, chance.randrange(4))
        harmless = [(name, b"v%d" % index) for index, name in enumerate(names)]
        harmless += [(b"Referer", b"CCXT")] if chance.random() < 0.1 else []
        message.lines += [Line(b"Host: localhost"), *(Line(b"%b: %b" % one, one) for one in harmless)]
        if chance.random() < 0.5:
            name = b"X-Gateway-Request-Id".replace(b"-", bytes([chance.choice(_MARKS)]))
            message.lines.append(Line(b"%b: %b%b" % (name, self._tag, message.name)))

    def _add_connection(self, message: Message) -> None:
        chance = self._chance
        if chance.random() < 0.05:
            message.lines.append(Line(b"Connection: close"))
            message.is_last = True
        elif message.version == b"HTTP/1.0":
            message.is_last = chance.random() < 0.3
            message.lines += [] if message.is_last else [Line(b"Connection: keep-alive")]
        if chance.random() < 0.05:
            message.lines.append(Line(b"Connection: X-SERVICE-SIGNATURE, Host, Content-Length"))
        if chance.random() < 0.05:
            message.lines += [Line(b"Connection: Upgrade"), Line(b"Upgrade: h2c")]
            message.may_be_last = True

    def _add_forbidden(self, message: Message) -> None:
        """Add a field whose name means one of the gateway's own, or would with another byte for `-`."""
        name = self._chance.choice(_DROPPED if self._chance.random() < 0.9 else _ACTED_ON)
        spelled, mark = self._spelled(name)
        if mark.isalnum():  # it is another name
            message.lines.append(Line(spelled + b": v", (spelled, b"v")))
        elif mark == b":":  # it ends the name, and what is left of that is another
            begin, _, rest = spelled.partition(b":")
            message.lines.append(Line(spelled + b": v", (begin, rest + b": v")))
        else:
            message.lines.append(Line(b"%b: %b" % (spelled, self._evil_value())))
            if name in _ACTED_ON or mark not in _MARKS:
                message.is_served, message.may_be_last = False, True

    def _spelled(self, name: bytes) -> tuple[bytes, bytes]:
        """Return a name with another byte for `-`, and that byte, which is `-` where the name has none."""
        chance = self._chance
        octet = chance.randrange(256) if chance.random() < 0.2 else chance.choice(_MARKS)
        if b"-" not in name:
            octet = ord("-")
        elif name in _FRAMING and octet == ord("-"):
            octet = ord(".")  # else it would mean what it says
        self._bytes_in_names.add(octet)
        places = 1 if chance.random() < 0.3 else -1
        return self._cased(name).replace(b"-", bytes([octet]), places), bytes([octet])

    def _cased(self, name: bytes) -> bytes:
        return self._chance.choice((name, name.lower(), name.upper(), name.title()))

    def _evil_value(self) -> bytes:
        return _EVIL + self._tag + b"%d" % self._chance.randrange(10**9)

    def _add_no_body(self, message: Message) -> None:
        pass

    def _add_length(self, message: Message) -> None:
        message.body = message.framed = self._body(message)
        message.lines.append(Line(b"%b: %d" % (self._cased(b"Content-Length"), len(message.body))))

    def _add_chunks(self, message: Message) -> None:
        """Write the body in chunks. Behind those of HTTP/1.0 is nothing (RFC 9112 section 6.1)."""
        chance = self._chance
        message.body = rest = self._body(message)
        message.lines.append(Line(self._cased(b"Transfer-Encoding") + b": chunked"))
        while rest:
            size = chance.randint(1, len(rest))
            extension = chance.choice((b"", b"", b";a=b"))
            message.framed += b"%x%b\r\n%b\r\n" % (size, extension, rest[:size])
            rest = rest[size:]
        message.framed += b"0\r\n"
        for _ in range(chance.choice((0, 0, 1, 2))):
            trailer, mark = self._spelled(chance.choice(_DROPPED))
            message.framed += b"%b: %b\r\n" % (trailer, self._evil_value())
            message.may_be_last = True
            message.is_served = message.is_served and (mark in _MARKS or mark.isalnum() or mark == b":")
        message.framed += b"\r\n"
        message.is_last = message.is_last or message.version == b"HTTP/1.0"

    def _add_wrong_framing(self, message: Message) -> None:
        """State the end of the body so that two servers could find it at two places."""
        message.framed = self._body(message)
        size = len(message.framed)
        marks = _MARKS.replace(b"-", b"")
        length, coding = (
            self._cased(name).replace(b"-", bytes([self._chance.choice(marks)])) for name in _FRAMING
        )
        ways: tuple[tuple[bytes, ...], ...] = (
            (b"%b: %d" % (length, size),),
            (b"%b: 0" % length, b"Content-Length: %d" % size),
            (b"%b: %d" % (length, size + 5), b"Content-Length: %d" % size),
            (b"Content-Length: %d" % size, coding + b": chunked"),
            (coding + b": chunked",),
            (b"Content-Length: %d" % size, b"Content-Length: %d" % size),
            (b"Content-Length: %d" % size, b"Transfer-Encoding: chunked"),
            (b"Transfer-Encoding: gzip",),
        )
        message.lines += [Line(raw) for raw in self._chance.choice(ways)]
        message.refuse()
        message.is_last = True

    def _add_half_a_body(self, message: Message) -> None:
        """Break the body off: what follows is a part of it, too."""
        message.framed = self._body(message)
        message.lines.append(Line(b"Content-Length: %d" % (len(message.framed) + 900_000)))
        message.refuse()
        message.is_last = message.is_broken_off = True

    def _body(self, message: Message) -> bytes:
        """Return a body, in most cases with a whole request in it, which must not arrive."""
        chance = self._chance
        method, hidden_id = chance.choice((b"GET", b"POST", b"DELETE")), b"h" + message.name[1:]
        hidden = b"%b %b%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (method, self._order, hidden_id)
        noise = chance.randbytes(chance.randrange(1, 60))
        ends = (b"0\r\n\r\n" + hidden, b"\r\n0\r\n\r\n" + hidden, b"\r\n\r\n" + hidden + hidden[:20])
        return chance.choice((b"", b"{}", noise, hidden, *ends))


def _written(messages: Sequence[Message]) -> bytes:
    return b"".join(message.raw for message in messages)


def ways_to_cut(chance: Random, size: int, *, everywhere: bool) -> Iterator[list[int]]:
    """Yield the places at which to cut a conversation, one way after the other."""
    yield []
    yield list(range(1, size))
    yield sorted(chance.sample(range(1, size), 6))
    places = range(1, size) if everywhere else chance.sample(range(1, size), 2)
    yield from ([place] for place in places)


@dataclass
class Play:
    """One connection: what a conversation says under a tag of its own, and what comes of it.

    `requests` are the messages up to the one that ends the connection.
    """

    tag: bytes
    messages: list[Message]
    pieces: list[bytes]
    arrived: list[bytes] = field(default_factory=list)  # names of messages
    got: bytes = b""
    is_said: bool = False  # all its pieces were written: from now on the answers are waited for

    def __post_init__(self) -> None:
        last = [index for index, message in enumerate(self.messages) if message.is_last]
        self.requests = self.messages[: last[0] + 1] if last else self.messages
        self.is_broken_off = self.requests[-1].is_broken_off
        self.must_close = bool(last) and not self.is_broken_off

    @property
    def all_must_arrive(self) -> bool:
        """Whether nothing is odd but what is dropped."""
        are_served = all(message.is_served for message in self.messages)
        may_be_lost = any(message.may_be_last for message in self.messages[:-1])
        return are_served and not may_be_lost and len(self.requests) == len(self.messages)


def _check_arrival(play: Play, name: bytes, received: Received) -> None:
    """Check that it is a request of this play that came for the first time, unchanged and well signed."""
    message = next((one for one in play.requests if one.name == name), None)
    _demand(message is not None, f"{name!r} arrived, which is in a body or behind the end")
    assert message is not None
    _demand(not message.is_dead, f"{name!r} arrived, which is to be refused")
    _demand(name not in play.arrived, f"{name!r} arrived twice")
    play.arrived.append(name)
    came, said = (received.method, received.target), (message.method, message.target)
    _demand(came == said, "another method or target arrived")
    _demand(received.body == message.body, "another body arrived")
    _check_one_reading(received.target)
    _check_fields(received, message.arriving)
    _check_seal(received)


def _check_one_reading(raw: bytes) -> None:
    path, mark, query = raw.decode("ascii").partition("?")
    try:
        check_one_reading(
            raw.decode("ascii"), _PREFIX, Target(raw.decode("ascii"), path, query if mark else None)
        )
    except AssertionError:
        raise FoundError("a target of several readings arrived") from None


def _check_fields(received: Received, arriving: Fields) -> None:
    fields = received.fields
    states_length = received.body != b"" or received.method in _STATES_LENGTH
    own = Counter(name for name, _ in fields if name in _OWN)
    expected = Counter((*_SEAL, b"Host", *((b"Content-Length",) if states_length else ())))
    _demand(own == expected, f"of the gateway's own fields there are {own}")
    others = tuple(one for one in fields if one[0] not in _OWN)
    for spelling, mangle in MANGLINGS.items():
        forbidden, prefixes = {*map(mangle, _FORBIDDEN)}, tuple(map(mangle, _FORBIDDEN_PREFIXES))
        for name, _ in others:
            is_forbidden = mangle(name) in forbidden or mangle(name).startswith(prefixes)
            _demand(not is_forbidden, f"{name!r} arrived, the gateway's own name where {spelling} is mangled")
    _demand(others == arriving, f"{others} arrived instead of {arriving}")
    _demand(not any(_EVIL in value for _, value in fields), "a value arrived that was to be dropped")


def _check_seal(received: Received) -> None:
    api_key, timestamp, seal = (received.head.value(name) or b"" for name in _SEAL)
    expected = signature(SECRET, timestamp, received.method, received.target, received.body)
    _demand((api_key, seal) == (API_KEY, expected.encode("ascii")), "the signature is wrong")


@dataclass(frozen=True)
class Answer:
    """A reply, as far as it is looked at; `echo` is the name of the message that the upstream answered."""

    status: int
    outcome: bytes
    echo: bytes | None


def _answers(play: Play) -> list[Answer]:
    """Return the replies that came; only the upstream's own to HEAD, and the gateway's, may have no body."""
    found, rest = [], play.got
    while b"\r\n\r\n" in rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        fields = dict(one.split(b": ", 1) for one in lines)
        is_reply = line.startswith(b"HTTP/1.1 ") and b"X-Gateway-Outcome" in fields
        _demand(is_reply, f"{head!r} came for a reply")
        echo = fields.get(b"X-Echo")
        found.append(Answer(int(line[9:12]), fields[b"X-Gateway-Outcome"], echo))
        if not rest.startswith(b"HTTP/1.1 "):
            rest = rest[int(fields.get(b"Content-Length", b"0")) :]
    return found


def _check_answers(play: Play, answers: Sequence[Answer]) -> None:
    """Check that the bot was told what happened, once for each request at most."""
    _demand(
        len(answers) <= len(play.requests), f"{len(answers)} replies came to {len(play.requests)} requests"
    )
    for answer in answers:
        outcome = b"not_sent" if answer.echo is None else b"done"
        _demand(answer.outcome == outcome, f"{answer} came, and not {outcome!r}")
    echoes = [answer.echo for answer in answers if answer.echo is not None]
    _demand(echoes == play.arrived[: len(echoes)], f"{echoes} were answered of {play.arrived} that arrived")
    if play.all_must_arrive:
        names = [message.name for message in play.messages]
        _demand(names == play.arrived == echoes, f"{play.arrived} arrived of {names}, {echoes} were answered")


class Fuzz:
    """A run over conversations from `first` on, as long as `goes_on` says so.

    `closed_within_s` is how long a connection may stay that must end.
    """

    def __init__(
        self,
        seed: int,
        first: int,
        goes_on: Callable[[int], bool],
        closed_within_s: float = PATIENCE_S,
    ) -> None:
        self.seed = seed
        self._closed_within_s = closed_within_s
        self.figures: Counter[str] = Counter()
        self.bytes_in_names: set[int] = set()
        self._numbers = takewhile(goes_on, count(first))
        self._plays: dict[bytes, Play] = {}
        self._found: list[str] = []
        self._port = 0

    async def run(self) -> None:
        """Raise FoundError at the first violation."""
        async with running_upstream() as upstream, running_station(upstream, listen=_PATIENT) as station:
            upstream.script = self._record
            self._port = station.gateway.address.port
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(_AT_ONCE):
                        group.create_task(self._converse(station))
            except* FoundError:
                pass  # it is noted
            self._stop_if_found()

    async def _converse(self, station: Station) -> None:
        for number in self._numbers:
            draft = self._conversation(number, b"0" * 12)
            size = len(_written(draft))
            # One that is broken off takes the bot's patience each time.
            everywhere = number % CUT_EVERYWHERE == 0 and not any(one.is_broken_off for one in draft)
            ways = ways_to_cut(Random(number), size, everywhere=everywhere)
            self.figures["conversations"] += 1
            for index, places in enumerate(ways):
                tag = b"%08d%04d" % (number, index)
                messages = self._conversation(number, tag)
                raw = _written(messages)
                ends = zip([0, *places], [*places, size], strict=True)
                await self._play(Play(tag, messages, [raw[start:end] for start, end in ends]))
            self.figures.update(outcome.reason or outcome.conclusion for outcome in station.outcomes.all)
            station.outcomes.all.clear()
            station.upstream.received.clear()

    def _conversation(self, number: int, tag: bytes) -> list[Message]:
        return Writer(Random(f"{self.seed}:{number}"), tag, self.bytes_in_names).conversation()

    async def _play(self, play: Play) -> None:
        self._plays[play.tag] = play
        if len(self._plays) > _REMEMBERED:
            del self._plays[next(iter(self._plays))]
        try:
            await self._talk(play)
            answers = _answers(play)
            _check_answers(play, answers)
        except FoundError as error:
            self._found.append(self._report(play, str(error)))
        self._stop_if_found()
        self.figures["connections"] += 1
        self.figures["requests written"] += len(play.messages)
        self.figures["requests arrived"] += len(play.arrived)

    def _stop_if_found(self) -> None:
        if self._found:
            raise FoundError("\n\n".join(self._found))

    async def _talk(self, play: Play) -> None:
        """Say it all and hear the answers, to the end of the connection where one must come."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        listening = asyncio.ensure_future(self._listen(play, reader))
        try:
            with contextlib.suppress(ConnectionError):
                for piece in play.pieces:
                    if listening.done():
                        break
                    writer.write(piece)
                    await let_pass(0)
                await writer.drain()
            play.is_said = True
            await listening
        finally:
            listening.cancel()
            writer.transport.abort()

    async def _listen(self, play: Play, reader: asyncio.StreamReader) -> None:
        is_enough = False
        while True:
            patience_s = 0.0 if is_enough else _QUIET_S if play.is_broken_off else self._closed_within_s
            try:
                async with asyncio.timeout(patience_s):
                    got = await reader.read(1 << 16)
            except ConnectionError:
                return
            except TimeoutError:
                if not play.is_said and not is_enough:
                    continue
                _demand(is_enough or play.is_broken_off, "the connection stays, and nothing comes")
                return
            if not got:
                return
            play.got += got
            is_enough = not play.must_close and len(_answers(play)) >= len(play.requests)

    def _record(self, received: Received) -> Act:
        """Check what arrives, and answer with its name."""
        found = _ID.search(received.target)
        play = self._plays.get(found[1]) if found else None
        name = found[2] if found else b"?"
        try:
            _demand(play is not None, f"{received.raw!r} arrived, which nobody sent")
            assert play is not None
            _check_arrival(play, name, received)
        except FoundError as error:
            self._found.append(self._report(play, f"{error}:\n{received.raw!r}"))
        answer = reply(b"200 OK", b"{}", b"X-Echo: " + name)
        return say(answer[:-2] if received.method == b"HEAD" else answer)

    def _report(self, play: Play | None, what: str) -> str:
        if play is None:
            return what
        again = f"--seed {self.seed} --first {int(play.tag[:8])} --count 1"
        return f"{what}\nsent: {play.pieces}\ncame: {play.got!r}\nagain: {again}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz a gateway before a recording upstream.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--first", type=int, default=0, help="the number of the first conversation")
    parser.add_argument("--count", type=int, help="how many conversations, whatever the time")
    options = parser.parse_args()
    ends_at = time.monotonic() + 60 * options.minutes
    numbers = range(options.first, sys.maxsize if options.count is None else options.first + options.count)

    def goes_on(number: int) -> bool:
        return number in numbers and (options.count is not None or time.monotonic() < ends_at)

    fuzz = Fuzz(options.seed, options.first, goes_on)
    print(f"seed {options.seed}", flush=True)
    try:
        asyncio.run(fuzz.run())
    except FoundError as found:
        sys.exit(str(found))
    for name, figure in fuzz.figures.most_common():
        print(f"{figure:10,} {name}")
    print(f"{len(fuzz.bytes_in_names):10,} bytes in the place of - in a name")


if __name__ == "__main__":
    main()
