"""Members put into a JSON text and taken out. The oracle parses, changes and compares."""

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sealgate.venues.json_edit import drop, put, text_at
from sealgate.venues.order_terms import steps
from sealgate.venues.unsignable import UnsignableError

NAMES = st.sampled_from(["a", "b", "a/b", "~", "ß", "x y", '"', "\\", "0", "1", "sign"])
TEXTS = st.one_of(NAMES, st.text(st.characters(max_codepoint=0x2FF), max_size=6), st.just("{}"))
NUMBERS = st.sampled_from(["0", "-1", "1.0", "1e-8", "65000.50", "12345678901234567890"])


class Literal(str):
    """A number as it is written."""

    __slots__ = ()


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """Draw a JSON text of an object or a list, with blanks, escapes, nesting and JSON in strings."""
    if draw(st.booleans()):
        names = draw(st.lists(NAMES, max_size=4, unique=True))
        inner = [f"{draw(written(name))}{draw(blanks())}:{draw(values(depth))}" for name in names]
        return f"{{{','.join(inner)}{draw(blanks())}}}"
    return f"[{','.join(draw(st.lists(values(depth), max_size=3)))}{draw(blanks())}]"


@st.composite
def values(draw: st.DrawFn, depth: int) -> str:
    kinds = ["text", "number", "word", *(["document", "in a string"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "document":
        text = draw(documents(depth - 1))
    elif kind == "in a string":
        text = draw(written(draw(documents(depth - 1))))
    elif kind == "text":
        text = draw(written(draw(TEXTS)))
    else:
        text = draw(NUMBERS if kind == "number" else st.sampled_from(["true", "false", "null"]))
    return f"{draw(blanks())}{text}{draw(blanks())}"


def blanks() -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", " ", "\n\t", "\r\n  "])


def written(text: str) -> st.SearchStrategy[str]:
    """Draw a way to write a text as a JSON string."""
    every = "".join(f"\\u{unit:04X}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))
    return st.sampled_from([json.dumps(text), json.dumps(text, ensure_ascii=False), f'"{every}"'])


def pairs(text: str) -> Any:
    """Parse; an object is a dict, whose order counts, and a number is as it is written."""
    return json.loads(text, parse_int=Literal, parse_float=Literal)


def in_order(value: Any) -> Any:
    """Make objects lists of pairs, so that their order is compared."""
    if isinstance(value, dict):
        return [(name, in_order(one)) for name, one in value.items()]
    return [in_order(one) for one in value] if isinstance(value, list) else (type(value), value)


def opened(value: Any) -> tuple[Any, bool]:
    """Return what a step leads into, and whether that is JSON in a string. Raises ValueError."""
    inner = pairs(value) if type(value) is str else value
    if not isinstance(inner, dict | list):
        raise ValueError(inner)  # noqa: TRY004 - as for what is not JSON
    return inner, type(value) is str


def child(inner: Any, step: str) -> Any:
    """Return a member; KeyError without it."""
    if isinstance(inner, dict):
        return inner[step]
    return dict(zip(map(str, range(len(inner))), inner, strict=True))[step]


def found(value: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a place. Raises KeyError, ValueError."""
    for step in path:
        value = child(opened(value)[0], step)
    return value


def changed(value: Any, path: tuple[str, ...], new: str) -> Any:
    """Return a document with a text at a place, strings with JSON parsed. Raises ValueError."""
    if not path:
        return str(new)
    inner, _ = opened(value)
    step, *rest = path
    inner = copy.copy(inner)
    empty: Any = [] if rest and rest[0].isdecimal() else {}
    try:
        below = child(inner, step)
    except KeyError:
        below = empty
    made = changed(below, tuple(rest), new)
    if isinstance(inner, dict):
        inner[step] = made
    elif step == str(len(inner)):
        inner.append(made)
    else:
        inner[[str(at) for at in range(len(inner))].index(step)] = made
    return inner


def as_parsed(value: Any, path: tuple[str, ...]) -> Any:
    """Parse the strings with JSON on the way to a place."""
    if not path:
        return value
    inner, _ = opened(value)
    if isinstance(inner, dict):
        return {name: as_parsed(one, path[1:]) if name == path[0] else one for name, one in inner.items()}
    return [as_parsed(one, path[1:]) if str(at) == path[0] else one for at, one in enumerate(inner)]


PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)


@given(documents(), PATHS, st.sampled_from(["k", '"', "ß", "", "\\u0041", "{}"]))
def test_what_is_put_is_there_and_all_else_is_as_it_was(text: str, path: tuple[str, ...], new: str) -> None:
    try:
        expected = changed(pairs(text), path, new)
    except (ValueError, RecursionError):
        with pytest.raises(UnsignableError):
            put(text, path, new)
        return
    result = put(text, path, new)
    assert in_order(as_parsed(pairs(result), path)) == in_order(expected)
    assert text_at(result, path) == new
    assert put(result, path, new) == result


def within(text: str, path: tuple[str, ...]) -> bool:
    """Ask whether a place is reached through strings."""
    value = pairs(text)
    for step in path:
        try:
            inner, is_text = opened(value)
            if is_text:
                return True
            value = child(inner, step)
        except (KeyError, ValueError):
            return False
    return False


@given(documents(), PATHS)
def test_letters_around_what_is_put_stay_as_they_came(text: str, path: tuple[str, ...]) -> None:
    """What is new stands between letters of the old text: all of them, or all but those of one value."""
    assume(not within(text, path))
    try:
        result = put(text, path, "\u2603")
    except UnsignableError:
        return
    at = result.index("\u2603")
    before = next(n for n in range(len(text) + 1) if n == len(text) or text[n] != result[n])
    longest = min(len(text) - before, len(result) - at - 1)
    behind = next(
        n
        for n in range(longest + 1)
        if n == longest or text[len(text) - 1 - n] != result[len(result) - 1 - n]
    )
    removed = text[before : len(text) - behind]
    try:
        old = found(pairs(text), path)
    except KeyError:
        assert removed == ""
    else:
        # Of a string each letter is written with at most six, as in \u00DF; all that are drawn have 16 bits.
        assert len(removed) <= (6 * len(old) + 2 if type(old) is str else len(text_at(text, path)))


@given(documents(), PATHS)
def test_what_stands_at_a_place_is_returned_as_it_is_written(text: str, path: tuple[str, ...]) -> None:
    try:
        expected = found(pairs(text), path)
    except KeyError:
        assert text_at(text, path) == ""
    except ValueError:
        with pytest.raises(UnsignableError):
            text_at(text, path)
    else:
        result = text_at(text, path)
        if type(expected) is str:
            assert result == expected
        else:
            assert in_order(pairs(result)) == in_order(expected)
            assert result in text or within(text, path)


@given(documents(), PATHS)
def test_what_is_dropped_is_gone_and_all_else_is_as_it_was(text: str, path: tuple[str, ...]) -> None:
    try:
        parent, _ = opened(found(pairs(text), path[:-1]))
    except KeyError:
        assert drop(text, path) == text
        return
    except ValueError:
        with pytest.raises(UnsignableError):
            drop(text, path)
        return
    if isinstance(parent, list):
        with pytest.raises(UnsignableError):
            drop(text, path)
        return
    result = drop(text, path)
    expected = copy.deepcopy(as_parsed(pairs(text), path[:-1]))
    inner = expected
    for step in path[:-1]:
        inner = child(inner, step)
    if type(inner) is str:
        inner = pairs(inner)
    removed = path[-1] in inner
    assert removed or result == text
    inner.pop(path[-1], None)
    left, _ = opened(found(pairs(result), path[:-1]))
    assert in_order(left) == in_order(inner)
    if removed and not within(text, path):
        assert is_part(result, text)


def is_part(short: str, long: str) -> bool:
    """Ask whether one text is another with some of its letters left out."""
    letters = iter(long)
    return all(letter in letters for letter in short)


@pytest.mark.parametrize(
    ("text", "pointer", "value", "expected"),
    [
        ('{"op":"auth"}', "/args/0", "K", '{"op":"auth","args":["K"]}'),
        ('{"op":"auth","args":[]}', "/args/0", "K", '{"op":"auth","args":["K"]}'),
        ('{"op":"auth","args":["",1, "s"]}', "/args/1", "2", '{"op":"auth","args":["",2, "s"]}'),
        ('{"args":["","1"]}', "/args/1", "2", '{"args":["","2"]}'),
        ('{"t":-1.5}', "/t", "7", '{"t":7}'),
        ('{"t":1}', "/t", "1.25", '{"t":1.25}'),
        ('{"t":1}', "/t", "007", '{"t":"007"}'),
        ('{"t":1}', "/t", "\u0661", '{"t":"\u0661"}'),
        ('{"t":1}', "/t", "1e3", '{"t":"1e3"}'),
        ('{"t":null}', "/t", "1", '{"t":"1"}'),
        ('{"t":{"a":[1]}}', "/t", "1", '{"t":"1"}'),
        (" { } ", "/a", "1", ' {"a":"1" } '),
        ('{"a": 1 }\n', "/b/c", "1", '{"a": 1,"b":{"c":"1"} }\n'),
        ('{"args":["{\\"apiKey\\":\\"\\"}"]}', "/args/0/apiKey", "K", '{"args":["{\\"apiKey\\":\\"K\\"}"]}'),
        ('"{\\"a\\":1}"', "/a", "2", '"{\\"a\\":2}"'),
        ('{"a":1}', "/b~1c", "\u00df\n", '{"a":1,"b/c":"\u00df\\n"}'),
        ('{"\\u0061":1}', "/a", "2", '{"\\u0061":2}'),
    ],
)
def test_examples_of_what_is_put(text: str, pointer: str, value: str, expected: str) -> None:
    assert put(text, steps(pointer), value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{}", '{"a":7}'), ('{"a":true}', '{"a":7}'), ('{"a":"x"}', '{"a":"7"}'), ('{"a":[]}', '{"a":7}')],
)
def test_what_is_bare_is_json_itself_but_where_the_bot_has_a_string(text: str, expected: str) -> None:
    assert put(text, ["a"], "7", is_bare=True) == expected


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("", "/a"),
        ("ping", "/a"),
        ("5", "/a"),
        ("null", "/a"),
        ('{"a":null}', "/a/b"),
        ('{"a":5}', "/a/b"),
        ('{"a":"x"}', "/a/b"),
        ('{"a":""}', "/a/b"),
        ('{"a":1,"a":2}', "/a"),
        ('{"a":"{\\"b\\":1,\\"b\\":2}"}', "/a/b"),
        ('{"a":"\\ud800"}', "/a/b"),
        ('{"a":"[\\"\\ud800\\"]"}', "/a/0"),
        ("[1,]", "/0"),
        ("[1", "/0"),
        ('{"a":1', "/a"),
        ("[" * 10_000 + "]" * 10_000, "/0"),
    ],
)
def test_what_has_no_such_place_or_two_is_not_signed(text: str, pointer: str) -> None:
    for edit in (text_at, drop):
        with pytest.raises(
            UnsignableError, match="does not have, as JSON, the places at which this venue signs"
        ):
            edit(text, [*steps(pointer), "x"])
    with pytest.raises(UnsignableError, match="does not have, as JSON"):
        put(text, [*steps(pointer), "x"], "1")


def test_a_list_takes_no_place_but_the_next() -> None:
    assert put("[1]", ["1"], "a") == '[1,"a"]'
    for step in ("2", "-", "01", "x"):
        with pytest.raises(UnsignableError):
            put("[1]", [step], "a")
        assert text_at("[1]", [step]) == ""
    with pytest.raises(UnsignableError):
        put("{}", ["args", "1"], "a")


def test_half_of_a_letter_is_no_text() -> None:
    with pytest.raises(UnsignableError):
        text_at('{"a":"\\ud800"}', ["a"])


@pytest.mark.parametrize(
    ("text", "pointer", "expected"),
    [
        ('{"op":"login","url":"ws://x","id":1}', "/url", '{"op":"login","id":1}'),
        ('{"op":"login", "url":1 }', "/url", '{"op":"login" }'),
        ('{"url":1,"url":2}', "/url", "{}"),
        ('{"a":{"url":1}}', "/url", '{"a":{"url":1}}'),
        ('{"a":[{"url":1,"b":2}]}', "/a/0/url", '{"a":[{"b":2}]}'),
        ('{"a":"{\\"url\\":1,\\"b\\":2}"}', "/a/url", '{"a":"{\\"b\\":2}"}'),
        ('{"a":"{\\u0022b\\":2}"}', "/a/url", '{"a":"{\\u0022b\\":2}"}'),
        ('{"a":1}', "/b/c", '{"a":1}'),
    ],
)
def test_examples_of_what_is_dropped(text: str, pointer: str, expected: str) -> None:
    assert drop(text, steps(pointer)) == expected


def test_a_long_message_loses_what_is_dropped_too() -> None:
    long = "\u20ac" * 60_000
    assert drop(f'{{"a":"{long}","url":1}}', ["url"]) == f'{{"a":"{long}"}}'
