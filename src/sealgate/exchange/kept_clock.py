"""The server's time as the pipeline reads it: what to sign with, and whether that is safe.

Filled by the keeper and, while nothing better is known, by `Date` headers. A refused timestamp asks for a
fresh sample; the time that it states may be anybody's text and never makes a step, as a signature for
tomorrow could be kept and used then. Nobody waits for a sample while the bound is good enough to sign by.
"""

import asyncio
import math
from dataclasses import dataclass

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.clock import ClockStatus, Jump, Sample, ServerClock, find_jump
from sealgate.http.headers import ReplyHead
from sealgate.limits.claims import LimitReply
from sealgate.limits.limit_reply import limit_reply
from sealgate.limits.quotas import Quota
from sealgate.machine.system import System
from sealgate.venues.replies import Verdict

_LOOK_AGAIN_S = 0.05
_RESYNC_S = 2.0  # the longest that a resend waits for a fresh sample
# A suspend may leave the clock that counts it off by what the machine's battery clock resolves.
_RESUME_SLACK_S = 1.0
# As long as there is no sample, a refusal that is further from this host's own clock is not believed.
_STATED_S = 3600.0

log = structlog.get_logger("sealgate.clock")


@dataclass(frozen=True, slots=True)
class ClockNeeds:
    """What signing needs: `recv_window_ms` is the shortest of all keys.

    Where the clock is not required, the host's own stands in once `grace_s` has passed without a sample.
    """

    is_required: bool
    grace_s: float
    recv_window_ms: int


