from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target, reached_by_proxy

PREFIX = "/v1/trade"


def refusal(raw: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        parse_target(raw, PREFIX)
    return caught.value


AMBIGUOUS = {
    "dot segment": [
        *("/v1/trade/..", "/v1/trade/../wallet", "/../v1/trade/order", "/v1/trade/.", "/v1/trade/./order"),
        *("/v1/trade/../trade/order?a=1", "/v1/trade/..?a=1", "/v1/trade/../../../../etc/passwd"),
    ],
    "needs no escape": [
        *("/v1/trade/%2e%2e/wallet", "/v1/trade/%2E./wallet", "/v1/trade/%2e", "/%761/trade/order"),
        *("/v1/trade/%6Frder", "/v1/trade/%20%41", "/v1/trade/%39", "/v1/trade/api%2Dkeys"),
        *("/v1/trade/%7Eme", "/v1/trade/a%5Fb"),
    ],
    "separator": [
        *("/v1/trade/..%2fwallet", "/v1/trade/%252e%252e/wallet", "/v1%2Ftrade/order", "/v1/trade/a%2fb"),
        *("/v1/trade/a%5Cb", "/v1/trade/a%3Bb", "/v1/trade/a%3fb", "/v1/trade/a%23b", "/v1/trade/a%25b"),
        "/v1/trade/a%20%2Fb",
    ],
    "a ;, which": [
        *("/v1/trade/..;/wallet", "/v1/trade/order;a=1", "/v1/trade/order?a=1;b=2", "/v1/trade;x/order"),
    ],
    "empty segment": [
        *(
            "//v1//trade/order",
            "///v1/trade/order",
            "//evil.example/v1/trade/order",
            "/v1/trade//order",
            "/v1/trade/order//",
        ),
    ],
    "does not allow": [
        *("/v1/trade\\order", "/v1/trade/order#part", "/v1/trade/order?a=1#part", "/v1/trade/a\x00b"),
        *("/v1/trade/a\tb", "/v1/trade/order\n", "/v1/trade/order?a=1\n", "/v1/trade/a\x7fb"),
        *("/v1/trade/a b", "/v1/trade/a?b=c d", "/v1/trade/a%", "/v1/trade/a%2", "/v1/trade/a%zz"),
        *("/v1/trade/a?b=%", "/v1/trade/a?b=%g0", "/v1/trade/%u002e", "/v1/trade/é", "/v1/trade/‥/wallet"),
        *("/v1/trade/a?b=é", "/v1/trade/..\\wallet", "/\\evil.com/v1/trade/order", "/v1/trade%u2215wallet"),
        *("/v1/trade/a%+2e", "/v1/trade/100%"),
        *(f"/v1/trade/a{mark}b" for mark in '"<>|^{}`[]'),
        *(f"/v1/trade/a?b={mark}" for mark in '"<>|^{}`\\'),
    ],
    "begins with /": [
        *("\\v1\\trade\\order", "http://evil.example/v1/trade/order", "HTTPS://evil.example/"),
        *("evil.example:443", "*", "v1/trade/order", "?a=1", "", "http://localhost@evil.com/v1/trade/order"),
        *("ftp://localhost/v1/trade/order", "https://[]@", "http:///v1/trade/order"),
    ],
    "control character": [
        *("/v1/trade/a%00b", "/v1/trade/a%0D%0Ab", "/v1/trade/a%1F", "/v1/trade/a%7F"),
        *("/v1/trade/%09order", "/v1/trade/order%0d%0aX-Evil:%201"),
        *("/v1/trade/a%C2%80b", "/v1/trade/a%c2%9fb"),
    ],
    "NUL": [
        "/v1/trade/a?b=%00",
    ],
    "not UTF-8": [
        *("/v1/trade/%C0%AE", "/v1/trade/%E0%80%AF", "/v1/trade/%ED%A0%80", "/v1/trade/%C3"),
        *("/v1/trade/%C3x%A9", "/v1/trade/%FF", "/v1/trade/..%f0%80%80%afwallet", "/v1/trade/%f4%90%80%80"),
    ],
    "longer than 8000 bytes": [
        "/v1/trade/" + "a/" * 4000,
    ],
    "remove the ?": [
        "/v1/trade/order?",
    ],
}


@pytest.mark.parametrize(("why", "raw"), [(why, raw) for why, raws in AMBIGUOUS.items() for raw in raws])
def test_what_has_two_readings_is_refused(why: str, raw: str) -> None:
    answer = refusal(raw)
    assert answer.slug == "ambiguous_target"
    assert why in answer.detail


def test_no_unreserved_character_may_be_escaped() -> None:
    """RFC 3986 section 2.3 lists them."""
    for mark in f"{ascii_letters}{digits}-._~":
        assert "needs no escape" in refusal(f"/v1/trade/a%{ord(mark):02X}").detail, mark


@pytest.mark.parametrize(
    "raw",
    [
        *("/", "/v1", "/v1/trade", "/v1/trade?a=1", "/v1/tradeorder", "/V1/TRADE/order", "/v1/Trade/order"),
        *("/v2/trade/order", "/x/v1/trade/order", "/metrics?next=/v1/trade/order", "/v1/trade./order"),
        *("/v1/trade%20/order", "/_sandbox/journal", "/-/reload", "/v1/wallet/withdraw"),
    ],
)
def test_other_paths_are_outside(raw: str) -> None:
    answer = refusal(raw)
    assert answer.slug == "outside_prefix"
    assert f"under {PREFIX}/" in answer.detail


@pytest.mark.parametrize(
    "raw",
    [
        *("/v1/trade/", "/v1/trade/time", "/v1/trade/api-keys/", "/v1/trade/..."),
        *("/v1/trade/.well-known/a..b", "/v1/trade/-._~!$&'()*+,=:@", "/v1/trade/xyz:ABC"),
        *("/v1/trade/xyz%3aABC", "/v1/trade/a%20b", "/v1/trade/%C3%A9%e2%9c%93", "/v1/trade/%C2%A0"),
        *("/v1/trade/a?b=1&b=2", "/v1/trade/a?b=%2B+%20%3A", "/v1/trade/a?%41=%7e&x=%ff"),
        *("/v1/trade/a??b=//../[0]", "/v1/trade/a?b="),
    ],
)
def test_what_has_one_reading_is_taken_as_it_came(raw: str) -> None:
    path, mark, query = raw.partition("?")
    assert parse_target(raw, PREFIX) == Target(raw, path, query if mark else None)


PLAIN = (*"aZ09-_~!$&'()*+,=:@", "%20", "%3A", "%3a", "%C3%A9", "%F0%9F%9A%80")
TRICKY = (
    *'/.%?#;\\[]{}|^`<>"é \t\n\x00\x7f\x85',
    *("..", "/../", "/./", "//", "%2e", "%2E", "%2F", "%5c", "%00", "%0a", "%25", "%7f", "%41", "%u0041"),
    *("%C0%AE", "%c2%85", "%C3", "%FF", "http://", PREFIX, PREFIX.upper()),
)
segments = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=4).map("".join)
queries = st.lists(st.sampled_from((*PLAIN, "/", "?", "..", "%2F", "%ff")), min_size=1).map("".join)
harmless = st.builds(
    lambda parts, slash, query: PREFIX + "/" + "/".join(parts) + slash + query,
    st.lists(segments, min_size=1, max_size=4),
    st.sampled_from(("", "/")),
    st.just("") | queries.map("?{}".format),
)
tricky = st.builds(
    lambda start, pieces: start + "".join(pieces),
    st.sampled_from((PREFIX + "/", PREFIX, "/", "")),
    st.lists(st.sampled_from(PLAIN + TRICKY), max_size=6),
)


