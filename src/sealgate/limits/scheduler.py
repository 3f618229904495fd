"""Where the tasks of requests wait for their turn."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from sealgate.errors import Refusal
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection
from sealgate.limits.firewall import Firewall
from sealgate.limits.gate import LONGEST_BACKOFF_S
from sealgate.limits.membership import Membership
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import name_in
from sealgate.limits.pools import PacerSettings
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import PacerStatus
from sealgate.machine.system import System
from sealgate.venues.replies import WaitRule

if TYPE_CHECKING:
    from collections.abc import Callable

# The loop's timers may not count suspend, so the absolute times are looked at again at least this often.
LONGEST_SLEEP_S = 1.0
_REMARKABLE_S = 600.0  # longer than any limit's window that is usual

_LIFT = "if it is a mistake, restart the gateway; with a journal, see docs/troubleshooting.md on pauses"
_LIFT_SHARED = "if it is a mistake, stop all gateways for this exchange, and delete its entries in Redis"

log = structlog.get_logger("sealgate.pacing")


class Sharing(Protocol):
    """Keeps a pacer in step with the other gateways that share its limits."""

    def changed(self) -> None:
        """Note that the pacer has changed, before it is asked what to do."""

    async def run(self) -> None:
        """Keep in step until cancelled."""

    def adopt(self, settings: PacerSettings) -> None:
        """Pass on the settings that the pacer has just adopted."""

    def snapshot(self, own: dict[str, Snapshot], now: float) -> dict[str, Snapshot]:
        """Return the pacer's own snapshot with the whole limits, of which the pacer may know only a part."""

    def restored(self) -> None:
        """Take what the pacer has just restored for the whole limits."""

    def shown(self, own: PacerStatus, now: float) -> PacerStatus:
        """Return the pacer's own status with what is known of the whole limits, and of the sharing."""


class Shared:
    """The attempt of one claim, for all claims that go along with it. It ends once.

    `request_id` is that of the request that was sent. `is_too_large`: its reply cannot be shared.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.request_id = ""
        self.attempt: object = None
        self.is_too_large = False
        self._over = asyncio.Event()

    @property
    def came_to_nothing(self) -> bool:
        """Whether it is over without an attempt that others may share."""
        return self._over.is_set() and self.attempt is None

    def end(self, attempt: object = None) -> None:
        """Let all share the attempt; without one, each claim must be sent after all."""
        if not self._over.is_set():
            self.attempt = attempt
            self._over.set()

    async def wait(self) -> object:
        """Return the attempt once it is over, None if there is none to share."""
        await self._over.wait()
        return self.attempt


class Permit:
    """A released claim. Leaving its block returns the permit, or counts it as lost if it was used.

    Call `goes` when the first byte is about to leave. `has_waited`: something was waited for since the pacer
    let the claim go, at `began`. `shared` is set if other claims go along.
    """

    def __init__(self, scheduler: "RateScheduler", claim: Claim, began: float) -> None:
        self.has_waited = False
        self.shared: Shared | None = None
        self.began = began
        self._scheduler = scheduler
        self._claim = claim
        self._is_answered = False
        self._is_used = False

    @property
    def pools(self) -> tuple[str, ...]:
        """The places of the pools that it passes, see `Claim`."""
        return self._claim.pools

    def share(self) -> Shared:
        """Return the attempt that others may share from now on."""
        if self.shared is None:
            self.shared = Shared(self._claim)
        return self.shared

    def goes(self, now: float) -> None:
        """Report that the first byte leaves now, on the host's clock."""
        self._is_used = True
        self._scheduler.goes(self._claim, now if self.has_waited else self.began)

    def is_paused(self, now: float) -> bool:
        """Return whether a pause has begun since, so that the claim may not be sent now."""
        return self._scheduler.paused_until(self._claim.pools, self._claim.subjects) > now

    def answered(self, reply: LimitReply, now: float) -> None:
        """Report the reply to the claim."""
        self._is_answered = True
        self._scheduler.answered(self._claim, reply, now)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_answered and self._is_used:
            self._scheduler.answered(self._claim, LimitReply(Fate.LOST))
        elif not self._is_answered:
            self._scheduler.leave(self._claim)
        if self.shared is not None:
            self.shared.end()


