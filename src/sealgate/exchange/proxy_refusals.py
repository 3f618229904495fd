"""Why a proxy opens no tunnel, in words with the fix; each continues "the proxy HOST:PORT …"."""

from collections.abc import Mapping

_SEE = "see upstream.proxy"
_USER = "write its user in upstream.proxy, and set upstream.proxy_password"
_CORRECT = "correct the user in upstream.proxy and upstream.proxy_password"
_ALLOW = "allow that in the proxy, or choose another in upstream.proxy"
_FROM_THERE = "check base_url, and which hosts the proxy can reach"
_CONNECT = "upstream.proxy must name an http proxy that allows CONNECT"

# The status of the reply to CONNECT (RFC 9110 sections 9.3.6 and 15).
_BY_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("does not understand CONNECT", _CONNECT),
    403: ("does not allow a connection to the exchange", _ALLOW),
    404: ("does not understand CONNECT", _CONNECT),
    405: ("does not allow CONNECT", _CONNECT),
    501: ("does not understand CONNECT", _CONNECT),
    502: ("cannot reach the exchange", _FROM_THERE),
    503: ("cannot reach the exchange, or is overloaded", _FROM_THERE),
    504: ("got no answer from the exchange in time", _FROM_THERE),
}
# The reply codes of SOCKS5 (RFC 1928 section 6).
_BY_CODE: Mapping[int, tuple[str, str]] = {
    1: ("failed", _FROM_THERE),
    2: ("does not allow a connection to the exchange", _ALLOW),
    3: ("has no network to the exchange", _FROM_THERE),
    4: ("cannot resolve the exchange's name, or cannot reach it", _FROM_THERE),
    5: ("was refused by the exchange", _FROM_THERE),
    6: ("cannot reach the exchange", _FROM_THERE),
    7: ("does not allow connections", _ALLOW),
    8: (
        "does not accept this kind of address",
        "write a name in base_url, or choose another in upstream.proxy",
    ),
}
_NO_METHOD = b"\x05\xff"  # RFC 1928 section 3
_VERSION, _REPLY_BYTES = 5, 3  # what python-socks reads of a reply before its address
_LOGIN = 1  # the version of what answers a user and password (RFC 1929 section 2)
_NEEDS_LOGIN = 407
CLOSED = f"closed the connection without an answer; {_SEE}"


def refused_connect(status: int | None, *, has_login: bool) -> str:
    """Return why a reply to CONNECT opens no tunnel. `status` is None where it is no HTTP."""
    if status is None:
        return "does not speak HTTP; check scheme and port of upstream.proxy"
    if status == _NEEDS_LOGIN:
        cause, fix = (
            ("does not accept user and password", _CORRECT) if has_login else ("requires a user", _USER)
        )
    else:
        cause, fix = _BY_STATUS.get(status, ("opens no tunnel", _SEE))
    return f"{cause} ({status}); {fix}"


def refused_socks(code: int | None, heard: bytes, *, has_login: bool) -> str:
    """Return why a SOCKS5 proxy opens no tunnel, by its reply code, or else by what it said last."""
    if code is None and len(heard) == _REPLY_BYTES and heard[0] == _VERSION:
        code = heard[1]
    if code is not None:
        cause, fix = _BY_CODE.get(code, ("opens no tunnel", _SEE))
        return f"{cause} (reply {code}); {fix}"
    if heard == _NO_METHOD:
        return (
            f"accepts no user and password; {_SEE}"
            if has_login
            else f"requires a user and a password; {_USER}"
        )
    if heard[:1] == bytes([_LOGIN]):
        return f"does not accept user and password; {_CORRECT}"
    return "does not speak SOCKS5; check scheme and port of upstream.proxy"
