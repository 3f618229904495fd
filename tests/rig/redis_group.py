"""What sharing.lua does, in Python, for virtual time; cluster/test_script.py holds both together."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from sealgate.cluster.member import Heartbeat, HeartbeatReply


@dataclass
class RedisGroup:
    """The state of one key. `tell(channel, message)` publishes; times are µs."""

    tell: Callable[[str, str], None]
    leader: str = ""
    lead_until: int = 0
    epoch: int = 0
    pause_until: int = 0
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
        self._pause(now, round(heartbeat.pause_s * 1e6))
        if heartbeat.note and heartbeat.epoch == self.epoch:
            self.tell(self.leader, heartbeat.note)
        is_leader = self.leader == me and heartbeat.epoch == self.epoch
        if is_leader:
            self._tell_all(heartbeat)
        return HeartbeatReply(
            self.leader,
            self.epoch,
            max(0, self.pause_until - now) / 1e6,
            len(self.leases),
            self.announcement if heartbeat.epoch != self.epoch else "",
            tuple(sorted(self.leases, key=lambda name: (self.leases[name], name))) if is_leader else (),
        )

    def _leave(self, me: str) -> HeartbeatReply:
        self.leases.pop(me, None)
        if self.leader == me:
            self.leader = ""
            self.tell("all", json.dumps({"epoch": self.epoch + 1}, separators=(",", ":")))
        return HeartbeatReply(self.leader, self.epoch, 0.0, len(self.leases))

    def _pause(self, now: int, rest: int) -> None:
        if now + rest > max(now, self.pause_until):
            self.pause_until = now + rest
            self.tell("all", json.dumps({"pause": rest / 1e6}, separators=(",", ":")))

    def _tell_all(self, heartbeat: Heartbeat) -> None:
        if heartbeat.announcement:
            self.announcement = heartbeat.announcement
            self.tell("all", heartbeat.announcement)
        for member, grant in heartbeat.grants:
            self.tell(member, grant)
