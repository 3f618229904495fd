"""From the configuration to the rules by which requests are admitted."""

from collections.abc import Iterator, Mapping

import structlog

from sealgate.config import Config
from sealgate.http.headers import HeaderRules
from sealgate.http.target import Target
from sealgate.keys.bot import Bot
from sealgate.keys.parts import Roster
from sealgate.machine.findings import Finding, Level, ok, warn
from sealgate.orders.policy import Guard, Policy, PolicyMemory, is_judged, words
from sealgate.request.admission import Rules
from sealgate.venues.outward import leads_out
from sealgate.venues.routes import METHODS, Auth, CustomRoute, Lane, Permission, Route, RouteTable

log = structlog.get_logger("sealgate.policy")

_LOCAL_MAY = frozenset({Permission.READ, Permission.TRADE})
_UNNAMED = "all trading routes that the venue's file does not name"


def build_rules(config: Config, roster: Roster, memory: PolicyMemory | None = None) -> Rules:
    """Return what admission goes by; `memory` is what an earlier configuration's policies have used."""
    memory, exchange = memory or PolicyMemory(), str(config.base_url)
    guards = {bot: memory.guard(bot, policy, exchange) for bot, policy in policies(config).items()}
    measures = any(guard.policy.max_notional is not None for guard in guards.values())
    return Rules(
        policies=memory,
        guards=guards,
        prices=memory.prices[exchange] if measures else None,
        prefix=config.upstream.prefix,
        hosts=frozenset(config.listen.hosts),
        bots=roster.tokens,
        users=roster.users,
        named=roster.named,
        local_users=roster.local_users,
        local=None if config.bots else Bot("local", tuple(config.keys), _LOCAL_MAY),
        routes=route_table(config),
        headers=HeaderRules(
            config.venue.own_headers, reads_replies=measures or config.venue.replies.looks_into_done
        ),
        max_body=config.listen.max_body,
    )


def route_table(config: Config) -> RouteTable:
    """Return the routes of the venue's file, with those of the configuration."""
    custom = [
        CustomRoute(
            route.method,
            route.path.removeprefix(config.upstream.prefix),
            Permission(route.needs) if route.needs else None,
            Lane(route.lane) if route.lane else None,
            route.cost,
            route.share_s,
        )
        for route in config.routes
    ]
    return RouteTable(config.venue.routes, custom)


def policies(config: Config) -> dict[str, Policy]:
    """Return the policies that are set, by bot."""
    settings = {name: bot.policy for name, bot in config.bots.items() if bot.policy.is_set}
    return {
        name: Policy(**{**dict(policy), "symbols": frozenset(policy.symbols) or None})
        for name, policy in settings.items()
    }


def _judged_routes(config: Config) -> Iterator[tuple[str, Route]]:
    """Yield each route of the venue's file of which a policy speaks, and its name.

    Left out are rows about no order: those that only take a call out of what needs `keys` by its words, and
    a GET that is guarded because the venue signs no method.
    """
    table, prefix = route_table(config), config.upstream.prefix
    for row in config.venue.routes:
        for method in METHODS if row.method == "*" else (row.method,):
            route = table.find(method, row.template)
            is_harmless = route.needs is Permission.TRADE and leads_out(row.template.casefold())
            is_no_order = is_harmless or method in ("GET", "HEAD")
            is_excepted = is_no_order and route.order is None
            if route.auth not in (Auth.APP_ONLY, Auth.SESSION) and not is_excepted and is_judged(route):
                yield f"{method} {prefix}{row.template}", route


def _price_routes(config: Config) -> Iterator[str]:
    """Yield the reads whose replies have the prices that `max_notional` needs."""
    for row in config.venue.routes:
        if row.prices:
            yield f"{row.method} {config.upstream.prefix}{row.template}"


def look_at_policy(config: Config, bot: str, policy: Policy) -> tuple[Finding, Finding]:
    """Return what a bot may order at this venue, and which routes its policy closes."""
    area, may, file = f"bots.{bot}.policy", f"{bot} {words(policy)}", f"the file of {config.venue.name}"
    can, closes = ("would", "would close") if policy.observe else ("can", "closes")
    own_file = "in a venue file of your own"
    granted = config.bots[bot].may  # what that refuses, the policy closes to nobody
    routes = [(name, route) for name, route in _judged_routes(config) if route.needs in granted]
    lacking = {policy.lacks(route.order) for _, route in routes if route.order is not None}
    if None not in lacking:
        rules = " and ".join(sorted(filter(None, lacking)))
        gap = f"what {rules} could be judged by" if rules else "how orders are read"
        fix = f"say it {own_file} (docs/venues.md){f', or leave out {rules}' if rules else ''}"
        level = Level.WARN if policy.observe else Level.FAIL
        orders = Finding(area, level, f"{may}; no order {can} pass: {file} does not say {gap}", fix)
    elif policy.max_notional is not None and not (prices := list(_price_routes(config))):
        gap = f"only buys with a limit {can} pass: {file} names no prices for max_notional"
        orders = warn(area, f"{may}; {gap}", "if the bot sends others, leave out max_notional")
    elif policy.max_notional is not None and (reads := config.venue.price_reads):
        asked = " and ".join(f"GET {read}" for read in reads)
        orders = ok(area, f"{may}; for all but limit buys, the gateway reads prices: {asked}")
    elif policy.max_notional is not None:
        orders = ok(area, f"{may}; for all but limit buys, a bot must have read {' or '.join(prices)}")
    else:
        orders = ok(area, may)
    rule_by_route = {name: policy.lacks(route.order) for name, route in routes}
    closed = [f"{name} ({rule})" for name, rule in rule_by_route.items() if rule is not None]
    text = f"{closes} {', '.join((*closed, _UNNAMED))}"
    fix = f"if the bot needs one, say {own_file} how its orders are read (docs/venues.md)"
    return orders, warn(area, text, fix) if closed else ok(area, text)


def log_policies(config: Config, guards: Mapping[str, Guard]) -> None:
    """Say in the log what each bot may order, and which routes its policy closes."""
    write = {Level.OK: log.info, Level.WARN: log.warning, Level.FAIL: log.error}
    for bot, guard in guards.items():
        found = look_at_policy(config, bot, guard.policy)
        for event, one in zip(("policy", "policy_closes_routes"), found, strict=True):
            write[one.level](event, bot=bot, policy=one.text, fix=one.fix or None)


def method_of_read(config: Config, target: Target) -> str:
    """Return how a command asks for a read."""
    return route_table(config).method_of_read(target.path.removeprefix(config.upstream.prefix))
