"""Requests as people have them: raw HTTP of a debugger, curl commands of a shell."""

import pytest

from sealgate.core.written_request import Piece, UnreadableRequestError, WrittenRequest, parse_written

RAW = b"""POST /v1/trade/order?a=%2C HTTP/1.1\r
Host: api.example.com\r
x-service-apikey:ak-1 \r
Content-Length: 13\r
\r
{"size": "1"}\r
"""
FIELDS = (("Host", "api.example.com"), ("x-service-apikey", "ak-1"), ("Content-Length", "13"))
READ = {
    "raw": (RAW, WrittenRequest("POST", "/v1/trade/order?a=%2C", FIELDS, (Piece(b'{"size": "1"}'),))),
    "raw, plain line ends": (
        b"\nGET /x HTTP/1.1\nA: b\n\n",
        WrittenRequest("GET", "/x", (("A", "b"),)),
    ),
    "raw, the first line alone": (b"GET /x", WrittenRequest("GET", "/x", ())),
    "raw, no length": (b"PUT /x\n\nab\n", WrittenRequest("PUT", "/x", (), (Piece(b"ab\n"),))),
    "raw, absolute": (b"GET https://a.example/x?b HTTP/1.1", WrittenRequest("GET", "/x?b", ())),
    "raw, nothing behind the host": (b"GET http://a.example", WrittenRequest("GET", "/", ())),
    "curl": (b"curl https://a.example:1/x?b=1#c", WrittenRequest("GET", "/x?b=1", ())),
    "curl, no scheme": (b"curl 127.0.0.1:1/x", WrittenRequest("GET", "/x", ())),
    "curl, query at once": (b"curl --url http://a.example?b=1", WrittenRequest("GET", "/?b=1", ())),
    "curl, as sign prints it": (
        b"curl --globoff --path-as-is --request DELETE --header 'A: b c' 'http://h/x?[]'\n",
        WrittenRequest("DELETE", "/x?[]", (("A", "b c"),)),
    ),
    "curl, short and attached": (
        b"curl -sSXPOST -HA:b -d'{\"a\": 1}' \\\n  -o /dev/null http://h/x",
        WrittenRequest("POST", "/x", (("A", "b"),), (Piece(b'{"a": 1}'),)),
    ),
    "curl, head": (b"curl -I http://h/x", WrittenRequest("HEAD", "/x", ())),
    "curl, several data": (
        b"curl http://h/x -d a=1 --data-raw @b",
        WrittenRequest("POST", "/x", (), (Piece(b"a=1"), Piece(b"&"), Piece(b"@b"))),
    ),
    "curl, several json": (
        b"curl http://h/x --json '{' --json '}'",
        WrittenRequest("POST", "/x", (), (Piece(b"{"), Piece(b"}"))),
    ),
    "curl, files": (
        b"curl http://h/x --data-binary @f -d @g",
        WrittenRequest("POST", "/x", (), (Piece(file="f"), Piece(b"&"), Piece(file="g", is_text=True))),
    ),
}
UNREADABLE = {
    "neither": (b"hello", "neither with `curl`"),
    "empty": (b"", "neither with `curl`"),
    "a header without a colon": (b"GET /x HTTP/1.1\nwhat\n\n", "header line"),
    "no URL": (b"curl -s", "0 URLs"),
    "two URLs": (b"curl http://a http://b", "2 URLs"),
    "an open quote": (b"curl 'http://a", "quote"),
    "an unknown option": (b"curl -G http://a", "option -G "),
    "an unknown long option": (b"curl --form a=b http://a", "option --form "),
    "no value": (b"curl http://a -H", "-H has no value"),
}


@pytest.mark.parametrize(("data", "request_read"), READ.values(), ids=READ)
def test_what_is_read(data: bytes, request_read: WrittenRequest) -> None:
    assert parse_written(data) == request_read


@pytest.mark.parametrize(("data", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_not(data: bytes, told: str) -> None:
    with pytest.raises(UnreadableRequestError, match=told):
        parse_written(data)


def test_headers_are_found_in_any_case() -> None:
    assert parse_written(RAW).values("X-SERVICE-APIKEY") == ["ak-1"]
