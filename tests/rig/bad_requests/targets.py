"""Targets that two servers could read differently, lead elsewhere, or are the app's: some of each kind.

All of them are in http/test_target.py and venues/test_routes.py.
"""

from rig.bad_requests.case import Bad, get, lines

_AMBIGUOUS = {
    "two dots": b"/v1/trade/../wallet",
    "two dots that come back": b"/v1/trade/../trade/order",
    "escaped dots": b"/v1/trade/%2e%2e/wallet",
    "dots and an escaped slash": b"/v1/trade/..%2fwallet",
    "dots and a backslash": b"/v1/trade/..\\wallet",
    "overlong dot": b"/v1/trade/%c0%ae%c0%ae/wallet",
    "percent u dots": b"/v1/trade/%u002e%u002e/wallet",
    "empty segment": b"/v1//trade/order",
    "network path of another host": b"//evil.com/v1/trade/order",
    "slash and backslash": b"/\\evil.com/v1/trade/order",
    "parameter": b"/v1/trade/order;a=1",
    "semicolon in the query": b"/v1/trade/order?a=1;b=2",
    "escaped NUL": b"/v1/trade/order%00",
    "escaped line end and a header": b"/v1/trade/order%0d%0aX-Evil:%201",
    "escaped letter of the prefix": b"/v1/%74rade/order",
    "bare question mark": b"/v1/trade/order?",
    "quote": b'/v1/trade/"order"',
    "fragment": b"/v1/trade/order#a",
    "absolute form": b"http://evil.com/v1/trade/order",
    "absolute form with a user": b"http://localhost@evil.com/v1/trade/order",
    "asterisk form": b"*",
}

_OUTSIDE = {
    "root": b"/",
    "prefix that goes on": b"/v1/traders/order",
    "prefix with one capital": b"/v1/Trade/order",
    "another service": b"/v1/wallet/withdraw",
    "the admin's page": b"/metrics",
    "the admin's changes": b"/-/reload",
    "the sandbox's control": b"/_sandbox/journal",
}

_APPS = {
    "create a key": (b"POST", b"/v1/trade/api-keys"),
    "revoke all keys": (b"DELETE", b"/v1/trade/api-keys/all"),
    "revoke all keys with a query": (b"DELETE", b"/v1/trade/api-keys/all?a=1"),
    "keys with a full-width letter": (b"POST", b"/v1/trade/%EF%BD%81pi-keys"),
    "list of keys in capitals": (b"GET", b"/v1/trade/API-KEYS"),
    "handshake by GET": (b"GET", b"/v1/trade/user/handshake"),
    "below the handshake": (b"POST", b"/v1/trade/user/handshake/start"),
}

_BY_THE_PARSER = {
    "space": b"/v1/trade/a b",
    "tab": b"/v1/trade/a\tb",
    "NUL": b"/v1/trade/a\0b",
    "bare CR": b"/v1/trade/a\rb",
    "form feed": b"/v1/trade/a\x0cb",
    "control": b"/v1/trade/\x01",
    "DEL": b"/v1/trade/\x7f",
    "UTF-8": "/v1/trade/é".encode(),
    "Latin-1": b"/v1/trade/\xe9",
    "backslashes for slashes": b"\\v1\\trade\\order",
    "no slash": b"v1/trade/order",
    "authority form": b"127.0.0.1:80",
    "query alone": b"?a=1",
    "scheme alone": b"http:",
}


def _call(method: bytes, target: bytes) -> bytes:
    length = (b"Content-Length: 0",) if method in (b"POST", b"PATCH") else ()
    return lines(method + b" " + target + b" HTTP/1.1", b"Host: localhost", *length)


CASES = (
    {f"target: {name}": Bad(get(target), 400, "ambiguous_target") for name, target in _AMBIGUOUS.items()}
    | {f"target: {name}": Bad(get(target), 400, "bad_request") for name, target in _BY_THE_PARSER.items()}
    | {f"outside: {name}": Bad(get(target), 404, "outside_prefix") for name, target in _OUTSIDE.items()}
    | {f"app: {name}": Bad(_call(*call), 403, "app_only") for name, call in _APPS.items()}
)
