"""What can be asked besides the exchange: DNS and TLS on the way to it, Redis, and a gateway that runs."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from sealgate.cli.checking.local import found_wrong
from sealgate.cli.control import UnixConnection, own_address
from sealgate.cli.frame import plain_cause
from sealgate.config import Config
from sealgate.config.addresses import is_ip
from sealgate.config.files import OFF, default_places
from sealgate.config.load import addresses_of
from sealgate.core.findings import REACH, Finding, fail, ok, warn
from sealgate.core.vetting import refused_certificate, vet_certificate
from sealgate.gateway.journal.file import JournalError, process_that_uses
from sealgate.gateway.journal.marks import LOST_FIX
from sealgate.gateway.keys.files import SecretError
from sealgate.gateway.keys.parts import read_redis
from sealgate.gateway.platform import machine
from sealgate.gateway.platform.system import System
from sealgate.gateway.upstream.destination import client_context

_DNS_S = 10.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_TIMEOUT_S = 3.0
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
    from sealgate.gateway.sharing import TROUBLE, RedisGroup

    try:
        async with RedisGroup(url.reveal(), "check", "check").opened():
            return ok("limits.redis", "Redis answers")
    except TROUBLE as error:
        fix = "start it, or correct limits.redis; until then each gateway works alone"
        return fail("limits.redis", f"Redis cannot be used: {type(error).__name__}", fix)


def ask_running(config: Config, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return `/status.json` of a gateway with these addresses, None where none answers as one."""
    return _first_status(config, list(_by_tcp(config)) or _by_socket(config, environ))


def second_of(config: Config, environ: Mapping[str, str]) -> str | None:
    """Return that a gateway has one of these addresses already, and what to do; None if none has.

    Its process is known by its admin socket or, without one, by the lock of the journal.
    """
    own = addresses_of(config.listen, config.admin).items()
    for connection in (*_by_socket(config, environ), *_by_tcp(config)):
        with closing(connection):
            document = _status(connection, config.admin.hosts[0])
            process = connection.process if document and isinstance(connection, UnixConnection) else None
        theirs = document.get("addresses", {}) if document else {}
        # Port 0 is another one at each start.
        if any(theirs.get(setting) == at for setting, at in own if at and not at.endswith(":0")):
            return _already_running(process or _user_of_journal(config), theirs)
    return None


def _already_running(process: int | None, addresses: Mapping[str, str]) -> str:
    who = "a Sealgate gateway" if process is None else f"pid {process}"
    where = addresses["listen.tcp"] or addresses["listen.unix"]
    stop = "stop it" if process is None else f"stop it (kill {process})"
    return (
        f"already running: {who}, at {where}; apply changes to it with `sealgate reload`, or {stop}; for "
        "another exchange, give this gateway addresses of its own"
    )


def _user_of_journal(config: Config) -> int | None:
    with suppress(OSError, JournalError):
        return None if config.journal.file is None else process_that_uses(config.journal.file)
    return None


def find_other(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield that a gateway with another configuration runs at one of these addresses, if one does."""
    document = _first_status(config, (*_by_tcp(config), *_by_socket(config, environ)))
    if document is not None:
        text = f"another Sealgate gateway is running here, for {document['base_url']}"
        yield warn("gateway", text, "stop it, or give this one addresses of its own")


def _first_status(config: Config, ways: Iterable[HTTPConnection]) -> dict[str, Any] | None:
    for connection in ways:
        with closing(connection):
            document = _status(connection, config.admin.hosts[0])
        if document is not None:
            return document
    return None


def _by_tcp(config: Config) -> Iterator[HTTPConnection]:
    address = config.admin.tcp
    if address is not None and address.port:
        yield HTTPConnection(own_address(address.host), address.port, timeout=_TIMEOUT_S)


def _by_socket(config: Config, environ: Mapping[str, str]) -> Iterator[HTTPConnection]:
    place = config.admin.unix
    if place != OFF:
        for path in default_places(environ) if place is None else (Path(place),):
            yield UnixConnection(path, _TIMEOUT_S)


def _status(connection: HTTPConnection, host_name: str) -> dict[str, Any] | None:
    try:
        connection.request("GET", "/status.json", headers={"Host": host_name})
        document = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    is_gateways = isinstance(document, dict) and {"not_ready", "keys", "base_url"} <= document.keys()
    return document if is_gateways else None


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
