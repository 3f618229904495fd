"""From the configuration to the rules by which requests are admitted."""

from sealgate.config import Config
from sealgate.core.admission import Bot, Rules
from sealgate.core.headers import HeaderRules
from sealgate.core.routes import CustomRoute, Lane, Permission, RouteTable
from sealgate.core.target import Target
from sealgate.gateway.keys.roster import Roster

_LOCAL_MAY = frozenset({Permission.READ, Permission.TRADE})


def build_rules(config: Config, roster: Roster) -> Rules:
    """Return what admission goes by."""
    return Rules(
        prefix=config.upstream.prefix,
        hosts=frozenset(config.listen.hosts),
        bots=roster.tokens,
        users=roster.users,
        named=roster.named,
        local_users=roster.local_users,
        local=None if config.bots else Bot("local", tuple(config.keys), _LOCAL_MAY),
        routes=route_table(config),
        headers=HeaderRules(config.venue.own_headers, reads_replies=config.venue.replies.looks_into_done),
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
        )
        for route in config.routes
    ]
    return RouteTable(config.venue.routes, custom)


def method_of_read(config: Config, target: Target) -> str:
    """Return how a command asks for a read."""
    return route_table(config).method_of_read(target.path.removeprefix(config.upstream.prefix))
