"""Gateways that share, at one table: what one tells arrives at once."""

from rig.redis_group import RedisGroup
from sealgate.cluster.member import LEADER_LEASE_S, MEMBER_LEASE_S, HeartbeatReply, Member
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings

LEASES_US = round(MEMBER_LEASE_S * 1e6), round(LEADER_LEASE_S * 1e6)


class Room:
    """The members, and the group that they are in."""

    def __init__(self, *names: str, settings: PacerSettings) -> None:
        self.members = {name: Member(Pacer(settings, lambda: 0.5), name, lambda: 0.5) for name in names}
        self.group = RedisGroup(self.tell)
        self.now = 100.0

    def tell(self, channel: str, message: str) -> None:
        for name, member in self.members.items():
            if channel in ("all", name):
                member.receive(message, self.now)

    def heartbeat(self, name: str, now: float) -> HeartbeatReply:
        self.now = now
        member = self.members[name]
        answer = self.group.heartbeat(round(now * 1e6), name, member.heartbeat(now), *LEASES_US)
        member.acknowledged(answer, now)
        member.catch_up(now)
        return answer
