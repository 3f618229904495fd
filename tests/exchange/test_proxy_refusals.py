"""What a proxy's answer means, in words with the fix."""

import pytest

from sealgate.exchange.proxy_refusals import refused_connect, refused_socks


@pytest.mark.parametrize(
    ("status", "has_login", "words"),
    [
        (407, False, "requires a user (407); write its user in upstream.proxy"),
        (407, True, "does not accept user and password (407); correct the user"),
        (403, False, "does not allow a connection to the exchange (403); allow that in the proxy"),
        (405, False, "does not allow CONNECT (405); upstream.proxy must name an http proxy"),
        (503, False, "cannot reach the exchange, or is overloaded (503); check base_url"),
        (302, False, "opens no tunnel (302); see upstream.proxy"),
        (None, False, "does not speak HTTP; check scheme and port of upstream.proxy"),
    ],
)
def test_a_reply_to_connect(status: int | None, words: str, *, has_login: bool) -> None:
    assert refused_connect(status, has_login=has_login).startswith(words)


@pytest.mark.parametrize(
    ("code", "heard", "has_login", "words"),
    [
        (None, b"\x05\xff", False, "requires a user and a password; write its user in upstream.proxy"),
        (None, b"\x05\xff", True, "accepts no user and password; see upstream.proxy"),
        (None, b"\x01\x01", True, "does not accept user and password; correct the user"),
        (None, b"HT", False, "does not speak SOCKS5; check scheme and port of upstream.proxy"),
        (None, b"HTT", False, "does not speak SOCKS5; check scheme and port of upstream.proxy"),
        (None, b"\x05\xf1\x00", False, "opens no tunnel (reply 241); see upstream.proxy"),
        (2, b"\x05\x02\x00", False, "does not allow a connection to the exchange (reply 2)"),
        (
            8,
            b"\x05\x08\x00",
            False,
            "does not accept this kind of address (reply 8); write a name in base_url",
        ),
        (0, b"\x05\x00\x01", False, "opens no tunnel (reply 0)"),
    ],
)
def test_an_answer_of_socks5(code: int | None, heard: bytes, words: str, *, has_login: bool) -> None:
    assert refused_socks(code, heard, has_login=has_login).startswith(words)
