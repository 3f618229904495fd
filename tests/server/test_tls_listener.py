"""TLS on the bots' address, and bots by client certificate."""

import asyncio
import contextlib
import os
import socket
import ssl
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from structlog.testing import capture_logs

from rig.bot import Bot, request
from rig.listeners import Certificates, bot_on, needs_root
from rig.station import ENVIRON, Station, running_station
from rig.upstream import Upstream
from rig.wire import CutError
from sealgate.config import Listen
from sealgate.machine.process import StartError
from sealgate.observe.metrics import Metrics
from sealgate.server.tls import ServerTls, certificate_life, server_context

TOKENS = {**ENVIRON, "WATCH": "watch-token"}
BOTS = {"grid": {}, "watch": {"token": "env:WATCH"}}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def by_tls(station: Station, context: ssl.SSLContext) -> AbstractAsyncContextManager[Bot]:
    return bot_on(host="127.0.0.1", port=station.gateway.address.port, ssl=context)


async def test_a_bot_by_tls(upstream: Upstream, certificates: Certificates) -> None:
    async with running_station(upstream, listen=certificates.settings) as station:
        assert station.gateway.listeners.urls == (f"https://{station.gateway.address}",)
        async with by_tls(station, certificates.client()) as bot:
            for _ in range(3):
                reply = await bot.ask(request(b"POST", b"/v1/trade/order", body=b"x" * 100_000))
                assert (reply.status, reply.is_whole) == (200, True)
        assert len(upstream.received[-1].body) == 100_000


