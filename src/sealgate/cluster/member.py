"""One gateway of those that share limits: who leads, what to send and when, what to do without Redis.

The shell asks `heartbeat_at`. When that time has come, it sends the `heartbeat` and calls `acknowledged` or
`failed`; in between it passes messages to `receive`. Redis elects: the first heartbeat while no leader's
lease runs makes its sender the leader.

Each leader has an epoch of its own. What comes from another epoch is void. A member follows a new leader once
that has announced itself, and reports everything again: nothing is told to a gateway that does not yet know
that it leads, and losing the leader, or all of Redis, costs a few heartbeats.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sealgate.cluster.leader import LISTENS_S, Leader
from sealgate.cluster.messages import (
    Message,
    MessageError,
    Note,
    SharedLimits,
    SharedPool,
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
_MOST_PAUSES = 1000  # that are kept for others: whoever can write to Redis chooses how many there are
_MOST_ANNOUNCED = 200  # pools, those that were used last


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a gateway sends: new pauses, a note to the leader; as leader, an announcement and grants.

    `pauses` are what is left of each in seconds, by place.
    """

    epoch: int
    pauses: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    announcement: str = ""
    grants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """What Redis replies: `members` to the leader, the last `announcement` to a member of another epoch."""

    leader: str
    epoch: int
    pauses: Mapping[str, float]
    replicas: int
    announcement: str = ""
    members: tuple[str, ...] = ()


