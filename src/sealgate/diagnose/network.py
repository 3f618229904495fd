"""What can be asked besides the exchange: DNS and TLS on the way to it, Redis, and a gateway that runs."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Container, Iterator, Mapping
from typing import Any

from sealgate.config import Config
from sealgate.config.addresses import is_ip
from sealgate.diagnose.local import found_wrong
from sealgate.diagnose.vetting import refused_certificate, vet_certificate
from sealgate.exchange.destination import client_context
from sealgate.keys.files import SecretError
from sealgate.keys.parts import read_redis
from sealgate.machine import process as machine
from sealgate.machine.findings import REACH, Finding, fail, ok, warn
from sealgate.machine.system import System
from sealgate.machine.terminal import plain_cause
from sealgate.observe.running import by_socket, by_tcp, first_status
from sealgate.orders.journal.marks import LOST_FIX

_DNS_S = 10.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_BANNED = "banned"  # the kind of each ban, at every venue
_STALE_FIX = "the key that is stored now is accepted: load it with `sealgate reload`"


async def look_at_network(config: Config, environ: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Yield lines on DNS and TLS; after one that failed there is no use in asking the exchange."""
    host, port = config.base_url.host, config.base_url.port
    finding = await _resolve(host, port, _proxy_hint(environ))
    if finding is not None:
        yield finding
        if finding.fix:
            return
    if config.base_url.scheme == "https":
        yield await _shake_hands(config, environ)
    else:
        yield ok("TLS", "not needed: the exchange is on this machine")


async def _resolve(host: str, port: int, hint: str) -> Finding | None:
    if is_ip(host):
        return None
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
    return fail("TLS", f"the exchange cannot be reached: {cause}", f"{REACH}{_proxy_hint(environ)}")


def _proxy_hint(environ: Mapping[str, str]) -> str:
    proxy = next((name for name in _PROXIES if environ.get(name)), None)
    return "" if proxy is None else f"; {proxy} is set, but the gateway uses no proxy"


async def look_at_redis(config: Config, environ: Mapping[str, str]) -> Finding | None:
    """Return what is to say of it, None where nothing is shared. Nothing is written there."""
    try:
        url = read_redis(config.limits.redis, environ, config.cmd_env)
    except SecretError as error:
        return found_wrong("limits.redis", str(error))
    if url is None:
        return None
    if not machine.has_redis():
        return fail("limits.redis", machine.REDIS_MISSING, machine.REDIS_FIX)
    from sealgate.cluster.redis_group import TROUBLE, RedisGroup  # noqa: PLC0415 - redis is an extra

    try:
        async with RedisGroup(url.reveal(), "check", "check").opened():
            return ok("limits.redis", "Redis answers")
    except TROUBLE as error:
        fix = "start it, or correct limits.redis; until then each gateway works alone"
        return fail("limits.redis", f"Redis cannot be used: {type(error).__name__}", fix)


def find_other(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield that a gateway with another configuration runs at one of these addresses, if one does."""
    document = first_status(config, (*by_tcp(config), *by_socket(config, environ)))
    if document is not None:
        text = f"another Sealgate gateway is running here, for {document['base_url']}"
        yield warn("gateway", text, "stop it, or give this one addresses of its own")


def pause_s(status: Mapping[str, Any] | None) -> float:
    """Return the seconds that the running gateway still waits after a 429, 0 where it does not."""
    return max((key["pause_s"] for key in status["keys"]), default=0.0) if status else 0.0


def judge_pause(status: Mapping[str, Any], left_s: float) -> Finding:
    """Say why the running gateway pauses; a ban is a failure, with the exchange's words if there are any."""
    again = f"run this again in {left_s:.0f} s"
    latest: Mapping[str, Any] = next(iter(status.get("errors", ())), {})
    if latest.get("kind") != _BANNED or latest.get("over_since_ms") is not None:
        return warn("exchange", "not contacted: the running gateway is pausing after a 429", again)
    words = f", {latest['evidence']}" if latest.get("evidence") else ""
    text = f"not contacted: the exchange has shut out the running gateway's address or key{words}"
    return fail("exchange", text, f"stop what else uses them, and {again}")


def judge_running(status: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the running gateway says of itself, and the limits that it has learned."""
    for reason in status["not_ready"]:
        yield warn("gateway", f"running, but not ready: {reason}", "see below")
    if status["halts"]:
        yield warn("gateway", "running, with orders halted", "release them: sealgate resume")
    degraded = list(_degraded(status))
    yield from degraded
    if not status["not_ready"]:
        but = ", but degraded" if degraded else ""
        yield ok("gateway", f"version {status['version']} is running and ready{but}")
    for key in status["keys"]:
        yield from _key(key)


def _degraded(status: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what a gateway that may serve cannot do; an older version has fewer members."""
    trouble, journal = status["clock"]["trouble"], status["journal"]
    if (failing := status.get("failing")) is not None:
        text = (
            f"the exchange is failing: {failing['attempts']} attempts failed, the last with {failing['kind']}"
        )
        yield warn("gateway", text, failing["advice"])
    elif trouble is not None and not status["not_ready"]:
        yield warn("gateway", f"clock: {trouble}", REACH)
    if journal["trouble"] is not None and not journal["is_refusing"]:
        yield warn("gateway", f"orders are sent without a record: {journal['trouble']}", "see its log")
    if (lost := journal.get("lost")) is not None:
        yield warn("gateway", lost, LOST_FIX)
    for key in status["keys"]:
        if (sharing := key.get("sharing")) is not None and sharing["degraded"]:
            text = f"the limit of key {key['alias']} is not shared: {sharing['degraded']}"
            yield warn("gateway", text, "look at Redis (limits.redis)")
    for refused in status.get("refusals", ()):
        if refused["is_grave"]:
            yield warn("gateway", refused["words"], refused["advice"])


def judge_troubles(status: Mapping[str, Any], accepted: Container[str]) -> Iterator[Finding]:
    """Yield the keys whose requests fail in the running gateway.

    `accepted` are those whose signed read was accepted just now: for them the gateway has an older secret,
    or older settings.
    """
    for key in status["keys"]:
        if key["trouble"]:
            fix = _STALE_FIX if key["alias"] in accepted else key["trouble_advice"]
            text = f"the running gateway's requests fail: {key['trouble']}"
            yield warn(f"keys.{key['alias']}", text, fix)


def _key(key: Mapping[str, Any]) -> Iterator[Finding]:
    area = f"keys.{key['alias']}"
    if key["disabled"]:
        yield warn(area, f"disabled in the running gateway: {key['disabled']}", "see below")
    for limit in key["limits"]:
        foreign = "; someone else seems to be using this key too" if limit["is_foreign_use"] else ""
        next_step = f"; {step}" if (step := limit.get("next_step")) else ""
        yield ok("limits", f"{area}: {limit['words']}{foreign}{next_step}")
    if not key["limits"]:
        yield ok("limits", f"{area}: no limit known yet")
