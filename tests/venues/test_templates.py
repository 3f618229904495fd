import pytest

from sealgate.venues.templates import Ref, TemplateError, UnsignableError, bind, parse_template

NAMES = ("timestamp", "query", "body", "url", "key")


def rendered(text: str, **values: bytes) -> bytes:
    """Bind a template with `key` known beforehand, and render it with the other values."""
    names = ["timestamp", "query", "body"]
    slots = {name: at for at, name in enumerate(names)}
    render = bind(parse_template(text, NAMES), {"key": b"100%"}, slots, lambda message: b"<" + message + b">")
    return render([values.get(name, b"") for name in names])


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("plain {{json}} 5%", {}, b"plain {json} 5%"),
        ("{key}!", {}, b"100%!"),
        ("{timestamp}", {"timestamp": b"7"}, b"7"),
        ("{timestamp}{query}", {"timestamp": b"7", "query": b"a=%d"}, b"7a=%d"),
        ("{timestamp}:{key}", {"timestamp": b"7"}, b"7:100%"),
        ("{query|q}", {"query": b"a=1"}, b"?a=1"),
        ("{query|q}{query|amp}{query|lamp}{query|hash}", {}, b""),
        ("{query|amp}x{query|lamp}{query|hash}", {"query": b"a"}, b"a&x&a#a"),
        ("{query|pct}", {"query": b"a/b=~+"}, b"a%2Fb%3D~%2B"),
        ("{query|unquote}", {"query": b"a%2Fb+c"}, b"a/b+c"),
        ("{query|sorted}", {"query": b"b=1&a=9&b=0"}, b"a=9&b=1&b=0"),
        ("{body|base64}", {"body": b"\xff"}, b"/w=="),
        ("{body|sha256bin|base64}", {}, b"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
        ("{body|hmac}", {"body": b"x"}, b"<x>"),
        ("{key|hmac|base64}", {}, b"PDEwMCU+"),
        ('{{"a":1{body|more}', {}, b'{"a":1}'),
        ('{{"a":1{body|more}', {"body": b" { } "}, b'{"a":1}'),
        ('{{"a":1{body|more}', {"body": b'{"b": 2}'}, b'{"a":1,"b": 2}'),
        ("{body|as_form}", {}, b""),
        (
            "{body|as_form}",
            {"body": b'{"a b":"x/y","n":1.50,"t":true,"f":false}'},
            b"a%20b=x%2Fy&n=1.50&t=true&f=false",
        ),
    ],
)
def test_renders(text: str, values: dict[str, bytes], expected: bytes) -> None:
    assert rendered(text, **values) == expected


def test_the_digest_of_a_body_is_in_small_hex_digits() -> None:
    assert rendered("{body|sha512}")[:16] == b"cf83e1357eefb8bd"


NO_OBJECTS = [
    *(b"[1]", b"a=1", b'{"b":1', b'{"b":}', b'{"b":1}}', b'{"b":1},{"c":2}'),
    *(b'{"b":"\xff"}', b'{"b":NaN}'),
]


@pytest.mark.parametrize("body", [*NO_OBJECTS, b'{"b":' + b"[" * 100_000 + b"}"])
def test_members_are_taken_from_an_object_alone(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="JSON object"):
        rendered('{{"a":1{body|more}', body=body)
    with pytest.raises(UnsignableError, match="JSON object"):
        rendered('[{{"a":1{body|more},{{}}]', body=b"{}")


@pytest.mark.parametrize(
    "body", [b'{"a":2}', b'{"\\u0061":2}', b'{"A":2}', b'{"b":1,"b":2}', b'{"b":1,"B":2}']
)
def test_a_member_comes_once(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="repeats a member, or has one that the gateway sets"):
        rendered('{{"a":1{body|more}', body=body)
    assert rendered('{{"a":1{body|more}', body=b'{"b":{"a":1,"a":2}}') == b'{"a":1,"b":{"a":1,"a":2}}'


@pytest.mark.parametrize(
    "body",
    [b"[1]", b"a=1", b'{"a":{"b":1}}', b'{"a":null}', b'{"a":[1]}', b"5", b'{"a":"\\ud800"}', b'[["a","b"]]'],
)
def test_a_body_is_signed_as_a_form_where_it_is_flat(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="flat JSON object"):
        rendered("{body|as_form}", body=body)


def test_the_url_is_the_address_and_the_target() -> None:
    assert parse_template("{url}", NAMES) == (Ref("root"), Ref("target"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{timestmap}", "unknown name {timestmap}; did you mean timestamp?"),
        ("{zzz}", "unknown name {zzz}; it may be timestamp, query, body, url, key"),
        ("{query|sort}", "unknown filter |sort; did you mean sorted?"),
        ("{url|pct}", "{url} takes no filter"),
        ("a{b", "a lone {: write {{ for the character itself"),
        ("a}b", "a lone }: write }} for the character itself"),
        ("größe={body}", "it has a letter that is not ASCII, which exchanges spell in different ways"),
    ],
)
def test_what_it_cannot_be_is_said_with_the_nearest_name(text: str, cause: str) -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template(text, NAMES)
    assert str(raised.value) == cause
