"""TLS at the bots' address: the certificate it shows, the certificates it asks for, and its handshakes."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog

from sealgate.config import Listen
from sealgate.keys.files import SecretError, opened
from sealgate.machine.background import warn_of_accept
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.request.bots import BotServer

log = structlog.get_logger("sealgate.server_tls")

_State = tuple[tuple[int, int, int] | None, ...]
_GOODBYE_S = 2.0  # for the peer to end its half of the session, before the connection is just closed
_AT_ANY_TIME = ssl.VerifyFlags(0x200000)  # X509_V_FLAG_NO_CHECK_TIME
_PAUSE_S = 1.0  # after an accept that failed for a reason that lasts, such as a lack of descriptors


class ServerTls:
    """The TLS context of the listener. Raises StartError if the certificate cannot be loaded at the start.

    Certificates are short-lived, and renewing one replaces its files. So the files are checked before each
    handshake, and loaded if they have changed. If they cannot be loaded, the old certificate stays in use.
    """

    def __init__(self, listen: Listen) -> None:
        self._listen = listen
        self._seen = self._states()
        self._context, self._expires_at = _loaded(listen)

    def context(self) -> ssl.SSLContext:
        """Return the context for the next handshake."""
        if (seen := self._states()) != self._seen:
            self._seen = seen
            self._renew()
        return self._context

    @property
    def expires_at(self) -> float | None:
        """When the certificate in use expires, in epoch seconds; None if it cannot be read."""
        self.context()
        return self._expires_at

    def _renew(self) -> None:
        try:
            self._context, self._expires_at = _loaded(self._listen)
        except StartError as error:
            log.warning(
                "certificate_not_renewed", cause=str(error), meanwhile="the old certificate stays in use"
            )
        else:
            log.info("certificate_renewed")

    def _states(self) -> _State:
        return tuple(map(_file_state, (self._listen.tls_cert, self._listen.tls_key, self._listen.client_ca)))


def _loaded(listen: Listen) -> tuple[ssl.SSLContext, float | None]:
    life = certificate_life(listen)
    return server_context(listen), None if life is None else life[1]


def _file_state(file: Path | None) -> tuple[int, int, int] | None:
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found is not None else None


def server_context(listen: Listen) -> ssl.SSLContext:
    """Return a context with the certificate of the settings. Raises StartError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if listen.tls_cert is not None and listen.tls_key is not None:
        _load(context, listen.tls_cert, listen.tls_key)
    if listen.client_ca is not None:
        _ask_for_certificates(context, listen.client_ca)
    return context


def certificate_life(listen: Listen) -> tuple[float, float] | None:
    """Return from when until when the certificate is valid, in epoch seconds; None if it cannot be read.

    Python reads only the certificates of a peer, so it is shown to a client in memory that trusts it. Raises
    StartError.
    """
    own = server_context(listen.model_copy(update={"client_ca": None}))
    peer = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    peer.check_hostname = False
    peer.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _AT_ANY_TIME
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        peer.load_verify_locations(listen.tls_cert)
        server = own.wrap_bio(to_server, to_client, server_side=True)
        client = peer.wrap_bio(to_client, to_server)
        for end in (client, server, client):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
        certificate: dict[str, Any] = client.getpeercert() or {}
    except (OSError, ValueError):  # for example, a certificate for another purpose
        return None
    starts, ends = (ssl.cert_time_to_seconds(certificate[name]) for name in ("notBefore", "notAfter"))
    return starts, ends


def _ask_for_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    # A resumed session would keep a certificate whose authority may have been removed since.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_verify_locations(client_ca)
    except OSError:  # ssl.SSLError is one
        raise StartError(
            f"listen.client_ca {client_ca}: contains no certificate; name a PEM file of CA certificates"
        ) from None


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        with opened(f"listen.tls_key {key}", os.fspath(key)):
            context.load_cert_chain(certificate, key, password=_refuse_password)
    except SecretError as error:
        raise StartError(str(error)) from None
    except ssl.SSLError as error:
        raise StartError(
            f"{_cause(error, certificate, key)}; see listen.tls_cert and listen.tls_key"
        ) from None
    except OSError as error:
        where = f"listen.tls_cert {certificate}"
        raise StartError(f"{where}: cannot be read ({error.strerror}); correct the path") from None


def _refuse_password() -> str:
    """Refuse: nobody could type a password, and without this OpenSSL would ask at the terminal."""
    raise SecretError(
        "listen.tls_key", "is encrypted with a passphrase", "store it without a passphrase, with mode 0600"
    )


def _cause(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {key} does not match the certificate {certificate}"
    return f"{certificate} and {key} are not a certificate and a key in PEM form"


class _Handshake:
    """A handshake under way, which has a place until it is a connection. `sock` is there until it begins."""

    task: asyncio.Task[None]

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket | None = sock

    def turn_out(self) -> None:
        self.task.cancel()
        if self.sock is not None:
            self.sock.close()


class TlsListener:
    """Accepts connections, shakes hands within `handshake_s`, and hands them to the server.

    It accepts by itself so that a client counts as a connection before its handshake is done, and is given up
    if it never is.
    """

    def __init__(self, server: BotServer, tls: ServerTls, handshake_s: float, system: System) -> None:
        self._tls = tls
        self._server = server
        self._handshake_s = handshake_s
        self._system = system
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def expires_at(self) -> float | None:
        """When the certificate that it shows expires, in epoch seconds; None if it cannot be read."""
        return self._tls.expires_at

    def open(self, listener: socket.socket) -> None:
        """Begin to accept. The listener is closed when accepting ends, as the loop uses it until then."""
        self._start(self._accept(listener)).add_done_callback(lambda _: listener.close())

    def close(self) -> None:
        """Stop accepting, and give up the handshakes under way."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                if warn_of_accept(error):
                    await self._system.sleep(_PAUSE_S)
                continue
            handshake = _Handshake(sock)
            if self._server.places.enter(handshake) is not None:
                sock.close()  # without a handshake there is no way to send a reply
            else:
                handshake.task = self._start(self._shake_hands(sock, handshake))

    async def _shake_hands(self, sock: socket.socket, handshake: "_Handshake") -> None:
        loop, handshake.sock = asyncio.get_running_loop(), None
        try:
            with contextlib.suppress(OSError):  # it failed or took too long, which the client sees
                await loop.connect_accepted_socket(
                    lambda: self._server.admit(handshake),
                    sock,
                    ssl=self._tls.context(),
                    ssl_handshake_timeout=self._handshake_s,
                    ssl_shutdown_timeout=_GOODBYE_S,
                )
        finally:
            self._server.places.leave(handshake)
