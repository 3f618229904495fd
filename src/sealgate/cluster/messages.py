"""What the gateways of one exchange tell each other, and how it is written.

A member sends a `Note` to the leader: which claims wait, which left, which were sent and how they ended. The
leader sends back a `Grant`, and announces the `SharedLimits` to all. Inside a process they are passed as
objects; on the wire they are JSON, whose times are seconds from now, because no two hosts share a monotonic
clock. Each type below says how it is read and how it is written.
"""

import math
from collections.abc import Callable, Iterable, Mapping
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
from sealgate.limits.pool import SHUT_OUT, name_in
from sealgate.limits.quotas import Quota
from sealgate.limits.status import LimitStatus
from sealgate.venues.routes import Lane

_CAREFUL = 0.8  # of its share is used by a gateway that does not know what the others do
LONGEST_PAUSE_S = LONGEST_S + 1.0  # what Retry-After can state, and what is added to it at random
LONGEST_TEXT = 1000
_MOST_PLACES = 2000  # in one message; no more pools than a pacer keeps
_MOST_OF_CLAIM = 100  # pools that one claim passes


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


def _different(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(texts)) < len(texts):
        raise ValueError("twice the same")
    return texts


def _passed(places: tuple[str, ...]) -> tuple[str, ...]:
    if any(name_in(place) == SHUT_OUT for place in places):
        raise ValueError("a pool that no claim names")
    return _different(places)


def _claim(*row: Any) -> Claim:
    claim = Claim(*row[:-2])
    claim.pools, claim.subjects = row[-2:]
    return claim


def _write_claim(claim: Claim, info: SerializationInfo[float]) -> tuple[object, ...]:
    """Return the columns of a claim; its serial, likeness and key are for its own gateway to respect."""
    left_s = claim.give_up_at - info.context
    share = claim.weight, claim.cost
    kind = claim.is_read, claim.is_again
    return (claim.id, claim.bot, claim.lane, left_s, *share, *kind, claim.pools, claim.subjects)


class Passage(NamedTuple):
    """What a claim passes: the places of its pools, and whom the exchange may shut out with it."""

    pools: tuple[str, ...]
    subjects: tuple[str, ...]


def _by_passage(*rows: tuple[tuple[str, ...], tuple[str, ...], object]) -> dict[Passage, object]:
    return {Passage(pools, subjects): value for pools, subjects, value in rows}


def _write_by_passage(
    values: Mapping[Passage, object], _: SerializationInfo[float]
) -> tuple[tuple[object, ...], ...]:
    return tuple((*passage, value) for passage, value in values.items())


def _quota(row: tuple[Any, ...]) -> Quota:
    n, window_s, *state = row
    if n is None and window_s is not None:
        raise ValueError("no limit")
    infinity = math.inf
    return Quota(infinity if n is None else n, infinity if window_s is None else window_s, *state)


def _limit_reply(*row: Any) -> LimitReply:
    fate, retry_after_s, resolution_s, is_documented, pools, shuts_out, server_now, quotas = row
    return LimitReply(
        fate, retry_after_s, resolution_s, quotas, "", is_documented, pools, shuts_out, server_now
    )


def _write_limit_reply(reply: LimitReply, _: SerializationInfo[float]) -> tuple[object, ...]:
    # What is infinite is written as null: JSON has no infinity.
    quotas = [
        (one.n, one.window_s, one.left, one.reset_s, one.name, one.pool, one.is_least) for one in reply.quotas
    ]
    waits = reply.retry_after_s, reply.resolution_s, reply.is_documented
    return (reply.fate, *waits, reply.pools, reply.shuts_out, reply.server_now, quotas)


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


