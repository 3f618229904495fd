"""`[errors]` of a venue's file: how the exchange would state what the gateway refuses."""

import pytest

from sealgate.errors import REASONS
from sealgate.venues.error_shapes import ErrorClass, ErrorShape, class_of
from sealgate.venues.venue import VenueError, read_venue

LEAST = """\
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
[signing.headers]
S = "{signature}"
"""


def read(errors: str) -> ErrorShape:
    shape = read_venue("mine.toml", f"{LEAST}[errors]\n{errors}").errors
    assert shape is not None
    return shape


def test_each_class_has_the_code_of_its_own_in_the_members() -> None:
    members = '{ ok = false, code = "{code}", at = [1.5, "{reason}: {detail} ({code})"] }'
    shape = read(
        f'members = {members}\ncodes = {{ permission = -7, other = "E7" }}\nstatus = {{ other = 400 }}'
    )
    told = "halted", "Of {code} alone."
    assert shape.document(ErrorClass.PERMISSION, *told) == {
        "ok": False,
        "code": -7,
        "at": [1.5, "halted: Of {code} alone. (-7)"],
    }
    assert shape.document(ErrorClass.OTHER, *told)["code"] == "E7"
    assert shape.document(ErrorClass.LIMITED, *told) is None
    usual = {"permission": 403, "limited": 429, "unknown": 504, "unavailable": 503}
    assert (shape.statuses, shape.content_type) == ({**usual, "other": 400}, "")


def test_a_class_may_have_members_of_its_own_or_a_list() -> None:
    shape = read(
        'members = ["error", "{code}"]\nstatus = 200\ntype = "application/json"\n'
        '[errors.codes]\nother = 1\nlimited = { words = "{reason}" }'
    )
    assert shape.document(ErrorClass.OTHER, "halted", "") == ["error", 1]
    assert shape.document(ErrorClass.LIMITED, "halted", "") == {"words": "halted"}
    assert set(shape.statuses) == set(ErrorClass)
    assert set(shape.statuses.values()) == {200}
    assert shape.content_type == "application/json"


def test_what_may_have_executed_is_of_one_class_whatever_its_reason() -> None:
    assert {class_of(slug, is_unknown=True) for slug in REASONS} == {ErrorClass.UNKNOWN}
    assert {class_of(slug, is_unknown=False) for slug in REASONS} == set(ErrorClass) - {ErrorClass.UNKNOWN}


def test_an_empty_table_takes_back_what_the_file_before_says() -> None:
    base = f"{LEAST}[errors]\nstatus = 200\n"
    child = 'name = "child"\nlike = "mine"\n'
    assert read_venue("child.toml", child, lambda _like, _file: ("mine.toml", base)).errors is not None
    assert (
        read_venue("child.toml", f"{child}[errors]\n", lambda _like, _file: ("mine.toml", base)).errors
        is None
    )


WRONG = {
    "members = 1": "members must be a table or a list",
    'members = { code = "{cod}" }': "unknown name {cod}; did you mean code?",
    "members = { at = [2026-01-01] }": "members has datetime.date(2026, 1, 1), which JSON has no word for",
    "codes = { limitd = 1 }": "unknown key limitd; did you mean limited?",
    "codes = { limited = true }": "limited must be a text, a whole number, or members of its own",
    'codes = { limited = { a = "{code}" } }': "unknown name {code}",
    "status = 302": "status must be 200 or one of 400 to 599",
    "status = true": "status must be 200 or one of 400 to 599",
    "status = { limitd = 429 }": "unknown class limitd; did you mean limited?",
    'type = "text/html"': "is not a type such as application/json",
    "codess = 1": "unknown key codess; did you mean codes?",
}


@pytest.mark.parametrize(("errors", "told"), WRONG.items())
def test_a_mistake_is_told(errors: str, told: str) -> None:
    with pytest.raises(VenueError) as raised:
        read(errors)
    assert told in str(raised.value)
