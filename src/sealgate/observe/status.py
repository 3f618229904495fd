"""The gateway's state at one moment, as metrics, readiness, live page and `sealgate top` read it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from sealgate.exchange.clock import ClockStatus
from sealgate.keys.key_health import BreakerState
from sealgate.keys.key_records import KeyRecord
from sealgate.limits.membership import Membership
from sealgate.limits.status import LimitStatus, PacerStatus, SharingStatus
from sealgate.machine.findings import span
from sealgate.observe.pools import KeyPool, PoolState, closed_in_words, pools_of, shut_out_s, state_in_words
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.halts import Halts
from sealgate.orders.policy import Guard, words
from sealgate.streams.tally import StreamsStatus
from sealgate.venues.routes import Lane

_NOBODY_WAITS = {lane.value: 0 for lane in Lane}
_NO_STREAMS = StreamsStatus()
_FULL = 0.999


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """One key at one exchange: how many wait by lane and by bot, and the pools that its requests pass.

    `pause_s` is for how long none of its requests pass, `more_pools` how many are not among `pools`.
    `trouble` is what is wrong with a key in use, in words, and `trouble_advice` what to do about it; both are
    None where nothing is. `disabled` says why the exchange does not take the key, None where it does.
    `expires_at` is epoch seconds, None where there is no end or the exchange's list was not read. `sharing`
    is None without `limits.redis`.
    """

    alias: str
    exchange: str
    pause_s: float
    waiting: dict[str, int]
    waiting_by_bot: dict[str, int]
    pools: tuple[KeyPool, ...]
    more_pools: int = 0
    trouble: str | None = None
    trouble_advice: str | None = None
    disabled: str | None = None
    is_active: bool = True
    expires_at: float | None = None
    sharing: SharingStatus | None = None

    @property
    def has_pools(self) -> bool:
        """Whether the exchange counts its requests in more than one pool, as far as is known."""
        return len(self.pools) + self.more_pools > 1 or any(not one.is_whole for one in self.pools)

    @property
    def limits(self) -> tuple[LimitStatus, ...]:
        """All limits of its pools."""
        return tuple(limit for one in self.pools for limit in one.limits)

    @property
    def at_a_time(self) -> int | None:
        """The least of what its pools allow under way."""
        return min((one.at_a_time for one in self.pools if one.at_a_time is not None), default=None)

    @property
    def spent_s(self) -> float:
        """For how long nothing is left of a pool that all its requests pass."""
        return max((one.spent_s for one in self.pools if one.is_whole), default=0.0)

    @property
    def fullest(self) -> tuple[KeyPool, LimitStatus] | None:
        """The limit that is nearest to being full, with its pool; None where none is known."""
        limits = [(one, limit) for one in self.pools if (limit := one.fullest)]
        return max(limits, key=lambda both: both[1].used_ratio, default=None)


def key_status(  # noqa: PLR0913, PLR0917 - the parts of a key
    alias: str,
    exchange: str,
    pacer: PacerStatus,
    membership: Membership,
    health: BreakerState | None = None,
    record: KeyRecord | None = None,
) -> KeyStatus:
    """Return the state of a key at an exchange, with its waiting requests counted by lane and by bot."""
    by_lane, by_bot = _NOBODY_WAITS.copy(), dict[str, int]()
    for (key, lane, bot), count in pacer.waiting.items():
        if key == alias:
            by_lane[lane.value] += count
            by_bot[bot] = by_bot.get(bot, 0) + count
    pools, more = pools_of(pacer, membership)
    always = (pacer.pools[place].pause_s for place in membership.always if place in pacer.pools)
    fault, trouble = (health.fault, health.trouble) if health else (None, None)
    return KeyStatus(
        alias,
        exchange,
        max(shut_out_s(pacer, membership), *always, 0.0),
        by_lane,
        by_bot,
        pools,
        more,
        trouble=trouble,
        trouble_advice=health.advice if health and trouble else None,
        disabled=fault.value if fault else None,
        is_active=fault is None and (record is None or record.is_active),
        expires_at=record.expires_at if record else None,
        sharing=pacer.sharing,
    )


@dataclass(frozen=True, slots=True)
class HaltStatus:
    """A halt of orders, by bot, key and exchange; None means all. `since_ms` is epoch ms.

    `words` say whose orders, for people; `resume` is the command that lifts it. `uid`, `pid` and `reason` say
    who halted them and why, as `Origin` does; `who` is user and process for people.
    """

    bot: str | None
    key: str | None
    exchange: str | None
    since_ms: int
    words: str
    resume: str
    uid: int | None
    pid: int | None
    who: str
    reason: str


def halt_status(halts: Halts) -> tuple[HaltStatus, ...]:
    """Return the halts in plain values."""
    return tuple(
        HaltStatus(
            halt.scope.bot,
            halt.scope.key,
            halt.scope.exchange,
            halt.since_ms,
            halt.scope.words,
            halt.scope.resume,
            halt.origin.uid,
            halt.origin.pid,
            halt.origin.who,
            halt.origin.reason,
        )
        for halt in halts
    )


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """A bot's policies at an exchange in words, and how often each rule refused an order, or would have.

    `is_observing` says that all of them only observe.
    """

    bot: str
    exchange: str
    words: str
    is_observing: bool
    refusals: Mapping[str, int]


def policy_status(exchange: str, guards: Mapping[str, Guard]) -> tuple[PolicyStatus, ...]:
    """Return the policies of all bots that have any at an exchange."""
    return tuple(
        PolicyStatus(
            bot,
            exchange,
            "; ".join(map(words, guard.policies)),
            all(policy.observe for policy in guard.policies),
            dict(guard.usage.refusals),
        )
        for bot, guard in guards.items()
    )


@dataclass(frozen=True, slots=True)
class ExchangeStatus:
    """One exchange, with the keys that are valid there.

    `urls` are where bots reach it. `not_ready` is empty if its requests can be signed, else the reasons in
    words. `open_pools` are those that only requests without a key pass.
    """

    name: str
    venue: str
    base_url: str
    urls: tuple[str, ...]
    not_ready: tuple[str, ...]
    clock: ClockStatus
    keys: tuple[KeyStatus, ...]
    policies: tuple[PolicyStatus, ...] = ()
    open_pools: tuple[KeyPool, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """Everything at once; there is at least one exchange.

    `reloads` counts them by how they ended, `callback_errors` the exceptions that nobody awaited.
    `addresses` is where it is set to listen: setting -> address, "" where it is off. A command recognises its
    gateway by them. `bot_urls` are the addresses that bots have for themselves, by name.
    """

    version: str
    uptime_s: float
    is_draining: bool
    inflight: int
    connections: int
    exchanges: tuple[ExchangeStatus, ...]
    journal: JournalStatus
    halts: tuple[HaltStatus, ...] = ()
    reloads: Mapping[str, int] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    bot_urls: Mapping[str, str] = field(default_factory=dict)
    callback_errors: int = 0
    tls_cert_expires_at: float | None = None
    streams: StreamsStatus = _NO_STREAMS

    @property
    def base_url(self) -> str:
        """The addresses of all exchanges."""
        return " ".join(one.base_url for one in self.exchanges)

    @property
    def not_ready(self) -> tuple[str, ...]:
        """Why no request can pass, in words; empty while one exchange is ready."""
        if self.is_draining:
            return ("shutting down",)
        reasons = []
        if self.journal.is_refusing:
            reasons.append(f"the journal cannot be written: {self.journal.trouble}")
        if all(one.not_ready for one in self.exchanges):
            reasons += [f"{self.prefix(one)}{reason}" for one in self.exchanges for reason in one.not_ready]
        return tuple(reasons)

    @property
    def clock(self) -> ClockStatus:
        """The clock of the exchange; of several, the least certain one."""
        clocks = [one.clock for one in self.exchanges]
        return max(clocks, key=lambda one: (one.error_s is None, one.trouble is not None, one.error_s or 0.0))

    @property
    def keys(self) -> tuple[KeyStatus, ...]:
        """The keys at all exchanges."""
        return tuple(key for one in self.exchanges for key in one.keys)

    @property
    def policies(self) -> tuple[PolicyStatus, ...]:
        """The policies at all exchanges."""
        return tuple(policy for one in self.exchanges for policy in one.policies)

    def prefix(self, exchange: ExchangeStatus) -> str:
        """Return what to put before words about an exchange: its name, unless it is the only one."""
        return f"{exchange.name}: " if len(self.exchanges) > 1 else ""

    def exchange(self, name: str) -> ExchangeStatus | None:
        """Return an exchange by its name."""
        return next((one for one in self.exchanges if one.name == name), None)

    def about(self, exchange: ExchangeStatus) -> "Status":
        """Return the status as far as it is about one exchange."""
        halts = tuple(halt for halt in self.halts if halt.exchange in (None, exchange.name))
        return replace(self, exchanges=(exchange,), halts=halts)


def notes(status: Status) -> Iterator[str]:
    """Yield what people must know of a gateway that serves.

    A halt is what somebody wanted: reads and cancels pass. Where the exchange refuses signatures the cause is
    a secret or a setting, and while it is away that is not the gateway's doing: another gateway would do no
    better.
    """
    if status.halts:
        yield "orders are halted"
    for one in status.exchanges:
        if one.not_ready:
            yield f"{one.name} is not ready: {'; '.join(one.not_ready)}"
        elif one.clock.trouble is not None:
            yield f"{status.prefix(one)}clock: {one.clock.trouble}"
        for key in one.keys:
            if key.trouble is not None:
                yield f"{status.prefix(one)}the key {key.alias}: {key.trouble}"
            if key.has_pools and (closed := closed_in_words(key.pools)):
                yield f"{status.prefix(one)}the key {key.alias}, {closed}"
        for pool in one.open_pools:
            if closed := state_in_words(pool):
                yield f"{status.prefix(one)}requests without a key, {pool.label}: {closed}"


class State(StrEnum):
    """The state that page and `top` show: the gravest of all that hold. The gravest stands first."""

    SHUTTING_DOWN = "shutting down"
    KEY_REFUSED = "key refused"
    NOT_READY = "not ready"
    AN_EXCHANGE_NOT_READY = "an exchange not ready"
    HALTED = "halted"
    SIGNATURES_REFUSED = "signatures refused"
    EXCHANGE_FAILING = "exchange failing"
    JOURNAL_FAILING = "journal failing"
    A_KEY_REFUSED = "a key refused"
    CLOCK_NOT_READ = "clock not read"
    REFUSING = "bots refused"
    PAUSED = "paused"
    A_POOL_CLOSED = "a pool closed"
    READY = "ready"


def state(status: Status, *, is_failing: bool, is_refusing: bool) -> State:
    """Return the gravest state of all that hold.

    `is_failing`: an exchange gives no answer. `is_refusing`: most requests of some bot are refused here.
    """
    keys, exchanges = status.keys, status.exchanges
    holds = {
        State.SHUTTING_DOWN: status.is_draining,
        State.KEY_REFUSED: all(key.disabled for key in keys),
        State.NOT_READY: bool(status.not_ready),
        State.AN_EXCHANGE_NOT_READY: any(one.not_ready for one in exchanges),
        State.HALTED: bool(status.halts),
        State.SIGNATURES_REFUSED: any(key.trouble for key in keys),
        State.EXCHANGE_FAILING: is_failing,
        State.JOURNAL_FAILING: bool(status.journal.trouble),
        State.A_KEY_REFUSED: any(key.disabled for key in keys),
        State.CLOCK_NOT_READ: any(one.clock.trouble for one in exchanges),
        State.REFUSING: is_refusing,
        State.PAUSED: any(key.pause_s > 0 for key in keys),
        State.A_POOL_CLOSED: any(
            pool.state is not PoolState.OPEN
            for pools in (
                *(key.pools for key in keys if key.has_pools),
                *(one.open_pools for one in exchanges),
            )
            for pool in pools
        ),
        State.READY: True,
    }
    return next(one for one in State if holds[one])


class Forecast(NamedTuple):
    """Seconds to the next 429, None if none is in sight; the same as a sentence, and as a label."""

    in_s: float | None
    words: str
    short: str


def forecast(key: KeyStatus) -> Forecast:
    """Return when to expect the next 429 of a key, if its requests go on as in the last ten seconds."""
    if key.pause_s > 0:
        return Forecast(None, f"paused for {key.pause_s:.1f} s more", "paused")
    if key.spent_s > 0:
        words = f"held off: limit used up (exchange), {key.spent_s:.1f} s left"
        return Forecast(None, words, "held off")
    if not key.limits:
        return Forecast(None, "no limit known yet", "\u2013")
    if any(key.waiting.values()):
        return Forecast(None, "held off: requests wait instead", "held off")
    open_pools = [pool for pool in key.pools if pool.state is PoolState.OPEN]
    coming = [(in_s, pool) for pool in open_pools if (in_s := _full_in_s(pool)) is not None]
    if not coming:
        return Forecast(None, "not at this pace", "none")
    in_s, pool = min(coming, key=lambda both: both[0])
    which = f" ({pool.label})" if key.has_pools else ""
    return Forecast(in_s, f"in about {in_s:.0f} s at this pace{which}", f"≈ {span(round(in_s))}")


def _full_in_s(pool: KeyPool) -> float | None:
    """Return when the fullest limit of a pool is full, None if it will not be.

    A limit of `n` per window that sees `rate` a second settles at `rate * window` used. If that is below `n`,
    it is never full; otherwise the use grows by what is sent, less what leaves the window.
    """
    if (limit := pool.fullest) is None:
        return None
    rate, used = pool.cost_per_s, limit.used_ratio * limit.n
    growth = rate - used / limit.window_s
    if rate * limit.window_s < limit.n * _FULL or growth <= 0:
        return None
    return max(0.0, limit.n - used) / growth
