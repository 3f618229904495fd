"""What the gateways of one key tell each other, and how it is written.

A member writes a `Note` to the leader: who waits, who left, what was sent, how it ended. The leader answers
with a `Grant`. Inside a process they are passed as objects; on the wire they are JSON, and times are seconds
from now, because no two hosts share a monotonic clock.
"""

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any, NamedTuple

from sealgate.errors import REASONS
from sealgate.limits import Limit, memory
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.limit_reply import LONGEST_S
from sealgate.limits.quotas import Quota
from sealgate.limits.status import LimitStatus
from sealgate.venues.routes import Lane

_LONGEST = 1000  # characters of a name; names of bots and requests are far shorter
_CAREFUL = 0.8  # of a share, while nobody knows what the others do
LONGEST_PAUSE_S = LONGEST_S + 1.0  # what Retry-After can state, and what is added to it at random


class MessageError(Exception):
    """What came is no message of this version."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raise MessageError for whatever reading raises. Nothing but reading belongs into the block."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise MessageError(repr(error)) from error


def number(value: Any, least: float = -math.inf) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise MessageError(f"no number from {least:g}: {value!r:.100}")
    return float(value)


def positive(value: Any) -> float:
    """Return a finite number above 0."""
    if number(value) <= 0:
        raise MessageError(f"not above 0: {value!r:.100}")
    return float(value)


def whole(value: Any) -> int:
    """Return a whole number from 0 that is no longer than a float is exact."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise MessageError(f"no whole number from 0: {value!r:.100}")
    return value


