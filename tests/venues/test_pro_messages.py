"""What ccxt.pro sends over streams: all of it is clear, and needs what its methods say."""

import json
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import clear_decoder
from sealgate.venues.routes import Lane, Permission, Route
from sealgate.venues.streams import Stream, find_stream, plain_host
from venues.through import FILES, printed_by, venue_of

# ccxt sends these to a host of futures that knows no such method (the exchange's documents, 2026-11).
_UNKNOWN = ('"method": "myTrades"', '"method": "klines"')


class Sent(NamedTuple):
    """A message of one of ccxt.pro's methods."""

    exchange: str
    method: str
    url: str
    text: str


@pytest.fixture(scope="module")
def sent() -> list[Sent]:
    rows = map(json.loads, printed_by("venues.pro_messages").splitlines())
    return [
        Sent(exchange, method, url, message if isinstance(message, str) else json.dumps(message))
        for exchange, method, url, message in rows
    ]


def read_streams(url: str) -> Iterator[tuple[str, Stream]]:
    """Yield the streams at an address whose messages are read, with their venues."""
    parts = urlsplit(url)
    for venue in map(venue_of, FILES):
        stream = find_stream(venue.streams, plain_host(parts.netloc), parts.path or "/")
        if stream is not None and stream.is_read:
            yield venue.name, stream


def is_as_its_method(method: str, route: Route) -> bool:
    """Ask whether a message needs what its method's name says; an order may be edited by a cancel first."""
    verb = method.partition("_")[0]
    if verb in ("create", "edit", "cancel"):
        lanes = {"create": {Lane.ORDER}, "cancel": {Lane.CANCEL}}.get(verb, {Lane.ORDER, Lane.CANCEL})
        return route.needs is Permission.TRADE and route.lane in lanes
    return verb not in ("watch", "un", "fetch", "ping") or (route.needs, route.lane) == (
        *(Permission.READ, Lane.READ),
    )


def test_no_message_has_two_names_that_differ_only_in_case_or_marks(sent: list[Sent]) -> None:
    decode = clear_decoder(())
    objects = [one.text for one in sent if one.text.startswith(("{", "["))]
    assert all(decode(text) == json.loads(text) for text in objects)
    assert len(objects) > 1000
    assert len({one.exchange for one in sent}) > 60


def test_each_is_clear_and_needs_what_its_method_says(sent: list[Sent]) -> None:
    wrong, judged = [], 0
    for one in sent:
        for venue, stream in read_streams(one.url):
            rule, route = stream.find(stream.clear(one.text), Kind.HMAC)
            judged += 1
            is_login = rule is not None and rule.is_login
            if not is_login and not is_as_its_method(one.method, route):
                wrong.append((venue, one.method, route.template, route.needs.value, one.text))
    assert [row for row in wrong if not any(text in row[-1] for text in _UNKNOWN)] == []
    assert judged > 500
