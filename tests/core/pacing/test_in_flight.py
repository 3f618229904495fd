from sealgate.core.pacing.in_flight import InFlight


def episode(under_way: InFlight, accepted: int) -> None:
    """Send one more than are accepted, all at once; the last one is refused."""
    for index in range(accepted + 1):
        under_way.sent(str(index))
    under_way.refused(str(accepted), is_first=True)
    for index in range(accepted):
        under_way.accepted(str(index))


def test_a_limit_on_requests_at_a_time_is_believed_once_episodes_agree() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    caps = [under_way.cap]
    episode(under_way, 4)
    assert [*caps, under_way.cap] == [None, 4]
    for name in "abcd":
        assert under_way.has_room()
        under_way.sent(name)
    assert not under_way.has_room()
    under_way.over("a")
    assert under_way.has_room()
    assert len(under_way) == 3


def test_a_burst_that_goes_through_refutes_it() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    episode(under_way, 4)
    for index in range(9):
        under_way.sent(str(index))
    under_way.accepted("8")
    assert under_way.cap is None


def test_a_refusal_with_few_under_way_refutes_it() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    episode(under_way, 1)
    assert under_way.cap is None


def test_the_other_refusals_of_an_episode_do_not_count() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    under_way.sent("x")
    under_way.refused("x", is_first=False)
    episode(under_way, 4)
    assert under_way.cap == 4
