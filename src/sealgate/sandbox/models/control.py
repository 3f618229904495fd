"""The control calls under /_sandbox, as docs/sandbox.md lists them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, RootModel, Tag

from sealgate.sandbox.models.trading import Amount, OrderId, Symbol
from sealgate.sandbox.models.wire import Wire
from sealgate.sandbox.settings import LimitKind, RetryAfter

Seconds = Annotated[float, Field(ge=0, le=1e6)]


class Limit(Wire):
    """The rate limit. Body and reply of /_sandbox/limit."""

    kind: LimitKind
    requests: Annotated[int, Field(ge=1, le=10**9)] = 20
    window_s: Annotated[float, Field(ge=0.001, le=1e6)] = 1.0
    burst: Annotated[int, Field(ge=0, le=10**9, description="0: as many as `requests`")] = 0
    rejects_count: bool = False
    retry_after: RetryAfter = "rounded"
    costs: dict[str, Annotated[int, Field(ge=0, le=10**6)]] = Field(
        default_factory=dict,
        description="'METHOD /path' to cost; the path as a template or in full; others cost 1",
    )
    ban_after: Annotated[int, Field(ge=0, description="refusals in a row; 0: no bans")] = 0
    ban_s: Seconds = 60.0


class Clock(Wire):
    """The exchange's clock. Body and reply of /_sandbox/clock; another skew is a step."""

    skew_ms: Annotated[int, Field(ge=-(10**11), le=10**11)] = 0
    drift_ppm: Annotated[float, Field(ge=-(10**6), le=10**6)] = 0.0


FaultKind = Literal["late", "delay", "status", "reset_before", "reset_after", "cut", "stall", "silence"]


class Fault(Wire):
    """One kind of fault, and the requests it strikes."""

    kind: FaultKind
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    next: Annotated[
        int | None, Field(ge=1, le=10**9, description="how many requests it strikes; null: no end to it")
    ] = None
    match: Annotated[
        str,
        Field(max_length=200, description="'METHOD /path'; `*` matches anything; empty: every request"),
    ] = ""
    status: Annotated[int, Field(ge=400, le=599, description="for `status`")] = 503
    delay_s: Annotated[
        Seconds, Field(description="of `late` and `delay`; how long a `stall` or `silence` lasts")
    ] = 0.5
    executed: Annotated[bool, Field(description="whether a `status` or `silence` comes after execution")] = (
        False
    )


class Faults(Wire):
    """Body and reply of /_sandbox/faults; the first fault that strikes is the one that happens."""

    seed: int | None = None
    faults: list[Fault] = Field(default_factory=list, max_length=100)


class SetPrice(Wire):
    """A new price. Resting orders that it reaches are filled, each at its own price."""

    symbol: Symbol
    price: Amount


class FillOrder(Wire):
    """A resting order is filled at its own price, whatever the market's is."""

    order_id: OrderId
    fill: Annotated[
        Amount | None, Field(description="in units of the symbol; null: all that is left of the order")
    ] = None


def _kind(change: object) -> str:
    is_fill = "order_id" in change if isinstance(change, Mapping) else isinstance(change, FillOrder)
    return "fill" if is_fill else "price"


_AnyChange = Annotated[
    Annotated[SetPrice, Tag("price")] | Annotated[FillOrder, Tag("fill")], Discriminator(_kind)
]


class MarketChange(RootModel[_AnyChange]):
    """Body of PUT /_sandbox/market: a symbol and its price, or an order and how much of it is filled."""

    model_config = ConfigDict(strict=True, frozen=True)


class Fill(Wire):
    """What was filled of one order."""

    order_id: int
    size: str
    left: str


class MarketReply(Wire):
    """Reply of PUT /_sandbox/market: the symbol as it now stands, and what was filled."""

    symbol: str
    mark_price: str
    fills: list[Fill]


class Reset(Wire):
    """Reply of POST /_sandbox/reset."""

    since: int = Field(description="the journal's lines from now on have a larger n")


class NewUser(Wire):
    """Body of POST /_sandbox/users."""

    onboarded: bool = True
    traded: bool = True


class UserGrant(Wire):
    """Reply of POST /_sandbox/users."""

    user_address: str
    session_token: str


class ChangeUser(Wire):
    """Body of PATCH /_sandbox/users/{address}; what is absent stays."""

    onboarded: bool = True
    traded: bool = True
    transferred: bool = Field(default=False, description="the one-time transfer for deployer markets")
    usdc: Annotated[int, Field(ge=0, le=10**15)] = 0


class UserState(Wire):
    """Reply of PATCH /_sandbox/users/{address}."""

    user_address: str
    onboarded: bool
    traded: bool
    transferred: bool
    usdc: str


class PasskeyGrant(Wire):
    """Reply of POST /_sandbox/passkey; the token works once."""

    passkey_token: str


class ChangeKey(Wire):
    """Body of PATCH /_sandbox/keys/{api_key}."""

    recv_window_ms: Annotated[int, Field(ge=1, le=10**9)]


class KeyState(Wire):
    """Reply of PATCH /_sandbox/keys/{api_key}."""

    api_key: str
    recv_window_ms: int


class KeySystem(Wire):
    """Body and reply of /_sandbox/key_system: false makes key management answer 503."""

    available: bool


class JournalQuery(Wire):
    """Query of GET /_sandbox/journal."""

    since: Annotated[int, Field(ge=0, description="only entries with a larger n")] = 0


class JournalEntry(Wire):
    """One request received, and what became of it."""

    n: int
    at_ms: int = Field(description="when it had been read, by this machine's clock")
    server_ms: int = Field(description="the same by the exchange's clock")
    method: str
    target: str = Field(description="as it stood in the request line")
    headers: dict[str, str]
    body_sha256: str
    client_ip: str
    status: int = Field(description="of the reply; 0 while there is none")
    verdict: str = Field(description="`ok`, `pending`, or the catalogue's row")
    fault: str | None
    executed: bool = Field(description="whether it took effect")
    order_id: int | None


class JournalReply(Wire):
    """Reply of GET /_sandbox/journal."""

    entries: list[JournalEntry]
