"""A gateway's seat at the table of one key: who leads, what to tell and when, and what to do without Redis.

The shell asks `visit_at`; when that time has come it makes the `visit` and reports `visited` or `failed`, and
it passes on what it `heard` meanwhile. Redis elects: whoever visits while no lead's lease runs, leads.

Epochs tell the leads apart. What comes from an older epoch is void, and a member that learns of a new one
tells everything anew: so a lead that is lost, or all of Redis, costs at most one round.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sealgate.core.limits.status import SharingStatus
from sealgate.core.sharing.lead import LISTENS_S, Lead
from sealgate.core.sharing.member_pacer import MemberPacer
from sealgate.core.sharing.notes import (
    Grant,
    Message,
    MessageError,
    Note,
    SharedLimit,
    read_beat,
    read_message,
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
_MOST_EARLY_BYTES = 2 * 1024 * 1024  # kept for a lead that is not known yet: notes of twenty full queues
_MESSAGE_BYTES = 1000  # that a message takes beside its text


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


class TooMuchError(Exception):
    """More is said in Redis than gateways have to say: who keeps all of it, runs out of memory."""


class Seat:
    """The sharing of one key, seen by one gateway. `trouble` says why it goes alone, None while it shares."""

    def __init__(self, pacer: MemberPacer, chance: Callable[[], float]) -> None:
        self.pacer = pacer
        self._chance = chance
        self._epoch = 0
        self._early: list[tuple[Message, int]] = []  # of an epoch to come, and the size of each
        self._early_bytes = 0
        self._early_before = 0  # how many of them were heard before the visit under way
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
        self._early_before = len(self._early)
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
        """Take in what Redis said. Raises MessageError where the lead cannot be understood."""
        self._hold(now + answer.pause_s if answer.pause_s else -math.inf)
        if self.trouble is not None or answer.epoch != self._epoch:
            self._begin(answer, now)
        self._sort_early(now)
        lead = self.pacer.lead
        if lead is None:
            self.pacer.know(replace(self.pacer.common, replicas=answer.replicas))
            return
        self.pacer.know(self._common(lead, answer.replicas, now))
        for member in set(lead.members()) - set(answer.members) if answer.members else ():
            lead.forget(member, now)

    def failed(self, why: str, now: float) -> None:
        """Go alone, and try again soon: Redis did not answer in time, or what came makes no sense."""
        if self.trouble is None:
            lead = self.pacer.lead
            if lead is not None:
                self.pacer.know(self._common(lead, self.replicas, now))
            self.pacer.go_alone(now)
            self.pacer.lead = None
        self.trouble = why
        self._early, self._early_bytes, self._early_before = [], 0, 0
        self._epoch, self._told_until = 0, -math.inf
        self._visit_at = now + _AGAIN_S

    def heard(self, raw: str | bytes, now: float) -> None:
        """Take in a message: for this gateway, or for all. Raises MessageError or TooMuchError."""
        message = read_message(raw, now)
        if message.pause_s:
            self._hold(now + message.pause_s)
        if self.trouble is not None:
            return
        if message.epoch > self._epoch:
            self._keep(message, len(raw), now)
        else:
            self._obey(message, now)

    def _keep(self, message: Message, size: int, now: float) -> None:
        """Keep a message of a lead that this gateway has yet to meet, or that it is to be, until a visit."""
        self._early.append((message, size + _MESSAGE_BYTES))
        self._early_bytes += size + _MESSAGE_BYTES
        self._visit_at = now
        if self._early_bytes > _MOST_EARLY_BYTES:
            raise TooMuchError

    def _sort_early(self, now: float) -> None:
        """Obey what was kept of this epoch, after a visit.

        What was heard before it and is of a later epoch was made up: Redis counts up before anybody says so.
        """
        early, self._early = self._early, []
        for index, (message, size) in enumerate(early):
            if message.epoch <= self._epoch:
                self._obey(message, now)
            elif index >= self._early_before:
                self._early.append((message, size))
        self._early_before = 0
        self._early_bytes = sum(size for _, size in self._early)

    def _obey(self, message: Message, now: float) -> None:
        lead, said = self.pacer.lead, message.said
        if message.epoch != self._epoch:
            return
        if isinstance(said, Grant):
            self.pacer.take_grant(said, now)
        elif isinstance(said, Note) and lead is not None:
            lead.hear(message.sender, said, now)
        elif isinstance(said, SharedLimit) and lead is None:
            self._heard_at = now
            self.pacer.know(replace(said, replicas=self.replicas))

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
        known = self._handed_over(answer, now)
        self._epoch, self._heard_at, self.trouble = answer.epoch, now, None
        self.pacer.lead = None
        if answer.lead == self.pacer.name:
            is_known = max(answer.replicas, self.replicas) > 1
            opens_at = now + LISTENS_S if is_known else now
            self.pacer.lead = Lead(self.pacer.settings, self._chance, known.limits, opens_at, known.at_a_time)
            self.pacer.lead.pacer.hold(self.pacer.paused_until)
            self._beat_at = now
        self.pacer.know(known)
        self.pacer.share(now)

    def _handed_over(self, answer: VisitAnswer, now: float) -> SharedLimit:
        """Return what the last lead left, or what is known here. Raises MessageError."""
        if answer.beat:
            try:
                return replace(read_beat(answer.beat, now), replicas=answer.replicas)
            except MessageError:
                if answer.lead != self.pacer.name:
                    raise  # who cannot be understood leads
        common = self.pacer.common
        return SharedLimit(
            tuple(self.pacer.known()), common.statuses, common.at_a_time, replicas=answer.replicas
        )

    def _beat(self, lead: Lead, now: float) -> str:
        if now < self._beat_at:
            return ""
        self._beat_at = now + _BEAT_S
        return write_beat(self._common(lead, self.replicas, now), self._epoch, now)

    def _common(self, lead: Lead, replicas: int, now: float) -> SharedLimit:
        status = lead.pacer.status(now)
        return SharedLimit(tuple(lead.pacer.limits), status.limits, status.at_a_time, replicas)
