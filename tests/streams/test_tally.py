"""What is counted of streams."""

from sealgate.streams.tally import Rate, Tally, Traffic


def test_a_rate_is_that_of_the_latest_five_seconds() -> None:
    rate = Rate(100.0)
    assert rate.take(0, 100.0) == 0.0
    assert rate.take(3, 100.5) == 3.0  # in the first second not more than there were
    assert rate.take(8, 104.0) == 2.0
    assert rate.take(10, 105.0) == 2.0
    assert rate.take(60, 109.9) == 2.0  # until there are five seconds more
    assert rate.take(60, 110.0) == 10.0
    assert rate.take(60, 130.0) == 0.0


def test_what_a_stream_carried_adds_up() -> None:
    tally = Tally()
    for messages, carried in ((3, 100), (4, 50)):
        tally.carried("spot", "grid", "to_bot", Traffic(messages, carried))
    assert tally.messages["spot", "grid", "to_bot"] == 7
    assert tally.bytes["spot", "grid", "to_bot"] == 150
