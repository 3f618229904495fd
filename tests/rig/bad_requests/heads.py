"""First lines and fields that are no HTTP/1.1, come from the wrong people, or ask for what is not given."""

from rig.bad_requests.case import Bad, get, lines, post

_X = b"/v1/trade/x"
_HOST = b"Host: localhost"
_LONG = b"x" * 20_000

_LINES = {
    "HTTP/0.9": lines(b"GET /v1/trade/x HTTP/0.9", _HOST),
    "HTTP/1.2": lines(b"GET /v1/trade/x HTTP/1.2", _HOST),
    "HTTP/1.10": lines(b"GET /v1/trade/x HTTP/1.10", _HOST),
    "HTTP/01.1": lines(b"GET /v1/trade/x HTTP/01.1", _HOST),
    "HTTP/1": lines(b"GET /v1/trade/x HTTP/1", _HOST),
    "HTTP/2.0": lines(b"GET /v1/trade/x HTTP/2.0", _HOST),
    "HTTP/3.0": lines(b"GET /v1/trade/x HTTP/3.0", _HOST),
    "HTTP/ alone": lines(b"GET /v1/trade/x HTTP/", _HOST),
    "HTTP-1.1": lines(b"GET /v1/trade/x HTTP-1.1", _HOST),
    "http/1.1": lines(b"GET /v1/trade/x http/1.1", _HOST),
    "HTTPS/1.1": lines(b"GET /v1/trade/x HTTPS/1.1", _HOST),
    "ICE/1.0": lines(b"GET /v1/trade/x ICE/1.0", _HOST),
    "version and a space": lines(b"GET /v1/trade/x HTTP/1.1 ", _HOST),
    "no version": lines(b"GET /v1/trade/x", _HOST),
    "no target": lines(b"GET HTTP/1.1", _HOST),
    "method alone": lines(b"GET", _HOST),
    "space first": lines(b" GET /v1/trade/x HTTP/1.1", _HOST),
    "tab for the first space": lines(b"GET\t/v1/trade/x HTTP/1.1", _HOST),
    "tab for the second space": lines(b"GET /v1/trade/x\tHTTP/1.1", _HOST),
    "method in small letters": lines(b"get /v1/trade/x HTTP/1.1", _HOST),
    "method in mixed letters": lines(b"Get /v1/trade/x HTTP/1.1", _HOST),
    "method that begins like one": lines(b"GETX /v1/trade/x HTTP/1.1", _HOST),
    "method of 9 kB": lines(b"G" * 9000 + b" /v1/trade/x HTTP/1.1", _HOST),
    "method with a NUL": lines(b"GE\0T /v1/trade/x HTTP/1.1", _HOST),
    "line ended by LF": b"GET /v1/trade/x HTTP/1.1\nHost: localhost\r\n\r\n",
    "all lines ended by LF": b"GET /v1/trade/x HTTP/1.1\nHost: localhost\n\n",
    "lines ended by CR": b"GET /v1/trade/x HTTP/1.1\rHost: localhost\r\r",
    "byte order mark": b"\xef\xbb\xbf" + get(_X),
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 32,
    "SOCKS": b"\x05\x01\x00",
    "PROXY protocol": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + get(_X),
    "PROXY protocol, second version": b"\r\n\r\n\0\r\nQUIT\n" + get(_X),
    "mail": b"EHLO localhost\r\n\r\n",
    "Redis": b"*1\r\n$4\r\nPING\r\n",
    "reply": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "empty header name": get(_X, b": 1"),
    "field without a colon": get(_X, b"X-A"),
    "space before the colon": get(_X, b"X-A : 1"),
    "space in a name": get(_X, b"X A: 1"),
    "parenthesis in a name": get(_X, b"X(A: 1"),
    "slash in a name": get(_X, b"X/A: 1"),
    "NUL in a name": get(_X, b"X\0A: 1"),
    "Latin-1 in a name": get(_X, b"X\xe9: 1"),
    "UTF-8 in a name": get(_X, "é: 1".encode()),
    "NUL in a value": get(_X, b"X-A: 1\0"),
    "control in a value": get(_X, b"X-A: \x01"),
    "DEL in a value": get(_X, b"X-A: \x7f"),
    "bare CR in a value": get(_X, b"X-A: 1\rX-B: 2"),
    "bare LF in a value": get(_X, b"X-A: 1\nX-B: 2"),
    "bare LF for the empty line": b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost\r\n\n",
    "two CR": get(_X, b"X-A: 1\r"),
    "folded first field": lines(b"GET /v1/trade/x HTTP/1.1", b" Host: localhost"),
    "folded field": get(_X, b"X-A: 1", b" 2"),
    "field folded by a tab": get(_X, b"X-A: 1", b"\t2"),
    "folded Host": lines(b"GET /v1/trade/x HTTP/1.1", b"Host: local", b" host"),
    "no Host": lines(b"GET /v1/trade/x HTTP/1.1"),
    "no Host in HTTP/1.0": lines(b"GET /v1/trade/x HTTP/1.0"),
    "two equal Hosts": get(_X, _HOST),
    "two Hosts": get(_X, b"hOST: evil.com"),
    "two content types": get(_X, b"Content-Type: a/b", b"content-type: c/d"),
    "two tokens": get(_X, b"Authorization: Bearer a", b"Authorization: Bearer b"),
    "two deadlines": get(_X, b"X-Gateway-Deadline-Ms: 5", b"x_gateway_deadline_ms: 9"),
    "two deadlines in other marks": get(_X, b"X.Gateway.Deadline.Ms: 5", b"X-Gateway-Deadline-Ms: 9"),
    "two request ids": get(_X, b"X-Gateway-Request-Id: a", b"X-Gateway-Request-Id: b"),
    "deadline in words": get(_X, b"X-Gateway-Deadline-Ms: soon"),
    "negative deadline": get(_X, b"X-Gateway-Deadline-Ms: -1"),
    "deadline with a fraction": get(_X, b"X-Gateway-Deadline-Ms: 1.5"),
    "deadline of many digits": get(_X, b"X-Gateway-Deadline-Ms: " + b"9" * 5000),
    "empty deadline": get(_X, b"X-Gateway-Deadline-Ms:"),
}