class KeptClock:
    """What is known of the server's time. `due` is set when a fresh sample is wanted at once."""

    def __init__(self, needs: ClockNeeds, system: System) -> None:
        self._needs = needs
        self._system = system
        self._clock = ServerClock()
        self._host_clocks = system.clocks()
        self._started = system.now()
        self._jumps = 0
        self._refusals = 0
        self._fault: str | None = None
        self._next_sample: asyncio.Future[None] | None = None
        self._step: tuple[float, float] | None = None  # the latest one: when it was noticed, by how much
        self._in_question_since: float | None = None  # by a refusal; until a sample that was sent later
        self.trouble: str | None = "no sample yet"
        self.due = asyncio.Event()
        self._turned_away = ""  # the advice where the exchange does not serve this address

    def turned_away(self, advice: str) -> None:
        """Take in whether the exchange serves this address, "" if so: else nobody waits for its time."""
        self._turned_away = advice
        if advice:
            self._let_go_on()

    def observe(self, sample: Sample) -> None:
        """Take in a sample, and let go on who waits for one.

        One that was under way when a refusal put the clock in question may be of the time before: it is
        dropped.
        """
        if self._in_question_since is not None and sample.sent < self._in_question_since:
            return
        self._in_question_since = None
        before, now = self._clock, self._system.now()
        self._clock = before.observe(sample)
        if self._clock.steps != before.steps:
            self._step = (now, self._clock.bounds(now).middle - before.bounds(now).middle)
            log.warning("clock_stepped", offset_s=round(self.offset_s(), 3), by_s=round(self._step[1], 3))
        self._let_go_on()

    def _let_go_on(self) -> None:
        if self._next_sample is not None:
            self._next_sample.set_result(None)
            self._next_sample = None

    def observe_date(self, sample: Sample) -> None:
        """Take in a `Date` header: whole seconds, maybe a proxy's, so only while nothing else is known."""
        if not self._clock.is_synced:
            self.observe(sample)

    def refused(self, server: float | None, sent: float, *, is_second: bool) -> None:
        """Take in a refusal for the timestamp: a fresh sample is wanted.

        `server` is the time that it states, in epoch seconds; it cannot make a step.
        """
        self._refusals += 1
        now = self._system.now()
        if server is not None and self._believes(stated := Sample(sent, now, server)):
            self._clock = self._clock.observe(stated)
        if self._in_question_since is None:
            self._in_question_since = now
        self.due.set()
        if is_second:
            self._fault = "a timestamp was refused right after a resync"
            fix = "compare keys.*.recv_window_ms with what the exchange has"
            log.error("timestamp_refused_twice", cause=self._fault, fix=fix)

    def _believes(self, stated: Sample) -> bool:
        if self._clock.is_synced:
            return self._clock.agrees_with(stated)
        return abs(stated.server - self._system.wall()) <= _STATED_S

    def was_accepted(self) -> None:
        """Note that a request's timestamp was not refused: an earlier fault is over."""
        self._fault = None

    def step_since(self, sent: float) -> float | None:
        """Return by how much the exchange's clock was found to have moved since then, None if it was not."""
        if self._step is None or self._step[0] < sent:
            return None
        return self._step[1]

    def timestamp_ms(self, now: float) -> int:
        """Return the timestamp to sign with at `now`, a reading of the host's clock."""
        # A suspend is itself a gap of that length, so it never slips through.
        if now - self._host_clocks.boot > _LOOK_AGAIN_S:
            self._notice_jumps()
        if self._clock.last is None:
            return int(self._system.wall() * 1000)
        return self._clock.timestamp_ms(now)

    @property
    def known(self) -> ServerClock:
        """What the samples say so far."""
        return self._clock

    def _notice_jumps(self) -> None:
        clocks = self._system.clocks()
        jump = find_jump(self._host_clocks, clocks)
        self._host_clocks = clocks
        if jump is None:
            return
        self._jumps += 1
        self.due.set()
        if jump is Jump.SUSPEND:
            self._clock = self._clock.widened(_RESUME_SLACK_S)
        log.warning("host_clock_jumped", jump=jump.value)

    def error_s(self) -> float | None:
        """Return how far off the offset can be at most, None before the first sample."""
        return self._clock.error(self._system.now()) if self._clock.is_synced else None

    def error_ms(self, now: float) -> int:
        """Return the same at `now` in milliseconds, rounded up; 0 while the host's clock stands in."""
        return 0 if self._clock.last is None else math.ceil(self._clock.error(now) * 1000)

    def server_now(self) -> float:
        """Return the server's time in epoch seconds, by this host's clock as long as there is no sample."""
        now = self._system.now()
        return now + self._clock.bounds(now).middle if self._clock.is_synced else self._system.wall()

    def taught_by(self, verdict: Verdict, head: ReplyHead, counts: tuple[Quota, ...] = ()) -> LimitReply:
        """Return what a reply says of the limit; `counts` are what the venue's counters say is left."""
        if not verdict.is_limited:
            return limit_reply(verdict, head.limit_fields, self.server_now, counts)
        error_s = self.error_s() or 0.0
        return limit_reply(verdict, head.limit_fields, self.server_now, counts, head.passed, error_s)

    def offset_s(self) -> float:
        """Return the server's time minus this host's wall clock."""
        return self.server_now() - self._system.wall()

    def is_good_for(self, recv_window_ms: int, now: float) -> bool:
        """Whether a timestamp of `now` cannot be refused: the bound is within half of the window.

        Where the clock is not required, any sample will do, and none once the grace is over.
        """
        if not self._needs.is_required:
            return self._clock.is_synced or now >= self._started + self._needs.grace_s
        return self._clock.error(now) * 2000 <= recv_window_ms  # infinite without a sample

    @property
    def not_ready(self) -> str | None:
        """Why requests cannot be signed, None if they can."""
        if self.is_good_for(self._needs.recv_window_ms, self._system.now()):
            return None
        error_s = self.error_s()
        if error_s is None:
            return f"clock not synced: {self.trouble}"
        known, window_ms = f"clock known to {error_s * 1000:.0f} ms only", self._needs.recv_window_ms
        return f"{known}, not precise enough for a recv_window of {window_ms} ms"

    async def wait_until_ready(self, give_up_at: float) -> None:
        """Return when requests can be signed with every key. Raises as `wait_until_good` does."""
        await self.wait_until_good(give_up_at, self._needs.recv_window_ms)

    async def wait_until_good(self, give_up_at: float, recv_window_ms: int) -> None:
        """Return when requests can be signed. Raises Refusal `clock_unsynced` where that is not in time."""
        while not self.is_good_for(recv_window_ms, self._system.now()):
            until = give_up_at
            if not self._needs.is_required:
                until = min(give_up_at, self._started + self._needs.grace_s)
            elif self._turned_away:
                until = -math.inf  # waiting does not help
            if await self._sample_before(until) or self.is_good_for(recv_window_ms, self._system.now()):
                continue
            detail = f"The exchange's time is not known: {self.not_ready}."
            raise Refusal("clock_unsynced", detail, advice=self._turned_away)

    async def wait_for_resync(self, give_up_at: float) -> None:
        """Return after the next sample, or when it is worth going on without one."""
        self.due.set()
        await self._sample_before(min(give_up_at, self._system.now() + _RESYNC_S))

    async def _sample_before(self, until: float) -> bool:
        if self._next_sample is None:
            self._next_sample = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(max(0.0, until - self._system.now())):
                await asyncio.shield(self._next_sample)
        except TimeoutError:
            return False
        return True

    def status(self) -> ClockStatus:
        """Return what is known of the clock."""
        steps = self._clock.steps + self._jumps
        if self._clock.last is None:
            return ClockStatus(None, None, None, steps, self._refusals, self._fault or self.trouble)
        age_s = self._system.now() - self._clock.last
        trouble = self._fault or self.trouble
        return ClockStatus(self.offset_s(), self.error_s(), age_s, steps, self._refusals, trouble)
