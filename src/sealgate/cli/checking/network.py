"""The network between here and the exchange: its name, and what its certificate says."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping

from sealgate.cli.causes import plain_cause
from sealgate.config import Config
from sealgate.config.address import is_ip
from sealgate.core.advice import REACH
from sealgate.core.findings import Finding, fail, ok
from sealgate.core.vetting import refused_certificate, vet_certificate
from sealgate.gateway.platform.system import System
from sealgate.gateway.upstream.tls import client_context

_DNS_S = 10.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def look_at_network(config: Config, environ: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Yield lines on DNS and TLS; after one that failed there is no use in asking the exchange."""
    host, port = config.base_url.host, config.base_url.port
    finding = await _resolve(host, port)
    if finding is not None:
        yield finding
        if finding.fix:
            return
    if config.base_url.scheme == "https":
        yield await _shake_hands(config, environ)
    else:
        yield ok("TLS", "not needed: the exchange is on this machine")


async def _resolve(host: str, port: int) -> Finding | None:
    if is_ip(host):
        return None
    try:
        async with asyncio.timeout(_DNS_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        return fail("DNS", f"{host}: no answer within {_DNS_S:g} s", "check this machine's DNS servers")
    except socket.gaierror as error:
        is_unsure = error.errno == socket.EAI_AGAIN
        cause = "the DNS servers do not answer" if is_unsure else "no such host name"
        return fail("DNS", f"{host}: {cause}", "correct base_url, or this machine's DNS")
    addresses = sorted({str(where[0]) for *_, where in found})
    more = f" and {len(addresses) - 1} more" if len(addresses) > 1 else ""
    return ok("DNS", f"{host} is {addresses[0]}{more}")


async def _shake_hands(config: Config, environ: Mapping[str, str]) -> Finding:
    url, wall = config.base_url, System().wall()
    context = client_context(config.upstream.ca_file)
    try:
        async with asyncio.timeout(config.upstream.connect_timeout):
            _, writer = await asyncio.open_connection(
                url.host, url.port, ssl=context, server_hostname=url.host
            )
    except TimeoutError:
        return _unreachable(f"no answer within {config.upstream.connect_timeout:g} s", environ)
    except ssl.SSLCertVerificationError as error:
        return refused_certificate(error.verify_code, url.host, error.verify_message, wall)
    except ssl.SSLError as error:
        fix = "compare scheme and port of base_url with the exchange's"
        return fail("TLS", f"{url.authority} does not speak TLS as expected ({error.reason})", fix)
    except OSError as error:
        return _unreachable(plain_cause(error), environ)
    certificate = writer.get_extra_info("peercert")
    writer.transport.abort()  # nothing was asked, so there is nothing to end in order
    return vet_certificate(ssl.cert_time_to_seconds(certificate["notAfter"]), wall)


def _unreachable(cause: str, environ: Mapping[str, str]) -> Finding:
    proxy = next((name for name in _PROXIES if environ.get(name)), None)
    hint = "" if proxy is None else f"; {proxy} is set, but the gateway uses no proxy"
    return fail("TLS", f"the exchange cannot be reached: {cause}", f"{REACH}{hint}")
