"""The calls of the stream: its messages become requests, and replies become messages."""

import json
from typing import Any, Literal

from multidict import CIMultiDict, CIMultiDictProxy

from sealgate.sandbox.access import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.message import Call, Reply, Request
from sealgate.sandbox.models.streams import (
    EndedStreams,
    EndStreams,
    LoggedIn,
    Login,
    StreamMessage,
    Subscribed,
    Subscription,
    Upgrade,
)
from sealgate.sandbox.models.trading import ServerTime
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.stream import STREAM_PATH, Stream, Streams
from sealgate.sandbox.validation import read_body

WS = "WS"  # the method of a message
LOGIN = "login"
_SIGNED_ARGS = {KEY_HEADER: "api_key", TIMESTAMP_HEADER: "timestamp", SIGNATURE_HEADER: "signature"}


class StreamDesk:
    """The calls that are the stream's own; its orders go to the same desks as by HTTP."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def open(self, _: Call[Nothing]) -> Upgrade:
        """Open the stream: a WebSocket of order updates and orders."""
        raise ApiError("upgrade_required", headers={"Upgrade": "websocket"})

    def login(self, call: Call[Login]) -> LoggedIn:
        """Log in."""
        stream = _stream(call)
        stream.api_key, stream.address = call.input.api_key, call.address
        return LoggedIn(user_address=call.address)

    def subscribe(self, call: Call[Subscription]) -> Subscribed:
        """Follow a channel."""
        stream = _stream(call)
        stream.channels.add(call.input.channel)
        return Subscribed(channels=sorted(stream.channels))

    def unsubscribe(self, call: Call[Subscription]) -> Subscribed:
        """Follow a channel no longer."""
        stream = _stream(call)
        stream.channels.discard(call.input.channel)
        return Subscribed(channels=sorted(stream.channels))

    def ping(self, call: Call[Nothing]) -> ServerTime:
        """Answer, so that a bot knows that the stream is alive."""
        return ServerTime(server_time=call.now.server_ms)

    def end(self, call: Call[EndStreams]) -> EndedStreams:
        """End all streams: they are closed with a code, or vanish."""
        return EndedStreams(ended=self._streams.end_all(call.input.code))


def _stream(call: Call[Any]) -> Stream:
    if call.stream is None:
        raise AssertionError("these routes are the stream's alone")
    return call.stream


def read_message(text: str, unknown_fields: Literal["forbid", "ignore"]) -> StreamMessage:
    """Read a message; raise `ApiError` with a 422."""
    return read_body(StreamMessage, text.encode("utf-8", "surrogatepass"), unknown_fields)


def to_request(stream: Stream, message: StreamMessage, text: str, client_ip: str) -> Request:
    """Return a message as a request of method WS, with the headers that its HTTP call would have."""
    headers = CIMultiDict[str]()
    if message.op == LOGIN:
        headers.update((name, str(message.args.get(arg) or "")) for name, arg in _SIGNED_ARGS.items())
    elif stream.api_key:
        headers[KEY_HEADER] = stream.api_key
    target = f"{STREAM_PATH}/{message.op}"
    return Request(WS, target, CIMultiDictProxy(headers), text.encode(), client_ip, stream)


def input_of(message: bytes) -> bytes:
    """Return the body of the HTTP call that a message stands for."""
    document = json.loads(message)
    channel = document.get("channel")
    return json.dumps(document.get("args", {}) if channel is None else {"channel": channel}).encode()


def reply_text(message: StreamMessage | None, reply: Reply) -> str:
    """Write a reply as a message. `message` is None for one that could not be read."""
    named = {} if message is None else message.model_dump(include={"op", "id"}, exclude_none=True)
    body = json.loads(reply.body)
    is_ok = reply.status == 200  # noqa: PLR2004 - HTTP's own
    after = reply.headers.get("Retry-After")
    document = {
        **named,
        "status": reply.status,
        "success": is_ok,
        **({"data": body} if is_ok else body),
        **({} if after is None else {"retry_after": after}),
    }
    return json.dumps(document, separators=(",", ":"))
