"""What sharing.lua does, in Python, for virtual time; cluster/test_script.py holds both together."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from sealgate.cluster.member import Heartbeat, HeartbeatReply


@dataclass
class RedisGroup:
    """The state of one group. `tell(channel, message)` publishes; times are µs."""

    tell: Callable[[str, str], None]
    leader: str = ""
    lead_until: int = 0
    epoch: int = 0
    pauses: dict[str, int] = field(default_factory=dict)  # the ends, by place
    announcement: str = ""
    leases: dict[str, int] = field(default_factory=dict)
    heartbeats: int = 0

    def heartbeat(
        self, now: int, me: str, heartbeat: Heartbeat, lease: int, leader_lease: int
    ) -> HeartbeatReply:
        """Make one heartbeat."""
        self.heartbeats += 1
        self.leases = {name: until for name, until in self.leases.items() if until > now}
        if lease == 0:
            return self._leave(me)
        self.leases[me] = now + lease
        is_vacant = not self.leader or not now < self.lead_until <= now + leader_lease
        if is_vacant or (self.leader == me and heartbeat.epoch != self.epoch):
            self.leader, self.epoch = me, max(now, self.epoch + 1)
            self.tell("all", json.dumps({"epoch": self.epoch}, separators=(",", ":")))
        if self.leader == me:
            self.lead_until = now + leader_lease
        self._pause(now, {place: round(pause_s * 1e6) for place, pause_s in heartbeat.pauses.items()})
        if heartbeat.note and heartbeat.epoch == self.epoch:
            self.tell(self.leader, heartbeat.note)
        is_leader = self.leader == me and heartbeat.epoch == self.epoch
        if is_leader:
            self._tell_all(heartbeat)
        return HeartbeatReply(
            self.leader,
            self.epoch,
            {place: (until - now) / 1e6 for place, until in self.pauses.items()},
            len(self.leases),
            self.announcement if heartbeat.epoch != self.epoch else "",
            tuple(sorted(self.leases, key=lambda name: (self.leases[name], name))) if is_leader else (),
        )

    def _leave(self, me: str) -> HeartbeatReply:
        self.leases.pop(me, None)
        if self.leader == me:
            self.leader = ""
            self.tell("all", json.dumps({"epoch": self.epoch + 1}, separators=(",", ":")))
        return HeartbeatReply(self.leader, self.epoch, {}, len(self.leases))

    def _pause(self, now: int, known: dict[str, int]) -> None:
        self.pauses = {place: until for place, until in self.pauses.items() if until > now}
        new = {place: left for place, left in known.items() if now + left > self.pauses.get(place, now)}
        if new:
            self.pauses |= {place: now + left for place, left in new.items()}
            told = {place: left / 1e6 for place, left in new.items()}
            self.tell("all", json.dumps({"pauses": told}, separators=(",", ":")))

    def _tell_all(self, heartbeat: Heartbeat) -> None:
        if heartbeat.announcement:
            self.announcement = heartbeat.announcement
            self.tell("all", heartbeat.announcement)
        for member, grant in heartbeat.grants:
            self.tell(member, grant)
