"""Conditions of a venue's file on a JSON document."""

import fnmatch
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.venues.conditions import any_holds, any_holds_of_one, holds, read_condition, read_conditions
from sealgate.venues.document import Document, Table, VenueError

STARS = st.text("ab*?[]!.\n", max_size=8)


def table(text: str) -> Table:
    document = Document("mine.toml", text)
    return Table(document, (), document.data, document.data)


def fits(condition: str, document: str) -> bool:
    """Ask whether a JSON text meets `when = { ... }`."""
    return holds(read_condition(table(f"when = {{ {condition} }}").table("when")), json.loads(document))


@pytest.mark.parametrize(
    ("condition", "document", "expected"),
    [
        ('"/op" = "auth"', '{"op":"auth"}', True),
        ('"/op" = "auth"', '{"op":"Auth"}', False),
        ('"/op" = "auth"', '{"op":["auth"]}', False),
        ('"/op" = "auth"', "[]", False),
        ('"/op" = ["a", "auth"]', '{"op":"auth"}', True),
        ('"/op" = "*"', '{"op":""}', True),
        ('"/op" = "*"', '{"op":[]}', True),
        ('"/op" = "*"', '{"op":false}', True),
        ('"/op" = "*"', '{"op":null}', False),
        ('"/op" = "*"', "{}", False),
        ('"/op" = "spot.*"', '{"op":"spot."}', True),
        ('"/op" = "spot.*"', '{"op":"spotx"}', False),
        ('"/op" = "*.order_*"', '{"op":"futures.order_place"}', True),
        ('"/op" = "*.order_*_x"', '{"op":"futures.order_place"}', False),
        ('"/op" = "a*a"', '{"op":"a"}', False),
        ('"/op" = "1"', '{"op":1}', False),
        ('"/op" = 1', '{"op":"1"}', False),
        ('"/op" = 1', '{"op":1.0}', True),
        ('"/op" = 1', '{"op":true}', False),
        ('"/op" = true', '{"op":1}', False),
        ('"/op" = true', '{"op":true}', True),
        ('"/op" = false', '{"op":0}', False),
        ('"/op" = 0.5', '{"op":5e-1}', True),
        ('"/0" = 0, "/1" = "on"', '[0,"on",null,{}]', True),
        ('"/0" = 0, "/1" = "on"', '[0,"off"]', False),
        ('"/a~1b/~0" = 1', '{"a/b":{"~":1}}', True),
        ('"" = "ping"', '"ping"', True),
        ('"" = "ping"', '{"op":"ping"}', False),
        ("", "null", True),
        ('"/args/*/op" = ["a", "b"]', '{"args":[{"op":"b"},{"op":"a"}]}', True),
        ('"/args/*/op" = "a"', '{"args":[{"op":"a"},{"op":"b"}]}', False),
        ('"/args/*/op" = "a"', '{"args":[{"op":"a"},{}]}', False),
        ('"/args/*/op" = "a"', '{"args":[{"op":"a"},null]}', False),
        ('"/args/*/op" = "*"', '{"args":[{"op":"a"},{"op":null}]}', False),
        ('"/args/*/op" = "a"', '{"args":[]}', False),
        ('"/args/*/op" = "a"', '{"args":{"0":{"op":"a"}}}', False),
        ('"/*/*" = 1', "[[1],[1,1]]", True),
    ],
)
def test_a_document_meets_a_condition_or_does_not(condition: str, document: str, expected: bool) -> None:
    assert fits(condition, document) is expected


@given(STARS, st.text("ab?[]!.\n", max_size=12))
def test_a_star_stands_for_any_letters(pattern: str, text: str) -> None:
    """The oracle is Python's `fnmatch`, in which ? and [ are escaped."""
    glob = re.sub(r"[?\[]", lambda found: f"[{found[0]}]", pattern)
    [expected] = read_condition(table(f"when = {{ '/a' = {json.dumps(pattern)} }}").table("when"))
    assert (expected.fits({"a": text}) == 0) is fnmatch.fnmatchcase(text, glob)


def test_the_first_of_the_values_that_fits_is_told() -> None:
    [expected] = read_condition(table('when = { "/op" = ["a*", "ab", "c"] }').table("when"))
    assert [expected.fits({"op": text}) for text in ("ab", "c", "d")] == [0, 2, None]


def test_a_table_is_one_condition_and_a_list_has_several_of_which_one_must_hold() -> None:
    one = read_conditions(table('done = { "/a" = 1, "/b" = 2 }'), "done")
    several = read_conditions(table('done = [{ "/a" = 1 }, { "/b" = 2 }]'), "done")
    assert read_conditions(table(""), "done") == ()
    assert any_holds(one, {"a": 1, "b": 2})
    assert not any_holds(one, {"a": 1})
    assert any_holds(several, {"b": 2})
    assert not any_holds(several, {"c": 2})
    assert not any_holds((), {})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('when = { "op" = 1 }', "'op' is not a JSON pointer such as /op"),
        ('when = { "/~2" = 1 }', "'/~2' is not a JSON pointer such as /op"),
        ('when = { "/op" = [] }', "/op must be a text, a number, true or false, or a list of these"),
        ('when = { "/op" = { a = 1 } }', "/op must be a text, a number, true or false, or a list of these"),
        ('when = { "/op" = [["a"]] }', "/op must be a text, a number, true or false, or a list of these"),
        ('when = { "/op" = 2026-01-01 }', "/op must be a text, a number, true or false, or a list of these"),
        ('when = "/op"', "when must be a table"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read_condition(table(f"\n{text}").table("when"))
    assert str(raised.value) == f"mine.toml:2: {error}"


def test_what_is_no_list_of_conditions_is_refused() -> None:
    with pytest.raises(VenueError, match=r"^mine\.toml:1: done must be a list of tables$"):
        read_conditions(table("done = [1]"), "done")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('{"data":[{"code":"0"},{"code":"7"}]}', True),
        ('{"data":[{"code":"0"},{}]}', False),
        ('{"data":[]}', False),
        ('{"code":"7"}', False),
    ],
)
def test_where_one_in_doubt_is_enough_one_of_a_list_is(document: str, expected: bool) -> None:
    conditions = read_conditions(table('unknown = { "/data/*/code" = "7" }'), "unknown")
    assert any_holds_of_one(conditions, json.loads(document)) is expected
