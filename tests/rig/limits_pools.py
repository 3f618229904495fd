"""A server that counts requests in several pools, and the gateway's core as its client, in virtual time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rig.limits_gateway import Gateway
from rig.limits_limiters import Job as Limited
from rig.limits_limiters import Limiter
from rig.limits_world import Answer, Bot, Chance, Job, Scenario, World
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pools import PacerSettings

PART = " | "  # as the pacer writes places: "subject | name" or "subject | name | what it is per"


@dataclass(frozen=True)
class Sender:
    """Whose requests a bot sends, and what they are: a bot sends one kind of request."""

    bot: Bot
    key: str
    account: str
    route: str
    is_open: bool = False


@dataclass(frozen=True)
class PoolKind:
    """A pool as a venue's file describes it, and the limiter of each of its places, which no file knows."""

    name: str
    scope: str
    has: Callable[[Sender], bool]
    make: Callable[[Chance], Limiter]
    rate: float  # what one of its places grants per second
    window: float
    per_route: bool = False

    def place(self, sender: Sender) -> str | None:
        """Return the place of a sender's requests, None if they are not counted in it."""
        if not self.has(sender) or (sender.is_open and self.scope != "address"):
            return None
        subject = {"address": "address", "account": sender.account, "key": sender.key}[self.scope]
        return PART.join([subject, self.name, sender.route] if self.per_route else [subject, self.name])


@dataclass(frozen=True)
class Exchange:
    """The pools, from the narrowest, who sends, and whether a refusal says which pool was full."""

    pools: tuple[PoolKind, ...]
    senders: tuple[Sender, ...]
    is_named: bool
    scenario: Scenario
    places: Mapping[str, PoolKind] = field(init=False)
    passed: Mapping[str, tuple[str, ...]] = field(init=False)  # by bot

    def __post_init__(self) -> None:
        """Work out who passes what."""
        passed: dict[str, tuple[str, ...]] = {}
        places: dict[str, PoolKind] = {}
        for sender in self.senders:
            found = [(place, pool) for pool in self.pools if (place := pool.place(sender)) is not None]
            passed[sender.bot.name] = tuple(place for place, _ in found)
            places.update(found)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "passed", passed)


class Pools(Limiter):
    """Refuses what finds any of its pools full; what is accepted counts in all of them.

    `refused` are the times and places of the refusals.
    """

    def __init__(self, exchange: Exchange, chance: Chance) -> None:
        self._exchange = exchange
        self._limiters = {place: kind.make(chance) for place, kind in exchange.places.items()}
        self._full = ""
        self.refused: list[tuple[float, str]] = []

    def _of(self, job: Limited) -> tuple[str, ...]:
        assert isinstance(job, Job)
        return self._exchange.passed[job.bot]

    def wait_s(self, now: float, job: Limited) -> float:
        waits = {place: self._limiters[place].wait_s(now, job) for place in self._of(job)}
        self._full = max(waits, key=lambda place: waits[place])
        self.refusing = self._full.split(PART)[1] if self._exchange.is_named else ""
        return waits[self._full]

    def refuse(self, now: float) -> float:
        self.refused.append((now, self._full))
        return 0.0

    def spend(self, now: float, job: Limited) -> None:
        for place in self._of(job):
            self._limiters[place].spend(now, job)


class PoolWorld(World):
    """A world whose pauses concern the pools that refused; `into_pause` are requests sent into one."""

    def __init__(self, exchange: Exchange, client: "PoolGateway", seed: int) -> None:
        self.exchange = exchange
        super().__init__(exchange.scenario, client, seed)
        self.limiter = self.pools = Pools(exchange, self.chance)
        self._closed: dict[str, float] = {}
        self.into_pause = 0

    def _send(self, job: Job) -> None:
        places = self.exchange.passed[job.bot]
        self.into_pause += any(self.now < self._closed.get(place, 0.0) for place in places)
        super()._send(job)

    def _answered(self, job: Job, answer: Answer, arrived: float) -> None:
        if not answer.is_accepted and (wait_s := self._stated(answer.retry_after_s or 0.0, arrived)):
            for place in self.exchange.passed[job.bot]:
                if not answer.pool or place.split(PART)[1] == answer.pool:
                    self._closed[place] = max(self._closed.get(place, 0.0), self.now + wait_s)
        super()._answered(job, answer, arrived)


class PoolGateway(Gateway):
    """One Pacer for all, which knows the pools but none of their numbers."""

    def __init__(self, exchange: Exchange, seed: int, *, is_exact: bool, wait_s: float) -> None:
        super().__init__(seed, is_exact=is_exact, wait_s=wait_s, settings=PacerSettings())
        self._exchange = exchange
        self._senders = {sender.bot.name: sender for sender in exchange.senders}

    def claim(self, job: Job) -> Claim:
        claim, sender = super().claim(job), self._senders[job.bot]
        claim.pools = self._exchange.passed[job.bot]
        claim.key = sender.key
        claim.subjects = ("address",) if sender.is_open else (sender.key, sender.account, "address")
        return claim

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        fate = Fate.ACCEPTED if answer.is_accepted else Fate.LIMITED
        named = (answer.pool,) if answer.pool else ()
        reply = LimitReply(fate, answer.retry_after_s, self.resolution_s, pools=named)
        self.pacer.answered(self.claim(job), now, reply)
        return answer.is_accepted or not self.enter(job, now)


def alone(exchange: Exchange, place: str) -> Exchange:
    """Return the same pool without the others: its own limiter and its own traffic."""
    senders = tuple(sender for sender in exchange.senders if place in exchange.passed[sender.bot.name])
    bots = tuple(sender.bot for sender in senders)
    scenario = replace(exchange.scenario, bots=bots)
    return Exchange((exchange.places[place],), senders, exchange.is_named, scenario)
