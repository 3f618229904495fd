"""A gateway's seat at the table of one key: who leads, what to tell and when, and what to do without Redis.

The shell asks `visit_at`; when that time has come it makes the `visit` and reports `visited` or `failed`, and
it passes on what it `heard` meanwhile. Redis elects: whoever visits while no lead's lease runs, leads.

Epochs tell the leads apart. What comes from an older epoch is void, and a member that learns of a new one
tells everything anew: so a lead that is lost, or all of Redis, costs at most one round.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sealgate.core.pacing.status import LimitStatus, SharingStatus
from sealgate.core.retry_after import LONGEST_S
from sealgate.core.sharing.handover import read_limits, write_limits
from sealgate.core.sharing.lead import LISTENS_S, Lead
from sealgate.core.sharing.member_pacer import MemberPacer, SharedLimit
from sealgate.core.sharing.notes import (
    Note,
    read_grant,
    read_note,
    write_beat,
    write_grant,
    write_note,
)

MEMBER_LEASE_S = 6.0
LEAD_LEASE_S = 1.5
_RENEW_S = 2.0  # of a member that has nothing to tell
_BEAT_S = 0.5  # a third of the lead's lease
_SILENCE_S = 1.5  # without a beat, after which a member looks for the lead
_AGAIN_S = 0.25  # after a visit that failed; shorter than a new lead listens
_SAME_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Visit:
    """What a gateway brings: the rest of a pause, a note for the lead; as the lead, a beat and grants."""

    epoch: int
    pause_s: float = 0.0
    note: str = ""
    beat: str = ""
    grants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class VisitAnswer:
    """What it finds. `members` are for the lead alone, the last `beat` for one that is new to the epoch."""

    lead: str
    epoch: int
    pause_s: float
    replicas: int
    beat: str = ""
    members: tuple[str, ...] = ()


class Seat:
    """The sharing of one key, seen by one gateway. `trouble` says why it goes alone, None while it shares."""

    def __init__(self, pacer: MemberPacer, chance: Callable[[], float]) -> None:
        self.pacer = pacer
        self._chance = chance
        self._epoch = 0
        self._early: list[str | bytes] = []
        self._visit_at = -math.inf  # at the latest
        self._beat_at = math.inf
        self._heard_at = -math.inf
        self._told_until = -math.inf  # of the pause
        self.trouble: str | None = "Redis was not reached yet"

    @property
    def replicas(self) -> int:
        """How many gateways share the key, as far as is known."""
        return self.pacer.common.replicas

    @property
    def is_lead(self) -> bool:
        """Whether this gateway paces for all."""
        return self.pacer.lead is not None

    def status(self) -> SharingStatus:
        """Return what there is to see."""
        return SharingStatus(self.replicas, self.is_lead, self.trouble)

    def visit_at(self, now: float) -> float:
        """Return when the next visit is due."""
        if self.trouble is not None:
            return self._visit_at
        if self._paused_until() > self._told_until + _SAME_PAUSE_S and self._paused_until() > now:
            return now
        if (lead := self.pacer.lead) is not None:
            return now if lead.grants else min(self._visit_at, self._beat_at)
        ends = (self.pacer.outbox.due_at, self.pacer.credit_ends_at(), self._heard_at + _SILENCE_S)
        return min(self._visit_at, *ends)

    @property
    def is_behind(self) -> bool:
        """Whether this gateway leads, and has told itself something that has had no effect yet."""
        return self.is_lead and self.pacer.outbox.due_at < math.inf

    def look_at(self) -> float:
        """Return when `catch_up` is due by itself."""
        return math.inf if self.pacer.lead is None else self.pacer.lead.look_at

    def catch_up(self, now: float) -> None:
        """Where this gateway leads, let its own note and the time that has passed have their effect."""
        lead, pacer = self.pacer.lead, self.pacer
        if lead is None or not (self.is_behind or lead.is_due(now)):
            return
        lead.hear(pacer.name, pacer.outbox.take(), now)
        lead.advance(now)
        pacer.take_grant(lead.take_grant(pacer.name), now)
        pacer.hold(lead.pacer.paused_until)

    def visit(self, now: float) -> Visit:
        """Return what to bring to Redis now."""
        self.pacer.return_credits(now)
        self._visit_at = now + _RENEW_S
        self._heard_at = max(self._heard_at, now - _SILENCE_S + _AGAIN_S)
        lead, until = self.pacer.lead, self._paused_until()
        pause_s = max(0.0, until - now) if until > self._told_until + _SAME_PAUSE_S else 0.0
        self._told_until = max(self._told_until, until)
        if lead is None:
            note = self.pacer.outbox.take() if self.trouble is None else Note()
            text = write_note(note, self.pacer.name, self._epoch, now) if note else ""
            return Visit(self._epoch, pause_s, note=text)
        grants = tuple((member, write_grant(grant, self._epoch)) for member, grant in lead.grants.items())
        lead.grants.clear()
        return Visit(self._epoch, pause_s, beat=self._beat(lead, now), grants=grants)

    def visited(self, answer: VisitAnswer, now: float) -> None:
        """Take in what Redis said."""
        self._hold(now + min(answer.pause_s, LONGEST_S) if answer.pause_s else -math.inf)
        if self.trouble is not None or answer.epoch != self._epoch:
            self._begin(answer, now)
        lead = self.pacer.lead
        if lead is None:
            self._know(replace(self.pacer.common, replicas=answer.replicas))
            return
        self._know(self._common(lead, answer.replicas, now))
        for member in set(lead.members()) - set(answer.members) if answer.members else ():
            lead.forget(member, now)

    def failed(self, why: str, now: float) -> None:
        """Hear that Redis did not answer in time: go alone, and try again soon."""
        if self.trouble is None:
            lead = self.pacer.lead
            if lead is not None:
                self._know(self._common(lead, self.replicas, now))
            self.pacer.go_alone(now)
            self.pacer.lead = None
        self.trouble = why
        self._epoch, self._told_until = 0, -math.inf
        self._visit_at = now + _AGAIN_S

    def heard(self, text: str | bytes, now: float) -> None:
        """Take in a message: for this gateway, or for all."""
        message = json.loads(text)
        if "pause" in message:
            self._hold(now + min(message["pause"], LONGEST_S))
        if self.trouble is not None:
            return
        if message.get("epoch", 0) > self._epoch:
            self._early.append(text)  # of a lead that this gateway has yet to meet, or that it is to be
            self._visit_at = now
        elif message.get("epoch") != self._epoch:
            return
        elif "grant" in message:
            self.pacer.take_grant(read_grant(message["grant"]), now)
        elif "note" in message and self.pacer.lead is not None:
            self.pacer.lead.hear(message["from"], read_note(message["note"], now), now)
        elif "beat" in message and self.pacer.lead is None:
            self._take_beat(message["beat"], now)

    def _paused_until(self) -> float:
        lead = self.pacer.lead
        return max(self.pacer.paused_until, lead.pacer.paused_until if lead else -math.inf)

    def _hold(self, until: float) -> None:
        self._told_until = max(self._told_until, until)
        self.pacer.hold(until)
        if self.pacer.lead is not None:
            self.pacer.lead.pacer.hold(until)

    def _begin(self, answer: VisitAnswer, now: float) -> None:
        """Sit down under a lead that is new here, which may be oneself."""
        limits = self.pacer.known()
        self._epoch, self._heard_at, self.trouble = answer.epoch, now, None
        if answer.beat:
            beat = json.loads(answer.beat)["beat"]
            self._take_beat(beat, now)
            limits = read_limits(beat["limits"], now)
        self.pacer.lead = None
        if answer.lead == self.pacer.name:
            is_known = max(answer.replicas, self.replicas) > 1
            opens_at = now + LISTENS_S if is_known else now
            self.pacer.lead = Lead(self.pacer.settings, self._chance, limits, opens_at)
            self.pacer.lead.pacer.hold(self.pacer.paused_until)
            self._beat_at = now
        self._know(SharedLimit(tuple(limits), self.pacer.common.statuses, replicas=answer.replicas))
        self.pacer.share(now)
        early, self._early = self._early, []
        for text in early:
            self.heard(text, now)

    def _beat(self, lead: Lead, now: float) -> str:
        if now < self._beat_at:
            return ""
        self._beat_at = now + _BEAT_S
        status = lead.pacer.status(now)
        beat = {
            "limits": write_limits(lead.pacer.limits, now),
            "statuses": [asdict(limit) for limit in status.limits],
            "at_a_time": status.at_a_time,
        }
        return write_beat(beat, self._epoch)

    def _take_beat(self, beat: Mapping[str, Any], now: float) -> None:
        self._heard_at = now
        statuses = tuple(LimitStatus(**limit) for limit in beat["statuses"])
        limits = tuple(read_limits(beat["limits"], now))
        self._know(SharedLimit(limits, statuses, beat["at_a_time"], self.replicas))

    def _common(self, lead: Lead, replicas: int, now: float) -> SharedLimit:
        status = lead.pacer.status(now)
        return SharedLimit(tuple(lead.pacer.limits), status.limits, status.at_a_time, replicas)

    def _know(self, common: SharedLimit) -> None:
        self.pacer.know(common)
