"""One gateway among those that share a key: who leads, what to send and when, what to do without Redis.

The shell asks `heartbeat_at`. When that time has come, it sends the `heartbeat` and calls `acknowledged` or
`failed`; in between it passes messages to `receive`. Redis elects: the first heartbeat while no leader's
lease runs makes its sender the leader.

Each leader has an epoch of its own. What comes from another epoch is void. A member follows a new leader once
that has announced itself, and reports everything again: nothing is told to a gateway that does not yet know
that it leads, and losing the leader, or all of Redis, costs a few heartbeats.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sealgate.cluster.leader import LISTENS_S, Leader
from sealgate.cluster.messages import (
    Message,
    MessageError,
    Note,
    SharedLimit,
    read_announcement,
    read_message,
    write,
)
from sealgate.cluster.relay import LeaderRelay
from sealgate.limits.pacer import Pacer
from sealgate.limits.status import SharingStatus

MEMBER_LEASE_S = 6.0
LEADER_LEASE_S = 1.5
_RENEW_S = 2.0  # of a member that has nothing to tell
_ANNOUNCE_S = 0.5  # a third of the leader's lease
_SILENCE_S = 1.5  # without an announcement, after which a member looks for the leader
_AGAIN_S = 0.25  # after a heartbeat that failed; shorter than a new leader listens
_SAME_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a gateway sends: the rest of a pause, a note to the leader; as leader, announcement and grants."""

    epoch: int
    pause_s: float = 0.0
    note: str = ""
    announcement: str = ""
    grants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """What Redis replies: `members` to the leader, the last `announcement` to a member of another epoch."""

    leader: str
    epoch: int
    pause_s: float
    replicas: int
    announcement: str = ""
    members: tuple[str, ...] = ()


