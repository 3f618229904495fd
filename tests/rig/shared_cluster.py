"""Many gateways that share one key, as a client of the virtual world.

Each is the core as the shell runs it: a pacer, a member, and a way to the table that takes `HOP_S`, as does a
message. A job goes to the gateway of its bot. Gateways and Redis can be cut off for a while.
"""

import heapq
import itertools
import math
import random
from collections.abc import Callable
from functools import partial

from rig.limits_gateway import claim_of
from rig.limits_world import Answer, Job
from rig.redis_group import RedisGroup
from sealgate.cluster.member import LEADER_LEASE_S, MEMBER_LEASE_S, Member
from sealgate.limits.claims import Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings

HOP_S = 0.0003
TIMEOUT_S = 0.1
_TOLD_S = 6 * HOP_S  # a heartbeat that is under way, the next one, and what it makes known
_READY_S = 3.0
_EPOCH_S = 1e6


class Node:
    """One gateway."""

    def __init__(self, number: int, seed: int) -> None:
        settings, chance = PacerSettings(), random.Random(seed * 1000 + number).random
        self.name = f"m{number}"
        self.pacer = Pacer(settings, chance)
        self.member = Member(self.pacer, self.name, chance)
        self.jobs: dict[str, Job] = {}
        self.at_once: list[Job] = []
        self.is_waiting = False
        self.wakes_at = math.inf
        self.knows_until = -math.inf  # of a pause: heard, or told over a Redis that was there


class Cluster:
    """A client of so many gateways; `node_of` says which of them a bot asks."""

    def __init__(self, count: int, seed: int, node_of: Callable[[Job], int]) -> None:
        self.nodes = [Node(number, seed) for number in range(count)]
        self.group = RedisGroup(self._tell)
        self.cut_off: tuple[float, float] = (math.inf, math.inf)  # Redis is away then, and has lost all after
        self.inside_known_pause = 0
        self._node_of = node_of
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._go: list[Job] = []
        self._dropped: list[Job] = []
        self._now = 0.0
        for node in self.nodes:
            self._wake(node, -_READY_S)
        self._now = -_READY_S
        while self._events[0][0] < 0:  # all have sat down before the first bot comes
            self.due(self._events[0][0])

    def enter(self, job: Job, now: float) -> bool:
        node = self.nodes[self._node_of(job)]
        claim = claim_of(job)
        is_in = True
        if node.pacer.goes_at_once(claim, now):
            self._send(node, [job], now)
        elif node.pacer.enter(claim, now) is None:
            node.jobs[claim.id] = job
        else:
            is_in = False
        self._wake(node, now)
        return is_in

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        node = self.nodes[self._node_of(job)]
        fate = Fate.ACCEPTED if answer.is_accepted else Fate.LIMITED
        if answer.retry_after_s:
            self._note_pause(node, now, now + answer.retry_after_s)
        node.pacer.answered(claim_of(job), now, LimitReply(fate, answer.retry_after_s, 0.0))
        self._wake(node, now)
        return answer.is_accepted or not self.enter(job, now)

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        while self._events and self._events[0][0] <= now:
            at, _, do = heapq.heappop(self._events)
            self._now = max(self._now, at)
            do(max(at, self._now))
        go, self._go = self._go, []
        dropped, self._dropped = self._dropped, []
        return go, dropped, self._events[0][0] if self._events else None

    def _at(self, at: float, do: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at, next(self._order), do))

    def _wake(self, node: Node, at: float) -> None:
        if at < node.wakes_at:
            node.wakes_at = at
            self._at(at, partial(self._look, node, at))

    def _look(self, node: Node, planned: float, now: float) -> None:
        if node.wakes_at != planned:
            return
        node.wakes_at = math.inf
        node.member.catch_up(now)
        release = node.pacer.release(now)
        self._send(node, [node.jobs.pop(claim.id) for claim in release.go], now)
        self._dropped += [node.jobs.pop(rejection.claim.id) for rejection in release.rejected]
        heartbeat_at = math.inf if node.is_waiting else node.member.heartbeat_at(now)
        if heartbeat_at <= now:
            self._heartbeat(node, now)
            heartbeat_at = math.inf
        ends = (heartbeat_at, node.member.look_at(), release.look_again_at or math.inf)
        if min(ends) < math.inf:
            self._wake(node, max(min(ends), now + 1e-6))

    def _heartbeat(self, node: Node, now: float) -> None:
        node.is_waiting = True
        if self._is_away(now):
            self._at(now + TIMEOUT_S, partial(self._failed, node))
            return
        heartbeat = node.member.heartbeat(now)

        def arrive(at: float) -> None:
            if self._is_away(at):
                self._at(now + TIMEOUT_S, partial(self._failed, node))
                return
            leases = round(MEMBER_LEASE_S * 1e6), round(LEADER_LEASE_S * 1e6)
            self._now = at
            answer = self.group.heartbeat(round((at + _EPOCH_S) * 1e6), node.name, heartbeat, *leases)
            self._at(at + HOP_S, done(answer))

        def done(answer: object) -> Callable[[float], None]:
            def do(at: float) -> None:
                node.is_waiting = False
                node.member.acknowledged(answer, at)  # type: ignore[arg-type]
                self._wake(node, at)

            return do

        self._at(now + HOP_S, arrive)

    def _failed(self, node: Node, now: float) -> None:
        node.is_waiting = False
        node.member.failed("Redis does not answer", now)
        self._wake(node, now)

    def _send(self, node: Node, jobs: list[Job], now: float) -> None:
        self.inside_known_pause += len(jobs) if now < node.knows_until else 0
        self._go += jobs

    def _note_pause(self, leader: Node, now: float, until: float) -> None:
        leader.knows_until = max(leader.knows_until, until)
        if not self._is_away(now) and not self._is_away(now + _TOLD_S):
            for node in self.nodes:
                self._at(now + _TOLD_S, partial(self._is_told, node, until))

    def _is_told(self, node: Node, until: float, _now: float) -> None:
        if node.member.status().degraded is None:
            node.knows_until = max(node.knows_until, until)

    def _is_away(self, now: float) -> bool:
        since, until = self.cut_off
        if now >= until:
            self.group = RedisGroup(self._tell, heartbeats=self.group.heartbeats)
            self.cut_off = (math.inf, math.inf)
        return since <= now < until

    def _tell(self, channel: str, message: str) -> None:
        for node in self.nodes:
            if channel in ("all", node.name):
                self._at(self._now + HOP_S, partial(self._hear, node, message))

    def _hear(self, node: Node, message: str, now: float) -> None:
        node.member.receive(message, now)
        self._wake(node, now)
