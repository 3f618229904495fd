"""Whatever target is accepted means the same path to everybody who may read it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.readings import READERS, check_one_reading, nginx_path
from sealgate.errors import Refusal
from sealgate.http.target import Target, parse_target

PREFIX = "/v1/trade"
PIECES = (
    *("/", "//", ".", "..", "/./", "/../", "%2e", "%2E", "%2f", "%5c", "\\", ";", "#", "?", "%", "%%"),
    *(
        *("%00", "%0a", "%20", "%25", "%252e", "%3F", "%7f", "%41", "%c0%ae", "%C3%A9", "%c2%85"),
        *("%ff", "%u002e"),
    ),
    *(
        *("a", "Z", "0", "-", "_", "~", "!", "$", "&", "'", "(", ")", "*", "+", ",", "=", ":", "@", " "),
        *("é", "\0"),
    ),
    *("wallet", PREFIX, "http://evil.com", "[", "]", "{", "|", "^", "`", '"', "<", "\n", "\r", "\t", "\x85"),
)
targets = st.builds(
    lambda start, pieces: start + "".join(pieces),
    st.sampled_from((f"{PREFIX}/", f"{PREFIX}/", f"{PREFIX}/", PREFIX, "/", "")),
    st.lists(st.sampled_from(PIECES) | st.characters(codec="latin-1"), max_size=8),
)
plain = st.builds(
    lambda segments, query: "/".join((PREFIX, *segments)) + query,
    st.lists(st.text("aZ0-._~!$&'()*+,=:@", min_size=1), min_size=1),
    st.sampled_from(("", "?a=%2F..", "?//../")),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(targets | plain | st.text().map(f"{PREFIX}/{{}}".format))
def test_what_is_accepted_has_one_reading(raw: str) -> None:
    try:
        target = parse_target(raw, PREFIX)
    except Refusal:
        return
    check_one_reading(raw, PREFIX, target)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/v1/trade/order?a=/../b", b"/v1/trade/order"),
        ("/v1/trade/../wallet", b"/v1/wallet"),
        ("/v1/trade/%2e%2e/wallet", b"/v1/wallet"),
        ("/v1/trade/..%2fwallet", b"/v1/wallet"),
        ("//v1//trade///order", b"/v1/trade/order"),
        ("/v1%2Ftrade/./order/", b"/v1/trade/order/"),
        ("/v1/trade/order/..", b"/v1/trade/"),
        ("/v1/trade/.", b"/v1/trade/"),
        ("/v1/trade/order#/../b", b"/v1/trade/order"),
        ("/v1/trade/%C3%a9%2B", b"/v1/trade/\xc3\xa9+"),
        ("/..", None),
        ("/../v1", None),
        ("/v1/%00", None),
        ("/v1/%zz", None),
        ("v1", None),
    ],
)
def test_the_model_of_nginx(raw: str, path: bytes | None) -> None:
    assert nginx_path(raw) == path


@pytest.mark.parametrize(
    "raw",
    [
        "/v1/trade/../wallet",
        "/v1/trade/%2e%2e/wallet",
        "/v1/trade//order",
        "/v1/trade/a%252fb",
        "/v1/trade/a\\b",
        "/v1/trade/a;b",
        "/v1/trade/a#b",
        "/v1/tradeorder",
        "//evil.com/v1/trade/a",
    ],
)
def test_the_readers_would_disagree_on_what_is_refused(raw: str) -> None:
    """So the property can fail."""
    with pytest.raises(Refusal):
        parse_target(raw, PREFIX)
    path, mark, query = raw.partition("?")
    with pytest.raises(AssertionError):
        check_one_reading(raw, PREFIX, Target(raw, path, query if mark else None))


@pytest.mark.parametrize("raw", ["/v1/trade/order", "/v1/trade/a%20b/", "/v1/trade/%C3%A9?x=%2F"])
def test_the_readers_agree_on_what_is_plain(raw: str) -> None:
    target = parse_target(raw, PREFIX)
    assert len({reader(target) for reader in READERS.values()}) == 1