class Member:
    """The sharing of one limit, seen by one gateway. `trouble` is why it goes alone, None while it shares."""

    def __init__(self, pacer: Pacer, name: str, chance: Callable[[], float]) -> None:
        self.pacer = pacer
        self.relay = LeaderRelay(pacer, name)
        self._chance = chance
        self._epoch = 0
        self._heartbeat_at = -math.inf  # at the latest
        self._announce_at = math.inf
        self._leader_seen_at = -math.inf
        self._announced_until = -math.inf  # of the pause
        self.trouble: str | None = "Redis was not reached yet"

    @property
    def replicas(self) -> int:
        """How many gateways share the key, as far as is known."""
        return self.relay.common.replicas

    @property
    def is_leader(self) -> bool:
        """Whether this gateway paces for all."""
        return self.relay.leader is not None

    def status(self) -> SharingStatus:
        """Return how many share, and whether that works."""
        return SharingStatus(self.replicas, self.is_leader, self.trouble)

    def heartbeat_at(self, now: float) -> float:
        """Return when the next heartbeat is due."""
        if self.trouble is not None:
            return self._heartbeat_at
        if self._paused_until() > self._announced_until + _SAME_PAUSE_S and self._paused_until() > now:
            return now
        if (leader := self.relay.leader) is not None:
            return now if leader.grants else min(self._heartbeat_at, self._announce_at)
        ends = (self.relay.due_at, self.relay.credit_ends_at(), self._leader_seen_at + _SILENCE_S)
        return min(self._heartbeat_at, *ends)

    @property
    def is_behind(self) -> bool:
        """Whether this gateway leads and has a note of its own that it has not taken in yet."""
        return self.is_leader and self.relay.due_at < math.inf

    def look_at(self) -> float:
        """Return when `catch_up` is due, even if no message comes."""
        return math.inf if self.relay.leader is None else self.relay.leader.look_at

    def catch_up(self, now: float) -> None:
        """As leader, take in this gateway's own note and grant what may go by now."""
        leader, relay = self.relay.leader, self.relay
        if leader is None or not (self.is_behind or leader.is_due(now)):
            return
        leader.receive(relay.name, relay.take_note(), now)
        leader.advance(now)
        relay.take_grant(leader.take_grant(relay.name), now)
        self.pacer.hold(leader.pacer.paused_until)

    def heartbeat(self, now: float) -> Heartbeat:
        """Return what to send to Redis now."""
        self.relay.return_credits(now)
        self._heartbeat_at = now + _RENEW_S
        self._leader_seen_at = max(self._leader_seen_at, now - _SILENCE_S + _AGAIN_S)
        leader, until = self.relay.leader, self._paused_until()
        pause_s = max(0.0, until - now) if until > self._announced_until + _SAME_PAUSE_S else 0.0
        self._announced_until = max(self._announced_until, until)
        if leader is None:
            note = self.relay.take_note() if self.trouble is None else Note()
            text = write(Message(self._epoch, sender=self.relay.name, note=note), now) if note else ""
            return Heartbeat(self._epoch, pause_s, note=text)
        grants = tuple(
            (member, write(Message(self._epoch, grant=grant), now)) for member, grant in leader.grants.items()
        )
        leader.grants.clear()
        return Heartbeat(self._epoch, pause_s, announcement=self._announcement(leader, now), grants=grants)

    def acknowledged(self, answer: HeartbeatReply, now: float) -> None:
        """Take in the reply of Redis. Raises MessageError where the leader cannot be understood."""
        self._hold(now + answer.pause_s if answer.pause_s else -math.inf)
        if answer.epoch != self._epoch:
            self._follow(answer, now)
        leader, common = self.relay.leader, self.relay.common
        limits = common.limits if leader is None else tuple(leader.pacer.limits)
        self.relay.know(replace(common, limits=limits, replicas=answer.replicas))
        if leader is None:
            return
        for member in set(leader.members()) - set(answer.members) if answer.members else ():
            leader.forget(member, now)

    def failed(self, why: str, now: float) -> None:
        """Go alone, and try again soon: Redis did not answer in time, or what came makes no sense."""
        if self.trouble is None:
            leader = self.relay.leader
            if leader is not None:
                self.relay.know(self._common(leader, self.replicas, now))
            self.relay.go_alone(now)
            self.relay.leader = None
        self.trouble = why
        self._epoch, self._announced_until = 0, -math.inf
        self._heartbeat_at = now + _AGAIN_S

    def receive(self, raw: str | bytes, now: float) -> None:
        """Take in a message: for this gateway, or for all. Raises MessageError."""
        message, leader = read_message(raw, now), self.relay.leader
        if message.pause:
            self._hold(now + message.pause)
        # There are three cases:
        # 1. A later epoch: the next heartbeat tells who leads, if it is true. An older one is void.
        if message.epoch > self._epoch:
            self._heartbeat_at = now
        if message.epoch != self._epoch or self.trouble is not None:
            return
        # 2. For a member: what it is granted, and what is known of the limit.
        if message.grant is not None:
            self.relay.take_grant(message.grant, now)
        if message.limit is not None and leader is None:
            self._leader_seen_at = now
            self.relay.know(replace(message.limit, replicas=self.replicas))
        # 3. For the leader: what a member reports.
        if message.note is not None and leader is not None:
            leader.receive(message.sender, message.note, now)

    def _paused_until(self) -> float:
        leader = self.relay.leader
        return max(self.pacer.paused_until, leader.pacer.paused_until if leader else -math.inf)

    def _hold(self, until: float) -> None:
        self._announced_until = max(self._announced_until, until)
        self.pacer.hold(until)

    def _follow(self, answer: HeartbeatReply, now: float) -> None:
        """Follow another leader, which may be this gateway. Raises MessageError."""
        is_own, last = answer.leader == self.relay.name, Message()
        try:
            if answer.announcement:
                last = read_announcement(answer.announcement, now)
        except MessageError:
            if not is_own:
                raise  # the leader cannot be understood
        # 1. One that has not announced itself will do so at once. Who led until now goes alone meanwhile.
        if not is_own and last.epoch != answer.epoch:
            if self.is_leader:
                self.failed("another gateway leads", now)
            return
        # 2. What is known of the limit is what the last leader left, or what is known here.
        common = self.relay.common
        here = SharedLimit(tuple(self.relay.limits()), common.statuses, common.at_a_time)
        known = replace(last.limit or here, replicas=answer.replicas)
        # 3. A new leader listens first, if there may be others.
        self._epoch, self._leader_seen_at, self.trouble = answer.epoch, now, None
        self.relay.leader = None
        if is_own:
            opens_at = now + LISTENS_S if max(answer.replicas, self.replicas) > 1 else now
            self.relay.leader = Leader(
                self.pacer.settings, self._chance, known.limits, opens_at, known.at_a_time
            )
            self.relay.leader.pacer.hold(self.pacer.paused_until)
            self._announce_at = now
        self.relay.know(known)
        self.relay.share(now)

    def _announcement(self, leader: Leader, now: float) -> str:
        if now < self._announce_at:
            return ""
        self._announce_at = now + _ANNOUNCE_S
        return write(Message(self._epoch, limit=self._common(leader, self.replicas, now)), now)

    def _common(self, leader: Leader, replicas: int, now: float) -> SharedLimit:
        status = leader.pacer.status(now)
        return SharedLimit(tuple(leader.pacer.limits), status.limits, status.at_a_time, replicas)
