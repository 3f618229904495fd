"""File descriptors: no side may take those that another side's requests need.

Each bot's connection is one, each connection to the upstream another, each reader of the admin address a
third. A process that has none left can neither accept nor connect, so each has its share of what the system
grants.
"""

import resource

import structlog

_RESERVE = 38  # listeners, the loop, journal, log, admin socket, clock, resolver
_MOST_ADMIN = 64  # connections of the admin address: 50 viewers of the page, and programs
_ADMIN_PART = 8  # it gets an eighth of the limit, where that is less
_MOST = 65_536  # where the system grants more than anybody needs

log = structlog.get_logger("sealgate.descriptors")


def room_for_bots(wanted: int, upstream: int) -> int:
    """Raise the limit as far as the system lets us; return how many bots may be connected at a time.

    `wanted` is `listen.max_connections`, `upstream` the most connections to the exchange.
    """
    limit, room = grantable(wanted, upstream)
    _raise_to(limit)
    if room < wanted:
        fix = "raise it (ulimit -n, LimitNOFILE=), or lower listen.max_connections"
        log.warning("few_descriptors", limit=limit, bots=room, wanted=wanted, fix=fix)
    return room


def grantable(wanted: int, upstream: int) -> tuple[int, int]:
    """Return the limit as far as the system would let us raise it, and the room for bots that it leaves."""
    limit = _grantable(wanted + upstream + _RESERVE + _MOST_ADMIN)
    return limit, max(1, min(wanted, limit - upstream - _RESERVE - _admin_share(limit)))


def room_for_admin() -> int:
    """Return how many connections the admin address may have at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _admin_share(_MOST if soft == resource.RLIM_INFINITY else soft)


def _admin_share(limit: int) -> int:
    return max(1, min(_MOST_ADMIN, limit // _ADMIN_PART))


def _grantable(needed: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return _MOST if soft == resource.RLIM_INFINITY else soft
    return max(soft, min(needed, hard))


def _raise_to(limit: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (resource.RLIM_INFINITY, limit):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
