"""Replies to reads that answer identical ones: for how long, and how much of them is kept."""

from sealgate.request.recent_reads import RecentReads


def test_a_read_answers_others_from_when_it_was_sent_until_its_age_is_too_great() -> None:
    reads: RecentReads[str] = RecentReads()
    assert reads.find("positions", 1.0) is None
    reads.sent("positions", until=2.0, read="first", now=1.0)
    assert reads.find("positions", 1.0) == "first"
    reads.keep("positions", "first", 100)
    assert (reads.find("positions", 2.0), reads.find("positions", 2.1)) == ("first", None)


def test_a_later_read_takes_the_place_of_the_one_before() -> None:
    reads: RecentReads[str] = RecentReads()
    reads.sent("positions", 2.0, "first", 1.0)
    reads.sent("positions", 2.5, "second", 1.5)
    reads.keep("positions", "first", 100)
    reads.drop("positions", "first")
    assert reads.find("positions", 1.6) == "second"
    reads.drop("positions", "second")
    assert reads.find("positions", 1.6) is None


def test_what_is_too_old_or_too_much_is_forgotten_the_oldest_first() -> None:
    reads: RecentReads[str] = RecentReads(most_bytes=100_000)
    for number in range(3):
        reads.sent(number, 9.0, "read", 0.0)
        reads.keep(number, "read", 45_000)
    assert [reads.find(number, 0.0) for number in range(3)] == [None, "read", "read"]
    reads.sent("later", 19.0, "read", 10.0)
    assert [reads.find(number, 0.0) for number in range(3)] == [None, None, None]
    reads.keep("later", "read", 95_000)
    assert reads.find("later", 10.0) == "read"
    reads.clear()
    assert reads.find("later", 10.0) is None


def test_many_small_replies_take_no_more_memory_than_a_few_large_ones() -> None:
    reads: RecentReads[str] = RecentReads(most_bytes=1_000_000)
    for number in range(1000):
        reads.sent(number, 9.0, "read", 0.0)
        reads.keep(number, "read", 1)
    assert 200 < sum(reads.find(number, 0.0) is not None for number in range(1000)) < 400


def test_a_read_that_is_sent_again_and_again_takes_no_room_from_others() -> None:
    reads: RecentReads[str] = RecentReads(most_bytes=100_000)
    reads.sent("other", 9.0, "read", 0.0)
    reads.keep("other", "read", 45_000)
    for one in ("first", "second", "third"):
        reads.sent("prices", 9.0, one, 0.0)
        reads.keep("prices", one, 45_000)
    assert (reads.find("other", 0.0), reads.find("prices", 0.0)) == ("read", "third")
