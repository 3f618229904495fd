"""Everything that the live view shows of one moment, put together from the status and the last seconds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sealgate.errors import REASONS
from sealgate.observe.evidence import Circumstances, advice, evidence
from sealgate.observe.pools import KeyPool, closed_in_words, state_in_words
from sealgate.observe.recent import Recent, Tick
from sealgate.observe.sentences import words
from sealgate.observe.status import (
    ExchangeStatus,
    KeyStatus,
    PolicyStatus,
    State,
    Status,
    forecast,
    state,
)
from sealgate.observe.troubles import RefusalCount, Trouble
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.outcome import Outcome
from sealgate.streams.tally import StreamsStatus, StreamStatus

TICK_S = 0.5
_SHORT = 4  # ticks that a point of the charts looks back


@dataclass(frozen=True, slots=True)
class Picture:
    """One moment. `now` is on the clock that nobody sets, `wall` the same moment in epoch seconds.

    `tasks` returns how many tasks asyncio runs: they grow where something is left behind.
    """

    status: Status
    recent: Recent
    weights: Mapping[str, float]
    now: float
    wall: float
    tasks: Callable[[], int]

    def document(self) -> dict[str, Any]:
        """Return it as plain values: the status, what the last ten seconds add to it, and `words`."""
        status = self.status
        refusals = [self._refusal(refusal) for refusal in self.recent.refusals()]
        exchanges = [self._exchange(one, refusals) for one in status.exchanges]
        keys = [self._key(key) for key in status.keys]
        busy = {bot["name"] for key in keys for bot in key["bots"]}
        failing = next((one["failing"] for one in exchanges if one["failing"]), None)
        figures = asdict(replace(status, exchanges=(), streams=StreamsStatus())) | {
            "base_url": status.base_url,
            "not_ready": status.not_ready,
            "clock": asdict(status.clock),
            "exchanges": exchanges,
            "keys": keys,
            "journal": _journal(status.journal),
            "state": self._state(status, is_failing=failing is not None, refusals=refusals),
            "at_ms": round(self.wall * 1000),
            "tasks": self.tasks(),
            "requests": self.recent.total,
            "requests_per_s": self._per_s(sum(tick.requests for tick in self.recent.ended())),
            "latency": self.recent.latency()._asdict(),
            "idle_bots": sorted(self.weights.keys() - busy),
            "failing": failing,
            "errors": [self._error(trouble) for trouble in self.recent.troubles()],
            "refusals": refusals,
            "streams": list(map(_stream, status.streams.open)),
            "last_orders": self._last_orders(),
            "policies": [asdict(one) | {"by_rule": self._by_rule(one)} for one in status.policies],
        }
        return figures | {"words": words(figures)}

    def _per_s(self, count: int) -> float:
        """Return how many that is per second, of what the ticks that ended have counted."""
        return round(count / self._seconds, 2)

    @property
    def _seconds(self) -> float:
        return max(1, self.recent.ticks) * TICK_S

    @staticmethod
    def _state(status: Status, refusals: Iterable[Mapping[str, Any]], *, is_failing: bool) -> State:
        return state(status, is_failing=is_failing, is_refusing=any(one["is_grave"] for one in refusals))

    def _exchange(self, one: ExchangeStatus, refusals: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return an exchange at a glance: its state, and the figures of all its keys together."""
        activity, failing = self.recent.at(one.name), self._failing(one)
        about_it = self.status.about(one)
        its_refusals = [refusal for refusal in refusals if refusal["exchange"] == one.name]
        fullest = [key.fullest[1].used_ratio for key in one.keys if key.fullest]
        return {
            "name": one.name,
            "venue": one.venue,
            "base_url": one.base_url,
            "urls": one.urls,
            "state": self._state(about_it, its_refusals, is_failing=failing is not None),
            "not_ready": one.not_ready,
            "clock": asdict(one.clock),
            "keys": [key.alias for key in one.keys],
            "open_pools": list(map(_pool, one.open_pools)),
            "used_ratio": max(fullest, default=None),
            "pause_s": max(key.pause_s for key in one.keys),
            "waiting": sum(sum(key.waiting.values()) for key in one.keys),
            "sent_per_s": self._per_s(activity.sent().total()),
            "requests": activity.requests,
            "requests_per_s": self._per_s(sum(tick.requests for tick in activity.ended())),
            "limited": activity.limited,
            "limited_ms": self._epoch_ms(activity.limited_at),
            "limited_today": activity.limited_today.total(),
            "shared_per_s": self._per_s(sum(tick.shared for tick in activity.ended())),
            "streams": sum(stream.exchange == one.name for stream in self.status.streams.open),
            "in_doubt": self.status.journal.by_exchange.get(one.name, 0),
            "latency": self.recent.latency(one.name)._asdict(),
            "failing": failing,
        }

    def _failing(self, exchange: ExchangeStatus) -> dict[str, Any] | None:
        """Return since when an exchange gives no answer, None where it does."""
        if (failing := self.recent.at(exchange.name).failing(exchange.clock, self.now)) is None:
            return None
        return {
            "exchange": exchange.name,
            "kind": failing.verdict.kind,
            "since_ms": self._epoch_ms(failing.since),
            "attempts": failing.attempts,
            "cause": failing.cause,
            "advice": failing.verdict.advice,
        }

    def _key(self, key: KeyStatus) -> dict[str, Any]:
        """Return a key with who spends it, and when it may be limited next."""
        by_bot = {
            bot: count
            for (alias, bot), count in self.recent.at(key.exchange).sent().items()
            if alias == key.alias
        }
        pools = list(map(_pool, key.pools))
        return asdict(replace(key, pools=())) | {
            "pools": pools,
            "has_pools": key.has_pools,
            "limits": [
                {"pool": one["pool"], "of": one["of"]} | limit for one in pools for limit in one["limits"]
            ],
            "used": _used(key) or 0.0,
            "at_a_time": key.at_a_time,
            "spent_s": key.spent_s,
            "closed": _closed(key),
            "sent_per_s": self._per_s(sum(by_bot.values())),
            "limited_today": self.recent.at(key.exchange).limited_today[key.alias],
            "next_429": forecast(key)._asdict(),
            "bots": list(self._shares(key, by_bot)),
        }

    def _shares(self, key: KeyStatus, by_bot: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        """Yield each bot that spends or waits, with its part of the sends and the part that is due to it."""
        bots = sorted({*by_bot, *key.waiting_by_bot})
        total = sum(by_bot.values()) or 1
        weights = {bot: self.weights.get(bot, 1.0) for bot in bots}
        for bot in bots:
            yield {
                "name": bot,
                "per_s": self._per_s(by_bot.get(bot, 0)),
                "share": round(by_bot.get(bot, 0) / total, 3),
                "due": round(weights[bot] / sum(weights.values()), 3),
                "waiting": key.waiting_by_bot.get(bot, 0),
            }

    def _last_orders(self) -> list[dict[str, Any]]:
        """Return the last order of each bot at each exchange, by name, so that rows keep their places."""
        return [
            self._last_order(outcome)
            for one in self.status.exchanges
            for _, outcome in sorted(self.recent.at(one.name).orders.items())
        ]

    def _last_order(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "bot": outcome.bot,
            "exchange": outcome.exchange,
            "at_ms": self._epoch_ms(outcome.started + outcome.total_s),
            "method": outcome.method,
            "route": outcome.route,
            "status": outcome.status,
            "outcome": outcome.conclusion.value,
            "reason": outcome.reason,
        }

    def _error(self, trouble: Trouble) -> dict[str, Any]:
        """Return an error of the exchange with what explains it; one that is over has no advice."""
        known = trouble.at_the_time(circumstances_of(self.status, trouble))
        over_since = trouble.over_since(self.now)
        return {
            "exchange": trouble.exchange,
            "key": trouble.key,
            "kind": trouble.kind,
            "means": trouble.verdict.means.value,
            "bot": trouble.bot,
            "count": trouble.count,
            "last_ms": self._epoch_ms(trouble.last_at),
            "over_since_ms": self._epoch_ms(over_since),
            "whose": trouble.verdict.whose.value,
            "advice": "" if over_since is not None else advice(trouble.verdict, known),
            "evidence": evidence(trouble.verdict, known),
        }

    def _refusal(self, refusal: RefusalCount) -> dict[str, Any]:
        """Return what the gateway itself refused a bot; what is over has no advice."""
        over_since = self._over_since(refusal)
        return {
            "bot": refusal.bot,
            "exchange": refusal.exchange,
            "lane": refusal.lane.value if refusal.lane else None,
            "reason": refusal.reason,
            "refused": refusal.refused,
            "asked": refusal.asked,
            "client": refusal.client,
            "user_agent": refusal.user_agent,
            "words": refusal.words,
            "first_ms": self._epoch_ms(refusal.first_at),
            "last_ms": self._epoch_ms(refusal.last_at),
            "over_since_ms": self._epoch_ms(over_since),
            "is_grave": over_since is None and refusal.is_grave(self.now),
            "advice": "" if over_since is not None else REASONS[refusal.reason].advice,
        }

    def _over_since(self, refusal: RefusalCount) -> float | None:
        """Return since when refusals are over; those of a halt that was lifted, though nobody tried since."""
        is_stopped = bool(self.status.halts) or self.status.journal.is_refusing
        is_lifted = refusal.reason == "halted" and not is_stopped
        return refusal.last_at if is_lifted else refusal.over_since(self.now)

    def _by_rule(self, policy: PolicyStatus) -> str:
        """Say how often which rule of a policy refused something since the start, "" where none did."""
        counts = ", ".join(f"{count} by {rule}" for rule, count in policy.refusals.items() if count)
        where = f" at {policy.exchange}" if len(self.status.exchanges) > 1 else ""
        has = "would have" if policy.is_observing else "has"
        return counts and f"{policy.bot}'s policy{where} {has} refused: {counts}"

    def point(self, ended: Mapping[str, Tick]) -> dict[str, Any]:
        """Return what the charts of each exchange add for this moment: short names, as many are sent."""
        exchanges = {one.name: self._point(one, ended.get(one.name)) for one in self.status.exchanges}
        return {"t": round(self.wall, 2), "exchanges": exchanges}

    def _point(self, exchange: ExchangeStatus, ended: Tick | None) -> dict[str, Any]:
        """Return the point of one exchange.

        Keys of which there is nothing to show are left out: there may be a thousand, and minutes are kept.
        """
        latency, clock = self.recent.latency(exchange.name, _SHORT), exchange.clock
        seconds = max(1, min(self.recent.ticks, _SHORT)) * TICK_S
        rates: Counter[str] = Counter()
        for (alias, _), count in self.recent.at(exchange.name).sent(_SHORT).items():
            rates[alias] += count
        heights = {key.alias: _heights(key, rates[key.alias] / seconds) for key in exchange.keys}
        limited = ended.limited if ended else ()
        return {
            "keys": {alias: found for alias, found in heights.items() if any(found)},
            "limited": [[alias, round(self._wall_at(at), 2)] for alias, at in limited],
            "added": latency.added_p99_ms,
            "upstream": latency.upstream_p99_ms,
            "usual": latency.upstream_p50_ms,
            "offset": _ms(clock.offset_s),
            "error": _ms(clock.error_s),
        }

    def _wall_at(self, moment: float) -> float:
        return self.wall - (self.now - moment)

    def _epoch_ms(self, moment: float | None) -> int | None:
        return None if moment is None else round(self._wall_at(moment) * 1000)


def _journal(journal: JournalStatus) -> dict[str, Any]:
    """Return the journal with what each order in doubt was, in words."""
    doubts = [asdict(one) | {"call": one.call, "terms": one.terms_words} for one in journal.doubts]
    return asdict(replace(journal, doubts=())) | {"doubts": doubts}


def _stream(one: StreamStatus) -> dict[str, Any]:
    return {
        "request_id": one.request_id,
        "bot": one.bot,
        "exchange": one.exchange,
        "key": one.key,
        "stream": one.stream,
        "since_ms": round(one.since * 1000),
        "is_logged_in": one.is_logged_in,
        "messages_per_s": round(one.messages_per_s, 2),
        "to_bot": asdict(one.to_bot),
        "to_exchange": asdict(one.to_exchange),
    }


def circumstances_of(status: Status, trouble: Trouble) -> Circumstances:
    """Return what explains an error of a key at this moment; `has_worked` is recorded with each error."""
    exchange = status.exchange(trouble.exchange)
    if exchange is None:  # a reload has removed it
        return Circumstances(None, has_worked=False)
    key = next((key for key in exchange.keys if key.alias == trouble.key), None)
    if key and key.has_pools:
        words, is_foreign = _limit_of_several(key)
    else:
        fullest = key.fullest if key else None
        words, is_foreign = (fullest[1].words, fullest[1].is_foreign_use) if fullest else ("", False)
    return Circumstances(exchange.clock.error_s, has_worked=False, limit=words, is_foreign_use=is_foreign)


def _limit_of_several(key: KeyStatus) -> tuple[str, bool]:
    """Return which pool is closed, else the fullest limit that refused, and whether others seem to use it.

    A limit that never refused explains no refusal: the fullest pool is often not the one that did.
    """
    if closed := closed_in_words(key.pools):
        return closed, False
    met = [(pool, limit) for pool in key.pools for limit in pool.limits if limit.seen]
    if not met:
        return "", False
    pool, limit = max(met, key=lambda both: both[1].used_ratio)
    return f"{pool.label}: {limit.words}", limit.is_foreign_use


def _heights(key: KeyStatus, sent_per_s: float) -> list[float | None]:
    """Return used, limit, what is left of the pause, and what is sent per second.

    Of a key with several pools, used and limit are in percent: the fullest pool is now this one, now that.
    """
    fullest, used = key.fullest, _used(key)
    limit = fullest[1].n if fullest else None
    if fullest and key.has_pools:
        used, limit = round(fullest[1].used_ratio * 100, 2), 100.0
    return [used, limit, round(key.pause_s, 2), round(sent_per_s, 2)]


def _used(key: KeyStatus) -> float | None:
    """Return what is used of a key's fullest limit, None where none is known."""
    return round(key.fullest[1].used_ratio * key.fullest[1].n, 2) if key.fullest else None


def _closed(key: KeyStatus) -> str:
    """Say which pools of a key are closed, and what goes on; of an only pool, the key itself says it."""
    return closed_in_words(key.pools) if key.has_pools else ""


def _pool(pool: KeyPool) -> dict[str, Any]:
    return asdict(pool) | {"closed": state_in_words(pool)}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
