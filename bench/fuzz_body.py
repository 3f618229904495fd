"""Fuzz what a gateway puts into requests: members of a JSON body, claims of a token, names by route, secrets.

    scripts/bench fuzz_body --minutes 20

At each venue whose file has such, and for each kind of its keys, a gateway runs before a recording upstream.
A bot sends odd requests (bench/hostile_bodies.py). Each must be refused unsent, or arrive as the file says:
read by h11 and by a strict reader of JSON (tests/rig/strict_json.py), and compared byte for byte with what is
expected (bench/file_oracle.py), which is made of the file alone. So each member, claim and header of the
gateway is there once, with its value and no other, the signature verifies, and all else is the bot's, as it
wrote it. The first violation ends the run with all that is needed to play it again; the same seed makes the
same bytes.
"""

import argparse
import asyncio
import base64
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import cache, partial
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

import h11

from bench.file_filters import NoAnswerError, Table, mac_of, read_seal, written_seal
from bench.file_oracle import NONCES, NOW_MS, Asked, Expected, Key, Place, seals_in, table_of
from bench.fuzz_target import FoundError
from bench.hostile_bodies import EVIL, Bot, Writer
from rig.private_keys import new_key, private, verifies
from rig.station import Station, running_station
from rig.strict_json import NotJsonError, read
from rig.upstream import Received, Upstream, running_upstream, say
from rig.wire import CutError, NotHttpError, reply
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.stamps import Nonces, Stamps
from sealgate.venues.routes import Auth
from venues.through import FILES
from venues.through import table_of as table_of_routes

IN_A_ROW = 200  # requests at one venue, before the next
_UNCLOCKED = {"required": False, "grace": 0}
_UNPACED = {"known": ["1000000/1s"]}
_ANSWER = reply(b"200 OK", b'{"code":0}')
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_MARK = b"x-own"  # the bot's field by which a request is found at the upstream


def _demand(is_so: bool, what: str) -> None:
    if not is_so:
        raise FoundError(what)


def writer_for(place: Place, chance: Random) -> Writer:
    """Return what makes up requests there."""
    rows = [row for route in place.whole.get("routes", ()) for row in _matches(route)]
    rows += [tuple(row.split(" ", 1)) for row in place.signing.get("by_route", ())]
    named = [(method, re.sub(r"\{\w*\}|\*\*", "{}", path)) for method, path in rows if method in _METHODS]
    free = [(method, f"{place.prefix}/{{}}") for method in _METHODS]
    own = [name.removesuffix("?") for name in place.signing.get("json", ()) if name != "*"]
    own += place.signing.get("strips", [])
    return Writer(chance, [*named, *free], sorted(set(own)), list(place.signing.get("headers", ())))


def _matches(route: Table) -> Iterator[tuple[str, str]]:
    """Yield the methods and paths of a row for requests that are signed and need no more than `trade`."""
    if route.get("auth", "signed") == "signed" and route.get("needs") != "keys":
        match = route["match"]
        for row in [match] if isinstance(match, str) else match:
            method, _, path = row.partition(" ")
            yield method, path


def targets() -> list[Place]:
    """Return every venue whose file puts JSON, names by route or the secret into requests."""
    found = []
    for file in FILES:
        whole = table_of(file.stem)
        shared = {key: value for key, value in whole["signing"].items() if key != "kinds"}
        for kind, own in whole["signing"].get("kinds", {"hmac": {}}).items():
            signing = {**shared, **own}
            has_json = any(
                isinstance(part, dict) and "json" in part for part in signing.get("parts", {}).values()
            )
            if has_json or {"json", "by_route", "static"} & signing.keys():
                found.append(Place(file.stem, whole, signing, _key(kind, signing)))
    return found


def _key(kind: str, signing: Table) -> Key:
    if kind == "hmac":
        secret = "a secret of 32 letters and digits"
        encoded = {"base64": base64.b64encode(secret.encode()).decode(), "hex": secret.encode().hex()}
        return Key(kind, encoded.get(signing.get("secret", ""), secret))
    key = _private(kind)
    is_pss, digest = signing.get("padding") == "pss", signing.get("digest", "sha256")
    return Key(kind, private(key).decode(), partial(verifies, key.public_key(), is_pss=is_pss, digest=digest))


@cache
def _private(kind: str) -> Any:
    return new_key(kind)


