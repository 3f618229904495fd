"""File descriptors: bots may not take those that their requests need on the other side.

Each bot's connection is one, each connection to the upstream another. A process that has none left can
neither accept nor connect, so the bots' share is bounded by what the system grants.
"""

import resource

import structlog

_RESERVE = 48  # listeners, the loop, journal, log, admin address, clock, resolver
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
    limit = _grantable(wanted + upstream + _RESERVE)
    return limit, max(1, min(wanted, limit - upstream - _RESERVE))


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
