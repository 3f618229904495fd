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
    "raw, an empty line in the body": (
        b"PUT /x\n\na\n\nb\n\nc",
        WrittenRequest("PUT", "/x", (), (Piece(b"a\n\nb\n\nc"),)),
    ),
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
        b"curl -sSXPUT -HA:b -d'{\"a\": 1}' \\\n  -o /dev/null http://h/x",
        WrittenRequest("PUT", "/x", (("A", "b"),), (Piece(b'{"a": 1}'),)),
    ),
    "curl, head": (b"curl -I http://h/x", WrittenRequest("HEAD", "/x", ())),
    "curl, a body that is no text": (
        b"curl http://h/x -d '\xff'",
        WrittenRequest("POST", "/x", (), (Piece(b"\xff"),)),
    ),
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
        WrittenRequest("POST", "/x", (), (Piece(b"", "f"), Piece(b"&"), Piece(b"", "g", is_text=True))),
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


# Of curl's manual page; those that the request, its signature and its body do not depend on.
WITH_VALUE = (
    *("-o", "--output", "-A", "--user-agent", "-e", "--referer", "-b", "--cookie", "-m", "--max-time"),
    *("--connect-timeout", "--cacert", "-x", "--proxy", "-w", "--write-out", "--unix-socket", "--retry"),
    *("-u", "--user", "--resolve", "-D", "--dump-header"),
)
ALONE = (
    *("-s", "--silent", "-S", "--show-error", "-f", "--fail", "--fail-with-body", "-i", "--include"),
    *("-v", "--verbose", "-k", "--insecure", "-g", "--globoff", "--path-as-is", "--compressed", "-N"),
    *("--no-buffer", "--http1.1", "--http2", "-L", "--location"),
)


@pytest.mark.parametrize("option", [*(f"{name} value" for name in WITH_VALUE), *ALONE])
def test_options_that_change_nothing_are_passed_over(option: str) -> None:
    assert parse_written(f"curl {option} http://h/x".encode()) == WrittenRequest("GET", "/x", ())


@pytest.mark.parametrize(
    ("options", "method", "fields", "pieces"),
    [
        *((f"{name} PUT", "PUT", (), ()) for name in ("-X", "--request")),
        *((name, "HEAD", (), ()) for name in ("-I", "--head")),
        *((f"{name} A:b", "GET", (("A", "b"),), ()) for name in ("-H", "--header")),
        *(
            (f"{name} a", "POST", (), (Piece(b"a"),))
            for name in ("-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--json")
        ),
        *(
            (f"{name} @f", "POST", (), (Piece(file="f", is_text=True),))
            for name in ("-d", "--data", "--data-ascii")
        ),
        *((f"{name} @f", "POST", (), (Piece(file="f"),)) for name in ("--data-binary", "--json")),
        ("--data-raw @f", "POST", (), (Piece(b"@f"),)),
    ],
)
def test_options_that_make_the_request(
    options: str, method: str, fields: tuple[tuple[str, str], ...], pieces: tuple[Piece, ...]
) -> None:
    assert parse_written(f"curl {options} http://h/x".encode()) == WrittenRequest(
        method, "/x", fields, pieces
    )


def test_headers_are_found_in_any_case() -> None:
    assert parse_written(RAW).values("X-SERVICE-APIKEY") == ["ak-1"]
