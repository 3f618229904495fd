from sealgate.core.wrong_tokens import _MOST_DEBT, _MOST_ORIGINS, FREE, HELD_BACK_S, WrongTokens


def test_the_first_are_answered_at_once_and_the_next_later() -> None:
    wrong = WrongTokens()
    assert [wrong.note("a", 100.0) for _ in range(FREE)] == [0.0] * FREE
    assert wrong.note("a", 100.0) == HELD_BACK_S
    assert wrong.note("b", 100.0) == 0.0


def test_a_bot_that_is_wrong_now_and_then_is_never_held_back() -> None:
    wrong = WrongTokens()
    assert not any(wrong.note("a", 2.0 * n) for n in range(1000))


def test_a_flood_is_forgiven_after_a_while() -> None:
    wrong = WrongTokens()
    for _ in range(10_000):
        wrong.note("a", 0.0)
    assert wrong.note("a", 1.0) == HELD_BACK_S
    assert wrong.note("a", 1.0 + _MOST_DEBT) == 0.0


def test_memory_is_bounded_and_the_oldest_origin_is_forgotten() -> None:
    wrong = WrongTokens()
    for _ in range(FREE):
        wrong.note("first", 0.0)
    for n in range(_MOST_ORIGINS):
        wrong.note(f"other {n}", 0.0)
    assert len(wrong) == _MOST_ORIGINS
    assert wrong.note("first", 0.0) == 0.0
