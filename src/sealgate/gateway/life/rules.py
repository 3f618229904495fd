"""From the configuration to the rules by which requests are admitted."""

from collections.abc import Iterator, Mapping

import structlog

from sealgate.config import Config
from sealgate.config.model import Policy as PolicySettings
from sealgate.core.admission import Bot, Rules
from sealgate.core.headers import HeaderRules
from sealgate.core.policy import Guard, Policy, PolicyMemory, is_judged, words
from sealgate.core.routes import METHODS, Auth, CustomRoute, Lane, Permission, RouteTable
from sealgate.core.target import Target
from sealgate.gateway.keys.roster import Roster

log = structlog.get_logger("sealgate.policy")

_LOCAL_MAY = frozenset({Permission.READ, Permission.TRADE})


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
    return {name: _policy(bot.policy) for name, bot in config.bots.items() if bot.policy.is_set}


def _policy(settings: PolicySettings) -> Policy:
    return Policy(
        frozenset(settings.symbols) or None,
        settings.max_size,
        settings.max_notional,
        settings.max_orders_per_minute,
        settings.max_orders_per_day,
        reduce_only=settings.reduce_only,
        observe=settings.observe,
    )


def closed_routes(config: Config, policy: Policy) -> Iterator[str]:
    """Yield each route of the venue's file that trades and cannot be judged, with the setting that cannot."""
    table, prefix = route_table(config), config.upstream.prefix
    for row in config.venue.routes:
        for method in METHODS if row.method == "*" else (row.method,):
            route = table.find(method, row.template)
            needs_judging = route.auth not in (Auth.APP_ONLY, Auth.SESSION) and is_judged(route)
            if needs_judging and (rule := policy.lacks(route.order)) is not None:
                yield f"{method} {prefix}{row.template} ({rule})"


def tell_policies(config: Config, guards: Mapping[str, Guard]) -> None:
    """Say in the log what each bot may order, and which routes its policy closes."""
    for bot, guard in guards.items():
        log.info("policy", bot=bot, policy=words(guard.policy))
        closed = list(closed_routes(config, guard.policy))
        tell = log.warning if closed else log.info
        tell("policy_closes_routes", bot=bot, routes=", ".join((*closed, UNNAMED)), fix=CLOSED_FIX)


UNNAMED = "all trading routes that the venue's file does not name"
CLOSED_FIX = "if the bot needs one, say in a venue file of your own how its orders are read (docs/venues.md)"


def method_of_read(config: Config, target: Target) -> str:
    """Return how a command asks for a read."""
    return route_table(config).method_of_read(target.path.removeprefix(config.upstream.prefix))