def check(place: Place, bot: Bot, received: Received, host: str) -> None:
    """Raise FoundError where what arrived is not what the file says of what the bot sent."""
    method, path, query, fields, body = _read_strictly(received.raw)
    came = Asked(bot.method.decode(), *_parted(bot.target), bot.body or b"")
    _demand(method == bot.method, f"{method!r} came")
    _demand(path == came.path, f"the path is {path!r}")
    _demand(
        EVIL not in received.raw[: received.raw.index(b"\r\n\r\n")],
        "a header of the bot came, which is the gateway's",
    )
    seals: list[bytes] = []
    if (
        table_of_routes(place.name).find(came.method, path.decode()[len(place.prefix) :]).auth
        is not Auth.SIGNED
    ):
        _demand((query, body) == (came.query, came.body), "what goes unsigned is not the bot's")
        own = {name.lower().encode() for name in place.signing.get("headers", ())}
        _check_fields({}, [one for one in fields if one[0] not in own], bot, host, body)
        return
    try:
        expected = Expected(place, host, came, body)
    except NoAnswerError as none:
        raise FoundError(f"it was sent, though {none}") from None
    seals += _seals(expected.query, query, "the query")
    if expected.members is None:
        _demand(body == came.body, "the body is not the bot's")
    else:
        seals += _check_members(expected.members, body)
    seals += _check_fields(expected.fields, fields, bot, host, body)
    _check_seals(place, seals, expected.message)


def _parted(place: bytes) -> tuple[bytes, bytes]:
    path, _, query = place.partition(b"?")
    return path, query


