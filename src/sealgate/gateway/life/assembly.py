"""Puts the parts of one configuration together as a tree, and what outlives every tree beside it.

A tree that follows another takes over what has not changed: what was learned of a key's limit, the clock, the
connections.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sealgate.config import Config
from sealgate.core.attempts import Replay
from sealgate.core.pacing.memory import Snapshot
from sealgate.core.pacing.pacer import Pacer, PacerSettings
from sealgate.core.pacing.stated import Quota
from sealgate.core.replays import Bounds, Replays
from sealgate.core.stamps import Stamps
from sealgate.gateway.clock.keeper import ClockKeeper, TimeSource
from sealgate.gateway.clock.kept import ClockNeeds, KeptClock
from sealgate.gateway.host import redis_extra
from sealgate.gateway.host.host import Host
from sealgate.gateway.host.start import StartError
from sealgate.gateway.journal import HaltsTable, Journal, Keeper, Keeping, OrderBook
from sealgate.gateway.journal.book import MOST_REPLAYS
from sealgate.gateway.keys.parts import Parts
from sealgate.gateway.pacing.turnstile import Turnstile
from sealgate.gateway.request.bookkeeping import Bookkeeping
from sealgate.gateway.request.halting import Halting
from sealgate.gateway.request.key_watch import KeyWatch
from sealgate.gateway.request.tree import Desk, Limits, Tree
from sealgate.gateway.request.under_way import UnderWay
from sealgate.gateway.upstream.destination import Destination, destination_of
from sealgate.gateway.upstream.pool import Upstream

_MOST_REPLAY_BYTES = 16 * 1024**2  # of one bot


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a tree is made in, and what outlives it."""

    host: Host
    under_way: UnderWay


def build_tree(config: Config, parts: Parts, around: Surroundings, old: Tree | None = None) -> Tree:
    """Make all parts inside a running loop, but for those of the `old` tree that stay as they are."""
    upstream = _upstream(destination_of(config, parts.ca_digest), old)
    clock, clock_keeper = _clock(config, upstream.destination, around.host, old)
    return Tree(
        config=config,
        rules=parts.rules,
        limits=Limits(
            max_wait_s=config.limits.max_wait,
            total_timeout_s=config.upstream.total_timeout,
            body_timeout_s=config.listen.body_timeout,
            replay=Replay(config.limits.replay_429),
        ),
        desks=_desks(config, parts, around, old),
        open_turnstile=_open_turnstile(config, around.host, old),
        upstream=upstream,
        clock=clock,
        clock_keeper=clock_keeper,
    )


def _desks(config: Config, parts: Parts, around: Surroundings, old: Tree | None) -> dict[str, Desk]:
    """Return the desks. A limit belongs to a key at an exchange, whatever its alias and its secret are.

    Raises StartError where limits are to be shared and what that takes is not installed.
    """
    places: dict[str, tuple[Turnstile, Stamps]] = {}
    known = {subject(old.config, alias): desk for alias, desk in old.desks.items()} if old else {}
    desks: dict[str, Desk] = {}
    for alias, key in parts.keys.items():
        name = subject(config, alias)
        if name not in places:
            make = _maker(config, parts, alias, around.host)
            places[name] = _place(config, make, old, known.get(name))
        desks[alias] = Desk(key, *places[name], KeyWatch(alias, around.under_way, around.host))
    return desks


def _place(
    config: Config, make: Callable[[], Turnstile], old: Tree | None, former: Desk | None
) -> tuple[Turnstile, Stamps]:
    turnstile = _turnstile(config, make, old, former.turnstile if former else None)
    return turnstile, former.stamps if former else Stamps()


def _maker(config: Config, parts: Parts, alias: str, host: Host) -> Callable[[], Turnstile]:
    """Return what makes a key's turnstile: one of several, or the only one there is."""
    settings, url = _pacing(config), parts.redis
    if url is None:
        return lambda: Turnstile(Pacer(settings, host.chance), host)
    if not redis_extra.is_installed():
        raise StartError(f"limits.redis: {redis_extra.MISSING}; {redis_extra.FIX}, or take it out")
    from sealgate.gateway.sharing.build import shared_turnstile  # noqa: PLC0415 - see redis_extra.py

    return lambda: shared_turnstile(alias, subject(config, alias), url, settings, host)


