"""What a pointer of a venue's file finds in a reply."""

import pytest

from sealgate.venues.document import pick, pick_each

REPLY = {"data": [{"a/b": 1}, {"a/b": 2}, {}], "~": None}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", REPLY),
        ("/data/1/a~1b", 2),
        ("/data/3", None),
        ("/data/x", None),
        ("/~0", None),
        ("/data/0/a~1b/more", None),
    ],
)
def test_one_value(pointer: str, found: object) -> None:
    assert pick(REPLY, pointer) == found


def test_a_star_means_each_value_of_a_list() -> None:
    assert pick_each(REPLY, "/data/*/a~1b") == [1, 2]
    assert pick_each(REPLY, "/~0/*") == []