def _read_strictly(raw: bytes) -> tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]], bytes]:
    """Read one request by h11, and nothing behind it."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    body = b""
    try:
        head = connection.next_event()
        _demand(isinstance(head, h11.Request), f"no request: {head!r}")
        while isinstance(event := connection.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError as error:
        raise FoundError(f"h11 reads no request: {error}") from None
    _demand(isinstance(event, h11.EndOfMessage) and not event.headers, f"it ends with {event!r}")
    _demand(connection.trailing_data[0] == b"", "something follows the request")
    assert isinstance(head, h11.Request)
    return (
        bytes(head.method),
        *_parted(bytes(head.target)),
        [(bytes(name), bytes(value)) for name, value in head.headers],
        body,
    )


def _seals(expected: bytes, sent: bytes, what: str) -> list[bytes]:
    seals = seals_in(expected, sent)
    _demand(seals is not None, f"{what} is {sent!r}, and not {expected!r}")
    return seals or []


def _check_members(expected: list[bytes], body: bytes) -> list[bytes]:
    """Check that an object has these members alone, in this order, as they are written; return signatures."""
    try:
        whole = read(body)
    except NotJsonError as error:
        raise FoundError(f"the body is no JSON: {error}: {body!r}") from None
    _demand(whole.kind == "{", "the body is no object")
    _demand(len(whole.written) == len(expected), f"the members are {whole.written}, and not {expected}")
    pairs = zip(expected, whole.written, strict=True)
    return [seal for one, (_, sent) in pairs for seal in _seals(one, sent, "a member")]


def _check_fields(
    expected: dict[bytes, bytes], fields: list[tuple[bytes, bytes]], bot: Bot, host: str, body: bytes
) -> list[bytes]:
    """Check each line of the head; return signatures."""
    seals = []
    for name, value in expected.items():
        values = [other for one, other in fields if one == name]
        _demand(len(values) == 1, f"{name!r} comes {len(values)} times")
        seals += _seals(value, values[0], name.decode())
    passed = [
        (name.lower(), value)
        for name, value in bot.fields
        if name.lower() in (b"accept", b"content-type", _MARK)
    ]
    if body and not bot.body:
        passed += [(b"content-type", b"application/json")] if b"content-type" not in dict(passed) else []
    rest = Counter(one for one in fields if one[0] not in expected)
    rest -= Counter({(b"host", host.encode()): 1, (b"content-length", b"%d" % len(body)): 1})
    _demand(rest <= Counter(passed), f"fields came that nobody sent: {rest - Counter(passed)}")
    return seals


def _check_seals(place: Place, seals: list[bytes], message: bytes) -> None:
    _demand(len(set(seals)) <= 1, f"there are several signatures: {seals}")
    _demand(bool(seals) or place.signing.get("static", False), "it is not signed")
    for seal in seals[:1]:
        key = place.key
        if key.verify is None:
            expected = written_seal(place.signing, mac_of(place.signing, key.secret, message))
            _demand(seal == expected, f"{seal!r} does not sign {message!r}")
            continue
        raw = read_seal(place.signing, seal)
        _demand(written_seal(place.signing, raw) == seal, f"{seal!r} is written otherwise")
        _demand(key.verify(message, raw), f"{seal!r} does not verify for {message!r}")


class Fuzz:
    """A run over requests from `first` on, as long as `goes_on` says so; IN_A_ROW at one venue."""

    def __init__(self, seed: int, only: str = "") -> None:
        self._seed = seed
        self._targets = [one for one in targets() if only in ("", one.name)]
        self.figures: Counter[str] = Counter()

    @property
    def places(self) -> int:
        """How many venues and kinds of keys there are."""
        return len(self._targets)

    async def run(self, first: int, goes_on: Callable[[int], bool]) -> None:
        """Raise FoundError at the first violation."""
        with ExitStack() as stack:
            for kind, method, value in (
                (KeptClock, "timestamp_ms", lambda *_: NOW_MS),
                (Stamps, "take", lambda *_: NOW_MS),
                (Nonces, "take", lambda self, _: NONCES[self.kind].encode()),
            ):
                stack.enter_context(patch.object(kind, method, value))
            async with running_upstream() as upstream:
                upstream.script = lambda received: say(
                    _ANSWER[: -len(b'{"code":0}')] if received.method == b"HEAD" else _ANSWER
                )
                for start in count(first - first % IN_A_ROW, IN_A_ROW):
                    numbers = [
                        number for number in range(max(first, start), start + IN_A_ROW) if goes_on(number)
                    ]
                    if not numbers:
                        return
                    place = self._targets[start // IN_A_ROW % len(self._targets)]
                    await self._visit(place, upstream, numbers, goes_on)

    async def _visit(
        self, place: Place, upstream: Upstream, numbers: list[int], goes_on: Callable[[int], bool]
    ) -> None:
        key = place.key
        texts = {"api_key": key.api_key} if "{api_key" in str(place.signing) else {}
        keys = {"main": {**texts, "secret": "env:SECRET", "passphrase": "env:PASSPHRASE", "uid": key.uid}}
        environ = {"SECRET": key.secret, "PASSPHRASE": key.passphrase}
        pools = {pool["name"]: _UNPACED for pool in place.whole.get("limits", {}).get("pools", ())}
        limits = {"pools": pools} if pools else _UNPACED
        settings: dict[str, Any] = {"venue": place.name, "keys": keys, "limits": limits, "clock": _UNCLOCKED}
        async with AsyncExitStack() as stack:
            station = await stack.enter_async_context(
                running_station(upstream, environ, synced=False, **settings)
            )
            talk = Talk(station)
            for number in numbers:
                if goes_on(number):
                    await self._ask(place, talk, number)
            talk.end()

    async def _ask(self, place: Place, talk: "Talk", number: int) -> None:
        bot = writer_for(place, Random(f"{self._seed}:{number}")).request()
        bot.fields.append((_MARK, b"%d" % number))
        upstream = talk.station.upstream
        upstream.received.clear()
        try:
            reason = await talk.ask(bot)
            arrived = [one for one in upstream.received if one.head.value(_MARK) is not None]
            _demand(
                len(arrived) == (reason is None), f"{len(arrived)} arrived, and the bot was told {reason}"
            )
            for received in arrived:
                check(place, bot, received, upstream.base_url.partition("://")[2])
        except FoundError as found:
            where = f"{place.name}, {place.key.kind}: seed {self._seed}, --first {number} --count 1"
            raw = [one.raw for one in upstream.received]
            raise FoundError(f"{found}\nsent: {bot.raw()!r}\ncame: {raw}\nagain: {where}") from None
        self.figures[reason or "arrived"] += 1
        self.figures[f"{place.name} {place.key.kind}: {'arrived' if reason is None else 'refused'}"] += 1


class Talk:
    """A bot's connection, which begins anew where the gateway ended it."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self._context: Any = None
        self._bot: Any = None

    async def ask(self, bot: Bot) -> str | None:
        """Send a request; return why the gateway refused it, None for the upstream's reply."""
        if self._bot is None:
            self._context = self.station.bot()
            self._bot = await self._context.__aenter__()
        try:
            answer = await self._bot.ask(bot.raw())
        except (CutError, NotHttpError) as error:
            raise FoundError(f"no reply came: {error!r}") from None
        if answer.closes:
            self.end()
        return None if answer.reason is None else str(answer.reason)

    def end(self) -> None:
        """Hang up."""
        if self._bot is not None:
            self._bot.hang_up()
            self._bot = None


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz what a gateway puts into requests.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--count", type=int, help="how many requests, whatever the time")
    parser.add_argument("--venue", default="", help="one venue alone, which has other numbers then")
    options = parser.parse_args()
    ends_at = time.monotonic() + 60 * options.minutes

    end = sys.maxsize if options.count is None else options.first + options.count

    def goes_on(number: int) -> bool:
        return number < end and (options.count is not None or time.monotonic() < ends_at)

    fuzz = Fuzz(options.seed, options.venue)
    print(f"seed {options.seed}", flush=True)
    try:
        asyncio.run(fuzz.run(options.first, goes_on))
    except FoundError as found:
        sys.exit(str(found))
    for name, figure in fuzz.figures.most_common():
        print(f"{figure:10,} {name}")


if __name__ == "__main__":
    main()
