"""Limits shared with other gateways through Redis: imported only where `limits.redis` is set."""

import asyncio
import contextlib
import hashlib
import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import structlog
from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sealgate.cluster.member import (
    LEADER_LEASE_S,
    MEMBER_LEASE_S,
    Heartbeat,
    HeartbeatReply,
    Member,
)
from sealgate.cluster.messages import LONGEST_PAUSE_S, LONGEST_TEXT, MessageError, Whole
from sealgate.keys.key import Secret
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.scheduler import LONGEST_SLEEP_S, RateScheduler
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import PacerStatus, SharingStatus
from sealgate.machine.alarm import Alarm
from sealgate.machine.findings import in_one_line
from sealgate.machine.system import System

TIMEOUT_S = 0.1
TROUBLE = (RedisError, OSError, TimeoutError)

SCRIPT = (files(__package__) / "sharing.lua").read_text("utf-8")
_US = 1_000_000
_ANSWER = TypeAdapter(tuple[str, Whole, tuple[tuple[bytes, Whole], ...], Whole, str, tuple[str, ...]])

log = structlog.get_logger("sealgate.sharing")


class RedisGroup:
    """The gateways that share limits, as Redis knows them under `tag`; `me` is the name of this one.

    Nothing here waits longer than `TIMEOUT_S` for Redis, and nothing is tried twice: without an answer, a
    gateway decides alone.
    """

    def __init__(self, url: str, tag: str, me: str) -> None:
        self._url = url
        self._name = f"{{sealgate:{tag}}}"
        self._me = me

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["Session"]:
        """Connect and subscribe as long as the block lasts. Raises one of TROUBLE."""
        async with (
            self._client(TIMEOUT_S) as client,
            self._client(None) as listener,  # a listener may receive nothing for long
            listener.pubsub() as pubsub,
        ):
            async with asyncio.timeout(2 * TIMEOUT_S):
                await _subscribe(pubsub, f"{self._name}:all", f"{self._name}:{self._me}")
            yield Session(client, pubsub, self._name, self._me)

    def _client(self, timeout_s: float | None) -> Redis:
        client: Redis = Redis.from_url(
            self._url,
            socket_timeout=timeout_s,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        return client


class Session:
    """An open connection: `heartbeat`, and `listen` beside it."""

    def __init__(self, client: Redis, pubsub: PubSub, name: str, me: str) -> None:
        self._script = client.register_script(SCRIPT)
        self._pubsub = pubsub
        self._name = name
        self._me = me

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        """Send a heartbeat. Raises one of TROUBLE, or MessageError."""
        return await self._run(heartbeat, MEMBER_LEASE_S)

    async def leave(self) -> None:
        """Leave at once, as leader too. Raises one of TROUBLE."""
        await self._run(Heartbeat(0), 0.0)

    async def listen(self, receive: Callable[[bytes], None]) -> None:
        """Pass on every message, until cancelled. Raises one of TROUBLE."""
        async for message in self._pubsub.listen():
            if message["type"] == "message":
                receive(message["data"])

    async def _run(self, heartbeat: Heartbeat, lease_s: float) -> HeartbeatReply:
        async with asyncio.timeout(TIMEOUT_S):
            found = await self._script(
                keys=keys(self._name), args=arguments("", self._me, heartbeat, lease_s)
            )
        return read_answer(found)


def keys(name: str) -> list[str]:
    """Return the KEYS of sharing.lua."""
    return [name, f"{name}:members", f"{name}:pauses"]


def arguments(now: str, me: str, heartbeat: Heartbeat, lease_s: float) -> list[str | int]:
    """Return the ARGV of sharing.lua; `now` is "" for the time of Redis."""
    grants = [text for grant in heartbeat.grants for text in grant]
    leases_us = round(lease_s * _US), round(LEADER_LEASE_S * _US)
    pauses = json.dumps({place: round(pause_s * _US) for place, pause_s in heartbeat.pauses.items()})
    told = pauses, round(LONGEST_PAUSE_S * _US), heartbeat.note, heartbeat.announcement
    return [now, me, heartbeat.epoch, *leases_us, *told, *grants]


def read_answer(found: list[Any]) -> HeartbeatReply:
    """Return what sharing.lua returned. Raises MessageError for what it would not."""
    try:
        leader, epoch, pauses_us, replicas, announcement, members = _ANSWER.validate_python(found)
    except ValidationError as error:
        raise MessageError(str(error)) from error
    # A place that no gateway would write is nobody's: it must not stop the sharing for as long as it lasts.
    texts = [(place.decode(errors="replace"), pause_us / _US) for place, pause_us in pauses_us]
    pauses = {text: pause_s for text, pause_s in texts if text.isprintable() and len(text) <= LONGEST_TEXT}
    return HeartbeatReply(leader, epoch, pauses, replicas, announcement, members)


def words(error: BaseException) -> str:
    """Say in a few words why Redis is of no use; never what its URL is, which may hold a password."""
    if isinstance(error, TimeoutError | RedisTimeoutError):
        return f"Redis did not answer within {TIMEOUT_S * 1000:.0f} ms"
    if isinstance(error, ResponseError):
        said = in_one_line("".join(str(error).splitlines()[:1])[:100])
        return f"Redis refuses ({said or 'no reason given'})"
    return "Redis cannot be reached"


async def _subscribe(pubsub: PubSub, *channels: str) -> None:
    """Return once no message is missed any more."""
    await pubsub.subscribe(*channels)
    for _ in channels:
        await pubsub.get_message(timeout=None)


class Sharer:
    """The `sharing` of a scheduler.

    No request waits here. A heartbeat carries all that is new; what comes up meanwhile goes with the next,
    so a slow Redis means fewer heartbeats, not a queue of them.
    """

    def __init__(self, member: Member, group: RedisGroup, scheduler: RateScheduler, system: System) -> None:
        self._exchange = scheduler.exchange
        self._member = member
        self._group = group
        self._scheduler = scheduler
        self._system = system
        self._wake = asyncio.Event()
        self._sleeps_until = -math.inf
        self._is_looking = False
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, scheduler.go_on)
        self._reported: str | None = None

    def changed(self) -> None:
        """Let the member take in what is new; once the scheduler has acted on it, see what is due."""
        self._member.catch_up(self._system.now())
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        now = self._system.now()
        if self._member.is_behind:
            self._scheduler.go_on()
        if self._member.heartbeat_at(now) < self._sleeps_until:
            self._wake.set()
        look_at = self._member.look_at()
        self._alarm.set(self._loop.time() + max(0.0, look_at - now) if look_at < math.inf else math.inf)

    def adopt(self, settings: PacerSettings) -> None:
        """Pass on the settings that the pacer has just adopted."""
        self._member.relay.adopt(settings)

    def snapshot(self, own: dict[str, Snapshot], now: float) -> dict[str, Snapshot]:
        """Return the pacer's own snapshot with the whole limits, of which the pacer may know only a part."""
        return self._member.relay.snapshot(own, now)

    def restored(self) -> None:
        """Take what the pacer has just restored for the whole limits."""
        self._member.relay.restored()

    def shown(self, own: PacerStatus, now: float) -> PacerStatus:
        """Return the pacer's own status with what is known of the whole limits, and of the sharing."""
        return replace(self._member.relay.shown(own, now), sharing=self._member.status())

    async def run(self) -> None:
        """Share until cancelled; then leave."""
        try:
            while True:
                await self._until_due()
                try:
                    await self._share()
                except TROUBLE as error:
                    self._failed(words(error))
                except MessageError:
                    self._failed("the data in Redis cannot be understood")
        finally:
            self._member.failed("the gateway has stopped sharing", self._system.now())
            self._alarm.stop()
            self._scheduler.go_on()

    async def _share(self) -> None:
        async with self._group.opened() as session:
            _obey_cancellation()
            # No TaskGroup: where Redis fails while this is cancelled, that would forget the cancellation.
            tasks = [
                asyncio.create_task(one) for one in (session.listen(self._receive), self._heartbeat(session))
            ]
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

    async def _heartbeat(self, session: Session) -> None:
        while True:
            answer = await session.heartbeat(self._member.heartbeat(self._system.now()))
            before = self._member.status()
            self._member.acknowledged(answer, self._system.now())
            self._report_success(before)
            self._scheduler.go_on()
            await self._until_due()

    async def _until_due(self) -> None:
        while (delay_s := self._member.heartbeat_at(now := self._system.now()) - now) > 0:
            self._sleeps_until = now + delay_s
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(delay_s, LONGEST_SLEEP_S)):
                    await self._wake.wait()
        self._sleeps_until = -math.inf

    def _receive(self, message: bytes) -> None:
        try:
            self._member.receive(message, self._system.now())
        except MessageError:
            fix = "run the same version in all gateways, and let no other program write to this Redis"
            log.warning("limit_sharing_message_ignored", exchange=self._exchange, fix=fix)
        self._scheduler.go_on()

    def _failed(self, why: str) -> None:
        self._member.failed(why, self._system.now())
        self._scheduler.go_on()
        if why != self._reported:
            self._reported = why
            log.warning(
                "limit_sharing_degraded",
                exchange=self._exchange,
                cause=why,
                replicas=self._member.replicas,
                meanwhile="this gateway uses a cautious share of each limit",
                fix="check limits.redis and the Redis there; it is retried automatically",
            )

    def _report_success(self, before: SharingStatus) -> None:
        status = self._member.status()
        is_new = before.degraded is not None or before.is_leader != status.is_leader
        if is_new and status.degraded is None:
            self._reported = None
            shared = {"replicas": status.replicas, "leads": status.is_leader}
            log.info("limit_shared", exchange=self._exchange, **shared)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel until it is obeyed: a call of redis-py that succeeds in the same moment forgets it."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=TIMEOUT_S)


def _obey_cancellation() -> None:
    """Raise CancelledError where redis-py forgot one, as above."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def shared_scheduler(
    exchange: str, base_url: str, url: Secret, settings: PacerSettings, system: System
) -> RateScheduler:
    """Return a scheduler whose limits are shared; `exchange` is its name for the log.

    All gateways with the same base URL share one group. Its name is a digest, so that it is short.
    """
    pacer, name = Pacer(settings, system.chance), system.request_id()
    scheduler = RateScheduler(pacer, system, exchange)
    group = RedisGroup(url.reveal(), hashlib.sha256(base_url.encode()).hexdigest()[:32], name)
    scheduler.sharing = Sharer(Member(pacer, name, system.chance), group, scheduler, system)
    return scheduler
