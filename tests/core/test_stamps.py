from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.stamps import Stamps


def test_equal_requests_of_one_millisecond_get_earlier_ones() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, 7) for _ in range(3)] == [1000, 999, 998]
    assert stamps.take(1001, 7) == 1001


def test_different_requests_share_a_millisecond() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, content) for content in range(3)] == [1000] * 3


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=300))
def test_no_pair_comes_twice_and_none_is_of_the_future(asked: list[tuple[int, int]]) -> None:
    stamps = Stamps()
    taken = [(stamps.take(now, content), content) for now, content in asked]
    assert len(set(taken)) == len(taken)
    assert all(stamp <= now for (stamp, _), (now, _) in zip(taken, asked, strict=True))


def test_what_it_remembers_is_bounded() -> None:
    stamps = Stamps()
    for now in range(5000):
        stamps.take(now, 0)
    assert len(stamps._taken) <= 1024
