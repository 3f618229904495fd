"""When a change of a file is acted on: once it was seen twice, and only once."""

import pytest

from sealgate.keys.watch import Debounce


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ("aaa", [False, False, False]),
        ("abb", [False, False, True]),
        ("abbb", [False, False, True, False]),
        ("abab", [False, False, False, False]),
        ("abcc", [False, False, False, True]),
        ("abbaa", [False, False, True, False, True]),
        ("baaa", [False, False, False, False]),
    ],
)
def test_when_a_change_is_told(seen: str, told: list[bool]) -> None:
    debounce = Debounce("a")
    assert [debounce.is_settled(state) for state in seen] == told


def test_what_was_acted_on_is_not_told_again() -> None:
    debounce = Debounce("a")
    debounce.is_settled("b")
    debounce.accept("b")
    assert not debounce.is_settled("b")
    assert not debounce.is_settled("b")
