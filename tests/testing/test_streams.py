"""Streams in the pytest plugin: a bot with dummy keys follows its orders, and streams end as a test says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from sealgate.testing import Gateway, Sandbox

ORDER = {"symbol": "BTC", "side": "buy", "size": "0.002", "price": "65000"}
PATIENCE_S = 60


def targets(sandbox: Sandbox) -> list[str]:
    return [line["target"] for line in sandbox.journal() if line["method"] == "WS"]


class Stream:
    """A bot's end of the stream, which logs in without a key."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def receive(self) -> Any:
        return json.loads(self._connection.recv(timeout=PATIENCE_S))

    def ask(self, op: str, **members: Any) -> Any:
        self._connection.send(json.dumps({"op": op, **members}))
        return self.receive()

    def close_code(self) -> int:
        """Wait for the end, and return its code."""
        with pytest.raises(ConnectionClosed) as closed:
            self._connection.recv(timeout=PATIENCE_S)
        assert closed.value.rcvd is not None
        return closed.value.rcvd.code


@pytest.fixture
def stream(sealgate_gateway: Gateway) -> Iterator[Stream]:
    with connect(sealgate_gateway.stream_url) as connection:
        stream = Stream(connection)
        assert stream.ask("login", args={})["success"] is True
        yield stream


class TestStream:
    def test_it_tells_what_becomes_of_orders(self, stream: Stream, sealgate_sandbox: Sandbox) -> None:
        assert stream.ask("subscribe", channel="orders")["success"] is True
        update = stream.ask("order.place", id="1", args=ORDER)["data"]
        reply = stream.receive()
        assert (reply["id"], reply["data"]["order_id"]) == ("1", update["order_id"])
        sealgate_sandbox.market(order_id=update["order_id"], fill="0.0005")
        assert stream.receive()["data"]["fill_size"] == "0.0005"

    def test_an_order_that_is_not_answered_was_sent_once(
        self, stream: Stream, sealgate_sandbox: Sandbox
    ) -> None:
        sealgate_sandbox.faults({"kind": "silence", "match": "WS */order.place", "next": 1, "executed": True})
        stream.ask("subscribe", channel="orders")
        update = stream.ask("order.place", id="1", args=ORDER)
        assert update["channel"] == "orders"
        assert targets(sealgate_sandbox).count("/v1/stream/order.place") == 1

    @pytest.mark.parametrize(("code", "told"), [(1013, 1013), (None, 1012)], ids=["closed", "vanished"])
    def test_it_ends_as_the_test_says(
        self, stream: Stream, sealgate_sandbox: Sandbox, code: int | None, told: int
    ) -> None:
        assert sealgate_sandbox.end_streams(code) == 1
        assert stream.close_code() == told

    def test_a_code_that_no_close_frame_has_is_an_error(self, sealgate_sandbox: Sandbox) -> None:
        with pytest.raises(ValueError, match="code"):
            sealgate_sandbox.end_streams(7)
