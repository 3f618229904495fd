import pytest

from sealgate.venues.templates import Ref, TemplateError, bind, parse_template
from sealgate.venues.unsignable import UnsignableError

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
        ("{body|base64url}", {"body": b"\xff\xfe"}, b"__4"),
        ("{body|base58}", {"body": b"\0\0Hello World!"}, b"112NEpo7TZRRrLZSi2U"),
        ("{body|md5|upper}", {"body": b"abc"}, b"900150983CD24FB0D6963F7D28E17F72"),
        ("{body|sha256}", {}, b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("{body|bare}", {"body": b' {"a": 1.50} '}, b'{"a": 1.50}'),
        ("{body|bare}{body|canonical}{body|flat_json}{body|pairs}", {}, b""),
        (
            "{body|canonical}",
            {"body": b'{"b": [1.50, {"d": "\xc3\xa4", "c": null}], "a": true}'},
            b'{"a":true,"b":[1.50,{"c":null,"d":"\\u00e4"}]}',
        ),
        (
            "{body|flat_json}",
            {"body": b'{"b":[{"d":1.50,"c":"x"},"y",[2]],"a":null,"t":true}'},
            b"anullbcxd1.50y2ttrue",
        ),
        ("{body|pairs}", {"body": b'{"a b":"x/y","n":1.50,"t":true}'}, b"a b=x/y,n=1.50,t=true"),
        ("{body|as_form}", {}, b""),
        (
            "{body|as_form}",
            {"body": b'{"a b":"x/y","n":1.50,"t":true,"f":false}'},
            b"a%20b=x%2Fy&n=1.50&t=true&f=false",
        ),
        ("{body|as_form_lists}", {}, b""),
        (
            "{body|as_form_lists}",
            {"body": b'{"n":1.50,"a b":["x/y~*",2.0,true],"none":[],"o":[{"b": "\xc3\xa4", "a": [null]}]}'},
            b"n=1.50&a%20b[]=x%2Fy~*&a%20b[]=2.0&a%20b[]=true&o[]=%7B%22b%22%3A%22%C3%A4%22%2C%22a%22%3A%5Bnull%5D%7D",
        ),
    ],
)
def test_renders(text: str, values: dict[str, bytes], expected: bytes) -> None:
    assert rendered(text, **values) == expected


def test_the_digest_of_a_body_is_in_small_hex_digits() -> None:
    assert rendered("{body|sha512}")[:16] == b"cf83e1357eefb8bd"


@pytest.mark.parametrize(
    "body",
    [b"[1]", b"a=1", b'{"a":{"b":1}}', b'{"a":null}', b'{"a":[1]}', b"5", b'[["a","b"]]'],
)
def test_a_body_is_signed_as_a_form_where_it_is_flat(body: bytes) -> None:
    for filtered in ("{body|as_form}", "{body|pairs}"):
        with pytest.raises(UnsignableError, match="flat JSON object"):
            rendered(filtered, body=body)


@pytest.mark.parametrize(
    "body",
    [b'{"a":{"b":1}}', b'{"a":null}'],
)
def test_lists_are_the_only_values_within_a_form(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="flat JSON object"):
        rendered("{body|as_form_lists}", body=body)


@pytest.mark.parametrize("filtered", ["as_form", "as_form_lists", "flat_json", "pairs"])
@pytest.mark.parametrize("body", [b'{"a":"\\ud800"}', b'{"a\\udfff":1}'])
def test_half_of_a_letter_is_not_signed_where_its_bytes_are(filtered: str, body: bytes) -> None:
    with pytest.raises(UnsignableError, match="half of a letter"):
        rendered(f"{{body|{filtered}}}", body=body)


@pytest.mark.parametrize("filtered", ["as_form_lists", "flat_json", "canonical"])
def test_what_is_too_deep_to_be_written_is_not_signed(filtered: str) -> None:
    """Python reads lists that are deeper than those that it can go through."""
    with pytest.raises(UnsignableError, match="too many lists"):
        rendered(f"{{body|{filtered}}}", body=b'{"a":' + b"[" * 900 + b"]" * 900 + b"}")


NO_JSON = (b"a=1", b'{"b":1', b'{"b":}', b'{"b":"\xff"}', b'{"b":NaN}', b'{"b":' + b"[" * 100_000 + b"}")


@pytest.mark.parametrize("body", NO_JSON)
def test_json_is_signed_where_it_is_valid(body: bytes) -> None:
    for filtered in ("{body|canonical}", "{body|flat_json}", "{body|bare}", "{body|as_form_lists}"):
        with pytest.raises(UnsignableError, match="JSON"):
            rendered(filtered, body=body)


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"5"])
def test_an_object_is_written_flat(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="JSON object"):
        rendered("{body|flat_json}", body=body)


@pytest.mark.parametrize("body", [b'{"a":{"b":1}}', b'{"a":[[[{"b":1}]]]}', b'{"a":[{"b":{"c":1}}]}'])
def test_what_a_venue_does_not_write_flat_is_refused(body: bytes) -> None:
    with pytest.raises(UnsignableError, match="an object within another one"):
        rendered("{body|flat_json}", body=body)


@pytest.mark.parametrize("filtered", ["{body|canonical}", "{body|flat_json}"])
def test_a_name_that_is_signed_comes_once(filtered: str) -> None:
    with pytest.raises(UnsignableError, match="repeats a member"):
        rendered(filtered, body=b'{"a":[{"b":1,"b":2}]}')


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
