"""What the gateways of one key tell each other, and how it is written.

A member writes a `Note` to the lead: who waits, who left, what was sent, how it ended. The lead answers with
a `Grant`. Inside a process they are handed over as they are; on the wire they are JSON, and times are seconds
from now, because no two hosts share a monotonic clock.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sealgate.core.pacing.claims import Claim, Fate, LimitReply
from sealgate.core.pacing.stated import Quota
from sealgate.core.routes import Lane


class Over(NamedTuple):
    """How one that was let go under `name`, and sent at `sent_at`, ended at `at`."""

    name: str
    reply: LimitReply
    sent_at: float
    at: float


@dataclass(slots=True)
class Note:
    """From a member to the lead. `spent` is what the lead cannot know of: seconds ago, and cost.

    `sent` are names and when their first bytes went. `is_new`: this is all that the member has; what it wrote
    before is void. `wants`: so many more credits.
    """

    is_new: bool = False
    spent: list[tuple[float, float]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    sent: list[tuple[str, float]] = field(default_factory=list)
    over: list[Over] = field(default_factory=list)
    waits: list[Claim] = field(default_factory=list)
    wants: int = 0

    def __bool__(self) -> bool:
        return bool(self.is_new or self.gone or self.sent or self.over or self.waits or self.wants)


class Declined(NamedTuple):
    """A claim that the lead did not take into its queue, and why, as `Refused` has it."""

    name: str
    slug: str
    detail: str
    retry_after_s: float | None


@dataclass(slots=True)
class Grant:
    """From the lead to a member: claims that may be sent now, credits for those to come, and refusals."""

    go: list[str] = field(default_factory=list)
    credits: list[str] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)


def write_note(note: Note, member: str, epoch: int, now: float) -> str:
    """Return a note as JSON."""
    content = [
        note.is_new,
        note.spent,
        note.gone,
        [(name, now - at) for name, at in note.sent],
        [_over(one, now) for one in note.over],
        [[*claim[:3], claim.give_up_at - now, *claim[4:]] for claim in note.waits],
        note.wants,
    ]
    return _compact({"from": member, "epoch": epoch, "note": content})


def read_note(content: Sequence[Any], now: float) -> Note:
    """Return the note of a message."""
    is_new, spent, gone, sent, over, waits, wants = content
    return Note(
        is_new,
        [(age_s, cost) for age_s, cost in spent],
        gone,
        [(name, now - ago_s) for name, ago_s in sent],
        [_read_over(one, now) for one in over],
        [_read_claim(one, now) for one in waits],
        wants,
    )


def write_grant(grant: Grant, epoch: int) -> str:
    """Return a grant as JSON."""
    return _compact({"epoch": epoch, "grant": [grant.go, grant.credits, grant.declined]})


def read_grant(content: Sequence[Any]) -> Grant:
    """Return the grant of a message."""
    return Grant(*content)


def write_beat(beat: dict[str, Any], epoch: int) -> str:
    """Return what the lead tells all from time to time as JSON."""
    return _compact({"epoch": epoch, "beat": beat})


def _compact(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


def _over(over: Over, now: float) -> list[Any]:
    reply = over.reply
    quotas = [_quota(quota) for quota in reply.quotas]
    ages_s = now - over.sent_at, now - over.at
    return [over.name, reply.fate, reply.retry_after_s, reply.resolution_s, quotas, *ages_s]


def _quota(quota: Quota) -> list[float | None]:
    """Return it with None for what is infinite, which JSON does not have."""
    values = (quota.n, quota.window_s, quota.left, quota.reset_s)
    return [None if value == math.inf else value for value in values]


def _read_over(values: Sequence[Any], now: float) -> Over:
    name, fate, retry_after_s, resolution_s, quotas, sent_ago_s, over_ago_s = values
    reply = LimitReply(Fate(fate), retry_after_s, resolution_s, tuple(map(_read_quota, quotas)))
    return Over(name, reply, now - max(0.0, sent_ago_s), now - max(0.0, over_ago_s))


def _read_claim(values: Sequence[Any], now: float) -> Claim:
    name, bot, lane, left_s, weight, cost, is_read, is_again = values
    if not (isinstance(bot, str) and 0 < weight < math.inf and 0 < cost < math.inf):
        raise ValueError("no claim")
    return Claim(name, bot, Lane(lane), now + left_s, weight, cost, is_read, is_again)


def _read_quota(values: Sequence[float | None]) -> Quota:
    n, window_s, left, reset_s = values
    infinity = math.inf
    if n == 0 or window_s == 0:
        raise ValueError("no quota")
    return Quota(infinity if n is None else n, infinity if window_s is None else window_s, left, reset_s)
