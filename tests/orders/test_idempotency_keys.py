"""Idempotency-Key: no second request with a key is sent while the key is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sealgate.errors import Refusal
from sealgate.orders.idempotency import (
    Declined,
    Fresh,
    IdempotencyKeys,
    Kept,
    Name,
    Repeated,
    ReplayBounds,
    digest,
    parse_key,
)
from sealgate.orders.outcome import BotReply, Conclusion, Ending, is_remembered

DONE, REFUSED, NOT_SENT, UNKNOWN = (
    Conclusion.DONE,
    Conclusion.REFUSED,
    Conclusion.NOT_SENT,
    Conclusion.UNKNOWN,
)
AMPLE = ReplayBounds(most_count=100, most_bytes=1000, longest_s=60.0)
K = Name("grid", "spot", "k-1")
CONTENT = digest("POST", "/v1/trade/order", "ak-1", b"{}")
FENCE_MS = 1_790_000_005_000


def reply(status: int = 200, body: bytes = b'{"id": 1}') -> BotReply:
    return BotReply(status, "OK", ((b"Content-Type", b"application/json"),), body)


def done(body: bytes = b'{"id": 1}') -> Ending:
    return Ending(DONE, FENCE_MS, reply(body=body))


def name(number: int) -> Name:
    return Name("grid", "spot", f"k-{number}")


def settle(replays: IdempotencyKeys, key: Name, ending: Ending, at: float = 0.0) -> None:
    assert replays.begin(key, CONTENT, at) == Fresh()
    replays.finish(key, ending, at)


def test_the_first_reply_is_given_again() -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, K, done())
    assert replays.begin(K, CONTENT, 1.0) == Repeated(reply(), DONE, FENCE_MS)
    assert replays.begin(K, CONTENT, 2.0) == Repeated(reply(), DONE, FENCE_MS)


def test_one_under_way_is_not_sent_twice() -> None:
    replays = IdempotencyKeys(AMPLE)
    replays.begin(K, CONTENT, 0.0)
    told = "The first request with this Idempotency-Key is still in progress."
    assert replays.begin(K, CONTENT, 1.0) == Declined("in_flight", told, UNKNOWN, 0)
    replays.signed(K, FENCE_MS)
    assert replays.begin(K, CONTENT, 1.0) == Declined("in_flight", told, UNKNOWN, FENCE_MS)
    replays.signed(K, FENCE_MS + 1)
    assert replays.begin(K, CONTENT, 1.0) == Declined("in_flight", told, UNKNOWN, FENCE_MS + 1)


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_key_serves_one_request_only(*, is_settled: bool) -> None:
    replays = IdempotencyKeys(AMPLE)
    replays.begin(K, CONTENT, 0.0)
    if is_settled:
        replays.finish(K, done(), 0.0)
    other = digest("POST", "/v1/trade/order", "ak-1", b"{ }")
    told = "This Idempotency-Key was used for another request."
    assert replays.begin(K, other, 1.0) == Declined("key_reused", told, NOT_SENT, 0)


def test_two_bots_may_use_the_same_key() -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, Name("grid", "spot", "k"), done())
    assert replays.begin(Name("maker", "spot", "k"), CONTENT, 1.0) == Fresh()


def test_a_key_at_another_exchange_is_another_one() -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, Name("grid", "spot", "k"), done())
    assert replays.begin(Name("grid", "perp", "k"), CONTENT, 1.0) == Fresh()
    assert isinstance(replays.begin(Name("grid", "spot", "k"), CONTENT, 1.0), Repeated)


def test_many_keys_at_one_exchange_make_none_at_another_forgotten() -> None:
    replays = IdempotencyKeys(ReplayBounds(2, 1000, 60.0))
    settle(replays, Name("grid", "spot", "k"), done())
    for number in range(5):
        settle(replays, Name("grid", "perp", f"k-{number}"), done())
    assert isinstance(replays.begin(Name("grid", "spot", "k"), CONTENT, 1.0), Repeated)
    assert len(replays) == 3


def test_an_unknown_outcome_is_repeated_with_its_fence() -> None:
    replays = IdempotencyKeys(AMPLE)
    told = reply(502, b'{"reason": "upstream_broken"}')
    settle(replays, K, Ending(UNKNOWN, FENCE_MS, told, is_own=True))
    assert replays.begin(K, CONTENT, 1.0) == Repeated(told, UNKNOWN, FENCE_MS)


ENDINGS: dict[str, tuple[Ending, bool]] = {
    "done": (done(), True),
    "refused by the exchange": (Ending(REFUSED, FENCE_MS, reply(400)), True),
    "refused for the moment": (Ending(REFUSED, FENCE_MS, reply(429), is_limited=True), False),
    "refused, and then time ran out": (Ending(REFUSED, FENCE_MS, reply(504), is_own=True), False),
    "refused, and the bot hung up": (Ending(REFUSED, FENCE_MS, None, is_own=True), False),
    "refused, with a large reply": (Ending(REFUSED, FENCE_MS), True),
    "not sent": (Ending(NOT_SENT), False),
    "not sent, and told so": (Ending(NOT_SENT, 0, reply(502), is_own=True), False),
    "unknown": (Ending(UNKNOWN, FENCE_MS), True),
    "unknown, and told so": (Ending(UNKNOWN, FENCE_MS, reply(502), is_own=True), True),
}


@pytest.mark.parametrize(("ending", "is_kept"), ENDINGS.values(), ids=ENDINGS)
def test_a_key_is_spent_by(ending: Ending, *, is_kept: bool) -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, K, ending)
    assert is_remembered(ending) is is_kept
    assert (replays.begin(K, CONTENT, 1.0) == Fresh()) is not is_kept


def test_a_reply_that_is_too_large_is_settled_without_its_body() -> None:
    replays = IdempotencyKeys(ReplayBounds(100, 1 << 24, 60.0))
    settle(replays, name(1), done(bytes(256 * 1024)))
    settle(replays, name(2), done(bytes(256 * 1024 + 1)))
    assert isinstance(replays.begin(name(1), CONTENT, 1.0), Repeated)
    again = replays.begin(name(2), CONTENT, 1.0)
    assert isinstance(again, Declined)
    assert (again.slug, again.conclusion, again.fence_ms) == ("upstream_broken", DONE, FENCE_MS)


def test_what_was_never_signed_has_no_fence() -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, K, Ending(UNKNOWN))
    again = replays.begin(K, CONTENT, 1.0)
    assert isinstance(again, Declined)
    assert again.fence_ms == 0


def test_a_reply_above_the_bound_of_all_replies_still_spends_its_key() -> None:
    replays = IdempotencyKeys(ReplayBounds(100, 10, 60.0))
    settle(replays, K, done())
    assert isinstance(replays.begin(K, CONTENT, 1.0), Declined)


def test_a_reply_that_just_fits_is_kept() -> None:
    replays = IdempotencyKeys(ReplayBounds(100, reply().size, 60.0))
    settle(replays, K, done())
    assert isinstance(replays.begin(K, CONTENT, 1.0), Repeated)


def test_the_oldest_settled_goes_first_when_there_are_too_many() -> None:
    replays = IdempotencyKeys(ReplayBounds(3, 1000, 60.0))
    replays.begin(name(0), CONTENT, 0.0)
    for number in (1, 2, 3):
        settle(replays, name(number), done(), float(number))
    assert len(replays) == 3
    assert isinstance(replays.begin(name(0), CONTENT, 4.0), Declined), "under way: never dropped"
    assert isinstance(replays.begin(name(3), CONTENT, 4.0), Repeated)
    assert replays.begin(name(1), CONTENT, 4.0) == Fresh()


def test_nothing_new_where_all_are_under_way() -> None:
    replays = IdempotencyKeys(ReplayBounds(2, 1000, 60.0))
    for number in (1, 2):
        replays.begin(name(number), CONTENT, 0.0)
    told = "2 requests with an Idempotency-Key are in progress, which is the maximum."
    assert replays.begin(name(3), CONTENT, 0.0) == Declined("queue_full", told, NOT_SENT, 0)
    replays.finish(name(1), Ending(NOT_SENT), 0.0)
    assert replays.begin(name(3), CONTENT, 0.0) == Fresh()


def test_no_bot_crowds_out_the_keys_of_another() -> None:
    """Neither by their number, nor by the bytes of their replies, nor by what is under way."""
    replays = IdempotencyKeys(ReplayBounds(3, 2 * reply().size, 60.0))
    settle(replays, K, done())
    for number in range(10):
        settle(replays, Name("maker", "spot", f"k-{number}"), done(), 1.0)
    for number in range(3):
        replays.begin(Name("maker", "spot", f"under way {number}"), CONTENT, 1.0)
    declined = replays.begin(Name("maker", "spot", "one more"), CONTENT, 1.0)
    assert isinstance(declined, Declined)
    assert declined.slug == "queue_full"
    assert isinstance(replays.begin(K, CONTENT, 2.0), Repeated)
    assert replays.begin(name(2), CONTENT, 2.0) == Fresh()


def test_replies_have_a_bound_together_but_their_keys_stay_spent() -> None:
    replays = IdempotencyKeys(ReplayBounds(100, 100 + 2 * reply(body=b"").size, 60.0))
    for number in (1, 2, 3):
        settle(replays, name(number), done(bytes(50)), float(number))
    assert isinstance(replays.begin(name(1), CONTENT, 4.0), Declined)
    assert isinstance(replays.begin(name(2), CONTENT, 4.0), Repeated)
    assert isinstance(replays.begin(name(3), CONTENT, 4.0), Repeated)


class Counted(str):
    """A key that counts how often it or another one is looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        Counted.lookups += 1
        return super().__hash__()


