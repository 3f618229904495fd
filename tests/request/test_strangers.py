"""Wrong tokens: how many are answered at once, and when they are forgiven."""

import pytest

from sealgate.request.strangers import WrongTokens, origin_of


def flooded() -> WrongTokens:
    """Return it after ten thousand wrong tokens of one origin, at 0."""
    wrong = WrongTokens()
    for _ in range(10_000):
        wrong.note("a", 0.0)
    return wrong


def test_the_first_ten_are_answered_at_once_and_the_next_a_second_later() -> None:
    wrong = WrongTokens()
    assert [wrong.note("a", 100.0) for _ in range(10)] == [0.0] * 10
    assert wrong.note("a", 100.0) == 1.0
    assert wrong.note("b", 100.0) == 0.0


def test_a_bot_that_is_wrong_now_and_then_is_never_held_back() -> None:
    wrong = WrongTokens()
    assert not any(wrong.note("a", 1.0 * n) for n in range(1000))


@pytest.mark.parametrize(("now", "held_back_s"), [(1.0, 1.0), (50.5, 1.0), (51.0, 0.0), (500.0, 0.0)])
def test_a_flood_is_forgiven_within_a_minute(now: float, held_back_s: float) -> None:
    assert flooded().note("a", now) == held_back_s


def test_memory_is_bounded_and_the_oldest_origin_is_forgotten() -> None:
    wrong = WrongTokens()
    for _ in range(10):
        wrong.note("first", 0.0)
    for n in range(1024):
        wrong.note(f"other {n}", 0.0)
    assert len(wrong) == 1024
    assert wrong.note("first", 0.0) == 0.0


@pytest.mark.parametrize(
    ("client", "origin"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::7", "2001:db8:1:2::/64"),
        ("fe80::1", "fe80::/64"),
        ("::1", "::1"),
        ("user 1001", "user 1001"),
        ("", ""),
    ],
)
def test_a_network_that_one_customer_has_is_one_origin(client: str, origin: str) -> None:
    assert origin_of(client) == origin
