"""Who gives up a place when all are taken."""

import pytest

from sealgate.errors import Refusal
from sealgate.http.places import Places

FULL = Refusal("queue_full", "All places are taken.")


class Guest:
    def __init__(self, turned_out: list["Guest"]) -> None:
        self._turned_out = turned_out

    def turn_out(self) -> None:
        self._turned_out.append(self)


@pytest.fixture
def turned_out() -> list[Guest]:
    return []


def test_the_oldest_stranger_gives_its_place_to_the_next(turned_out: list[Guest]) -> None:
    places, (first, second, third) = Places(2, FULL), [Guest(turned_out) for _ in range(3)]
    assert [places.enter(guest) for guest in (first, second, third)] == [None, None, None]
    assert (turned_out, len(places)) == ([first], 2)


def test_known_guests_keep_their_places(turned_out: list[Guest]) -> None:
    places, (first, second, third) = Places(2, FULL), [Guest(turned_out) for _ in range(3)]
    for guest in (first, second):
        places.enter(guest)
        places.keep(guest)
    assert (places.enter(third), turned_out) == (FULL, [])
    places.leave(first)
    assert places.enter(third) is None


def test_a_guest_that_is_doubted_is_a_stranger_again_unless_it_has_left(turned_out: list[Guest]) -> None:
    places, (first, second) = Places(1, FULL), [Guest(turned_out) for _ in range(2)]
    places.enter(first)
    places.keep(first)
    places.doubt(first)
    assert places.enter(second) is None
    places.doubt(first)
    assert (turned_out, len(places)) == ([first], 1)