@given(harmless)
def test_harmless_targets_are_accepted(raw: str) -> None:
    assert parse_target(raw, PREFIX).raw == raw


@given(st.text() | tricky | st.text(st.characters(codec="latin-1")), st.sampled_from((PREFIX, "", "/a")))
def test_any_text_is_accepted_or_refused(raw: str, prefix: str) -> None:
    try:
        parse_target(raw, prefix)
    except Refusal as answer:
        assert answer.slug in {"ambiguous_target", "outside_prefix"}  # noqa: PT017 - or it is accepted


UNESCAPED = "which RFC 3986 does not allow unescaped; it is written "
NO_ESCAPE = "a % that does not begin an escape, which RFC 3986 does not allow"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (f"{PREFIX}/x?note=café", f"the query has é, {UNESCAPED}%C3%A9"),
        (f"{PREFIX}/日本", f"the path has 日, {UNESCAPED}%E6%97%A5"),
        (f'{PREFIX}/x?a={{"b":1}}', f"the query has {{, {UNESCAPED}%7B"),
        (f"{PREFIX}/x?a=;b", "the query has a ;, which the gateway does not allow there"),
        (f"{PREFIX}/x;a", "the path has a ;, which the gateway does not allow there"),
        (f"{PREFIX}/100%", "the path has a % that does not begin an escape, which RFC 3986 does not allow"),
        (f"{PREFIX}/x?a=100%", f"the query has {NO_ESCAPE}; a plain % is written %25"),
        (f"{PREFIX}/x?a=\x07", f"the query has an invisible character, {UNESCAPED}%07"),
        (f"{PREFIX}/x?a=b c", f"the query has an invisible character, {UNESCAPED}%20"),
    ],
)
def test_a_character_that_must_be_escaped_is_named_with_its_escape(target: str, why: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_target(target, PREFIX)
    assert (caught.value.slug, caught.value.detail) == ("ambiguous_target", f"Refused because {why}.")


@pytest.mark.parametrize(
    ("method", "target", "exchange"),
    [
        ("CONNECT", "api.bybit.com:443", "https://api.bybit.com"),
        ("CONNECT", "api.bybit.com:8443", "https://api.bybit.com:8443"),
        ("CONNECT", "[2001:db8::1]:443", "https://[2001:db8::1]"),
        ("CONNECT", "*", ""),
        ("CONNECT", f"{PREFIX}/x", ""),
        ("GET", "http://api.bybit.com/v5/market/time", "http://api.bybit.com"),
        ("GET", "HTTPS://grid:TOKEN@api.bybit.com:8443?x", "https://api.bybit.com:8443"),
        ("GET", "http://[::1]:8787", "http://[::1]:8787"),
        ("POST", "/https://api.bybit.com/v5/order/create", "https://api.bybit.com"),
        ("GET", "/http://", None),
        ("GET", "http://", None),
        ("GET", "http://api.bybit.com:port/", None),
        ("GET", "ftp://api.bybit.com/", None),
        ("GET", "*", None),
        ("GET", f"{PREFIX}/x?url=http://api.bybit.com", None),
        ("GET", f"{PREFIX}/http://api.bybit.com", None),
    ],
)
def test_what_a_client_sends_that_takes_the_gateway_for_a_proxy(
    method: str, target: str, exchange: str | None
) -> None:
    assert reached_by_proxy(method, target) == exchange
