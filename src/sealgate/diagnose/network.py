"""What can be asked besides the exchange: DNS and TLS on the way to it, and Redis."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence

from sealgate.config import ExchangeConfig
from sealgate.config.addresses import is_ip
from sealgate.diagnose.local import found_wrong
from sealgate.diagnose.vetting import refused_certificate, vet_certificate
from sealgate.exchange.destination import client_context
from sealgate.keys.files import SecretError
from sealgate.keys.parts import read_redis
from sealgate.machine import process as machine
from sealgate.machine.findings import REACH, Finding, fail, ok
from sealgate.machine.system import System
from sealgate.machine.terminal import plain_cause

_DNS_S = 10.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def look_at_way(config: ExchangeConfig, environ: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Yield lines on DNS and TLS; TLS is not tried without an address."""
    url = config.base_url
    proxy = next((name for name in _PROXIES if environ.get(name)), None)
    hint = "" if proxy is None else f"; {proxy} is set, but the gateway uses no proxy"
    if not is_ip(url.host):
        found = await _resolve(url.host, url.port, hint)
        yield found
        if found.fix:
            return
    if url.scheme == "https":
        yield await _shake_hands(config, hint)
    else:
        yield ok("TLS", "not needed: the exchange is on this machine")


async def _resolve(host: str, port: int, hint: str) -> Finding:
    try:
        async with asyncio.timeout(_DNS_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        fix = f"check this machine's DNS servers{hint}"
        return fail("DNS", f"{host}: no answer within {_DNS_S:g} s", fix)
    except socket.gaierror as error:
        is_unsure = error.errno == socket.EAI_AGAIN
        cause = "the DNS servers do not answer" if is_unsure else "no such host name"
        return fail("DNS", f"{host}: {cause}", f"correct base_url, or this machine's DNS{hint}")
    addresses = sorted({str(where[0]) for *_, where in found})
    more = f" and {len(addresses) - 1} more" if len(addresses) > 1 else ""
    return ok("DNS", f"{host} is {addresses[0]}{more}")


async def _shake_hands(config: ExchangeConfig, hint: str) -> Finding:
    url, wall, timeout_s = config.base_url, System().wall(), config.upstream.connect_timeout
    context = client_context(config.upstream.ca_file)
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(
                url.host, url.port, ssl=context, server_hostname=url.host
            )
    except ssl.SSLCertVerificationError as error:
        return refused_certificate(error.verify_code, url.host, error.verify_message, wall)
    except ssl.SSLError as error:
        fix = "compare scheme and port of base_url with the exchange's"
        return fail("TLS", f"{url.authority} does not speak TLS as expected ({error.reason})", fix)
    except OSError as error:  # a time-out is one, too
        cause = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else plain_cause(error)
        return fail("TLS", f"the exchange cannot be reached: {cause}", f"{REACH}{hint}")
    certificate = writer.get_extra_info("peercert")
    writer.transport.abort()  # nothing was asked, so there is nothing to end in order
    return vet_certificate(ssl.cert_time_to_seconds(certificate["notAfter"]), wall)


async def look_at_redis(
    setting: str, environ: Mapping[str, str], cmd_env: Sequence[str]
) -> AsyncIterator[Finding]:
    """Yield whether Redis answers, if limits are shared. Nothing is written there."""
    try:
        url = read_redis(setting, environ, cmd_env)
    except SecretError as error:
        yield found_wrong("limits.redis", str(error))
        return
    if url is None:
        return
    if not machine.has_redis():
        yield fail("limits.redis", machine.REDIS_MISSING, machine.REDIS_FIX)
        return
    from sealgate.cluster.redis_group import TROUBLE, RedisGroup  # noqa: PLC0415 - redis is an extra

    try:
        async with RedisGroup(url.reveal(), "check", "check").opened():
            yield ok("limits.redis", "Redis answers")
    except TROUBLE as error:
        fix = "start it, or correct limits.redis; until then each gateway works alone"
        yield fail("limits.redis", f"Redis cannot be used: {type(error).__name__}", fix)
