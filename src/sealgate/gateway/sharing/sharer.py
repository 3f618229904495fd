"""Keeps one key's pacer in step with the other gateways: does what its seat says, when it says so.

No request waits here. A visit to Redis takes all that there is to tell; what is new meanwhile goes with the
next one, so a slow Redis makes fewer visits and not a queue of them.
"""

import asyncio
import contextlib
import math
from collections.abc import Sequence

import structlog

from sealgate.core.limits.status import SharingStatus
from sealgate.core.sharing.plain import MessageError
from sealgate.core.sharing.seat import Seat, TooMuchError
from sealgate.gateway.pacing.scheduler import RateScheduler
from sealgate.gateway.platform.alarm import Alarm
from sealgate.gateway.platform.system import System
from sealgate.gateway.sharing.table import TIMEOUT_S, TROUBLE, Session, Table, words

_LONGEST_SLEEP_S = 1.0  # the loop's timers may not count suspend

log = structlog.get_logger("sealgate.sharing")


class Sharer:
    """The `sharing` of a scheduler."""

    def __init__(
        self, alias: str, seat: Seat, table: Table, scheduler: RateScheduler, system: System
    ) -> None:
        self._alias = alias
        self._seat = seat
        self._table = table
        self._scheduler = scheduler
        self._system = system
        self._wake = asyncio.Event()
        self._sleeps_until = -math.inf
        self._is_looking = False
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, scheduler.go_on)
        self._told: str | None = None

    def changed(self) -> None:
        """Let the seat take in what is new; once the scheduler has acted on it, see what is due."""
        self._seat.catch_up(self._system.now())
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        now = self._system.now()
        if self._seat.is_behind:
            self._scheduler.go_on()
        if self._seat.visit_at(now) < self._sleeps_until:
            self._wake.set()
        look_at = self._seat.look_at()
        self._alarm.set(self._loop.time() + max(0.0, look_at - now) if look_at < math.inf else math.inf)

    def status(self) -> SharingStatus:
        """Return how many share, and whether that works."""
        return self._seat.status()

    async def run(self) -> None:
        """Share until cancelled; then take leave."""
        try:
            while True:
                await self._until_due()
                try:
                    await self._sit()
                except TROUBLE as error:
                    self._failed(words(error))
                except TooMuchError:
                    self._failed("Redis holds more than gateways would write")
                except MessageError:
                    self._failed("what is in Redis makes no sense to this gateway")
        finally:
            self._seat.failed("the gateway has stopped sharing", self._system.now())
            self._alarm.stop()
            self._scheduler.go_on()

    async def _sit(self) -> None:
        async with self._table.opened() as session:
            _obey_cancellation()
            # No TaskGroup: where Redis fails while this is cancelled, that would forget the cancellation.
            tasks = [asyncio.create_task(one) for one in (session.listen(self._heard), self._visit(session))]
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
            except asyncio.CancelledError:
                await _end(tasks)
                with contextlib.suppress(*TROUBLE):
                    await session.leave()
                raise
            finally:
                await _end(tasks)

    async def _visit(self, session: Session) -> None:
        while True:
            answer = await session.visit(self._seat.visit(self._system.now()))
            before = self._seat.status()
            self._seat.visited(answer, self._system.now())
            self._tell_of_success(before)
            self._scheduler.go_on()
            await self._until_due()

    async def _until_due(self) -> None:
        while (delay_s := self._seat.visit_at(now := self._system.now()) - now) > 0:
            self._sleeps_until = now + delay_s
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(delay_s, _LONGEST_SLEEP_S)):
                    await self._wake.wait()
        self._sleeps_until = -math.inf

    def _heard(self, message: bytes) -> None:
        try:
            self._seat.heard(message, self._system.now())
        except MessageError:
            fix = "run the same version in all gateways, and let nobody else write to this Redis"
            log.warning("limit_sharing_message_ignored", key=self._alias, fix=fix)
        self._scheduler.go_on()

    def _failed(self, why: str) -> None:
        self._seat.failed(why, self._system.now())
        self._scheduler.go_on()
        if why != self._told:
            self._told = why
            log.warning(
                "limit_sharing_degraded",
                key=self._alias,
                cause=why,
                replicas=self._seat.replicas,
                meanwhile="this gateway uses a cautious part of the limit",
                fix="check limits.redis and the Redis there; it is retried automatically",
            )

    def _tell_of_success(self, before: SharingStatus) -> None:
        status = self._seat.status()
        if before.degraded is not None or before.is_lead != status.is_lead:
            self._told = None
            log.info("limit_shared", key=self._alias, replicas=status.replicas, leads=status.is_lead)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel until it is heard: a call of redis-py that succeeds in the same moment forgets it."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=TIMEOUT_S)


def _obey_cancellation() -> None:
    """Raise CancelledError where redis-py forgot one, as above."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
