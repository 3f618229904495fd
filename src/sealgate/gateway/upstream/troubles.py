"""What can go wrong with a connection to the upstream, in words.

The words name the cause for people; they never repeat what the peer sent.
"""

import os
import socket
import ssl

import aiohttp


class ReplyError(Exception):
    """No whole reply came, or one that is not accepted: its words say why."""


# All that is raised where a connection cannot be made (by aiohttp), breaks, or carries no HTTP.
TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, EOFError, ReplyError)


def describe(error: BaseException) -> str:
    """Say in a few words what went wrong."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.os_error)}"
    if isinstance(error, ReplyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__


# A container without a way out, or a resolver that is down, gives the second; it says nothing of the name.
_LOOK_UP: dict[int | None, str] = {
    socket.EAI_NONAME: "no such host name",
    socket.EAI_AGAIN: "its name cannot be looked up at the moment: the DNS servers do not answer",
}


def _cause(error: Exception) -> str:
    """Return the words of whoever knows: TLS, the resolver or the system (asyncio's repeat the address)."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message}); see upstream.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as expected ({error.reason})"
    if isinstance(error, socket.gaierror):
        return _LOOK_UP.get(error.errno, f"its name cannot be looked up ({error.strerror})")
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
