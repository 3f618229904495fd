"""A reply's length as the upstream may write it: it is its number that counts."""

import pytest

from rig.bot import request
from rig.station import Station
from rig.upstream import say

HELD = b"x" * 10
STREAMED = b"x" * 1_000_000


@pytest.mark.parametrize("zeros", [1, 20, 5000])
@pytest.mark.parametrize("body", [b"", HELD, STREAMED], ids=["none", "held", "streamed"])
async def test_leading_zeros_do_not_count(station: Station, body: bytes, zeros: int) -> None:
    length = b"0" * zeros + (b"%d" % len(body) if body else b"")
    station.upstream.answers.append(say(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n%b" % (length, body)))
    answer = await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
    assert (answer.status, answer.outcome, answer.body) == (200, "done", body)
    assert int(answer.text("Content-Length") or "none") == len(body)
    assert (await station.ask(request())).status == 200


@pytest.mark.parametrize("length", [b"1" + b"0" * 18, b"0" + b"1" * 19], ids=["with zeros", "behind a zero"])
async def test_a_length_of_nineteen_digits_is_none(station: Station, length: bytes) -> None:
    station.upstream.answers.append(say(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % length))
    answer = await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
    assert (answer.status, answer.outcome, answer.reason) == (502, "unknown", "upstream_broken")