def flag(value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise MessageError(f"no truth value: {value!r:.100}")
    return value


def text(value: Any) -> str:
    """Return a text of bounded length."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise MessageError(f"no text: {value!r:.100}")
    return value


def shown(value: Any) -> str:
    """Return a text that log and terminal get to see, and take as one."""
    found = text(value)
    if not found.isprintable():
        raise MessageError(f"not printable: {found!r:.100}")
    return found


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """What is known of the limit of all: as believed, as shown, requests at a time, and how many share it."""

    limits: tuple[Limit, ...] = ()
    statuses: tuple[LimitStatus, ...] = ()
    at_a_time: int | None = None
    replicas: int = 1


def write_shared(shared: SharedLimit, now: float) -> dict[str, Any]:
    """Return what the leader announces of the limit, as plain values; Redis counts the members."""
    return {
        "limits": memory.write(shared.limits, now),
        "statuses": [asdict(status) for status in shared.statuses],
        "at_a_time": shared.at_a_time,
    }


def read_shared(content: Any, now: float) -> SharedLimit:
    """Return the limit as the leader announced it. Raises MessageError."""
    with reading():
        at_a_time = content["at_a_time"]
        return SharedLimit(
            tuple(memory.read(one, now) for one in content["limits"]),
            tuple(_read_status(one) for one in content["statuses"]),
            None if at_a_time is None else whole(at_a_time),
        )


def _read_status(one: Mapping[str, Any]) -> LimitStatus:
    return LimitStatus(
        positive(one["n"]),
        positive(one["window_s"]),
        number(one["used_ratio"], 0),
        whole(one["seen"]),
        is_foreign_use=flag(one["is_foreign_use"]),
        words=shown(one["words"]),
        low=positive(one["low"]),
        high=None if one["high"] is None else positive(one["high"]),
        next_step=shown(one["next_step"]),
    )


def shares(limits: Iterable[Limit], replicas: int, *, is_alone: bool) -> list[Limit]:
    """Return what one of so many gateways may use: a fair part, and less where it is alone with its guess.

    They are not probed beyond, as what is beyond belongs to the others.
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


class Completion(NamedTuple):
    """How one that was let go under `name`, and sent at `sent_at`, ended at `at`."""

    name: str
    reply: LimitReply
    sent_at: float
    at: float


@dataclass(slots=True)
class Note:
    """From a member to the leader. `spent` is what the leader cannot know of: seconds ago, and cost.

    `sent` are names and when their first bytes went. `is_new`: this is all that the member has; what it wrote
    before is void. `wants`: so many more credits.
    """

    is_new: bool = False
    spent: list[tuple[float, float]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    sent: list[tuple[str, float]] = field(default_factory=list)
    completed: list[Completion] = field(default_factory=list)
    waits: list[Claim] = field(default_factory=list)
    wants: int = 0

    def __bool__(self) -> bool:
        return bool(self.is_new or self.gone or self.sent or self.completed or self.waits or self.wants)


class RejectedClaim(NamedTuple):
    """A claim, by its name, that the leader did not take into its queue: a `Rejection` on its way."""

    name: str
    slug: str
    detail: str
    retry_after_s: float | None


@dataclass(slots=True)
class Grant:
    """From the leader to a member: claims that may be sent now, credits for those to come, and rejections."""

    go: list[str] = field(default_factory=list)
    credits: list[str] = field(default_factory=list)
    rejected: list[RejectedClaim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Message:
    """A message in an epoch: the rest of a pause, or a note, a grant or an announcement."""

    epoch: int = 0
    pause_s: float = 0.0
    sender: str = ""
    said: Note | Grant | SharedLimit | None = None


def read_message(raw: str | bytes, now: float) -> Message:
    """Return a message. Raises MessageError.

    A longer pause than `Retry-After` can state was stated by nobody, and would outlive whoever made it up.
    """
    with reading():
        plain = json.loads(raw)
        pause_s = number(plain.get("pause", 0.0), 0)
        if pause_s > LONGEST_PAUSE_S:
            raise MessageError(f"no pause: {pause_s:g} s")
        sender = text(plain.get("from", ""))
        if " " in sender:  # the leader parts names at it
            raise MessageError(f"no member: {sender!r:.100}")
        said: Note | Grant | SharedLimit | None = None
        if "note" in plain:
            said = read_note(plain["note"], now)
        elif "grant" in plain:
            said = read_grant(plain["grant"])
        elif "beat" in plain:
            said = read_shared(plain["beat"], now)
        return Message(whole(plain.get("epoch", 0)), pause_s, sender, said)


def write_note(note: Note, member: str, epoch: int, now: float) -> str:
    """Return a note as JSON."""
    content = [
        note.is_new,
        note.spent,
        note.gone,
        [(name, now - at) for name, at in note.sent],
        [_completion(one, now) for one in note.completed],
        [_claim(claim, now) for claim in note.waits],
        note.wants,
    ]
    return _compact({"from": member, "epoch": epoch, "note": content})


def read_note(content: Any, now: float) -> Note:
    """Return the note of a message. Raises MessageError."""
    with reading():
        is_new, spent, gone, sent, completed, waits, wants = content
        return Note(
            flag(is_new),
            [(max(0.0, number(age_s)), number(cost, 0)) for age_s, cost in spent],
            [text(name) for name in gone],
            [(text(name), now - number(ago_s)) for name, ago_s in sent],
            [_read_completion(one, now) for one in completed],
            [_read_claim(one, now) for one in waits],
            whole(wants),
        )


def write_grant(grant: Grant, epoch: int) -> str:
    """Return a grant as JSON."""
    return _compact({"epoch": epoch, "grant": [grant.go, grant.credits, grant.rejected]})


def read_grant(content: Any) -> Grant:
    """Return the grant of a message. Raises MessageError."""
    with reading():
        go, credits_lent, rejected = content
        return Grant(
            [text(name) for name in go],
            [text(name) for name in credits_lent],
            [
                RejectedClaim(text(name), _slug(slug), shown(detail), _maybe(wait_s))
                for name, slug, detail, wait_s in rejected
            ],
        )


def write_announcement(shared: SharedLimit, epoch: int, now: float) -> str:
    """Return the leader's regular announcement as JSON."""
    return _compact({"epoch": epoch, "beat": write_shared(shared, now)})


def read_announcement(raw: str | bytes, now: float) -> SharedLimit:
    """Return what an announcement says. Raises MessageError."""
    said = read_message(raw, now).said
    if not isinstance(said, SharedLimit):
        raise MessageError("no beat")
    return said


def _compact(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


def _claim(claim: Claim, now: float) -> list[Any]:
    """Return all but serial and likeness: only whoever sends it keeps the order, and knows who may share."""
    values = astuple(replace(claim, give_up_at=claim.give_up_at - now, alike=None))
    return list(values[:-2])


def _completion(completion: Completion, now: float) -> list[Any]:
    reply = completion.reply
    quotas = [_quota(quota) for quota in reply.quotas]
    ages_s = now - completion.sent_at, now - completion.at
    wait = reply.retry_after_s, reply.resolution_s, reply.is_documented
    return [completion.name, reply.fate, *wait, quotas, *ages_s]


def _quota(quota: Quota) -> list[float | str | None]:
    """Return it with None for what is infinite, which JSON does not have."""
    values = (quota.n, quota.window_s, quota.left, quota.reset_s)
    return [*(None if value == math.inf else value for value in values), quota.name]


def _read_completion(values: Any, now: float) -> Completion:
    name, fate, retry_after_s, resolution_s, is_documented, quotas, sent_ago_s, over_ago_s = values
    reply = LimitReply(
        Fate(fate),
        _maybe(retry_after_s),
        number(resolution_s, 0),
        tuple(map(_read_quota, quotas)),
        is_documented=flag(is_documented),
    )
    return Completion(
        text(name), reply, now - max(0.0, number(sent_ago_s)), now - max(0.0, number(over_ago_s))
    )


def _read_claim(values: Any, now: float) -> Claim:
    name, bot, lane, left_s, weight, cost, is_read, is_again = values
    return Claim(
        text(name),
        shown(bot),
        Lane(lane),
        now + number(left_s),
        positive(weight),
        positive(cost),
        flag(is_read),
        flag(is_again),
    )


def _read_quota(values: Any) -> Quota:
    n, window_s, left, reset_s, name = values
    infinity = math.inf
    return Quota(
        infinity if n is None else positive(n),
        infinity if window_s is None else positive(window_s),
        _maybe(left),
        _maybe(reset_s),
        text(name),
    )


def _maybe(value: Any) -> float | None:
    return None if value is None else number(value)


def _slug(value: Any) -> str:
    if value not in REASONS:
        raise MessageError(f"no reason: {value!r:.100}")
    return str(value)
