from string import ascii_letters, digits
from unicodedata import category
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from sealgate.core.target import Target, parse_target
from sealgate.errors import Refusal

PREFIX = "/v1/trade"


def refusal(raw: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        parse_target(raw, PREFIX)
    return caught.value


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param("/v1/trade/..", "dot segment", id="dot-dot at the end"),
        pytest.param("/v1/trade/../wallet", "dot segment", id="dot-dot inside"),
        pytest.param("/../v1/trade/order", "dot segment", id="dot-dot first"),
        pytest.param("/v1/trade/.", "dot segment", id="dot at the end"),
        pytest.param("/v1/trade/./order", "dot segment", id="dot inside"),
        pytest.param("/v1/trade/../trade/order?a=1", "dot segment", id="dot-dot before a query"),
        pytest.param("/v1/trade/..?a=1", "dot segment", id="dot-dot at the end before a query"),
        pytest.param("/v1/trade/%2e%2e/wallet", "needs no escape", id="escaped dot-dot"),
        pytest.param("/v1/trade/%2E./wallet", "needs no escape", id="half escaped dot-dot"),
        pytest.param("/v1/trade/%2e", "needs no escape", id="escaped dot"),
        pytest.param("/v1/trade/..%2fwallet", "separator", id="dot-dot with an escaped slash"),
        pytest.param("/v1/trade/..;/wallet", "or a ;", id="dot-dot with a parameter"),
        pytest.param("/v1/trade/%252e%252e/wallet", "separator", id="twice escaped dot-dot"),
        pytest.param("//v1//trade/order", "empty segment", id="empty segments in the prefix"),
        pytest.param("//evil.example/v1/trade/order", "empty segment", id="network path"),
        pytest.param("/v1/trade//order", "empty segment", id="empty segment"),
        pytest.param("/v1/trade/order//", "empty segment", id="empty segment at the end"),
        pytest.param("/v1/trade\\order", "does not allow", id="backslash"),
        pytest.param("\\v1\\trade\\order", "begins with /", id="backslash first"),
        pytest.param("/v1/trade/order;a=1", "or a ;", id="semicolon"),
        pytest.param("/v1/trade/order#part", "does not allow", id="fragment"),
        pytest.param("/v1/trade/order?a=1#part", "does not allow", id="fragment after a query"),
        pytest.param("/v1/trade/order?a=1;b=2", "or a ;", id="semicolon in the query"),
        pytest.param("/v1%2Ftrade/order", "separator", id="escaped slash in the prefix"),
        pytest.param("/v1/trade/a%2fb", "separator", id="escaped slash"),
        pytest.param("/v1/trade/a%5Cb", "separator", id="escaped backslash"),
        pytest.param("/v1/trade/a%3Bb", "separator", id="escaped semicolon"),
        pytest.param("/v1/trade/a%3fb", "separator", id="escaped question mark"),
        pytest.param("/v1/trade/a%23b", "separator", id="escaped hash"),
        pytest.param("/v1/trade/a%25b", "separator", id="escaped percent"),
        pytest.param("/v1/trade/a%20%2Fb", "separator", id="escaped slash after a harmless escape"),
        pytest.param("/v1/trade/a%00b", "control character", id="escaped NUL"),
        pytest.param("/v1/trade/a%0D%0Ab", "control character", id="escaped line end"),
        pytest.param("/v1/trade/a%1F", "control character", id="escaped last of C0"),
        pytest.param("/v1/trade/a%7F", "control character", id="escaped DEL"),
        pytest.param("/v1/trade/a%C2%80b", "control character", id="escaped first of C1"),
        pytest.param("/v1/trade/a%c2%9fb", "control character", id="escaped last of C1"),
        pytest.param("/v1/trade/a?b=%00", "NUL", id="escaped NUL in the query"),
        pytest.param("/v1/trade/a\x00b", "does not allow", id="NUL"),
        pytest.param("/v1/trade/a\tb", "does not allow", id="tab"),
        pytest.param("/v1/trade/order\n", "does not allow", id="line end at the end"),
        pytest.param("/v1/trade/order?a=1\n", "does not allow", id="line end after the query"),
        pytest.param("/v1/trade/a\x7fb", "does not allow", id="DEL"),
        pytest.param("/v1/trade/a b", "does not allow", id="space"),
        pytest.param("/v1/trade/a?b=c d", "does not allow", id="space in the query"),
        pytest.param("/%761/trade/order", "needs no escape", id="escaped letter in the prefix"),
        pytest.param("/v1/trade/%6Frder", "needs no escape", id="escaped letter"),
        pytest.param("/v1/trade/%20%41", "needs no escape", id="escaped letter after a harmless escape"),
        pytest.param("/v1/trade/%39", "needs no escape", id="escaped digit"),
        pytest.param("/v1/trade/api%2Dkeys", "needs no escape", id="escaped hyphen"),
        pytest.param("/v1/trade/%7Eme", "needs no escape", id="escaped tilde"),
        pytest.param("/v1/trade/a%5Fb", "needs no escape", id="escaped underscore"),
        pytest.param("/v1/trade/a%", "does not allow", id="lone percent"),
        pytest.param("/v1/trade/a%2", "does not allow", id="cut escape"),
        pytest.param("/v1/trade/a%zz", "does not allow", id="bad escape"),
        pytest.param("/v1/trade/a?b=%", "does not allow", id="lone percent in the query"),
        pytest.param("/v1/trade/a?b=%g0", "does not allow", id="bad escape in the query"),
        pytest.param("/v1/trade/%u002e", "does not allow", id="percent u"),
        pytest.param("/v1/trade/%C0%AE", "not UTF-8", id="overlong dot"),
        pytest.param("/v1/trade/%E0%80%AF", "not UTF-8", id="overlong slash"),
        pytest.param("/v1/trade/%ED%A0%80", "not UTF-8", id="surrogate"),
        pytest.param("/v1/trade/%C3", "not UTF-8", id="cut UTF-8"),
        pytest.param("/v1/trade/%C3x%A9", "not UTF-8", id="torn UTF-8"),
        pytest.param("/v1/trade/%FF", "not UTF-8", id="no UTF-8"),
        pytest.param("/v1/trade/é", "does not allow", id="non-ASCII"),
        pytest.param("/v1/trade/\u2025/wallet", "does not allow", id="two dot leader"),
        pytest.param("/v1/trade/a?b=é", "does not allow", id="non-ASCII in the query"),
        *(
            pytest.param(f"/v1/trade/a{mark}b", "does not allow", id=f"{mark} in the path")
            for mark in '"<>|^{}`[]'
        ),
        *(
            pytest.param(f"/v1/trade/a?b={mark}", "does not allow", id=f"{mark} in the query")
            for mark in '"<>|^{}`\\'
        ),
        pytest.param("/v1/trade/order?", "leave out the ?", id="bare question mark"),
        pytest.param("http://evil.example/v1/trade/order", "begins with /", id="absolute form"),
        pytest.param("HTTPS://evil.example/", "begins with /", id="absolute form in capitals"),
        pytest.param("evil.example:443", "begins with /", id="authority form"),
        pytest.param("*", "begins with /", id="asterisk form"),
        pytest.param("v1/trade/order", "begins with /", id="relative"),
        pytest.param("?a=1", "begins with /", id="query alone"),
        pytest.param("", "begins with /", id="nothing"),
    ],
)
def test_what_has_two_readings_is_refused(raw: str, why: str) -> None:
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
        pytest.param("/", id="root"),
        pytest.param("/v1", id="part of the prefix"),
        pytest.param("/v1/trade", id="prefix without the slash"),
        pytest.param("/v1/trade?a=1", id="prefix without the slash, with a query"),
        pytest.param("/v1/tradeorder", id="prefix that goes on"),
        pytest.param("/V1/TRADE/order", id="upper-cased"),
        pytest.param("/v1/Trade/order", id="partly upper-cased"),
        pytest.param("/v2/trade/order", id="other version"),
        pytest.param("/x/v1/trade/order", id="prefix further in"),
        pytest.param("/metrics?next=/v1/trade/order", id="prefix in the query"),
    ],
)
def test_other_paths_are_outside(raw: str) -> None:
    answer = refusal(raw)
    assert answer.slug == "outside_prefix"
    assert f"under {PREFIX}/" in answer.detail