async def test_plain_http_is_not_answered_there(upstream: Upstream, certificates: Certificates) -> None:
    async with running_station(upstream, listen=certificates.settings) as station, station.bot() as bot:
        await bot.send(request())
        assert b"HTTP" not in await bot.rest()
    assert upstream.received == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_versions_that_are_spoken(
    upstream: Upstream, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = certificates.client("grid")
    context.minimum_version = context.maximum_version = version
    listen = {**certificates.settings, "client_ca": str(certificates.ca_file)}
    async with (
        running_station(upstream, TOKENS, listen=listen, bots=BOTS) as station,
        by_tls(station, context) as bot,
    ):
        assert (await bot.ask(request())).status == 200


def test_older_versions_are_not(certificates: Certificates) -> None:
    context = server_context(Listen.model_validate(certificates.settings))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(("name", "token"), [("watch", b"wrong"), ("mallory", b"watch-token")])
async def test_neither_the_certificate_nor_the_token_is_enough_where_one_is_wrong(
    upstream: Upstream, certificates: Certificates, name: str, token: bytes
) -> None:
    listen = {**certificates.settings, "client_ca": str(certificates.ca_file)}
    field = b"Authorization: Bearer " + token
    async with (
        running_station(upstream, TOKENS, listen=listen, bots=BOTS) as station,
        by_tls(station, certificates.client(name)) as bot,
    ):
        assert (await bot.ask(request(b"GET", b"/v1/trade/symbols/list", field))).status == 401


async def test_no_certificate_or_one_of_another_authority_is_no_bot(
    upstream: Upstream, certificates: Certificates
) -> None:
    foreign = certificates.client()
    trustme.CA().issue_cert("bot@example.com", common_name="grid").configure_cert(foreign)
    listen = {**certificates.settings, "client_ca": str(certificates.ca_file)}
    async with running_station(upstream, TOKENS, listen=listen, bots=BOTS) as station:
        for context in (certificates.client(), foreign):
            # By TLS 1.3 the client hears of it only when it reads.
            with pytest.raises((ssl.SSLError, ConnectionError, CutError)):
                async with by_tls(station, context) as bot:
                    await bot.ask(request())
    assert upstream.received == []


async def test_who_does_not_finish_the_handshake_is_given_up_after_a_while(
    upstream: Upstream, certificates: Certificates
) -> None:
    listen = {**certificates.settings, "head_timeout": 0.5}
    async with running_station(upstream, listen=listen) as station:
        places = station.gateway.server.places
        with socket.create_connection(("127.0.0.1", station.gateway.address.port)):
            await station.until(lambda: len(places) == 1)
            await station.until(lambda: len(places) == 0)


async def test_connections_without_a_handshake_keep_no_bot_out(
    upstream: Upstream, certificates: Certificates
) -> None:
    listen = {**certificates.settings, "max_connections": 2}
    async with running_station(upstream, listen=listen) as station, contextlib.AsyncExitStack() as stack:
        where = ("127.0.0.1", station.gateway.address.port)
        first = await stack.enter_async_context(by_tls(station, certificates.client()))
        assert (await first.ask(request())).status == 200
        for _ in range(5):
            stack.enter_context(socket.create_connection(where))
        async with by_tls(station, certificates.client()) as second:
            assert (await second.ask(request())).status == 200
            assert (await first.ask(request())).status == 200


async def test_a_drain_gives_up_handshakes_and_serves_who_is_in(
    upstream: Upstream, certificates: Certificates
) -> None:
    async with running_station(upstream, listen=certificates.settings) as station:
        where = ("127.0.0.1", station.gateway.address.port)
        with socket.create_connection(where):
            await station.until(lambda: len(station.gateway.server.places) == 1)
            async with by_tls(station, certificates.client()) as bot:
                assert (await bot.ask(request())).status == 200
                drain = asyncio.create_task(station.gateway.drain())
                await station.until(lambda: len(station.gateway.server.places) == 1)
                assert (await bot.ask(request())).status == 200
            await drain


async def test_a_renewed_certificate_is_shown_from_the_next_handshake_on(
    upstream: Upstream, certificates: Certificates
) -> None:
    """Half of a new pair, as it is while somebody writes it, leaves the old one in use."""
    old, new = certificates.client(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority = trustme.CA()
    authority.configure_trust(new)
    async with running_station(upstream, listen=certificates.settings) as station:
        _, key_file = certificates.write("server", pair := authority.issue_cert("127.0.0.1"))
        key_file.write_bytes(certificates.authority.issue_cert("127.0.0.1").private_key_pem.bytes())
        async with by_tls(station, old) as bot:
            assert (await bot.ask(request())).status == 200
            pair.private_key_pem.write_to_path(key_file)
            async with by_tls(station, new) as next_bot:
                assert (await next_bot.ask(request())).status == 200
            assert (await bot.ask(request())).status == 200


def trouble(**settings: str) -> str:
    with pytest.raises(StartError) as caught:
        server_context(Listen.model_validate(settings))
    told = str(caught.value)
    assert "; " in told
    assert "\n" not in told
    return told


@pytest.mark.parametrize("years", [(2024, 2025), (2024, 2090), (2089, 2090)])
def test_the_life_of_the_certificate_that_bots_see(
    certificates: Certificates, years: tuple[int, int]
) -> None:
    """Also where it is not valid now, is issued by an authority that nobody knows, and bots must have one."""
    starts, ends = (datetime(year, 1, 1, tzinfo=UTC) for year in years)
    issued = certificates.authority.issue_cert("bots.example", not_before=starts, not_after=ends)
    cert, key = certificates.write("aged", issued)
    settings = {"tls_cert": str(cert), "tls_key": str(key), "client_ca": str(certificates.ca_file)}
    life = certificate_life(Listen.model_validate(certificates.settings | settings))
    assert life == (starts.timestamp(), ends.timestamp())


async def test_a_metric_says_when_the_certificate_ends_and_follows_a_new_one(
    upstream: Upstream, certificates: Certificates
) -> None:
    """No handshake is needed for that: a gateway that no bot uses at the moment says it, too."""
    name = b"sealgate_tls_cert_expires_timestamp_seconds "

    def shown(station: Station) -> list[float]:
        lines = Metrics(station.gateway.status).snapshot()().splitlines()
        return [float(line.removeprefix(name)) for line in lines if line.startswith(name)]

    async with running_station(upstream, listen=certificates.settings) as station:
        for year in (2089, 2090):
            ends = datetime(year, 1, 1, tzinfo=UTC)
            issued = certificates.authority.issue_cert("127.0.0.1", not_after=ends)
            cert, key = certificates.write("aged", issued)
            replace(certificates.cert_file, cert.read_bytes())
            replace(certificates.key_file, key.read_bytes())
            assert shown(station) == [ends.timestamp()]
    async with running_station(upstream) as station:
        assert shown(station) == []


def test_a_key_of_another_certificate(certificates: Certificates) -> None:
    _, other = certificates.write("other", certificates.authority.issue_cert("127.0.0.1"))
    told = trouble(**certificates.settings | {"tls_key": str(other)})
    assert told.startswith(f"the key {other} does not match the certificate {certificates.cert_file}; see ")


def test_files_that_are_no_pem(certificates: Certificates) -> None:
    certificates.cert_file.write_text("no certificate")
    assert "are not a certificate and a key in PEM form; see listen.tls_cert" in trouble(
        **certificates.settings
    )


def test_a_key_that_others_can_read(certificates: Certificates) -> None:
    certificates.key_file.chmod(0o644)
    told = trouble(**certificates.settings)
    assert "is open to others (mode 0644); chmod 600 " in told
    assert told.startswith(f"listen.tls_key {certificates.key_file}: ")


@needs_root
def test_a_key_of_a_stranger(certificates: Certificates) -> None:
    os.chown(certificates.key_file, 4711, -1)
    assert "belongs to user 4711" in trouble(**certificates.settings)


def test_a_key_with_a_password_is_not_asked_for_on_the_terminal(certificates: Certificates) -> None:
    from cryptography.hazmat.primitives import serialization as pem  # noqa: PLC0415 - for this test alone

    key = pem.load_pem_private_key(certificates.key_file.read_bytes(), None)
    locked = pem.BestAvailableEncryption(b"password")
    certificates.key_file.write_bytes(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, locked))
    assert "listen.tls_key: is encrypted with a passphrase; store it without a passphrase" in trouble(
        **certificates.settings
    )


def listen_with(certificates: Certificates, *, asks: bool = False) -> Listen:
    asked = {"client_ca": str(certificates.ca_file)} if asks else {}
    return Listen.model_validate(certificates.settings | asked)


def replace(file: Path, content: bytes) -> None:
    """Put another file in its place, as who renews certificates does; the old one stays, with its inode."""
    file.rename(file.with_suffix(".old"))
    file.touch(mode=0o600)
    file.write_bytes(content)


def look(tls: ServerTls) -> tuple[ssl.SSLContext, list[tuple[str, str | None]]]:
    """Return the context for a handshake now, and what was said on the way."""
    with capture_logs() as logs:
        context = tls.context()
    return context, [(line["event"], line.get("cause")) for line in logs]


@pytest.mark.parametrize("which", ["cert_file", "key_file", "ca_file"])
def test_a_change_of_any_file_is_taken_up_once(certificates: Certificates, which: str) -> None:
    tls = ServerTls(listen_with(certificates, asks=True))
    first, _ = look(tls)
    file = getattr(certificates, which)
    replace(file, file.read_bytes())
    renewed, told = look(tls)
    assert renewed is not first
    assert told == [("certificate_renewed", None)]
    assert look(tls) == (renewed, [])


def test_the_old_one_stays_until_the_new_one_is_whole(certificates: Certificates) -> None:
    """Certificate and key are two files: whoever renews them cannot write both at once."""
    tls = ServerTls(listen_with(certificates))
    first, _ = look(tls)
    cert, key = certificates.write("new", certificates.authority.issue_cert("127.0.0.1"))
    replace(certificates.cert_file, cert.read_bytes())
    meanwhile, ((event, cause),) = look(tls)
    assert meanwhile is first
    assert event == "certificate_not_renewed"
    assert str(cause).startswith(f"the key {certificates.key_file} does not match the certificate")
    assert look(tls) == (first, []), "it is said once"
    replace(certificates.key_file, key.read_bytes())
    renewed, told = look(tls)
    assert renewed is not first
    assert told == [("certificate_renewed", None)]


def test_a_certificate_that_is_gone_for_a_moment_is_missed_at_the_start_alone(
    certificates: Certificates,
) -> None:
    listen = listen_with(certificates)
    tls = ServerTls(listen)
    first, _ = look(tls)
    aside = certificates.cert_file.rename(certificates.cert_file.with_suffix(".aside"))
    assert look(tls)[0] is first
    aside.rename(certificates.cert_file)
    assert look(tls)[1] == [("certificate_renewed", None)]
    certificates.cert_file.unlink()
    with pytest.raises(StartError, match="cannot be read"):
        ServerTls(listen)


@pytest.mark.parametrize("asks", [False, True])
def test_whom_it_asks_for_a_certificate(certificates: Certificates, *, asks: bool) -> None:
    """RFC 8446 section 4.6.1: a ticket would resume a session past an authority that is no more."""
    context = server_context(listen_with(certificates, asks=asks))
    assert (context.verify_mode is ssl.CERT_REQUIRED) is asks
    assert (context.num_tickets == 0) is asks
    assert bool(context.options & ssl.OP_NO_TICKET) is asks


AUTHORITIES = {
    "gone": Path.unlink,
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "empty": lambda file: file.write_bytes(b""),
    "no UTF-8": lambda file: file.write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("spoil", AUTHORITIES.values(), ids=AUTHORITIES)
def test_authorities_that_cannot_be_loaded(certificates: Certificates, spoil: object) -> None:
    assert callable(spoil)
    listen = listen_with(certificates, asks=True)
    spoil(certificates.ca_file)
    with pytest.raises(StartError) as refused:
        server_context(listen)
    assert str(refused.value) == (
        f"listen.client_ca {certificates.ca_file}: contains no certificate; "
        "name a PEM file of CA certificates"
    )


def test_a_key_that_is_a_pipe_is_not_waited_for(certificates: Certificates) -> None:
    listen = listen_with(certificates)
    certificates.key_file.unlink()
    os.mkfifo(certificates.key_file, 0o600)
    with pytest.raises(StartError, match=r"^listen\.tls_key .+: is not a regular file; "):
        server_context(listen)
