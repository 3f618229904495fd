"""A change counts once two looks in a row saw the same."""

import pytest

from sealgate.gateway.keys.watch import Debounce


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
    assert [debounce.look(state) for state in seen] == told


def test_what_was_acted_on_is_not_told_again() -> None:
    debounce = Debounce("a")
    debounce.look("b")
    debounce.accept("b")
    assert not debounce.look("b")
    assert not debounce.look("b")
