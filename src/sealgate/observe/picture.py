"""Everything that the live view shows of one moment, put together from the status and the last seconds."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sealgate.errors import REASONS
from sealgate.observe.evidence import Circumstances, advice, evidence
from sealgate.observe.recent import SPAN, Recent, Tick
from sealgate.observe.sentences import words
from sealgate.observe.status import KeyStatus, PolicyStatus, Status, forecast, state, tightest
from sealgate.observe.troubles import RefusalCount, Trouble

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
        seconds = max(1, len(self.recent.ended())) * TICK_S
        sent: dict[str, dict[str, int]] = {}
        for (alias, bot), count in self.recent.sent().items():
            sent.setdefault(alias, {})[bot] = count
        document = asdict(self.status)
        keys = zip(document["keys"], self.status.keys, strict=True)
        document["keys"] = [key | self._spending(one, sent.get(one.alias, {}), seconds) for key, one in keys]
        busy = {bot["name"] for key in document["keys"] for bot in key["bots"]}
        failing = self._failing()
        refusals = [self._refusal(refusal) for refusal in self.recent.refusals()]
        is_refusing = any(refusal["is_grave"] for refusal in refusals)
        figures = document | {
            "state": state(self.status, is_failing=failing is not None, is_refusing=is_refusing),
            "at_ms": round(self.wall * 1000),
            "tasks": self.tasks(),
            "requests": self.recent.total,
            "requests_per_s": round(sum(tick.requests for tick in self.recent.ended()) / seconds, 2),
            "latency": self.recent.latency(SPAN)._asdict(),
            "idle_bots": sorted(self.weights.keys() - busy),
            "failing": failing,
            "errors": [self._error(trouble) for trouble in self.recent.troubles()],
            "refusals": refusals,
            "policies": [asdict(policy) | {"by_rule": _by_rule(policy)} for policy in self.status.policies],
        }
        orders = [doubt.terms_words for doubt in self.status.journal.doubts]
        return figures | {"words": words(figures) | {"orders": orders}}

    def _failing(self) -> dict[str, Any] | None:
        """Return since when the exchange gives no answer, None where it does."""
        if (failing := self.recent.failing(self.status.clock, self.now)) is None:
            return None
        return {
            "kind": failing.verdict.kind,
            "since_ms": self._epoch_ms(failing.since),
            "attempts": failing.attempts,
            "cause": failing.cause,
            "advice": failing.verdict.advice,
        }

    def _spending(self, key: KeyStatus, by_bot: Mapping[str, int], seconds: float) -> dict[str, Any]:
        """Return who spends a key, and when it may be limited next."""
        limit = tightest(key)
        rate = sum(by_bot.values()) / seconds
        return {
            "used": round(limit.used_ratio * limit.n, 2) if limit else 0.0,
            "sent_per_s": round(rate, 2),
            "next_429": forecast(key, rate)._asdict(),
            "bots": list(self._shares(key, by_bot, seconds)),
        }

    def _shares(self, key: KeyStatus, by_bot: Mapping[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """Yield each bot that spends or waits, with its part of the sends and the part that is due to it."""
        bots = sorted({*by_bot, *key.waiting_by_bot})
        total = sum(by_bot.values()) or 1
        weights = {bot: self.weights.get(bot, 1.0) for bot in bots}
        for bot in bots:
            yield {
                "name": bot,
                "per_s": round(by_bot.get(bot, 0) / seconds, 2),
                "share": round(by_bot.get(bot, 0) / total, 3),
                "due": round(weights[bot] / sum(weights.values()), 3),
                "waiting": key.waiting_by_bot.get(bot, 0),
            }

    def _error(self, trouble: Trouble) -> dict[str, Any]:
        """Return an error of the exchange with what explains it; one that is over has no advice."""
        known = trouble.at_the_time(circumstances_of(self.status, trouble.key))
        over_since = trouble.over_since(self.now)
        return {
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

    def point(self, ended: Tick) -> dict[str, Any]:
        """Return what the charts add for this moment: short names, as many of them are sent.

        Keys of which there is nothing to show are left out: there may be a thousand, and minutes are kept.
        """
        latency, clock = self.recent.latency(_SHORT), self.status.clock
        sent, seconds = self.recent.sent(_SHORT), max(1, len(self.recent.ended(_SHORT))) * TICK_S
        rates: Counter[str] = Counter()
        for (alias, _), count in sent.items():
            rates[alias] += count
        heights = {key.alias: _heights(key, rates[key.alias] / seconds) for key in self.status.keys}
        return {
            "t": round(self.wall, 2),
            "keys": {alias: found for alias, found in heights.items() if any(found)},
            "limited": [[alias, round(self._wall_at(at), 2)] for alias, at in ended.limited],
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


def circumstances_of(status: Status, alias: str) -> Circumstances:
    """Return what explains an error of a key at this moment; `has_worked` is recorded with each error."""
    key = next((key for key in status.keys if key.alias == alias), None)
    limit = tightest(key) if key else None
    words, is_foreign = (limit.words, limit.is_foreign_use) if limit else ("", False)
    return Circumstances(status.clock.error_s, has_worked=False, limit=words, is_foreign_use=is_foreign)


def _heights(key: KeyStatus, sent_per_s: float) -> list[float | None]:
    """Return used, limit, what is left of the pause, and what is sent per second."""
    limit = tightest(key)
    used = round(limit.used_ratio * limit.n, 2) if limit else None
    return [used, limit.n if limit else None, round(key.pause_s, 2), round(sent_per_s, 2)]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _by_rule(policy: PolicyStatus) -> str:
    """Say how often which rule of a policy refused something since the start, "" where none did."""
    counts = ", ".join(f"{count} by {rule}" for rule, count in policy.refusals.items() if count)
    has = "would have" if policy.is_observing else "has"
    return counts and f"{policy.bot}'s policy {has} refused: {counts}"
