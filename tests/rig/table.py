"""What sharing.lua does, in Python, for virtual time; gateway/sharing/test_script.py holds both together."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from sealgate.core.sharing.seat import Visit, VisitAnswer


@dataclass
class Table:
    """The state of one key. `tell(channel, message)` publishes; times are µs."""

    tell: Callable[[str, str], None]
    lead: str = ""
    lead_until: int = 0
    epoch: int = 0
    pause_until: int = 0
    beat: str = ""
    leases: dict[str, int] = field(default_factory=dict)
    visits: int = 0

    def visit(self, now: int, me: str, visit: Visit, lease: int, lead_lease: int) -> VisitAnswer:
        """Make one visit."""
        self.visits += 1
        self.leases = {name: until for name, until in self.leases.items() if until > now}
        if lease == 0:
            return self._leave(me)
        self.leases[me] = now + lease
        is_vacant = not self.lead or not now < self.lead_until <= now + lead_lease
        if is_vacant or (self.lead == me and visit.epoch != self.epoch):
            self.lead, self.epoch = me, max(now, self.epoch + 1)
            self.tell("all", json.dumps({"epoch": self.epoch}, separators=(",", ":")))
        if self.lead == me:
            self.lead_until = now + lead_lease
        self._pause(now, round(visit.pause_s * 1e6))
        if visit.note and visit.epoch == self.epoch:
            self.tell(self.lead, visit.note)
        is_lead = self.lead == me and visit.epoch == self.epoch
        if is_lead:
            self._tell_all(visit)
        return VisitAnswer(
            self.lead,
            self.epoch,
            max(0, self.pause_until - now) / 1e6,
            len(self.leases),
            self.beat if visit.epoch != self.epoch else "",
            tuple(sorted(self.leases, key=lambda name: (self.leases[name], name))) if is_lead else (),
        )

    def _leave(self, me: str) -> VisitAnswer:
        self.leases.pop(me, None)
        if self.lead == me:
            self.lead = ""
            self.tell("all", json.dumps({"epoch": self.epoch + 1}, separators=(",", ":")))
        return VisitAnswer(self.lead, self.epoch, 0.0, len(self.leases))

    def _pause(self, now: int, rest: int) -> None:
        if now + rest > max(now, self.pause_until):
            self.pause_until = now + rest
            self.tell("all", json.dumps({"pause": rest / 1e6}, separators=(",", ":")))

    def _tell_all(self, visit: Visit) -> None:
        if visit.beat:
            self.beat = visit.beat
            self.tell("all", visit.beat)
        for member, grant in visit.grants:
            self.tell(member, grant)
