"""A text for each member of a list, as exchanges sign batches of orders."""

import pytest

from sealgate.http.target import parse_target
from sealgate.venues.document import VenueError
from sealgate.venues.json_bytes import items_of
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.sealer import KeyTexts
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import read_venue


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (b"", []),
        (b'{"a": [1, 2]}', [b'{"a": [1, 2]}']),
        (b"a=1&b=[2]", [b"a=1&b=[2]"]),
        (b"[]", []),
        (b' [ 1.50 ,{"a": [2,3]},\n"],"\t] ', [b"1.50", b'{"a": [2,3]}', b'"],"']),
        ('["größe"]'.encode(), ['"größe"'.encode()]),
    ],
)
def test_the_members_of_a_list_keep_their_bytes(text: bytes, items: list[bytes]) -> None:
    assert items_of(text) == items


@pytest.mark.parametrize(
    "text", [b"[", b"[1 2]", b"[1,]", b"[1", b"[1] 2", b"[1]]", b"[NaN]", b"[\xff]", b"[" * 60_000]
)
def test_what_only_begins_as_a_list_is_refused(text: bytes) -> None:
    with pytest.raises(UnsignableError, match="must be a JSON list"):
        items_of(text)


FILE = """
name = "mine"
title = "Mine"
[signing]
message = "{before}{orders}time={timestamp}"
[signing.parts]
before = "{method}:"
orders = { each = "{body}", then = "order={path}&{item|as_form|sorted|amp}" }
[signing.headers]
SIGN = "{signature}"
"""


def message(body: bytes) -> bytes:
    signer = Signer(Kind.HMAC, bytes, b"")
    sealer = read_venue("mine.toml", FILE).sealer(KeyTexts("ak"), signer, "https://exchange.test")
    return sealer.message(7, b"", "POST", parse_target("/o", ""), body)


@pytest.mark.parametrize(
    ("body", "signed"),
    [
        (b'[{"b":"1","a":2.50},{"c":true}]', b"POST:order=/o&a=2.50&b=1&order=/o&c=true&time=7"),
        (b'{"b":"x y","a":1}', b"POST:order=/o&a=1&b=x%20y&time=7"),
        (b"{}", b"POST:order=/o&time=7"),
        (b"[]", b"POST:time=7"),
        (b"", b"POST:time=7"),
    ],
)
def test_each_member_has_its_text_and_an_object_is_the_only_one(body: bytes, signed: bytes) -> None:
    assert message(body) == signed


@pytest.mark.parametrize("body", [b'[{"a":{"b":1}}]', b"[1]", b"a=1"])
def test_members_that_cannot_be_written_so_are_refused(body: bytes) -> None:
    with pytest.raises(UnsignableError):
        message(body)


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ('orders = { each = "{body}" }', "orders: each takes then beside it, and no other key"),
        ('orders = { of = "{body}", then = "{item}" }', "unknown name {item}"),
    ],
)
def test_a_mistake_in_it_is_said(part: str, error: str) -> None:
    lines = FILE.splitlines()
    lines[7] = part
    with pytest.raises(VenueError, match=error.replace("{", r"\{")):
        read_venue("mine.toml", "\n".join(lines))
