"""The exchange's time as the pipeline reads it: the timestamp to sign, and whether signing is safe.

The keeper feeds it and, while nothing better is known, `Date` headers do. A refused timestamp asks for a
fresh sample, but the time that the refusal states can come from anybody and never makes a step: a request
signed for tomorrow could be kept and sent then. No request waits while the bound is good enough to sign.
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
# After a suspend, the clock that counts it may be off by the resolution of the machine's battery clock.
_RESUME_SLACK_S = 1.0
# Before the first sample, a stated time further from this host's clock than this is not believed.
_STATED_S = 3600.0

log = structlog.get_logger("sealgate.clock")


@dataclass(frozen=True, slots=True)
class ClockNeeds:
    """What signing needs of the clock. `recv_window_ms` is the shortest of all keys.

    If the clock is not required, the host's own clock is used once `grace_s` has passed without a sample.
    """

    is_required: bool
    grace_s: float
    recv_window_ms: int


class KeptClock:
    """What is known of an exchange's time. `due` is set when a fresh sample is wanted at once."""

    def __init__(self, exchange: str, needs: ClockNeeds, system: System) -> None:
        self.exchange = exchange
        self._needs = needs
        self._system = system
        self._clock = ServerClock()
        self._host_clocks = system.clocks()
        self._started = system.now()
        self._jumps = 0
        self._refusals = 0
        self._next_sample: asyncio.Future[None] | None = None  # requests wait for it
        self._latest_step: tuple[float, float] | None = None  # when it was noticed, and by how many seconds
        self._doubted_since: float | None = None  # a timestamp was refused; a later sample ends the doubt
        self._not_served_advice = ""  # set if the exchange does not serve this address
        self._resync_fault: str | None = None  # a timestamp was refused although a sample was fresh
        self.trouble: str | None = "no sample yet"  # of the keeper
        self.due = asyncio.Event()

    def turned_away(self, advice: str) -> None:
        """Note the advice if the exchange does not serve this address: no request waits for its time then.

        "" means that it serves it.
        """
        self._not_served_advice = advice
        if advice:
            self._end_waits()

    def observe(self, sample: Sample) -> None:
        """Take in a sample, and end the waits for one.

        A sample that was under way when a timestamp was refused is dropped: it may be older than the step
        that caused the refusal.
        """
        if self._doubted_since is not None and sample.sent < self._doubted_since:
            return
        self._doubted_since = None
        before, now = self._clock, self._system.now()
        self._clock = before.observe(sample)
        if self._clock.steps != before.steps:
            self._latest_step = (now, self._clock.bounds(now).middle - before.bounds(now).middle)
            offset_s, by_s = round(self.offset_s(), 3), round(self._latest_step[1], 3)
            log.warning("clock_stepped", exchange=self.exchange, offset_s=offset_s, by_s=by_s)
        self._end_waits()

    def _end_waits(self) -> None:
        if self._next_sample is not None:
            self._next_sample.set_result(None)
            self._next_sample = None

    def observe_date(self, sample: Sample) -> None:
        """Take in a `Date` header, but only before the first sample: it is coarse, and may be a proxy's."""
        if not self._clock.is_synced:
            self.observe(sample)

    def refused(self, server: float | None, sent: float, *, is_second: bool) -> None:
        """Take in that a timestamp was refused.

        `server` is the time that the refusal states, in epoch seconds; `sent` is when the request was sent.
        """
        self._refusals += 1
        now = self._system.now()
        # 1. The stated time narrows the bound, if it does not contradict what is known.
        if server is not None and self._believes(stated := Sample(sent, now, server)):
            self._clock = self._clock.observe(stated)
        # 2. Whatever it states, the clock is in doubt: the next sample must be sent from now on.
        if self._doubted_since is None:
            self._doubted_since = now
        self.due.set()
        # 3. A second refusal, right after a fresh sample, is not the clock's fault.
        if is_second:
            self._resync_fault = "a timestamp was refused right after a resync"
            fix = "compare keys.*.recv_window_ms with the exchange's setting"
            log.error("timestamp_refused_twice", exchange=self.exchange, cause=self._resync_fault, fix=fix)

    def _believes(self, stated: Sample) -> bool:
        if self._clock.is_synced:
            return self._clock.agrees_with(stated)
        return abs(stated.server - self._system.wall()) <= _STATED_S

    def was_accepted(self) -> None:
        """Note that a timestamp was accepted: an earlier fault is over."""
        self._resync_fault = None

    def step_since(self, sent: float) -> float | None:
        """Return by how many seconds the exchange's clock was stepped since then, None if it was not."""
        if self._latest_step is None or self._latest_step[0] < sent:
            return None
        return self._latest_step[1]

    def timestamp_ms(self, now: float) -> int:
        """Return the timestamp to sign with at `now`, a reading of the host's clock."""
        # A suspend is itself a gap of this length, so it is always noticed here.
        if now - self._host_clocks.boot > _LOOK_AGAIN_S:
            self._notice_jumps()
        if self._clock.last is None:
            return int(self._system.wall() * 1000)
        return self._clock.timestamp_ms(now)

    @property
    def known(self) -> ServerClock:
        """What the samples say so far, to be kept: it does not change."""
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
        log.warning("host_clock_jumped", exchange=self.exchange, jump=jump.value)

    def error_s(self) -> float | None:
        """Return how far off the offset can be at most, in seconds; None before the first sample."""
        return self._clock.error(self._system.now()) if self._clock.is_synced else None

    def error_ms(self, now: float) -> int:
        """Return the same at `now` in milliseconds, rounded up; 0 before the first sample."""
        return 0 if self._clock.last is None else math.ceil(self._clock.error(now) * 1000)

    def server_now(self) -> float:
        """Return the exchange's time in epoch seconds, by this host's clock before the first sample."""
        now = self._system.now()
        return now + self._clock.bounds(now).middle if self._clock.is_synced else self._system.wall()

    def taught_by(self, verdict: Verdict, head: ReplyHead, counts: tuple[Quota, ...] = ()) -> LimitReply:
        """Return what a reply says about the limit; `counts` is what the venue's counters leave of it."""
        if not verdict.is_limited:
            return limit_reply(verdict, head.limit_fields, self.server_now, counts)
        error_s = self.error_s() or 0.0
        return limit_reply(verdict, head.limit_fields, self.server_now, counts, head.passed, error_s)

    def offset_s(self) -> float:
        """Return the exchange's time minus this host's wall clock, in seconds."""
        return self.server_now() - self._system.wall()

    def is_good_for(self, recv_window_ms: int, now: float) -> bool:
        """Return whether a timestamp of `now` is safe: the error is at most half of the window.

        If the clock is not required, any sample will do, and after the grace none is needed.
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
            return f"clock not synchronized: {self.trouble}"
        known, window_ms = f"clock uncertain (±{error_s * 1000:.0f} ms)", self._needs.recv_window_ms
        return f"{known}, not precise enough for a recv_window of {window_ms} ms"

    async def wait_until_ready(self, give_up_at: float) -> None:
        """Return when requests can be signed with every key. Raises as `wait_until_good` does."""
        await self.wait_until_good(give_up_at, self._needs.recv_window_ms)

    async def wait_until_good(self, give_up_at: float, recv_window_ms: int) -> None:
        """Return when requests can be signed. Raises Refusal `clock_unsynced` if that is not in time."""
        while not self.is_good_for(recv_window_ms, self._system.now()):
            until = give_up_at
            if not self._needs.is_required:
                until = min(give_up_at, self._started + self._needs.grace_s)
            elif self._not_served_advice:
                until = -math.inf  # waiting does not help
            if await self._sample_before(until) or self.is_good_for(recv_window_ms, self._system.now()):
                continue
            detail = f"The exchange's time is unknown: {self.not_ready}."
            raise Refusal("clock_unsynced", detail, advice=self._not_served_advice)

    async def wait_for_resync(self, give_up_at: float) -> None:
        """Return after the next sample, or after two seconds without one."""
        self.due.set()
        await self._sample_before(min(give_up_at, self._system.now() + _RESYNC_S))

    async def _sample_before(self, until: float) -> bool:
        """Wait for the next sample; return whether one was taken in time."""
        if self._next_sample is None:
            self._next_sample = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(max(0.0, until - self._system.now())):
                await asyncio.shield(self._next_sample)
        except TimeoutError:
            return False
        return True

    def status(self) -> ClockStatus:
        """Return the clock as the status shows it."""
        steps, trouble = self._clock.steps + self._jumps, self._resync_fault or self.trouble
        if self._clock.last is None:
            return ClockStatus(None, None, None, steps, self._refusals, trouble)
        age_s = self._system.now() - self._clock.last
        return ClockStatus(self.offset_s(), self.error_s(), age_s, steps, self._refusals, trouble)