class RateScheduler:
    """Obeys one pacer. `sharing` is set if other gateways share its limit.

    `exchange` is the name for the log; if two exchanges of the gateway are one, it is that of the first.

    It keeps a future for each waiting claim, and one timer for when the pacer is to be asked again.
    """

    def __init__(self, pacer: Pacer, system: System, exchange: str = "") -> None:
        self.exchange = exchange
        self._pacer = pacer
        self._system = system
        self.sharing: Sharing | None = None
        self.on_pause: Callable[[], None] | None = None  # called when a pause begins that is to be remembered
        self._waiting: dict[str, asyncio.Future[Shared | None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # when to ask; the timer goes off earlier if that is far away

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; waiting requests keep their places."""
        self._pacer.pools.adopt(settings)
        if self.sharing is not None:
            self.sharing.adopt(settings)
        self.go_on()

    def pass_at_once(self, claim: Claim, now: float) -> Permit | None:
        """Return the claim's permit if it need not wait, else None."""
        if not self._pacer.goes_at_once(claim, now):
            return None
        if self.sharing is not None:
            self.sharing.changed()
        return Permit(self, claim, now)

    async def pass_through(self, claim: Claim) -> Permit | Shared:
        """Wait in the queue; return the claim's permit, or the attempt that it shares with another claim.

        Raises Refusal `rate_limited`, `deadline_exceeded` or `queue_full`. Cancelling leaves the queue.
        """
        rejection = self._pacer.enter(claim, self._system.now())
        if rejection is not None:
            raise _refusal(rejection)
        waiting: asyncio.Future[Shared | None] = asyncio.get_running_loop().create_future()
        self._waiting[claim.id] = waiting
        self.go_on()
        try:
            shared = await waiting
        except asyncio.CancelledError:
            self._waiting.pop(claim.id, None)
            self.leave(claim)
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                _give_up(claim, waiting.result())  # its permit came in this turn of the loop
            raise
        if shared is not None and shared.claim is not claim:
            return shared
        permit = Permit(self, claim, self._system.now())
        permit.has_waited, permit.shared = True, shared
        return permit

    def goes(self, claim: Claim, now: float) -> None:
        """Tell the pacer that the first byte of a claim leaves."""
        self._pacer.sent(claim, now)
        if self.sharing is not None:
            self.sharing.changed()

    def leave(self, claim: Claim) -> None:
        """Remove a claim from the queue, or take back its permit: nothing of it was sent."""
        self._pacer.leave(claim)
        self.go_on()

    def answered(self, claim: Claim, reply: LimitReply, now: float | None = None) -> None:
        """Let the pacer learn from the reply to a claim; `now` is a reading just made."""
        if now is None:
            now = self._system.now()
        was_closed = reply.is_refusal and self.paused_until(claim.pools, claim.subjects) > now
        self._pacer.answered(claim, now, reply)
        if reply.is_refusal:
            until = self.paused_until(claim.pools, claim.subjects)
            if not was_closed:
                log.info(
                    "pool_closed",
                    exchange=self.exchange,
                    key=claim.key or None,
                    pool=", ".join(reply.pools or dict.fromkeys(map(name_in, claim.pools))),
                    for_s=round(until - now, 1),
                    words=reply.words or None,
                )
            if (reply.retry_after_s or 0.0) > _REMARKABLE_S:
                fix = _LIFT if self.sharing is None else _LIFT_SHARED
                log.warning(
                    "long_pause",
                    exchange=self.exchange,
                    pool=", ".join(reply.pools) or None,
                    stated_s=reply.retry_after_s,
                    words=reply.words or None,
                    fix=fix,
                )
            self._note_pause(until, now)
        self.go_on(now)

    def _note_pause(self, until: float, now: float) -> None:
        if until - now > memory.SHORT_PAUSE_S and self.on_pause is not None:
            self.on_pause()

    def go_on(self, now: float | None = None) -> None:
        """Ask the pacer, and do as it says; `now` is a reading just made."""
        if self.sharing is not None:
            self.sharing.changed()
        elif not self._waiting and self._timer is None:
            return
        if now is None:
            now = self._system.now()
        release = self._pacer.release(now)
        sharing = {claim.id: Shared(claim) for _, claim in release.shared}
        for claim in release.go:
            shared, waiting = sharing.get(claim.id), self._waiting.pop(claim.id)
            if not waiting.done():
                waiting.set_result(shared)
            else:  # its bot hung up in this turn of the loop, and gives the permit back
                _give_up(claim, shared)
        for rider, claim in release.shared:
            waiting = self._waiting.pop(rider.id)
            if not waiting.done():
                waiting.set_result(sharing[claim.id])
        for rejection in release.rejected:
            waiting = self._waiting.pop(rejection.claim.id)
            if not waiting.done():
                waiting.set_exception(_refusal(rejection))
        self._set_timer(release.look_again_at, now)

    def _set_timer(self, at: float | None, now: float) -> None:
        if self._timer is not None:
            if at == self._timer_at:
                return
            self._timer.cancel()
            self._timer = None
        if at is not None:
            delay_s = min(max(0.0, at - now), LONGEST_SLEEP_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake)
            self._timer_at = at

    def _wake(self) -> None:
        self._timer = None
        self.go_on()

    def paused_until(self, pools: Iterable[str], subjects: Iterable[str] = ()) -> float:
        """Return the end of the last pause of these pools and subjects, minus infinity if there was none."""
        return self._pacer.pools.paused_until(pools, subjects)

    def reopens_at(self, pools: Iterable[str], subjects: Iterable[str]) -> float:
        """Return the end of their latest long pause, minus infinity if there was none."""
        return self._pacer.pools.reopens_at(pools, subjects)

    def know(self, places: Iterable[str]) -> None:
        """Make the pools at these places, so that their published limits can be seen before any request."""
        for place in places:
            self._pacer.pools.at(place)

    def shut_out(self, subject: str, until: float) -> None:
        """Send nothing of a subject before `until`, then one request alone."""
        now = self._system.now()
        if self._pacer.shut_out(subject, until, now):
            self._note_pause(until, now)
            self.go_on()

    def check_pause(self, claim: Claim) -> None:
        """Raise Refusal `rate_limited` for a claim that cannot wait for the end of a pause."""
        rejection = self._pacer.outlasted(claim, self._system.now())
        if rejection is not None:
            raise _refusal(rejection)

    def snapshot(self) -> dict[str, Snapshot]:
        """Return what each pool has learned, and what is left of its pause, to be kept over a restart."""
        now = self._system.now()
        own = self._pacer.pools.snapshot(now)
        return own if self.sharing is None else self.sharing.snapshot(own, now)

    def restore(self, kept: Mapping[str, Snapshot]) -> None:
        """Start from a snapshot, before the first request."""
        left_s = self._pacer.pools.restore(kept, self._system.now())
        if self.sharing is not None:
            self.sharing.restored()
        if left_s > 0:
            log.warning("pause_remembered", exchange=self.exchange, left_s=round(left_s, 1), fix=_LIFT)

    def status(self) -> PacerStatus:
        """Return what waits, the pools, and how they are shared."""
        now = self._system.now()
        status = self._pacer.status(now)
        return status if self.sharing is None else self.sharing.shown(status, now)


@dataclass(frozen=True, slots=True)
class Gates:
    """The queue of the requests to one exchange, with the record of its firewall."""

    scheduler: RateScheduler
    of_keys: tuple[Membership, ...]
    of_open: Membership
    of_time: tuple[str, ...]  # the pools that the gateway's own question for the time passes
    firewall: Firewall = field(default_factory=Firewall)

    def refused_by_firewall(self, bot: str, route: str, sent_at: float, now: float, wait: WaitRule) -> None:
        """Take in a firewall's refusal: the bot's route pauses, or everything if it is for this address."""
        is_address = self.firewall.refused(bot, route, sent_at, now)
        pause_s = self.firewall.paused_until(bot, route) - now
        if is_address:
            pause_s = wait.documented_s or LONGEST_BACKOFF_S
            self.scheduler.shut_out(self.of_open.address, now + pause_s)
        event = "firewall_shuts_out_address" if is_address else "firewall_refused_request"
        exchange = self.scheduler.exchange
        log.warning(event, exchange=exchange, bot=bot, route=route, pause_s=round(pause_s, 1))

    def check_firewall(self, bot: str, route: str, now: float) -> None:
        """Raise Refusal `rate_limited` for a bot whose latest request to this route a firewall refused."""
        left_s = self.firewall.paused_until(bot, route) - now
        if left_s > 0:
            what, others = f"last request to {route}", "bots and paths"
            if self.firewall.pauses_all(bot, now):
                what, others = "requests to several paths", "bots"
            detail = f"A firewall in front of the exchange refused this bot's {what}"
            detail += f"; the gateway sends the next one in {left_s:.0f} s. Other {others} are not affected."
            raise Refusal("rate_limited", detail, retry_after_s=left_s)

    @property
    def shut_until(self) -> float:
        """When the first key may be used again: until then nothing is signed, so the time is not needed."""
        ends = (self.scheduler.paused_until(one.always, one.subjects) for one in self.of_keys)
        return min(ends, default=-math.inf)

    @property
    def reopened_at(self) -> float:
        """When the first key may be used again, if all had a long pause."""
        ends = (self.scheduler.reopens_at(one.always, one.subjects) for one in self.of_keys)
        return min(ends, default=-math.inf)


def _give_up(claim: Claim, shared: Shared | None) -> None:
    """Tell the claims that go along with this one that it was not sent."""
    if shared is not None and shared.claim is claim:
        shared.end()


def _refusal(rejection: Rejection) -> Refusal:
    return Refusal(rejection.slug, rejection.detail, retry_after_s=rejection.retry_after_s)
