"""Upstreams that close idle connections, and what that must not do to orders: leave in doubt, or double."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rig.bot import met, request
from rig.station import Station
from rig.upstream import Upstream
from sealgate.gateway.keys.sealing import sealed_request
from sealgate.gateway.request import pipeline

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
CANCEL = request(b"DELETE", b"/v1/trade/order/1")

Deed = Callable[[], None]


@pytest.fixture
def before_sending(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Deed], None]]:
    """Return a function that has something done once, when a request has its connection and is signed."""
    deeds: list[Deed] = []

    def seal(*arguments: Any) -> bytes:
        for deed in [deeds.pop() for _ in tuple(deeds)]:
            deed()
        return sealed_request(*arguments)

    monkeypatch.setattr(pipeline, "sealed_request", seal)
    yield deeds.append
    assert not deeds


def close_all(upstream: Upstream) -> Deed:
    """Send FIN on all connections, so that only the system of the gateway's machine knows of it."""

    def close() -> None:
        for wire in upstream._wires:
            wire.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)

    return close


def break_all(station: Station) -> Deed:
    """Let the first write to a connection that a request has fail with EPIPE."""

    def break_them() -> None:
        for connection in station.gateway.tree.upstream._lanes:
            assert connection.transport is not None
            connection.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)

    return break_them


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_nothing_is_sent_on_a_connection_that_the_other_end_has_closed(
    station: Station, before_sending: Callable[[Deed], None], message: bytes
) -> None:
    await station.ask(READ)
    before_sending(close_all(station.upstream))
    assert met(await station.ask(message)) == (200, "done", None, 1)
    assert len(station.upstream.received) == 2


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_a_first_write_that_fails_sent_nothing_and_is_made_again(
    station: Station, before_sending: Callable[[Deed], None], message: bytes
) -> None:
    await station.ask(READ)
    before_sending(break_all(station))
    assert met(await station.ask(message)) == (200, "done", None, 2)
    assert (await station.outcomes.until(2)).resends == ("unreachable",)
    assert len(station.upstream.received) == 2


async def test_an_order_whose_every_first_write_fails_was_not_sent(
    station: Station, before_sending: Callable[[Deed], None]
) -> None:
    def break_each() -> None:
        break_all(station)()
        if len(breaks) < 2:
            breaks.append(None)
            before_sending(break_each)

    breaks: list[None] = []
    before_sending(break_each)
    assert met(await station.ask(ORDER)) == (502, "not_sent", "upstream_unreachable", 3)
    assert station.upstream.received == []
