"""The gateway's core as a client of the virtual world."""

import random

from rig.limits_world import Answer, Job
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.venues.routes import Lane

MAX_WAIT_S = 30.0  # the default of `limits.max_wait`


def claim_of(job: Job, wait_s: float = MAX_WAIT_S) -> Claim:
    """Return what a gateway makes of a bot's request."""
    return Claim(
        str(job.id),
        job.bot,
        Lane(job.lane),
        job.born + wait_s,
        job.weight,
        job.known_cost,
        is_read=job.is_read,
        is_again=job.attempts > 0,
    )


class Gateway:
    """One Pacer for all bots, asked as the scheduler asks it. `is_exact`: `Retry-After` has a fraction."""

    def __init__(
        self,
        seed: int,
        *,
        is_exact: bool = True,
        settings: PacerSettings | None = None,
        wait_s: float = MAX_WAIT_S,
    ) -> None:
        self.pacer = Pacer(settings or PacerSettings(), random.Random(seed).random)
        self.resolution_s = 0.0 if is_exact else 1.0
        self.wait_s = wait_s
        self.jobs: dict[str, Job] = {}
        self.at_once: list[Job] = []

    def enter(self, job: Job, now: float) -> bool:
        claim = self.claim(job)
        if self.pacer.goes_at_once(claim, now):
            self.at_once.append(job)
            return True
        if self.pacer.enter(claim, now) is not None:
            return False
        self.jobs[claim.id] = job
        return True

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        fate = Fate.ACCEPTED if answer.is_accepted else Fate.LIMITED
        self.pacer.answered(self.claim(job), now, LimitReply(fate, answer.retry_after_s, self.resolution_s))
        return answer.is_accepted or not self.enter(job, now)

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        release = self.pacer.release(now)
        dropped = [self.jobs.pop(rejection.claim.id) for rejection in release.rejected]
        go = [*self.at_once, *(self.jobs.pop(claim.id) for claim in release.go)]
        self.at_once.clear()
        return go, dropped, release.look_again_at

    def claim(self, job: Job) -> Claim:
        return claim_of(job, self.wait_s)
