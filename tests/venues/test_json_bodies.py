"""Members of the gateway in a bot's JSON body, and JSON that a file describes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.http.target import parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.json_bytes import MOST_BYTES, MOST_MEMBERS, cut_members, put_members
from sealgate.venues.own_parameters import BodyType
from sealgate.venues.sealer import JSON_LINE, Sealer
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Venue, VenueError, read_venue

NOW_MS = 1_790_000_000_387
HEAD = 'name = "mine"\ntitle = "Mine"\n[signing]\n'
BODY = 'nonce = "ms"\nmessage = "{body}"\nstrips = ["nonce", "request"]\njson_empty = ["POST"]\n'
HEADERS = '[signing.headers]\nS = "{signature}"\n'
MEMBERS = '[signing.json]\nrequest = "{path}"\nnonce = "{nonce|bare}"\n'


def venue(text: str) -> Venue:
    return read_venue("mine.toml", HEAD + text)


def sealer(text: str, api_key: str = "K") -> Sealer:
    return sealer_of(venue(text), KeyMaterial(api_key, bytearray(b"secret")), "https://x.example")


def sent(text: str, body: bytes, method: str = "POST", raw: str = "/a") -> bytes:
    """Return the body that is sent; it must be the one that is signed."""
    signer, target = sealer(text), parse_target(raw, "")
    _, _, arrived, type_line = signer.sign(NOW_MS, b"77", method, target, body)
    assert signer.message(NOW_MS, b"77", method, target, body) == arrived
    assert type_line == (JSON_LINE if arrived and not body else b"")
    return arrived


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", b'{"request":"/a","nonce":77}'),
        (b"{}", b'{"request":"/a","nonce":77}'),
        (b" { } \n", b' {"request":"/a","nonce":77} \n'),
        (b'{"b":1}', b'{"b":1,"request":"/a","nonce":77}'),
        (b'{"b": 65000.50 }\n', b'{"b": 65000.50 ,"request":"/a","nonce":77}\n'),
        (b'{"nonce":1,"b":"}"}', b'{"b":"}","request":"/a","nonce":77}'),
        (b'{"b":[{}], "nonce" : "x" }', b'{"b":[{}] ,"request":"/a","nonce":77}'),
        (b'{"request":{"nonce":[1]},"b":1, "nonce":2, "c":3}', b'{"b":1, "c":3,"request":"/a","nonce":77}'),
        (b'{ "nonce":2,"request":3 }', b'{"request":"/a","nonce":77}'),
        (b'{"\\u006eonce":1,"b":2}', b'{"b":2,"request":"/a","nonce":77}'),
        (b'{"b":{"nonce":1}}', b'{"b":{"nonce":1},"request":"/a","nonce":77}'),
        ('{"b":"größe"}'.encode(), '{"b":"größe","request":"/a","nonce":77}'.encode()),
    ],
)
def test_members_are_cut_out_and_put_behind_the_bots(body: bytes, expected: bytes) -> None:
    assert sent(BODY + HEADERS + MEMBERS, body) == expected


def test_the_bots_members_stand_where_the_file_says() -> None:
    between = '[signing.json]\nrequest = "{path}"\n"*" = "{body}"\nnonce = "{nonce}"\n'
    assert sent(BODY + HEADERS + between, b'{"b":1}') == b'{"request":"/a","b":1,"nonce":"77"}'
    assert sent(BODY + HEADERS + between, b"") == b'{"request":"/a","nonce":"77"}'


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"a=1",
        b'{"b":1',
        b'{"b" 1}',
        b"{",
        b"}{",
        b'{"b":1}{"c":2}',
        b'{"b":NaN}',
        b'{"b":"\xff"}',
        b'\xef\xbb\xbf{"b":1}',
        b'"{}"',
    ],
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="JSON"):
        sent(BODY + HEADERS + MEMBERS, body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"Nonce":2}',
        b'{"nonce ":2}',
        b'{"b":1,"b":2}',
        b'{"b":1,"B":2}',
        b'{"b":[{"c":1,"d":2,"c":3}]}',
        b'{"nonce[]":1}',
        b'{"r\\u0065quesT":1}',
    ],
)
def test_a_member_that_could_be_taken_for_another_one_is_refused(body: bytes) -> None:
    with pytest.raises(UnsignableError, match=r"could be read as one that the gateway sets|repeats a member"):
        sent(BODY + HEADERS + MEMBERS, body)


def test_an_absent_body_is_signed_as_the_object_that_it_becomes() -> None:
    members = '[signing.json]\nsig = "{signature}"\n'
    signed = '[signing.parts.signed.json]\nd = "{body|canonical|bare}"\n'
    signer = sealer(f'message = "{{signed}}"\njson_empty = ["POST"]\n{signed}{members}')
    target = parse_target("/a", "")
    assert signer.message(NOW_MS, b"", "POST", target, b"") == b'{"d":{}}'
    assert signer.sign(NOW_MS, b"", "POST", target, b"")[2].startswith(b'{"sig":"')


def test_a_member_without_a_value_is_not_signed() -> None:
    signer = sealer(f'message = "{{signed}}"\n[signing.parts.signed.json]\nd = "{{body|bare}}"\n{HEADERS}')
    target = parse_target("/a", "")
    assert signer.message(NOW_MS, b"", "POST", target, b"[1]") == b'{"d":[1]}'
    with pytest.raises(UnsignableError, match="lacks a member"):
        signer.message(NOW_MS, b"", "POST", target, b"")


def test_a_request_that_has_no_place_for_members_is_refused_unless_the_query_has_one() -> None:
    with pytest.raises(UnsignableError, match="only with a JSON object"):
        sent(BODY + HEADERS + MEMBERS, b"", "GET")
    in_query = 'query = { GET = "nonce={nonce}" }\n'
    signer = sealer(f'nonce = "ms"\nmessage = "{{query}}{{body}}"\n{in_query}{HEADERS}{MEMBERS}')
    assert signer.sign(NOW_MS, b"77", "GET", parse_target("/a", ""), b"")[1] == "/a?nonce=77"
    with pytest.raises(UnsignableError, match="only with a JSON object"):
        signer.sign(NOW_MS, b"77", "GET", parse_target("/a", ""), b"b=1")


def test_members_with_the_signature_are_put_in_after_signing() -> None:
    text = 'nonce = "ms"\nstrips = ["sig", "api_key"]\nmessage = "{id}{params|flat_json}{nonce}"\n'
    text += '[signing.json]\napi_key = "{api_key}"\nsig = "{signature}"\n'
    text += (
        '[signing.parts]\nid = { of = "{body}", at = "/id" }\nparams = { of = "{body}", at = "/params" }\n'
    )
    signer = sealer(text)
    body = b'{"id":"a\\n1","params":{"b":[1,{"c":2.0}]},"sig":"dummy","api_key":"dummy"}'
    target = parse_target("/a", "")
    message = signer.message(NOW_MS, b"77", "POST", target, body)
    assert message == b"a\n1b1c2.077"
    arrived = signer.sign(NOW_MS, b"77", "POST", target, body)[2]
    signature = signer.signature(message).decode()
    kept = b'{"id":"a\\n1","params":{"b":[1,{"c":2.0}]}'
    assert arrived == kept + f',"api_key":"K","sig":"{signature}"}}'.encode()
    assert signer.message(NOW_MS, b"77", "POST", target, b"{}") == b"77"
    assert signer.bare("POST", target, body) == ("/a", kept + b"}")
    for twice in (b'{"id":1,"id":2}', b"[]"):
        with pytest.raises(UnsignableError, match="JSON object"):
            signer.message(NOW_MS, b"77", "POST", target, twice)


def test_a_body_declared_as_something_else_is_refused() -> None:
    signer = sealer(BODY + HEADERS + MEMBERS)
    with pytest.raises(UnsignableError):
        signer.check_declared(b"{}", BodyType(fault="no"))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n", "\t \r\n"])


@given(
    members=st.dictionaries(st.sampled_from("abcnoN") | st.text(), JSON_VALUES, max_size=6),
    names=st.sets(st.sampled_from([b"a", b"c", b"n"])),
    blanks=st.tuples(BLANKS, BLANKS, BLANKS),
    is_ascii=st.booleans(),
)
def test_what_is_cut_out_is_gone_and_all_else_is_as_it_was(
    members: dict[str, object], names: set[bytes], blanks: tuple[str, str, str], *, is_ascii: bool
) -> None:
    """Against the parser of the standard library, and the members themselves as they were written."""
    before, comma, colon = blanks
    written = [
        f"{json.dumps(name, ensure_ascii=is_ascii)}{colon}:{before}{json.dumps(value, ensure_ascii=is_ascii)}"
        for name, value in members.items()
    ]
    try:
        body = f"{before}{{{comma}{f'{comma},{before}'.join(written)}{comma}}}{before}".encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return
    kept = {name: value for name, value in members.items() if name.encode("utf-8", "replace") not in names}
    cut = cut_members(body, names)
    assert json.loads(cut) == kept
    for name, text in zip(members, written, strict=True):
        assert (name not in kept) or text.encode() in cut
    assert (cut == body) == (kept == members)
    folded = [name.casefold() for name in kept]
    if len(set(folded)) == len(folded) and not {"x", "y"} & set(folded):
        assert json.loads(put_members(cut, [b'"x":1'], [b'"y":2'])) == {"x": 1, **kept, "y": 2}
        assert put_members(cut, [], []) == cut or not kept


def part(text: str, body: bytes = b"", raw: str = "/a", api_key: str = "K") -> bytes:
    """Return what a part named p is, which is signed alone."""
    signer = sealer(f'message = "{{p}}"\n{HEADERS}[signing.parts]\n{text}\n', api_key)
    return signer.message(NOW_MS, b"77", "POST", parse_target(raw, ""), body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'p = { json = { a = "{api_key}", b = 5, c = true, d = ["x{path}", 1, { e = "" }] } }',
            b'{"a":"K","b":5,"c":true,"d":["x/a",1,{"e":""}]}',
        ),
        (
            'p = { json = { "a?" = "{query}", b = "{timestamp|bare}", "c?" = "{path}" } }',
            b'{"b":1790000000387,"c":"/a"}',
        ),
        ('p = { json = { t = "{body|bare}", "u?" = "{query|bare}" } }', b'{"t":{"z": 1}}'),
        ('p = { json = { r = "{path}", "*" = "{body}" } }', b'{"r":"/a","z": 1}'),
        ('p = { of = "{query}", then = "q={query}" }', b""),
        ('p = { of = { GET = "{query}", POST = "{path}" }, then = { POST = "q={path}" } }', b"q=/a"),
        ('p = { of = { GET = "{query}" }, then = "{path}" }', b""),
        ('p = { of = "{path}", then = { GET = "{path}" } }', b""),
        ('p = { of = "{body}", at = "/z" }', b"1"),
        ('p = { of = "{query}", at = "/z" }', b""),
    ],
)
def test_parts(text: str, expected: bytes) -> None:
    assert part(text, b'{"z": 1}') == expected


def test_what_a_key_or_a_bot_writes_ends_no_string_of_json() -> None:
    text = 'p = { json = { a = "{api_key}", b = "{body}" } }'
    written = part(text, b'","a":"x\n', api_key='"},{\\')
    assert json.loads(written) == {"a": '"},{\\', "b": '","a":"x\n'}
    assert part(text, "größe".encode()) == '{"a":"K","b":"größe"}'.encode()
    with pytest.raises(UnsignableError, match="UTF-8"):
        part(text, b"\xff")


TAKEN_APART = ["{body|canonical}", "{body|flat_json}", "{body|as_form_lists}"]
LARGEST = b'{"b":"%b"}' % (b"a" * (MOST_BYTES - 8))


@pytest.mark.parametrize(
    "text",
    [
        *(f'p = "{one}"' for one in (*TAKEN_APART, "{body|as_form}", "{body|pairs}")),
        'p = { json = { a = "{body|bare}" } }',
        'p = { of = "{body}", at = "/b" }',
        'p = { each = "{body}", then = "{item}" }',
    ],
)
def test_json_is_taken_apart_up_to_a_size(text: str) -> None:
    whole = b"[%b]" % LARGEST[5:-1] if "each" in text else LARGEST
    whole += b" " * (MOST_BYTES - len(whole))
    assert part(text, whole)
    with pytest.raises(UnsignableError, match=f"more than {MOST_BYTES} bytes"):
        part(text, whole + b" ")


def test_an_object_of_too_many_members_is_not_signed() -> None:
    most = b"{%b}" % b",".join(b'"%d":1' % place for place in range(MOST_MEMBERS))
    more = most[:-1] + b',"more":1}'
    assert part('p = { of = "{body}", at = "/7" }', most) == b"1"
    assert cut_members(most, {b"7"}) != most
    assert sent(BODY + HEADERS + MEMBERS, most)
    assert cut_members(more, {b"7"}) == more
    with pytest.raises(UnsignableError, match=f"more than {MOST_MEMBERS} members"):
        part('p = { of = "{body}", at = "/7" }', more)
    with pytest.raises(UnsignableError, match=f"more than {MOST_MEMBERS} members"):
        sent(BODY + HEADERS + MEMBERS, more)


def test_a_body_that_gets_members_is_not_signed_where_it_is_larger() -> None:
    large = LARGEST + b" "
    assert cut_members(large, {b"b"}) == large
    with pytest.raises(UnsignableError, match=f"more than {MOST_BYTES} bytes"):
        sent(BODY + HEADERS + MEMBERS, large)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[signing.json]\na = 1.5", "6: a must be a text, a whole number, true or false, a list or a table"),
        (
            '[signing.json]\na = "{nonce|bare}s"',
            "6: a: {name|bare} must be the whole text, and bare its last filter",
        ),
        (
            '[signing.json]\na = "{nonce|bare|upper}"',
            "6: a: {name|bare} must be the whole text, and bare its last filter",
        ),
        ('[signing.json]\n"?" = "x"', "6: '?' is not a name of printable ASCII"),
        ('[signing.json]\n"*" = "{path}"', '5: json: "*" must be "{body}"'),
        (
            '[signing.json]\na = "{p}"\n[signing.parts]\np = "x"',
            "5: json has a part, but no {signature}: it is then put in before parts are made",
        ),
        ('[signing.parts]\np = { json = {}, of = "x" }', "6: p: json takes no other key beside it"),
        ('[signing.parts]\np = { of = "x" }', "6: p: of takes one of finds, then and at beside it"),
        ('[signing.parts]\np = { of = "x", at = "a" }', "6: at = 'a' is not a JSON pointer such as /params"),
        ('[signing.by_route]\n"GET a" = "x"', "6: 'GET a' is not a method and a path such as POST /v1/order"),
        ('[signing.by_route]\n"GET /a" = "x y"', "6: GET /a = 'x y' is not a name without blanks"),
    ],
)
def test_mistakes_of_a_file_are_told(text: str, cause: str) -> None:
    with pytest.raises(VenueError) as raised:
        venue(f'message = "x"\n{text}')
    assert str(raised.value) == f"mine.toml:{cause}"
