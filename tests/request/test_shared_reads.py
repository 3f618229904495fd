"""Replies to reads that answer identical ones: for how long, and how much of them is kept."""

from dataclasses import replace

from rig.admitted import answer, ticket
from sealgate.limits.claims import Claim
from sealgate.limits.scheduler import Shared
from sealgate.request.admission import Ticket
from sealgate.request.shared_reads import SharedReads
from sealgate.venues.routes import Lane


def read(path: str, share_s: float = 1.0) -> Ticket:
    """Return a read whose route lets others have its reply for so long."""
    one = ticket(f"GET {path}")
    return replace(one, route=replace(one.route, share_s=share_s))


POSITIONS, PRICES = read("/user/0xabc/positions"), read("/symbols/list")


def shared() -> Shared:
    return Shared(Claim("r", "grid", Lane.READ, 10.0))


def answered(reads: SharedReads, one: Ticket, now: float, size: int = 100) -> Shared:
    """Send a read and have it answered."""
    sent = shared()
    reads.sent(sent, one, b"", now)
    reads.hand_round(sent, answer(200, b"x" * size), one, b"", "r")
    return sent


def test_a_read_answers_others_from_when_it_was_sent_until_its_age_is_too_great() -> None:
    reads, sent = SharedReads(), shared()
    assert reads.find(POSITIONS, b"", 1.0) is None
    reads.sent(sent, POSITIONS, b"", 1.0)
    assert reads.find(POSITIONS, b"", 1.0) is sent
    reads.hand_round(sent, answer(200, b"x"), POSITIONS, b"", "r")
    assert (reads.find(POSITIONS, b"", 2.0), reads.find(POSITIONS, b"", 2.1)) == (sent, None)


def test_a_later_read_takes_the_place_of_the_one_before() -> None:
    reads, first = SharedReads(), shared()
    reads.sent(first, POSITIONS, b"", 1.0)
    second = shared()
    reads.sent(second, POSITIONS, b"", 1.5)
    reads.hand_round(first, answer(500), POSITIONS, b"", "r")
    assert reads.find(POSITIONS, b"", 1.6) is second
    reads.hand_round(second, answer(500), POSITIONS, b"", "r")
    assert reads.find(POSITIONS, b"", 1.6) is None, "an error answers nobody later"


def test_what_is_too_old_or_too_much_is_forgotten_the_oldest_first() -> None:
    reads = SharedReads(most_bytes=100_000)
    many = [read(f"/user/{number}/positions", 9.0) for number in range(3)]
    sent = [answered(reads, one, 0.0, 45_000) for one in many]
    assert [reads.find(one, b"", 0.0) for one in many] == [None, *sent[1:]]
    later = answered(reads, PRICES, 10.0, 95_000)
    assert [reads.find(one, b"", 0.0) for one in many] == [None, None, None]
    assert reads.find(PRICES, b"", 10.0) is later
    reads.clear()
    assert reads.find(PRICES, b"", 10.0) is None


def test_many_small_replies_take_no_more_memory_than_a_few_large_ones() -> None:
    reads = SharedReads(most_bytes=1_000_000)
    many = [read(f"/user/{number}/positions", 9.0) for number in range(1000)]
    for one in many:
        answered(reads, one, 0.0, 1)
    assert 200 < sum(reads.find(one, b"", 0.0) is not None for one in many) < 400


def test_a_read_that_is_sent_again_and_again_takes_no_room_from_others() -> None:
    reads = SharedReads(most_bytes=100_000)
    other = answered(reads, read("/time", 9.0), 0.0, 45_000)
    latest = [answered(reads, PRICES, 0.0, 45_000) for _ in range(3)][-1]
    assert reads.find(read("/time", 9.0), b"", 0.0) is other
    assert reads.find(PRICES, b"", 0.0) is latest