def subject(config: Config, alias: str) -> str:
    """Return what a limit is remembered by: the exchange and the API key."""
    return f"{config.base_url} {config.keys[alias].api_key}"


def _open_turnstile(config: Config, host: Host, old: Tree | None) -> Turnstile:
    """Return what `/time` waits at. It has a limit of its own, if any: its 429s must not pause the orders."""
    is_same = old is not None and old.config.base_url == config.base_url
    former = old.open_turnstile if old is not None and is_same else None
    return _turnstile(config, lambda: Turnstile(Pacer(_pacing(config), host.chance), host), old, former)


def _turnstile(
    config: Config, make: Callable[[], Turnstile], old: Tree | None, former: Turnstile | None
) -> Turnstile:
    if former is not None and old is not None and _pacing(old.config) == _pacing(config):
        return former
    turnstile = make()
    if former is not None:
        turnstile.restore(former.snapshot())
    return turnstile


def _pacing(config: Config) -> PacerSettings:
    known = tuple(Quota(limit.requests, limit.window_s) for limit in config.limits.known)
    return PacerSettings(config.limits.queue, known)


def _upstream(destination: Destination, old: Tree | None) -> Upstream:
    return (
        old.upstream if old is not None and old.upstream.destination == destination else Upstream(destination)
    )


def _clock(
    config: Config, orders: Destination, host: Host, old: Tree | None
) -> tuple[KeptClock, ClockKeeper]:
    settings = _clock_settings(config, orders)
    if old is not None and _clock_settings(old.config, old.upstream.destination) == settings:
        return old.clock, old.clock_keeper
    needs, source, destination = settings
    clock = KeptClock(needs, host)
    return clock, ClockKeeper(source, clock, Upstream(destination), host)


def _clock_settings(config: Config, orders: Destination) -> tuple[ClockNeeds, TimeSource, Destination]:
    """Return what a clock is made from; `orders` is where the requests go."""
    recv_window_ms = min(key.recv_window_ms for key in config.keys.values())
    needs = ClockNeeds(config.clock.required, config.clock.grace, recv_window_ms)
    source = TimeSource(config.clock.path, config.clock.field, config.clock.interval)
    destination = replace(orders, max_connections=1, keep_alive_s=2 * source.interval_s)
    return needs, source, destination


def build_books(config: Config, host: Host) -> Bookkeeping:
    """Open the journal, if there is one, and take up what it kept. Raises JournalError."""
    journal = config.journal
    replays = Replays(Bounds(MOST_REPLAYS, _MOST_REPLAY_BYTES, journal.keep))
    if journal.file is None:
        return Bookkeeping(replays, None, host)
    keeping = Keeping(journal.keep, journal.max_size, journal.on_failure == "refuse")
    book = OrderBook(journal.file, keeping, host)
    replays.restore(book.kept, host.now())
    book.kept.clear()  # what is dropped there is not to stay here
    return Bookkeeping(replays, book, host)


def build_halting(config: Config, around: Surroundings) -> Halting:
    """Take up the halts that stand; `build_books` made the file. Raises JournalError."""
    table = None if config.journal.file is None else HaltsTable(config.journal.file)
    return Halting(around.under_way, table, around.host)


def build_keeper(config: Config, tree: Tree, host: Host) -> Keeper | None:
    """Let each key's limit start from what the journal has of it; `build_books` made the file."""
    if config.journal.file is None:
        return None
    keeper = Keeper(Journal(config.journal.file), host)
    followed = subjects(tree)
    restore(followed, keeper.recall(followed))
    keeper.follow(followed)
    return keeper


def restore(turnstiles: Mapping[str, Turnstile], kept: Mapping[str, Snapshot]) -> None:
    """Let the turnstiles of these subjects start from what was kept."""
    for subject, snapshot in kept.items():
        turnstiles[subject].restore(snapshot)


def subjects(tree: Tree) -> dict[str, Turnstile]:
    """Return where what is to be remembered is learned."""
    return {subject(tree.config, alias): desk.turnstile for alias, desk in tree.desks.items()}