def lookups_of_one_order(already: int) -> int:
    """Fill a store with that many keys, of which all but two have lost their reply; then send one more."""
    replays = IdempotencyKeys(ReplayBounds(already, 2 * reply().size, 1e6))
    kept = [
        Kept(Name("grid", "spot", Counted(f"k-{age}")), CONTENT, done(), float(age)) for age in range(already)
    ]
    replays.restore(kept, now=0.0)
    Counted.lookups = 0
    settle(replays, Name("grid", "spot", Counted("one more")), done())
    return Counted.lookups


def test_an_order_costs_the_same_however_many_keys_are_known() -> None:
    assert lookups_of_one_order(300) == lookups_of_one_order(30)


def test_a_key_is_forgotten_when_it_is_old() -> None:
    replays = IdempotencyKeys(AMPLE)
    settle(replays, K, done(), 10.0)
    assert isinstance(replays.begin(K, CONTENT, 70.0), Repeated)
    assert replays.begin(K, CONTENT, 70.1) == Fresh()


def test_what_the_journal_kept_comes_back() -> None:
    replays = IdempotencyKeys(ReplayBounds(2, 1000, 60.0))
    kept = [Kept(name(age), CONTENT, done(), float(age)) for age in (5, 61, 20, 40)]
    replays.restore(kept, now=100.0)
    assert len(replays) == 2, "the youngest of them"
    assert isinstance(replays.begin(name(5), CONTENT, 155.0), Repeated)
    assert replays.begin(name(20), CONTENT, 155.0) == Fresh(), "its age counts from before"


