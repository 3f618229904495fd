"""What travels on the stream: messages of a bot, and updates of its orders. spec.md shows no stream."""

from typing import Annotated, Any, Literal

from pydantic import Field

from sealgate.sandbox.models.trading import OpenOrder
from sealgate.sandbox.models.wire import Wire

Channel = Literal["orders"]


class Upgrade(Wire):
    """No body: the connection is a WebSocket from here on."""


class StreamMessage(Wire):
    """What a bot sends. `args` are the body of the HTTP call that an order stands for."""

    op: Annotated[str, Field(pattern=r"^[a-z.]{1,40}$")]
    id: Annotated[str, Field(max_length=64)] | int | None = None
    channel: Annotated[str, Field(max_length=64)] | None = None
    args: dict[str, Any] = Field(default_factory=dict)


class Login(Wire):
    """Args of `login`, signed as a GET request for the stream."""

    api_key: str
    timestamp: int | str
    signature: str


class LoggedIn(Wire):
    """Data of the reply to `login`."""

    user_address: str


class Subscription(Wire):
    """What `subscribe` and `unsubscribe` name."""

    channel: Channel


class Subscribed(Wire):
    """Data of their replies: the channels that the stream follows now."""

    channels: list[Channel]


class OrderUpdate(OpenOrder):
    """One change of one order. `size` is what is left of it, 0 once it is filled."""

    status: Literal["open", "filled", "canceled"]
    fill_size: str | None = Field(description="what this change has filled")
    fill_price: str | None
    updated_at: str


class EndStreams(Wire):
    """Query of DELETE /_sandbox/streams; without a code they vanish."""

    code: Annotated[int | None, Field(ge=1000, le=4999, description="of the close frame")] = None


class EndedStreams(Wire):
    """Reply of DELETE /_sandbox/streams."""

    ended: int
