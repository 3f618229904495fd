"""Build the rules of admission from the configuration."""

from collections.abc import Iterator

import structlog

from sealgate.config import Config, ExchangeConfig
from sealgate.http.headers import HeaderRules
from sealgate.http.target import Target
from sealgate.keys.bot import Bot
from sealgate.keys.parts import Roster
from sealgate.machine.findings import Finding, Level, ok, warn
from sealgate.orders.policy import Policy, PolicyMemory, is_judged, words
from sealgate.request.admission import Rules
from sealgate.request.generation import Backend, Generation
from sealgate.venues.outward import leads_out
from sealgate.venues.routes import METHODS, Auth, CustomRoute, Lane, Permission, Route, RouteTable

log = structlog.get_logger("sealgate.policy")

_LOCAL_MAY = frozenset({Permission.READ, Permission.TRADE})
_UNNAMED = "all trading routes that the venue's file does not name"


def build_rules(
    config: Config,
    exchange: ExchangeConfig,
    roster: Roster,
    memory: PolicyMemory | None = None,
    former: Backend | None = None,
) -> Rules:
    """Return the rules of admission to an exchange; `memory` has the use of earlier policies.

    Unchanged routes of the `former` exchange of that name are reused: building them would delay all requests.
    """
    is_routed_alike = former is not None and _routes_of(former.config) == _routes_of(exchange)
    memory, place = memory or PolicyMemory(), f"{exchange.name} {exchange.base_url}"
    guards = {
        bot: memory.guard(bot, policies, exchange.name, place)
        for bot, policies in policies_at(config, exchange).items()
    }
    measures = any(policy.value_rule for guard in guards.values() for policy in guard.policies)
    bots = bots_at(config, exchange)
    return Rules(
        policies=memory,
        guards=guards,
        prices=memory.prices[place] if measures else None,
        prefix=exchange.upstream.prefix,
        hosts=frozenset(config.listen.hosts),
        bots={digest: bots[name] for digest, name in roster.tokens.items()},
        users={uid: bots[name] for uid, name in roster.users.items()},
        named=bots,
        own={(own.bot, str(own.address)): bots[own.bot] for own in config.own_addresses if own.bot},
        local_users=roster.local_users,
        local=None
        if config.bots
        else Bot("local", tuple(exchange.keys), _LOCAL_MAY, 1.0, tuple(config.served)),
        routes=former.rules.routes if former is not None and is_routed_alike else route_table(exchange),
        headers=HeaderRules(
            exchange.venue.own_headers | exchange.upstream.headers.keys(),
            reads_replies=measures or exchange.venue.replies.looks_into_done,
        ),
        max_body=config.listen.max_body,
        body_timeout_s=config.listen.body_timeout,
        stream_hosts=frozenset(exchange.venue.stream_hosts(exchange.environment)),
    )


def bots_at(config: Config, exchange: ExchangeConfig) -> dict[str, Bot]:
    """Return all bots by name, each with the keys that it has at an exchange."""
    bots: dict[str, Bot] = {}
    for name, settings in config.bots.items():
        aliases = config.keys_of(name)
        keys = tuple(alias for alias in aliases if alias in exchange.keys)
        where = tuple(one.name for one in config.served.values() if not one.keys.keys().isdisjoint(aliases))
        bots[name] = Bot(name, keys, frozenset(map(Permission, settings.may)), settings.weight, where)
    return bots


def _routes_of(config: ExchangeConfig) -> tuple[object, ...]:
    """Return the settings from which a table of routes is built."""
    return config.venue.routes, config.routes, config.upstream.prefix, config.limits.share_open_s


def route_table(config: ExchangeConfig) -> RouteTable:
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
    return RouteTable(config.venue.routes, custom, config.limits.share_open_s)