class Member:
    """The sharing, seen by one gateway. `trouble` is why it goes alone, None while it shares."""

    def __init__(self, pacer: Pacer, name: str, chance: Callable[[], float]) -> None:
        self.pacer = pacer
        self.relay = LeaderRelay(pacer, name)
        self._chance = chance
        self._epoch = 0
        self._heartbeat_at = -math.inf  # at the latest
        self._announce_at = math.inf
        self._leader_seen_at = -math.inf
        self._announced: dict[str, float] = {}  # the ends of the pauses that all know of, by place
        self.trouble: str | None = "Redis was not reached yet"

    @property
    def replicas(self) -> int:
        """How many gateways share the limits, as far as is known."""
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
        if self._new_pauses(now):
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
        for place, until in leader.pacer.pools.pauses(now).items():
            self.pacer.hold(place, until, now)

    def heartbeat(self, now: float) -> Heartbeat:
        """Return what to send to Redis now."""
        self.relay.return_credits(now)
        self._heartbeat_at = now + _RENEW_S
        self._leader_seen_at = max(self._leader_seen_at, now - _SILENCE_S + _AGAIN_S)
        leader, new = self.relay.leader, self._new_pauses(now)
        self._announced = {place: until for place, until in self._announced.items() if until > now} | new
        pauses = {place: until - now for place, until in new.items()}
        if leader is None:
            note = self.relay.take_note() if self.trouble is None else Note()
            text = write(Message(self._epoch, sender=self.relay.name, note=note), now) if note else ""
            return Heartbeat(self._epoch, pauses, note=text)
        grants = tuple(
            (member, write(Message(self._epoch, grant=grant), now)) for member, grant in leader.grants.items()
        )
        leader.grants.clear()
        return Heartbeat(self._epoch, pauses, announcement=self._announcement(leader, now), grants=grants)

    def acknowledged(self, answer: HeartbeatReply, now: float) -> None:
        """Take in the reply of Redis. Raises MessageError where the leader cannot be understood."""
        answer = replace(answer, replicas=max(1, answer.replicas))  # this one shares, whatever Redis says
        self._hold(answer.pauses, now)
        if answer.epoch != self._epoch:
            self._follow(answer, now)
        if answer.replicas != self.replicas:
            self.relay.know(replace(self.relay.common, replicas=answer.replicas))
        leader = self.relay.leader
        if leader is not None and answer.members:
            for member in set(leader.members()) - set(answer.members):
                leader.forget(member, now)

    def failed(self, why: str, now: float) -> None:
        """Go alone, and try again soon: Redis did not answer in time, or what came makes no sense."""
        if self.trouble is None:
            leader = self.relay.leader
            if leader is not None:
                self.relay.know(self._common(leader, now))
            self.relay.go_alone(now)
            self.relay.leader = None
        self.trouble = why
        self._epoch, self._announced = 0, {}
        self._heartbeat_at = now + _AGAIN_S

    def receive(self, raw: str | bytes, now: float) -> None:
        """Take in a message: for this gateway, or for all. Raises MessageError."""
        message, leader = read_message(raw, now), self.relay.leader
        self._hold(message.pauses, now)
        # There are three cases:
        # 1. A later epoch: the next heartbeat tells who leads, if it is true. An older one is void.
        if message.epoch > self._epoch:
            self._heartbeat_at = now
        if message.epoch != self._epoch or self.trouble is not None:
            return
        # 2. For a member: what it is granted, and what is known of the limits.
        if message.grant is not None:
            self.relay.take_grant(message.grant, now)
        if message.limits is not None and leader is None:
            self._leader_seen_at = now
            self.relay.know(replace(message.limits, replicas=self.replicas))
        # 3. For the leader: what a member reports.
        if message.note is not None and leader is not None:
            leader.receive(message.sender, message.note, now)

    def _new_pauses(self, now: float) -> dict[str, float]:
        """Return the ends of the pauses that others may not know of, by place."""
        pauses, leader = self.pacer.pools.pauses(now), self.relay.leader
        for place, until in leader.pacer.pools.pauses(now).items() if leader is not None else ():
            pauses[place] = max(until, pauses.get(place, until))
        announced = self._announced
        return {
            place: until
            for place, until in pauses.items()
            if until > announced.get(place, -math.inf) + _SAME_PAUSE_S
        }

    def _hold(self, pauses: Mapping[str, float], now: float) -> None:
        """Keep to the pauses that others have told."""
        if pauses:
            self._announced = {place: until for place, until in self._announced.items() if until > now}
        for place, pause_s in pauses.items():
            if pause_s and (place in self.pacer.pools.by_place or len(self._announced) < _MOST_PAUSES):
                until = now + pause_s
                self._announced[place] = max(until, self._announced.get(place, until))
                self.pacer.hold(place, until, now)

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
        # 2. What is known of the limits is what the last leader left, or what is known here.
        if self.relay.leader is not None:
            self.relay.know(self._common(self.relay.leader, now))
        known = replace(last.limits or self.relay.common, replicas=answer.replicas)
        # 3. A new leader listens first, if there may be others.
        self._epoch, self._leader_seen_at, self.trouble = answer.epoch, now, None
        self.relay.leader = None
        if is_own:
            opens_at = now + LISTENS_S if max(answer.replicas, self.replicas) > 1 else now
            self.relay.leader = Leader(self.pacer.settings, self._chance, known.pools, opens_at)
            for place, until in self.pacer.pools.pauses(now).items():
                self.relay.leader.pacer.hold(place, until, now)
            self._announce_at = now
        self.relay.know(known)
        self.relay.share(now)

    def _announcement(self, leader: Leader, now: float) -> str:
        if now < self._announce_at:
            return ""
        self._announce_at = now + _ANNOUNCE_S
        self.relay.know(self._common(leader, now))
        return write(Message(self._epoch, limits=self.relay.common), now)

    def _common(self, leader: Leader, now: float) -> SharedLimits:
        pools = sorted(leader.pacer.pools.by_place.values(), key=lambda pool: pool.used_at, reverse=True)
        known = {}
        for pool in pools[:_MOST_ANNOUNCED]:
            status = pool.status(now)
            known[pool.place] = SharedPool(tuple(pool.estimator.limits), status.limits, status.at_a_time)
        return SharedLimits(known, self.replicas)