@pytest.mark.parametrize(
    ("raw", "path", "query"),
    [
        pytest.param("/v1/trade/", "/v1/trade/", None, id="prefix alone"),
        pytest.param("/v1/trade/time", "/v1/trade/time", None, id="plain"),
        pytest.param("/v1/trade/api-keys/", "/v1/trade/api-keys/", None, id="slash at the end"),
        pytest.param("/v1/trade/...", "/v1/trade/...", None, id="three dots"),
        pytest.param("/v1/trade/.well-known/a..b", "/v1/trade/.well-known/a..b", None, id="dots in names"),
        pytest.param("/v1/trade/-._~!$&'()*+,=:@", "/v1/trade/-._~!$&'()*+,=:@", None, id="all plain marks"),
        pytest.param("/v1/trade/xyz:ABC", "/v1/trade/xyz:ABC", None, id="symbol with a colon"),
        pytest.param("/v1/trade/xyz%3aABC", "/v1/trade/xyz%3aABC", None, id="escaped colon"),
        pytest.param("/v1/trade/a%20b", "/v1/trade/a%20b", None, id="escaped space"),
        pytest.param("/v1/trade/%C3%A9%e2%9c%93", "/v1/trade/%C3%A9%e2%9c%93", None, id="UTF-8"),
        pytest.param("/v1/trade/%C2%A0", "/v1/trade/%C2%A0", None, id="first after C1"),
        pytest.param("/v1/trade/a?b=1&b=2", "/v1/trade/a", "b=1&b=2", id="duplicates"),
        pytest.param("/v1/trade/a?b=%2B+%20%3A", "/v1/trade/a", "b=%2B+%20%3A", id="escapes of the query"),
        pytest.param(
            "/v1/trade/a?%41=%7e&x=%ff", "/v1/trade/a", "%41=%7e&x=%ff", id="any octet in the query"
        ),
        pytest.param("/v1/trade/a??b=//../[0]", "/v1/trade/a", "?b=//../[0]", id="marks of the query"),
        pytest.param("/v1/trade/a?b=", "/v1/trade/a", "b=", id="empty value"),
    ],
)
def test_what_has_one_reading_is_taken_as_it_came(raw: str, path: str, query: str | None) -> None:
    assert parse_target(raw, PREFIX) == Target(raw, path, query)


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


