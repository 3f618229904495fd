"""The Redis where gateways share a limit: whether it answers, and lets them meet there."""

from collections.abc import Mapping

from sealgate.cli.checking.local import told
from sealgate.config import Config
from sealgate.core.findings import Finding, fail, ok
from sealgate.gateway.keys.parts import read_redis
from sealgate.gateway.keys.sources import SecretError
from sealgate.gateway.platform import redis_extra

_AREA = "limits.redis"


async def look_at_redis(config: Config, environ: Mapping[str, str]) -> Finding | None:
    """Return what is to say of it, None where nothing is shared. Nothing is written there."""
    try:
        url = read_redis(config.limits.redis, environ)
    except SecretError as error:
        return told(_AREA, str(error))
    if url is None:
        return None
    if not redis_extra.is_installed():
        return fail(_AREA, redis_extra.MISSING, redis_extra.FIX)
    from sealgate.gateway.sharing.table import TROUBLE, Table

    try:
        async with Table(url.reveal(), "check", "check").opened():
            return ok(_AREA, "Redis answers")
    except TROUBLE as error:
        fix = "start it, or correct limits.redis; until then each gateway works alone"
        return fail(_AREA, f"Redis cannot be used: {type(error).__name__}", fix)