def test_what_is_just_old_enough_comes_back() -> None:
    replays = IdempotencyKeys(AMPLE)
    replays.restore([Kept(K, CONTENT, done(), 60.0)], now=100.0)
    assert isinstance(replays.begin(K, CONTENT, 100.0), Repeated)


def test_of_two_records_of_one_key_the_younger_counts_once() -> None:
    replays = IdempotencyKeys(ReplayBounds(2, reply(body=b"new").size, 60.0))
    replays.restore([Kept(K, CONTENT, done(b"old"), 20.0), Kept(K, CONTENT, done(b"new"), 10.0)], now=0.0)
    again = replays.begin(K, CONTENT, 1.0)
    assert isinstance(again, Repeated), "there is room for one reply"
    assert again.reply.body == b"new"
    assert len(replays) == 1


def test_a_restored_order_that_was_under_way_is_never_sent() -> None:
    replays = IdempotencyKeys(AMPLE)
    replays.restore([Kept(K, CONTENT, Ending(UNKNOWN, FENCE_MS), 1.0)], now=0.0)
    again = replays.begin(K, CONTENT, 1.0)
    assert isinstance(again, Declined)
    assert (again.slug, again.conclusion, again.fence_ms) == ("upstream_broken", UNKNOWN, FENCE_MS)


@pytest.mark.parametrize("value", ["k", '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "!~", "x" * 255])
def test_a_key_is_taken_literally(value: str) -> None:
    assert parse_key(value) == value


@pytest.mark.parametrize("value", ["", "x" * 256, "a b", "a\tb", "ä", "a\x7f", "a\n"])
def test_what_is_no_key(value: str) -> None:
    with pytest.raises(Refusal, match="bad_request: Idempotency-Key is not 1 to 255 visible ASCII"):
        parse_key(value)


words = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=3)
contents = st.tuples(words, words, words, st.binary(max_size=3))


@given(contents, contents)
def test_only_the_same_content_has_the_same_digest(
    one: tuple[str, str, str, bytes], other: tuple[str, str, str, bytes]
) -> None:
    assert (digest(*one) == digest(*other)) is (one == other)


BOTS = ("grid", "maker")


class AnyHistory(RuleBasedStateMachine):
    """The keys against the plain rule: what is sent is in flight, or was forgotten for a good reason."""

    bounds = ReplayBounds(3, 200, 10.0)

    def __init__(self) -> None:
        super().__init__()
        self.replays = IdempotencyKeys(self.bounds)
        self.now = 0.0
        self.under_way: set[Name] = set()

    @rule(seconds=st.floats(0, 6))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(bot=st.sampled_from(BOTS), number=st.integers(1, 5))
    def begin(self, bot: str, number: int) -> None:
        key = Name(bot, "spot", f"k-{number}")
        begun = self.replays.begin(key, CONTENT, self.now)
        if key in self.under_way:
            assert isinstance(begun, Declined)
            assert begun.slug == "in_flight"
        elif begun == Fresh():
            self.under_way.add(key)
        else:
            is_full = isinstance(begun, Declined) and begun.slug == "queue_full"
            assert is_full is (sum(one.bot == bot for one in self.under_way) == self.bounds.most_count)

    @rule(ending=st.sampled_from([ending for ending, _ in ENDINGS.values()]), data=st.data())
    def finish(self, ending: Ending, data: st.DataObject) -> None:
        if self.under_way:
            key = data.draw(st.sampled_from(sorted(self.under_way)))
            self.replays.finish(key, ending, self.now)
            self.under_way.remove(key)

    @invariant()
    def within_bounds(self) -> None:
        assert len(self.under_way) <= len(self.replays) <= self.bounds.most_count * len(BOTS)


TestAnyHistory = AnyHistory.TestCase
