"""A bot's own token in what it sends, in whatever form."""

import base64
import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from sealgate.streams.own_token import OwnToken

TOKEN = "cA-3_token~of+a/bot=1"
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=60)


@given(TOKENS, st.binary(max_size=20), st.binary(max_size=20))
def test_it_is_found_plain_and_in_base64(token: str, before: bytes, behind: bytes) -> None:
    own, whole = OwnToken(token.encode()), before + token.encode() + behind
    assert own.is_in(whole)
    assert own.is_in(b'{"x":"' + base64.b64encode(whole) + b'"}')
    assert own.is_in(base64.urlsafe_b64encode(whole).rstrip(b"="))


def test_it_is_found_escaped() -> None:
    own = OwnToken(TOKEN.encode())
    assert own.is_in(f"ws://grid:{quote(TOKEN, safe='')}@host/".encode())
    assert own.is_in("".join(f"%{ord(letter):02x}" for letter in TOKEN).encode())
    assert own.is_in("".join(f"\\u{ord(letter):04X}" for letter in TOKEN).encode())
    assert own.is_in(json.dumps({"x": TOKEN}).replace("t", "\\u0074").encode())


@given(st.binary(max_size=300))
def test_nothing_else_is_taken_for_it(data: bytes) -> None:
    assert not OwnToken(TOKEN.encode()).is_in(data)
    assert not OwnToken(b"").is_in(data)