_HOSTS = {
    "evil.com": b"evil.com",
    "empty": b"",
    "name that begins like ours": b"localhost.evil.com",
    "user and port": b"localhost:80@evil.com",
    "rebinding name": b"127.0.0.1.nip.io",
}

_BROWSERS = {
    "Origin of ours": b"Origin: http://localhost:8787",
    "Referer": b"Referer: https://evil.com/page",
    "Sec-Fetch-Site none": b"sec-fetch-site: none",
    "Sec.Fetch!Site": b"Sec.Fetch!Site: none",
}

_METHODS = (b"OPTIONS", b"TRACE", b"M-SEARCH")

_OTHERS = {
    "preflight": Bad(
        lines(
            b"OPTIONS /v1/trade/order HTTP/1.1",
            _HOST,
            b"Origin: https://evil.com",
            b"Access-Control-Request-Method: POST",
        ),
        403,
        "browser_refused",
    ),
    "OPTIONS *": Bad(lines(b"OPTIONS * HTTP/1.1", _HOST), 405, "method_refused"),
    "tunnel": Bad(lines(b"CONNECT 127.0.0.1:80 HTTP/1.1", _HOST), 405, "method_refused"),
    "method of another protocol": Bad(lines(b"DESCRIBE /v1/trade/x RTSP/1.0", _HOST), 405, "method_refused"),
    "source of a stream": Bad(lines(b"SOURCE /v1/trade/x ICE/1.0", _HOST), 405, "method_refused"),
    "web socket": Bad(
        get(
            _X,
            b"Connection: Upgrade",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: x",
        ),
        400,
        "bad_request",
    ),
    "web socket by POST": Bad(
        post(b"Connection: Upgrade", b"Upgrade: websocket", b"Content-Length: 2", body=b"{}"),
        501,
        "upgrade_refused",
    ),
    "web socket without Connection": Bad(get(_X, b"Upgrade: WebSocket"), 400, "bad_request"),
    "web socket among others": Bad(
        get(_X, b"Connection: Upgrade", b"Upgrade: h2c", b"Upgrade: websocket/13"), 400, "bad_request"
    ),
    "web socket of the first draft": Bad(
        get(_X, b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key1: x"), 400, "bad_request"
    ),
    "unknown expectation": Bad(
        post(b"Expect: the-best", b"Content-Length: 2", body=b"{}"), 417, "expectation_refused"
    ),
    "two expectations": Bad(
        post(b"Expect: 100-continue, more", b"Content-Length: 2", body=b"{}"), 417, "expectation_refused"
    ),
    "empty expectation": Bad(post(b"Expect:", b"Content-Length: 2", body=b"{}"), 417, "expectation_refused"),
    "key of another": Bad(get(_X, b"X-Gateway-Key: other"), 403, "bot_forbidden"),
    "empty key": Bad(get(_X, b"X-Gateway-Key:"), 403, "bot_forbidden"),
    "list of keys": Bad(get(b"/v1/trade/api-keys"), 403, "bot_forbidden"),
    "audit of a key": Bad(get(b"/v1/trade/api-keys/ak_1/audit"), 403, "bot_forbidden"),
    "target of 20 kB": Bad(get(b"/v1/trade/" + _LONG), 431, "headers_too_large"),
    "query of 20 kB": Bad(get(b"/v1/trade/x?a=" + _LONG), 431, "headers_too_large"),
    "name of 20 kB": Bad(get(_X, _LONG + b": 1"), 431, "headers_too_large"),
    "value of 20 kB": Bad(get(_X, b"X-A: " + _LONG), 431, "headers_too_large"),
    "130 fields": Bad(get(_X, *[b"X-A: 1"] * 130), 431, "headers_too_large"),
    "100 kB in fields of 1 kB": Bad(get(_X, *[b"X-A: " + b"x" * 1000] * 100), 431, "headers_too_large"),
}

CASES = (
    {f"head: {name}": Bad(raw, 400, "bad_request") for name, raw in _LINES.items()}
    | {
        f"host: {name}": Bad(lines(b"GET /v1/trade/x HTTP/1.1", b"Host: " + host), 421, "host_refused")
        for name, host in _HOSTS.items()
    }
    | {
        f"browser: {name}": Bad(post(field, b"Content-Length: 2", body=b"{}"), 403, "browser_refused")
        for name, field in _BROWSERS.items()
    }
    | {
        f"method: {method.decode()}": Bad(
            lines(method + b" /v1/trade/x HTTP/1.1", _HOST), 405, "method_refused"
        )
        for method in _METHODS
    }
    | _OTHERS
)
