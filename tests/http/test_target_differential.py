"""Whatever target is accepted means the same path to everybody who may read it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.readings import check_one_reading
from sealgate.errors import Refusal
from sealgate.http.target import parse_target

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