@given(harmless | tricky | st.text().map(f"{PREFIX}/{{}}".format))
@example(f"{PREFIX}/a%C2%85b")
def test_whatever_is_accepted_has_one_reading(raw: str) -> None:
    """What is accepted means the same to other parsers, and stays where it is however often it is decoded."""
    try:
        target = parse_target(raw, PREFIX)
    except Refusal:
        return
    assert raw == target.raw == target.path + ("" if target.query is None else f"?{target.query}")
    assert (urlsplit(raw).path, urlsplit(raw).query) == (target.path, target.query or "")
    url = URL(raw, encoded=True)
    assert (url.raw_path, url.raw_query_string) == (target.path, target.query or "")
    assert_stays_in_place(target.path)


def assert_stays_in_place(path: str) -> None:
    decoded = unquote(path, errors="strict")
    assert unquote(decoded) == decoded
    assert decoded.startswith(f"{PREFIX}/")
    assert "\\" not in decoded
    assert not [letter for letter in decoded if category(letter) == "Cc"]
    first, *middle, last = decoded.split("/")
    assert first == ""
    assert not {"", ".", ".."} & set(middle)
    assert last not in {".", ".."}


@given(st.text() | tricky | st.text(st.characters(codec="latin-1")), st.sampled_from((PREFIX, "", "/a")))
def test_any_text_is_accepted_or_refused(raw: str, prefix: str) -> None:
    try:
        parse_target(raw, prefix)
    except Refusal as answer:
        assert answer.slug in {"ambiguous_target", "outside_prefix"}  # noqa: PT017 - or it is accepted
