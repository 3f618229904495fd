"""Check the network: DNS, a proxy and TLS to the exchange, and Redis."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from yarl import URL

from sealgate.config import ExchangeConfig
from sealgate.config.addresses import is_ip
from sealgate.diagnose.local import found_wrong
from sealgate.diagnose.vetting import refused_certificate, vet_certificate
from sealgate.exchange.destination import ConnectError, Dialer, client_context, destination_of
from sealgate.keys.files import SecretError
from sealgate.keys.key import NO_SECRET, Secret
from sealgate.keys.parts import read_redis
from sealgate.machine import process as machine
from sealgate.machine.findings import REACH, Finding, fail, ok
from sealgate.machine.system import System
from sealgate.machine.terminal import plain_cause

_DNS_S = 10.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def look_at_way(
    config: ExchangeConfig, environ: Mapping[str, str], proxy_password: Secret = NO_SECRET
) -> AsyncIterator[Finding]:
    """Yield lines on DNS (or on the proxy, which looks names up), and on TLS if the exchange is reachable."""
    url, proxy, source = config.base_url, config.upstream.proxy, config.upstream.source
    variable = next((name for name in _PROXIES if environ.get(name)), None)
    hint = f"; {variable} is set, but the gateway uses only upstream.proxy" if variable else ""
    way: dict[str, Any] = {"host": url.host, "port": url.port, "local_addr": (source, 0) if source else None}
    if proxy is not None:
        try:
            way = {"sock": await _through_proxy(config, proxy_password)}
        except ConnectError as error:
            yield found_wrong("proxy", str(error))
            return
        yield ok("proxy", f"{proxy.authority} leads to {url.host}:{url.port}")
    elif not is_ip(url.host):
        found = await _resolve(url.host, url.port, hint)
        yield found
        if found.fix:
            return
    if url.scheme == "https":
        yield await _shake_hands(config, hint if proxy is None else "", way)
    else:
        yield ok("TLS", "not needed: the exchange is on this machine")
        if proxy is not None:
            way["sock"].close()


async def _through_proxy(config: ExchangeConfig, proxy_password: Secret) -> socket.socket:
    """Return a socket connected to the exchange. Raises ConnectError."""
    destination = destination_of(config, proxy_password=proxy_password)
    dialer = Dialer(URL(destination.base_url), None, destination.way)
    try:
        async with asyncio.timeout(destination.connect_timeout_s):
            return await dialer.reach()
    except TimeoutError:
        raise ConnectError(dialer.too_late) from None


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


async def _shake_hands(config: ExchangeConfig, hint: str, way: Mapping[str, Any]) -> Finding:
    """Judge the certificate; `way` is the address to connect to, or a connected socket."""
    url, wall, timeout_s = config.base_url, System().wall(), config.upstream.connect_timeout
    context = client_context(config.upstream.ca_file)
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(**way, ssl=context, server_hostname=url.host)
    except ssl.SSLCertVerificationError as error:
        return refused_certificate(error.verify_code, url.host, error.verify_message, wall)
    except ssl.SSLError as error:
        fix = "compare scheme and port of base_url with the exchange's documents"
        return fail("TLS", f"{url.authority} does not speak TLS as expected ({error.reason})", fix)
    except OSError as error:  # includes time-outs
        cause = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else plain_cause(error)
        source = config.upstream.source
        start = f" from {source}" if source else ""
        return fail("TLS", f"the exchange cannot be reached{start}: {cause}", f"{REACH}{hint}")
    certificate = writer.get_extra_info("peercert")
    writer.transport.abort()  # no request was sent, so no orderly close is needed
    return vet_certificate(ssl.cert_time_to_seconds(certificate["notAfter"]), wall)


async def look_at_redis(
    setting: str, environ: Mapping[str, str], cmd_env: Sequence[str]
) -> AsyncIterator[Finding]:
    """Yield whether Redis answers, if limits are shared. Nothing is written to it."""
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