def policies_at(config: Config, exchange: ExchangeConfig) -> dict[str, tuple[Policy, ...]]:
    """Return the policies of each bot with a key at an exchange: the general one, then this exchange's."""
    found: dict[str, tuple[Policy, ...]] = {}
    for name, bot in config.bots.items():
        tables = {"policy": bot.policy, f"policies.{exchange.name}": bot.policies.get(exchange.name)}
        policies = tuple(
            Policy(**{**dict(table), "symbols": frozenset(table.symbols) or None}, name=where)
            for where, table in tables.items()
            if table is not None and table.is_set
        )
        if policies and not exchange.keys.keys().isdisjoint(config.keys_of(name)):
            found[name] = policies
    return found


def _judged_routes(config: ExchangeConfig) -> Iterator[tuple[str, Route]]:
    """Yield each route of the venue's file that concerns policies, and its name.

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


def _price_routes(config: ExchangeConfig) -> Iterator[str]:
    """Yield the reads whose replies contain the prices used to value orders."""
    for row in config.venue.routes:
        if row.prices:
            yield f"{row.method} {config.upstream.prefix}{row.template}"


def look_at_policy(
    config: ExchangeConfig, bot: str, may_send: frozenset[Permission], policy: Policy
) -> tuple[Finding, Finding]:
    """Return a bot's policy at this venue, and the routes that it closes."""
    area, may = f"bots.{bot}.{policy.name}", f"{bot} {words(policy)}"
    file = f"the file of {config.venue.name}"
    can, closes = ("would", "would close") if policy.observe else ("can", "closes")
    own_file = "in a venue file of your own"
    # Routes that its `may` refuses are not listed as closed by the policy.
    routes = [(name, route) for name, route in _judged_routes(config) if route.needs in may_send]
    lacking = {policy.lacks(route.order) for _, route in routes if route.order is not None}
    if None not in lacking:
        rules = " and ".join(sorted(filter(None, lacking)))
        gap = f"what {rules} could be judged by" if rules else "how orders are read"
        fix = f"say it {own_file} (docs/venue-files.md){f', or leave out {rules}' if rules else ''}"
        level = Level.WARN if policy.observe else Level.FAIL
        orders = Finding(area, level, f"{may}; no order {can} pass: {file} does not say {gap}", fix)
    elif (rule := policy.value_rule) and not (prices := list(_price_routes(config))):
        gap = f"only buys with a limit {can} pass: {file} names no prices for {rule}"
        orders = warn(area, f"{may}; {gap}", f"if the bot sends others, leave out {rule}")
    elif rule and (reads := config.venue.price_reads):
        asked = " and ".join(f"GET {read}" for read in reads)
        orders = ok(area, f"{may}; for all but limit buys, the gateway reads prices: {asked}")
    elif rule:
        orders = ok(area, f"{may}; for all but limit buys, a bot must have read {' or '.join(prices)}")
    else:
        orders = ok(area, may)
    rule_by_route = {name: policy.lacks(route.order) for name, route in routes}
    closed = [f"{name} ({rule})" for name, rule in rule_by_route.items() if rule is not None]
    text = f"{closes} {', '.join((*closed, _UNNAMED))}"
    fix = f"if the bot needs one, describe its orders {own_file} (docs/venue-files.md)"
    return orders, warn(area, text, fix) if closed else ok(area, text)


def log_policies(generation: Generation) -> None:
    """Log the policy of each bot, and the routes that it closes."""
    write = {Level.OK: log.info, Level.WARN: log.warning, Level.FAIL: log.error}
    for backend in generation.backends.values():
        for bot, guard in backend.rules.guards.items():
            for policy in guard.policies:
                found = look_at_policy(backend.config, bot, backend.rules.named[bot].may, policy)
                for event, one in zip(("policy", "policy_closes_routes"), found, strict=True):
                    write[one.level](
                        event, bot=bot, exchange=backend.config.name, policy=one.text, fix=one.fix or None
                    )


def method_of_read(config: ExchangeConfig, target: Target) -> str:
    """Return the method with which a command sends a read."""
    return route_table(config).method_of_read(target.path.removeprefix(config.upstream.prefix))
