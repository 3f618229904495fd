"""The pools of an exchange: those of its venue's file, as changed by the configuration."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sealgate.config.settings import Limits, Pool, Route
from sealgate.limits.quotas import Quota
from sealgate.venues.limit_rules import LimitRules, PoolRule, most_in, pairs_named, pairs_of
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Lane, RouteTable
from sealgate.venues.venue import Venue

_PLACEHOLDER = re.compile(r"\{\w*\}")


def limit_rules(venue: Venue, limits: Limits, routes: Sequence[Route]) -> LimitRules:
    """Return the rate limits of an exchange. Routes of a pool that do not exist are left out.

    `routes` are those of the configuration: each is counted like the route that it replaces.
    """
    rules = venue.limits
    own = {(route.method, route.path.removeprefix(venue.prefix)) for route in routes}
    pools = {pool.name: pool for pool in rules.pools}
    # 1. `limits.known` belongs to the pool that every request passes.
    if rules.whole is not None:
        pools[rules.whole.name] = replace(rules.whole, known=_texts(limits.known))
    # 2. A table with the name of a pool changes this pool; another name adds a pool.
    for name, change in limits.pools.items():
        base = pools.get(name) or PoolRule(name, rules.scope)
        pools[name] = _changed(base, change, venue, routes)
    # 3. A route of the configuration is in the pools of the route that it replaces.
    if own and any(pool.routes for pool in pools.values()):
        table = RouteTable(venue.routes)
        for method, template in own:
            standing = table.find(method, _PLACEHOLDER.sub("{}", template)).template
            methods = ("GET", "HEAD") if method == "GET" else (method,)
            added = {(one, template) for one in methods}
            for pool in tuple(pools.values()):
                inside, outside = (
                    named | added if (method, standing) in named else named
                    for named in (pool.routes, pool.outside)
                )
                pools[pool.name] = replace(pool, routes=inside, outside=outside)
    # 4. A counter's maximum is the published limit of its window, if the configuration states one.
    of_file = {pool.name: pool.known for pool in rules.pools}
    counters = []
    for counter in rules.counters:
        known = pools[counter.pool].known
        most = most_in(known, counter.window_s)
        is_new = most and counter.most and known != of_file[counter.pool]
        counters.append(replace(counter, most=most) if is_new else counter)
    return LimitRules(rules.scope, tuple(counters), tuple(pools.values()), rules.stream_opens)


def route_pairs(venue: Venue, routes: Iterable[Route]) -> frozenset[tuple[str, str]]:
    """Return the method and template of each route that a pool may list."""
    own = {(route.method, route.path.removeprefix(venue.prefix)) for route in routes}
    return pairs_of(venue.routes) | own


def _changed(base: PoolRule, change: Pool, venue: Venue, routes: Sequence[Route]) -> PoolRule:
    changes: dict[str, Any] = {}
    if change.known is not None:
        changes["known"] = _texts(change.known)
    if change.scope is not None:
        changes["scope"] = Scope(change.scope)
    if change.lanes is not None:
        changes["lanes"] = frozenset(map(Lane, change.lanes))
    if change.routes is not None:
        pairs = route_pairs(venue, routes)
        named = (pairs_named(route, pairs, venue.prefix) for route in change.routes)
        changes["routes"] = frozenset().union(*named)
    if change.open is not None:
        changes.update(is_open=change.open, is_signed=not change.open)
    if change.per is not None:
        changes.update(per=change.per, per_parameter="")
    if change.aligned is not None:
        changes["is_aligned"] = change.aligned
    if change.counts is not None:
        changes["counts"] = change.counts
    return replace(base, **changes)


def _texts(known: Iterable[Quota]) -> tuple[str, ...]:
    return tuple(map(str, known))