# The types of what is read; `info.context` is the time now. No number is so large or small that what is
# computed of some of them overflows, and no text is endless.
Number = Annotated[float, Field(ge=-memory.LARGEST, le=memory.LARGEST)]
Positive = Annotated[float, Field(ge=memory.SMALLEST, le=memory.LARGEST)]
NotNegative = Annotated[float, Field(ge=0, le=memory.LARGEST)]
Whole = Annotated[int, Field(ge=0, lt=2**53)]  # above, Lua's numbers are not exact
InFuture = Annotated[Number, AfterValidator(lambda in_s, info: info.context + in_s)]
InPast = Annotated[
    Number,
    AfterValidator(lambda ago_s, info: info.context - max(0.0, ago_s)),
    PlainSerializer(lambda at, info: info.context - at),
]
Ago = Annotated[Number, AfterValidator(lambda ago_s: max(0.0, ago_s))]
Printable = Annotated[str, AfterValidator(_printable)]  # as it goes to log and terminal
Place = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
Places = Annotated[tuple[Place, ...], Field(min_length=1, max_length=_MOST_OF_CLAIM), AfterValidator(_passed)]
Subjects = Annotated[tuple[Place, ...], Field(max_length=3), AfterValidator(_different)]
Names = Annotated[tuple[Place, ...], Field(max_length=_MOST_OF_CLAIM)]
QuotaRow = Annotated[
    tuple[Positive | None, Positive | None, Number | None, Number | None, str, str, bool],
    AfterValidator(_quota),
]
WireReply = Annotated[
    LimitReply,
    _Row(
        tuple[Fate, Number | None, NotNegative, bool, Names, Printable, Number | None, tuple[QuotaRow, ...]],
        _limit_reply,
        _write_limit_reply,
    ),
]
WireClaim = Annotated[
    Claim,
    _Row(
        tuple[str, Printable, Lane, InFuture, Positive, Positive, bool, bool, Places, Subjects],
        _claim,
        _write_claim,
    ),
]
WireWishes = Annotated[
    dict[Passage, int], _Row(tuple[tuple[Places, Subjects, Whole], ...], _by_passage, _write_by_passage)
]
WireCredits = Annotated[
    dict[Passage, list[str]],
    _Row(tuple[tuple[Places, Subjects, list[str]], ...], _by_passage, _write_by_passage),
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

    `spent` is what the leader cannot know of, by place: seconds ago, and cost. `sent` has the times of the
    first bytes. `is_new`: this is all that the member has; its earlier notes are void. `wants`: so many more
    credits, by what they are for.
    """

    is_new: bool = False
    spent: Annotated[dict[Place, list[tuple[Ago, NotNegative]]], Field(max_length=_MOST_PLACES)] = field(
        default_factory=dict
    )
    gone: list[str] = field(default_factory=list)
    sent: list[tuple[str, InPast]] = field(default_factory=list)
    completed: list[Completion] = field(default_factory=list)
    waits: list[WireClaim] = field(default_factory=list)
    wants: WireWishes = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.is_new or self.gone or self.sent or self.completed or self.waits or self.wants)


class RejectedClaim(NamedTuple):
    """A claim, by its name, that the leader did not take into its queue: a `Rejection` on its way."""

    name: str
    slug: Annotated[str, AfterValidator(_reason)]
    detail: Printable
    retry_after_s: Number | None


@dataclass(slots=True)
class Grant:
    """From the leader to a member: claims that may be sent now, credits for those to come, and rejections.

    A credit is good for a claim that costs 1 and passes the same.
    """

    go: list[str] = field(default_factory=list)
    credits: WireCredits = field(default_factory=dict)
    rejected: list[RejectedClaim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SharedPool:
    """What is known of the limits of one pool: as believed, as shown, and requests at a time."""

    limits: tuple[WireLimit, ...] = ()
    statuses: tuple[WireStatus, ...] = ()
    at_a_time: Annotated[Whole, Field(ge=1)] | None = None


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """What is known of the limits of all, by place, and how many gateways share them.

    How many share them is not written: Redis counts them.
    """

    pools: Annotated[dict[Place, SharedPool], Field(max_length=_MOST_PLACES)] = field(default_factory=dict)
    replicas: Annotated[int, Field(exclude=True)] = 1


@dataclass(frozen=True, slots=True)
class Message:
    """A message in an epoch: what is left of pauses, or a note, a grant or an announcement.

    A longer pause than `Retry-After` can state was stated by nobody, and would outlive whoever made it up.
    The leader parts names at a space, so a sender has none.
    """

    epoch: Whole = 0
    pauses: Annotated[
        dict[Place, Annotated[float, Field(ge=0, le=LONGEST_PAUSE_S)]], Field(max_length=_MOST_PLACES)
    ] = field(default_factory=dict)
    sender: Annotated[str, Field(pattern="^[^ ]*$")] = ""
    note: Note | None = None
    grant: Grant | None = None
    limits: SharedLimits | None = None

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False, str_max_length=LONGEST_TEXT)


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
    if message.limits is None:
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
