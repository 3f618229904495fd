import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.errors import Refusal
from sealgate.http.headers import (
    HeaderRules,
    ReplyHead,
    content_length,
    header_lines,
    is_settable,
    sort_reply,
    without_coding,
)

RULES = HeaderRules(default_venue().own_headers)

KEPT = (
    *(b"authorization", b"content-length", b"connection", b"expect", b"host", b"idempotency-key"),
    *(b"origin", b"referer", b"sec-fetch-site", b"transfer-encoding", b"upgrade"),
    *(b"x-gateway-deadline-ms", b"x-gateway-key", b"x-gateway-request-id"),
    b"x-gateway-valid-ms",
)
DROPPED = (
    *(b"cf-connecting-ip", b"client-ip", b"cookie", b"cookie2", b"fastly-client-ip", b"forwarded"),
    *(b"front-end-https", b"http2-settings", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
    *(b"proxy-connection", b"proxy-anything", b"te", b"trailer", b"true-client-ip", b"x-accel-redirect"),
    *(b"x-client-ip", b"x-cluster-client-ip", b"x-envoy-original-path", b"x-forwarded"),
    *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-gateway-anything"),
    *(b"x-gateway-outcome", b"x-host", b"x-http-host-override", b"x-http-method"),
    *(b"x-http-method-override", b"x-http-path-override", b"x-method", b"x-method-override"),
    *(b"x-original-host", b"x-original-method", b"x-original-uri", b"x-original-url", b"x-originating-ip"),
    *(b"x-passkey-token", b"x-real-ip", b"x-remote-addr", b"x-remote-ip", b"x-rewrite-url", b"x-scheme"),
    *(b"x-url-scheme", b"x-service-apikey", b"x-service-signature"),
    *(b"x-service-timestamp", b"x-service-anything"),
)
FORWARDED = (
    *(b"accept", b"accept-encoding", b"content-encoding", b"content-type", b"cookies", b"if-none-match"),
    *(b"range", b"sec-fetch-mode", b"user-agent", b"x-passkey", b"x-request-id"),
    *(b"x-service", b"x-servicekey"),
)
READ = (b"referer",)  # and passed on
FORBIDDEN = frozenset(KEPT + DROPPED).difference(READ)
FORBIDDEN_PREFIXES = (
    *(b"x-service-", b"x-gateway-", b"x-forwarded-", b"x-http-", b"x-original-", b"x-rewrite-"),
    *(b"x-envoy-", b"x-accel-", b"proxy-"),
)
# These say where the body ends, so they have one spelling (but for case).
FRAMING = (b"content-length", b"transfer-encoding")


def assert_refused(name: bytes, detail: str) -> None:
    with pytest.raises(Refusal) as caught:
        RULES.sort([(name, b"v")])
    assert (caught.value.slug, caught.value.detail) == ("bad_request", detail)


SPELLINGS: tuple[Callable[[bytes], bytes], ...] = (
    bytes.lower,
    bytes.upper,
    bytes.title,
    lambda name: name.replace(b"-", b"_"),
    lambda name: name.upper().replace(b"-", b"_", 1),
    lambda name: name.replace(b"-", b"."),
    lambda name: name.upper().replace(b"-", b"+"),
    lambda name: name.title().replace(b"-", b"~", 1),
)
# What servers make of a header's name on its way to the application: CGI, PHP, lighttpd's CGI.
MANGLINGS: dict[str, Callable[[bytes], bytes]] = {
    "CGI": lambda name: name.upper().replace(b"-", b"_"),
    "PHP": lambda name: name.upper().translate(bytes.maketrans(b"-.", b"__")),
    "lighttpd": lambda name: re.sub(rb"[^0-9A-Z]", b"_", name.upper()),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_gateway_keeps_what_speaks_to_it(name: bytes) -> None:
    for spelled in {spell(name) for spell in SPELLINGS}:
        if name in FRAMING and spelled.lower() != name:
            assert_refused(spelled, f"The header {name.decode()} must be written with hyphens.")
            continue
        head = RULES.sort([(spelled, b"v")])
        assert head.kept == {name: b"v"}
        assert head.passed == (spelled + b": v\r\n" if name in READ else b"")


@pytest.mark.parametrize("name", DROPPED)
def test_what_could_speak_for_the_gateway_ends_here(name: bytes) -> None:
    for spell in SPELLINGS:
        head = RULES.sort([(spell(name), b"v"), (b"Accept", b"*/*")])
        assert (head.kept, head.passed) == ({}, b"Accept: */*\r\n")


ONCE = {b"content-location", b"content-range", b"content-type", b"max-forwards", b"user-agent"}


@pytest.mark.parametrize("name", FORWARDED)
def test_end_to_end_fields_pass_as_they_came(name: bytes) -> None:
    for spell in SPELLINGS:
        fields = [(spell(name), b"v1"), (b"A", b""), (spell(name), b"v2")][: 2 if name in ONCE else 3]
        assert RULES.sort(fields).passed == header_lines(fields)


@pytest.mark.parametrize("name", sorted(ONCE))
def test_what_may_come_once_is_refused_when_it_comes_twice(name: bytes) -> None:
    with pytest.raises(Refusal, match="occurs twice"):
        RULES.sort([(name, b"v1"), (b"A", b""), (name.upper(), b"v1")])


@pytest.mark.parametrize("prefix", ["X-EXCHANGE-", "x_exchange_", "X-Exchange", "X.Exchange+"])
@pytest.mark.parametrize(
    "name",
    [b"X-EXCHANGE-SIGNATURE", b"x-exchange-apikey", b"X_Exchange-Timestamp", b"X.EXCHANGE~SIGNATURE"],
)
def test_fields_of_a_configured_prefix_end_here_too(prefix: str, name: bytes) -> None:
    rules = HeaderRules(default_venue().overridden(header_prefix=prefix).own_headers)
    assert rules.sort([(name, b"v"), (b"X-Service-Signature", b"v")]).passed == b""
    assert RULES.sort([(name, b"v")]).passed == name + b": v\r\n"


@pytest.mark.parametrize(
    ("connection", "passed"),
    [
        pytest.param([b"close"], [b"X-A", b"X-B", b"x-a"], id="names no field"),
        pytest.param([b"X-A"], [b"X-B"], id="names one"),
        pytest.param([b"keep-alive ,\tx-b,"], [b"X-A", b"x-a"], id="among options"),
        pytest.param([b"X-A", b"x-b"], [], id="on two lines"),
        pytest.param([b""], [b"X-A", b"X-B", b"x-a"], id="empty"),
    ],
)
def test_fields_that_connection_names_end_here(connection: list[bytes], passed: list[bytes]) -> None:
    fields = [(b"Connection", value) for value in connection]
    fields += [(b"X-A", b"1"), (b"X-B", b"2"), (b"x-a", b"3")]
    left = [(name, value) for name, value in fields if name in passed]
    assert RULES.sort(fields).passed == header_lines(left)
    assert sort_reply(fields).passed == left


def test_connection_cannot_take_away_what_the_gateway_reads() -> None:
    head = RULES.sort([(b"Connection", b"Authorization, Host"), (b"Authorization", b"t"), (b"Host", b"h")])
    assert (head.text(b"authorization"), head.text(b"host")) == ("t", "h")


@pytest.mark.parametrize("name", sorted(set(KEPT) - {b"connection", b"upgrade"}))
def test_a_kept_field_comes_once(name: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        RULES.sort([(name, b"v"), (name.upper() if name in FRAMING else name.replace(b"-", b"_"), b"v")])
    assert caught.value.slug == "bad_request"
    assert caught.value.detail == f"The header {name.decode()} occurs twice."


@pytest.mark.parametrize("name", [b"connection", b"upgrade"])
def test_several_lines_of_a_list_are_one_list(name: bytes) -> None:
    head = RULES.sort([(name, b"a"), (name.upper(), b"b, c")])
    assert head.kept == {name: b"a, b, c"}


def test_a_head_does_not_show_the_token_in_it() -> None:
    assert "c4n4ry" not in repr(RULES.sort([(b"Authorization", b"Bearer c4n4ry")]))


def test_the_text_of_a_field_is_latin_1_or_nothing() -> None:
    head = RULES.sort([(b"Host", b"caf\xe9")])
    assert head.text(b"host") == "café"
    assert head.text(b"expect") is None


@pytest.mark.parametrize(
    "name",
    [
        *(b"access-control-allow-origin", b"access-control-expose-headers", b"connection"),
        *(b"content-length", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
        *(b"x-gateway-error", b"x-gateway-outcome"),
    ],
)
def test_a_reply_cannot_speak_as_the_gateway(name: bytes) -> None:
    for spell in SPELLINGS:
        assert sort_reply([(spell(name), b"v"), (b"Date", b"d")]).passed == [(b"Date", b"d")]


@pytest.mark.parametrize("name", [b"Transfer-Encoding ", b"Connection  ", b"X-GATEWAY-ERROR "])
def test_space_before_the_colon_hides_nothing(name: bytes) -> None:
    assert sort_reply([(name, b"v"), (b"Date", b"d")]).passed == [(b"Date", b"d")]


def test_a_length_with_space_before_the_colon_is_read_as_the_parser_reads_it() -> None:
    assert sort_reply([(b"Content-Length ", b"2")]) == ReplyHead([], {}, b"2", lines=b"")


@pytest.mark.parametrize(
    "name",
    [b"content-encoding", b"content-type", b"date", b"retry-after", b"set-cookie", b"x-ratelimit-used"],
)
def test_a_reply_passes_back_as_it_came(name: bytes) -> None:
    for spell in SPELLINGS:
        fields = [(spell(name), b"v1"), (b"Age", b""), (spell(name), b"v2")]
        assert sort_reply(iter(fields)).passed == fields


def test_what_the_gateway_reads_of_a_reply() -> None:
    """All lines count for the limit, the first for the length; what is of neither is told to nobody."""
    head = sort_reply(
        [
            (b"Content-Length", b"5"),
            (b"Retry-After", b"3600"),
            (b"retry-after", b"0"),
            (b"X-RateLimit-Limit", b"20"),
            (b"Date", b"d"),
        ]
    )
    assert head.limit_fields == {"retry-after": "3600\n0", "x-ratelimit-limit": "20"}
    assert head.length == b"5"
    assert sort_reply([(b"Date", b"d")]) == ReplyHead([(b"Date", b"d")], {}, None, lines=b"Date: d\r\n")
    codings = [(b"Transfer-Encoding ", b"GZIP"), (b"transfer-encoding", b"chunked")]
    assert sort_reply(codings) == ReplyHead([], {}, None, b"gzip,chunked", lines=b"")
    lives = [(b"keep-alive", b"timeout=5"), (b"Keep-Alive", b"max=9")]
    assert sort_reply(lives) == ReplyHead([], {}, None, keep_alive_s=5.0, lines=b"")


def spellings(name: bytes) -> st.SearchStrategy[bytes]:
    """Return all ways to write a name, letter by letter, and what only begins with it."""
    letters = [bytes([octet]) for octet in name]
    others = [bytes([octet]) for octet in SEPARATORS]
    ways = [st.sampled_from(others if letter == b"-" else (letter, letter.upper())) for letter in letters]
    return st.tuples(*ways, st.sampled_from((b"", b"x"))).map(b"".join)


SEPARATORS = b"!#$%&'*+-.^_`|~"
token = SEPARATORS + b"09azAZ"
names = st.sampled_from(FORBIDDEN_PREFIXES + KEPT + DROPPED + FORWARDED).flatmap(spellings) | st.lists(
    st.sampled_from(token), min_size=1
).map(bytes)


@given(names)
def test_no_spelling_of_a_forbidden_name_passes(name: bytes) -> None:
    """What passes is as it came, and no server can take it for a field that is the gateway's."""
    try:
        passing = RULES.sort([(name, b"v")]).passed
    except Refusal:
        assert re.sub(rb"[^0-9a-z]", b"-", name.lower()) in FRAMING
        return
    if passing:
        assert passing == name + b": v\r\n"
        for mangle in MANGLINGS.values():
            assert mangle(name) not in map(mangle, FORBIDDEN)
            assert not mangle(name).startswith(tuple(map(mangle, FORBIDDEN_PREFIXES)))


def test_the_fields_are_bounded_together() -> None:
    """Each may be short enough for the parser, and all of them too much for the upstream."""
    half = [(b"X-Long", b"x" * (32 * 1024 - 6))]
    assert RULES.sort([*half, *half]).passed == header_lines([*half, *half])
    with pytest.raises(Refusal) as caught:
        RULES.sort([*half, *half, (b"a", b"")])
    assert caught.value.slug == "headers_too_large"


def test_fields_go_out_a_line_each() -> None:
    assert header_lines([(b"X-A", b"1"), (b"x-b", b"")]) == b"X-A: 1\r\nx-b: \r\n"
    assert content_length(0) == b"Content-Length: 0\r\n"
    assert content_length(2**63) == b"Content-Length: 9223372036854775808\r\n"


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        ([b"gzip, deflate, br, zstd"], b"gzip, deflate"),
        ([b"br;q=1.0, GZIP ;q=0.5,identity"], b"gzip ;q=0.5, identity"),
        ([b"br", b"gzip"], b"gzip"),
        ([b"*"], b"identity"),
        ([b""], b"identity"),
    ],
)
def test_where_replies_are_looked_into_they_come_in_a_coding_that_can_be(
    accepted: list[bytes], left: bytes
) -> None:
    rules = HeaderRules(default_venue().own_headers, reads_replies=True)
    fields = [(b"accept-Encoding", value) for value in accepted]
    assert rules.sort([*fields, (b"Accept", b"x")]).passed == b"Accept: x\r\nAccept-Encoding: %b\r\n" % left
    assert b"br" in RULES.sort([(b"Accept-Encoding", b"br")]).passed
    assert rules.sort([(b"Accept", b"x")]).passed == b"Accept: x\r\n"


def test_names_that_are_very_long_or_very_many_are_sorted_like_others() -> None:
    rules = HeaderRules(default_venue().own_headers)
    fields = [(b"X-Bot-%d" % number, b"v") for number in range(2000)]
    for field in [*fields, (b"X-" + b"a" * 100, b"v")]:
        for _ in range(2):
            assert field[0] + b": v\r\n" == rules.sort([field]).passed


@pytest.mark.parametrize(
    ("lines", "uncoded"),
    [
        (b"", b""),
        (b"A: 1\r\nAccept-Encoding: gzip, br\r\nB: 2\r\n", b"A: 1\r\nB: 2\r\n"),
        (b"accept-encoding:\r\nACCEPT-ENCODING : x\r\n", b""),
        (b"X-Accept-Encoding: gzip\r\nA: Accept-Encoding: gzip\r\n",) * 2,
    ],
)
def test_a_reply_that_is_to_be_edited_is_asked_for_without_a_coding(lines: bytes, uncoded: bytes) -> None:
    assert without_coding(lines) == uncoded + b"Accept-Encoding: identity\r\n"


def test_which_headers_a_setting_may_send_along() -> None:
    assert is_settable("x-simulated-trading")
    assert is_settable("User-Agent")
    for name in (
        "Host",
        "content-length",
        "Connection",
        "X-Gateway-Key",
        "Proxy-Authorization",
        "X_GATEWAY_KEY",
    ):
        assert not is_settable(name)
