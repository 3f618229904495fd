"""The certificate that is shown: the one on disk, and the last good one while that cannot be loaded."""

import os
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rig.listeners import Certificates
from sealgate.config import Listen
from sealgate.gateway.listeners.tls import ServerTls, server_context
from sealgate.gateway.platform.machine import StartError


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


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


def test_as_long_as_nothing_changes_it_is_not_loaded_again(certificates: Certificates) -> None:
    tls = ServerTls(listen_with(certificates))
    first, told = look(tls)
    assert (look(tls), told) == ((first, []), [])


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


def test_a_certificate_that_is_gone_for_a_moment(certificates: Certificates) -> None:
    tls = ServerTls(listen_with(certificates))
    first, _ = look(tls)
    aside = certificates.cert_file.with_suffix(".aside")
    certificates.cert_file.rename(aside)
    meanwhile, ((event, cause),) = look(tls)
    assert (meanwhile, event) == (first, "certificate_not_renewed")
    assert cause == (
        f"listen.tls_cert {certificates.cert_file}: cannot be read (No such file or directory);"
        " correct the path"
    )
    aside.rename(certificates.cert_file)
    assert look(tls)[1] == [("certificate_renewed", None)]


def test_without_one_to_begin_with_there_is_no_start(certificates: Certificates) -> None:
    listen = listen_with(certificates)
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
        f"listen.client_ca {certificates.ca_file}: holds no certificate; name a PEM file of them"
    )


def test_a_key_that_is_a_pipe_is_not_waited_for(certificates: Certificates) -> None:
    listen = listen_with(certificates)
    certificates.key_file.unlink()
    os.mkfifo(certificates.key_file, 0o600)
    with pytest.raises(StartError, match=r"^listen\.tls_key .+: is not a regular file; "):
        server_context(listen)
