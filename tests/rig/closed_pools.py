"""A gateway with three bots, two accounts and one exchange, one of whose pools closes; in virtual time.

The same requests are asked twice, at the same moments: once with the closure, and once without. What a
request took longer is what the closure cost it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded

from rig.bot import bot_at, request
from rig.leaping import START, run_leaping
from rig.pool_documents import DOCUMENTS, Ask, Asked, BanScript, PoolScript, pair_of
from rig.pooled_exchange import ACCOUNTS, Closure, Counts, PooledExchange, place_of
from rig.scripted_exchanges import EXCHANGES, SECRETS
from rig.upstream import running_upstream
from rig.wire import let_pass
from sealgate.config import Config
from sealgate.machine.system import System
from sealgate.server.gateway import running_gateway

BOTS = {key.removeprefix("ak-"): key for key in ACCOUNTS}  # by name: one-a, one-b, two
_TOKENS = {f"TOKEN_{index}": f"token-of-{name}-0123456789" for index, name in enumerate(BOTS)}
_BEFORE_S, _AFTER_S, _LIVELY_S = 12.0, 15.0, 12.0
_CALMER = 12  # in the middle of a long closure the bots ask for so many times less
_PATIENCE_S = 30.0  # how long a request may wait: the default of `limits.max_wait`


@dataclass(frozen=True)
class Planned:
    """A request to come, `at` on the loop's clock."""

    at: float
    bot: str
    ask: Ask


@dataclass(frozen=True)
class Met:
    """What became of one: how long it took, and whether the exchange's own good reply came."""

    took_s: float
    is_served: bool
    words: str


@dataclass(frozen=True)
class Extra:
    """What a request that passes no closed pool took longer than without the closure."""

    kind: str
    call: str
    is_other_account: bool
    extra_s: float
    is_served: bool


@dataclass(frozen=True)
class Run:
    """The figures of one closure, named as its script is.

    `paths` are those of requests into a closure whose end was known.
    """

    venue: str
    name: str
    place: str
    counts: Counts
    extras: tuple[Extra, ...]
    paths: dict[str, int]
    served: int  # of the closed pool's own, after it


def asked_by(venue: str, ask: Ask) -> Asked:
    """Return what decides which pools a bot's request passes."""
    path = ask.target.partition("?")[0]
    is_open = DOCUMENTS[venue].is_open(path)
    return Asked(ask.method, path, pair_of(f"{ask.target} {ask.body}"), is_open)


def draw(venue: str, random: Random) -> Closure:
    """Draw which pool of the bots' requests closes, or which ban comes, when and for how long."""
    documents = DOCUMENTS[venue]
    scripts: tuple[PoolScript | BanScript, ...] = (*documents.pools, *documents.bans)
    script = random.choice(scripts)
    places = [
        (place, ask)
        for ask in documents.asks
        for key in ACCOUNTS
        if (place := place_of(script, asked_by(venue, ask), key)) is not None
    ]
    place = random.choice(sorted({name for name, _ in places}))
    begins = START + _BEFORE_S + random.uniform(0, 12)
    # What counts its requests aloud may be filled by a request of ours: then the stranger leaves it room.
    leaves = random.choice((0, 1)) if isinstance(script, PoolScript) and script.do_counts_close else 0
    return Closure(script, place, begins, random.uniform(*script.lasts_s), leaves)


def plan(venue: str, closure: Closure, random: Random) -> list[Planned]:
    """Draw the requests of all bots: at random moments, and fewer in the middle of a long closure."""
    ends = closure.begins + closure.lasts_s
    planned = []
    for bot in BOTS:
        for ask in DOCUMENTS[venue].asks:
            at = START + 2.0
            while (at := at + random.expovariate(ask.rate)) < ends + _AFTER_S:
                is_lively = min(abs(at - closure.begins), abs(at - ends)) < _LIVELY_S
                if is_lively or not closure.begins < at < ends or not random.randrange(_CALMER):
                    planned.append(Planned(at, bot, ask))
    return sorted(planned, key=lambda one: one.at)


def run_closure(venue: str, seed: str) -> Run:
    """Run what a seed draws, with and without the closure."""
    random = Random(f"{venue} {seed}")
    closure = draw(venue, random)
    planned = plan(venue, closure, random)
    exchange, calm = PooledExchange(venue, closure), PooledExchange(venue, None)
    met = run_leaping(lambda system: _run(venue, exchange, planned, system))
    without = run_leaping(lambda system: _run(venue, calm, planned, system))
    ends = max(exchange.closed_until, closure.begins + closure.lasts_s)
    extras, served = [], 0
    for one, now, before in zip(planned, met, without, strict=True):
        if one.at < closure.begins:
            continue
        key = BOTS[one.bot]
        if place_of(closure.script, asked_by(venue, one.ask), key) == closure.place:
            served += now.is_served
        elif one.at < ends + 5.0 and before.is_served:
            took_s = now.took_s if now.is_served else max(now.took_s, _PATIENCE_S)
            its = {"account": ACCOUNTS[key], "key": key}.get(closure.script.scope)
            is_other = its is not None and its not in closure.place.split()
            call = f"{one.bot} {one.ask.method} {one.ask.target} {one.ask.body}"
            extras.append(Extra(one.ask.kind, call, is_other, took_s - before.took_s, now.is_served))
    return Run(
        venue,
        closure.script.name,
        closure.place,
        exchange.counts,
        tuple(extras),
        dict(exchange.paths),
        served,
    )


async def _run(venue: str, exchange: PooledExchange, planned: Sequence[Planned], system: System) -> list[Met]:
    async with running_upstream() as upstream:
        upstream.script = exchange.act
        config = _config(upstream.base_url, venue)
        environ = {**SECRETS, **_TOKENS}
        async with running_gateway(config, (), environ, system=system) as gateway:
            address = (gateway.address.host, gateway.address.port)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_ask(address, one)) for one in planned]
    return [task.result() for task in tasks]


def _config(base_url: str, venue: str) -> Config:
    secret = {"secret": "env:SECRET", **EXCHANGES[venue].key}
    keys = {name: {"api_key": key, "account": ACCOUNTS[key], **secret} for name, key in BOTS.items()}
    bots = {name: {"token": f"env:TOKEN_{index}", "key": name} for index, name in enumerate(BOTS)}
    listens = {"listen": {"tcp": "127.0.0.1:0"}, "admin": {"tcp": "127.0.0.1:0"}}
    return Config.model_validate(
        {"base_url": base_url, "venue": venue, "keys": keys, "bots": bots, **listens}
    )


async def _ask(address: tuple[str, int], one: Planned) -> Met:
    loop = asyncio.get_running_loop()
    await let_pass(one.at - loop.time())
    ask, token = one.ask, _TOKENS[f"TOKEN_{list(BOTS).index(one.bot)}"]
    fields = [b"Authorization: Bearer " + token.encode()]
    if ask.body:
        kind = b"json" if ask.body.startswith("{") else b"x-www-form-urlencoded"
        fields.append(b"Content-Type: application/" + kind)
    body = ask.body.encode() if ask.body else None
    raw = request(ask.method.encode(), ask.target.encode(), *fields, body=body)
    async with bot_at(*address) as bot:
        answer = await bot.ask(raw)
    is_served = answer.reason is None and answer.outcome == "done"
    return Met(loop.time() - one.at, is_served, f"{answer.status} {answer.outcome} {answer.reason}")
