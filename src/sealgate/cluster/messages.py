"""What the gateways of one limit tell each other, and how it is written.

A member sends a `Note` to the leader: which claims wait, which left, which were sent and how they ended. The
leader sends back a `Grant`, and announces the `SharedLimit` to all. Inside a process they are passed as
objects; on the wire they are JSON, whose times are seconds from now, because no two hosts share a monotonic
clock. Each type below says how it is read and how it is written.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import core_schema

from sealgate.errors import REASONS
from sealgate.limits import Limit
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.limit_reply import LONGEST_S
from sealgate.limits.quotas import Quota
from sealgate.limits.status import LimitStatus
from sealgate.venues.routes import Lane

_CAREFUL = 0.8  # of its share is used by a gateway that does not know what the others do
LONGEST_PAUSE_S = LONGEST_S + 1.0  # what Retry-After can state, and what is added to it at random


class MessageError(Exception):
    """The message is none of this version."""


class _Row:
    """Says of a type that it is read from the columns of a row, and written as them."""

    def __init__(
        self,
        columns: object,
        make: Callable[..., object],
        write: Callable[[Any, SerializationInfo[float]], tuple[object, ...]],
    ) -> None:
        self._columns = columns
        self._make = make
        self._write = write

    def __get_pydantic_core_schema__(
        self, _source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda row: self._make(*row),
            handler.generate_schema(self._columns),
            serialization=core_schema.plain_serializer_function_ser_schema(self._write, info_arg=True),
        )


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


def _reason(slug: str) -> str:
    if slug not in REASONS:
        raise ValueError("no reason")
    return slug


def _write_claim(claim: Claim, info: SerializationInfo[float]) -> tuple[object, ...]:
    """Return the columns of a claim; its serial and its likeness are for its own gateway to respect."""
    left_s = claim.give_up_at - info.context
    share = claim.weight, claim.cost
    return (claim.id, claim.bot, claim.lane, left_s, *share, claim.is_read, claim.is_again)


def _quota(row: tuple[float | None, float | None, float | None, float | None, str]) -> Quota:
    n, window_s, left, reset_s, name = row
    infinity = math.inf
    return Quota(
        infinity if n is None else n, infinity if window_s is None else window_s, left, reset_s, name
    )


def _limit_reply(
    fate: Fate,
    retry_after_s: float | None,
    resolution_s: float,
    is_documented: bool,  # noqa: FBT001 - a column
    quotas: tuple[Quota, ...],
) -> LimitReply:
    return LimitReply(fate, retry_after_s, resolution_s, quotas, is_documented=is_documented)


def _write_limit_reply(reply: LimitReply, _: SerializationInfo[float]) -> tuple[object, ...]:
    # What is infinite is written as null: JSON has no infinity.
    quotas = [(one.n, one.window_s, one.left, one.reset_s, one.name) for one in reply.quotas]
    return reply.fate, reply.retry_after_s, reply.resolution_s, reply.is_documented, quotas


def _status(status: LimitStatus) -> LimitStatus:
    if min(status.n, status.window_s, status.low) <= 0:
        raise ValueError("no limit")
    _printable(status.words + status.next_step)
    return status


def _limit(plain: Any, info: ValidationInfo[float]) -> Limit:
    try:
        return memory.read(plain, info.context)
    except (TypeError, LookupError) as error:
        raise ValueError("no limit") from error


# The types of what is read; `info.context` is the time now. All numbers are finite, and no text is endless.
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Whole = Annotated[int, Field(ge=0, lt=2**53)]  # above, Lua's numbers are not exact
InFuture = Annotated[float, AfterValidator(lambda in_s, info: info.context + in_s)]
InPast = Annotated[
    float,
    AfterValidator(lambda ago_s, info: info.context - max(0.0, ago_s)),
    PlainSerializer(lambda at, info: info.context - at),
]
Ago = Annotated[float, AfterValidator(lambda ago_s: max(0.0, ago_s))]
Printable = Annotated[str, AfterValidator(_printable)]  # as it goes to log and terminal
QuotaRow = Annotated[
    tuple[Positive | None, Positive | None, float | None, float | None, str], AfterValidator(_quota)
]
WireReply = Annotated[
    LimitReply,
    _Row(
        tuple[Fate, float | None, NotNegative, bool, tuple[QuotaRow, ...]], _limit_reply, _write_limit_reply
    ),
]
WireClaim = Annotated[
    Claim,
    _Row(tuple[str, Printable, Lane, InFuture, Positive, Positive, bool, bool], Claim, _write_claim),
]
WireStatus = Annotated[LimitStatus, AfterValidator(_status)]
WireLimit = Annotated[
    Limit, PlainValidator(_limit), PlainSerializer(lambda limit, info: memory.write([limit], info.context)[0])
]


class Completion(NamedTuple):
    """How the claim ended that was let go under `name` and sent at `sent_at`; its reply came at `at`."""

    name: str
    reply: WireReply
    sent_at: InPast
    at: InPast


@dataclass(slots=True)
class Note:
    """From a member to the leader: names of claims and credits, and claims that wait.

    `spent` is what the leader cannot know of: seconds ago, and cost. `sent` has the times of the first bytes.
    `is_new`: this is all that the member has; its earlier notes are void. `wants`: so many more credits.
    """

    is_new: bool = False
    spent: list[tuple[Ago, NotNegative]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    sent: list[tuple[str, InPast]] = field(default_factory=list)
    completed: list[Completion] = field(default_factory=list)
    waits: list[WireClaim] = field(default_factory=list)
    wants: Whole = 0

    def __bool__(self) -> bool:
        return bool(self.is_new or self.gone or self.sent or self.completed or self.waits or self.wants)


class RejectedClaim(NamedTuple):
    """A claim, by its name, that the leader did not take into its queue: a `Rejection` on its way."""

    name: str
    slug: Annotated[str, AfterValidator(_reason)]
    detail: Printable
    retry_after_s: float | None


@dataclass(slots=True)
class Grant:
    """From the leader to a member: claims that may be sent now, credits for those to come, and rejections."""

    go: list[str] = field(default_factory=list)
    credits: list[str] = field(default_factory=list)
    rejected: list[RejectedClaim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """What is known of the limit of all: as believed, as shown, requests at a time, and how many share it.

    How many share it is not written: Redis counts them.
    """

    limits: tuple[WireLimit, ...] = ()
    statuses: tuple[WireStatus, ...] = ()
    at_a_time: Whole | None = None
    replicas: Annotated[int, Field(exclude=True)] = 1


@dataclass(frozen=True, slots=True)
class Message:
    """A message in an epoch: the rest of a pause, or a note, a grant or an announcement.

    A longer pause than `Retry-After` can state was stated by nobody, and would outlive whoever made it up.
    The leader parts names at a space, so a sender has none.
    """

    epoch: Whole = 0
    pause: Annotated[float, Field(ge=0, le=LONGEST_PAUSE_S)] = 0.0
    sender: Annotated[str, Field(pattern="^[^ ]*$")] = ""
    note: Note | None = None
    grant: Grant | None = None
    limit: SharedLimit | None = None

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False, str_max_length=1000)


_MESSAGE = TypeAdapter(Message)


def read_message(raw: str | bytes, now: float) -> Message:
    """Return the message that was written. Raises MessageError."""
    try:
        return _MESSAGE.validate_json(raw, context=now)
    except ValidationError as error:
        raise MessageError(str(error)) from error


def read_announcement(raw: str | bytes, now: float) -> Message:
    """Return the leader's announcement that was written. Raises MessageError."""
    message = read_message(raw, now)
    if message.limit is None:
        raise MessageError("no announcement")
    return message


def write(message: Message, now: float) -> str:
    """Return a message as JSON, without what is as it would be anyhow."""
    return _MESSAGE.dump_json(message, context=now, exclude_defaults=True).decode()


def shares(limits: Iterable[Limit], replicas: int, *, is_alone: bool) -> list[Limit]:
    """Return what one of so many gateways may use: a fair part, and less while it is alone with its guess.

    It is not probed beyond that, because the rest belongs to the others.
    """
    part = (_CAREFUL if is_alone else 1.0) / replicas
    return [_share(limit, part) for limit in limits]


def _share(limit: Limit, part: float) -> Limit:
    n, window, rate = limit.n * part, limit.window, limit.low * part
    if n < 1.0:  # less than one request per window: one in a longer one
        n, window = 1.0, window / n
    return Limit(
        n,
        window,
        rate,
        rate,
        limit.weights,
        most=rate,
        is_bucket=limit.is_bucket,
        seen=limit.seen,
        last_seen=limit.last_seen,
    )
