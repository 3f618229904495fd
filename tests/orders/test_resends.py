"""What is sent again and what a bot may conclude: each reply and each fault, for reads and for orders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.verdicts import judged
from sealgate.errors import REASONS
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.orders.outcome import Conclusion
from sealgate.orders.resends import (
    RESENDS,
    Again,
    Deliver,
    GiveUp,
    Replay,
    after_failure,
    after_reply,
    conclude,
)
from sealgate.venues.replies import Means, Verdict, Whose

DONE, REFUSED, NOT_SENT, UNKNOWN = (
    Conclusion.DONE,
    Conclusion.REFUSED,
    Conclusion.NOT_SENT,
    Conclusion.UNKNOWN,
)
TIMESTAMP = b'{"detail": "Timestamp outside recv_window (5000ms). Server time: 1790000000000"}'
AMPLE_S = 30.0


def failed(fate: FailureKind, *, is_read: bool, resends: int = 0, left_s: float = AMPLE_S) -> Again | GiveUp:
    failure = Failure(fate, "the network fell silent")
    return after_failure(failure, is_read=is_read, resends=resends, time_left_s=left_s)


def replied(status: int, body: bytes = b"", **choices: bool) -> Deliver | Again:
    is_read, resends = choices["is_read"], ("timestamp",) if choices.get("has_resynced", False) else ()
    return after_reply(judged(status, body), is_read=is_read, replay=Replay.ALL, resends=resends)


@pytest.mark.parametrize(
    ("fate", "is_read", "conclusion"),
    [
        pytest.param(FailureKind.UNREACHABLE, True, NOT_SENT, id="no connection, read"),
        pytest.param(FailureKind.UNREACHABLE, False, NOT_SENT, id="no connection, order"),
        pytest.param(FailureKind.PROXY, True, NOT_SENT, id="no way through the proxy, read"),
        pytest.param(FailureKind.PROXY, False, NOT_SENT, id="no way through the proxy, order"),
        pytest.param(FailureKind.CONNECT_TIMEOUT, True, NOT_SENT, id="no connection in time, read"),
        pytest.param(FailureKind.CONNECT_TIMEOUT, False, NOT_SENT, id="no connection in time, order"),
        pytest.param(FailureKind.LOST, True, UNKNOWN, id="reply lost, read"),
    ],
)
def test_goes_again_after(fate: FailureKind, conclusion: Conclusion, *, is_read: bool) -> None:
    assert failed(fate, is_read=is_read) == Again(fate.value, conclusion, 0.1)


@pytest.mark.parametrize(
    ("fate", "is_read", "slug"),
    [
        pytest.param(FailureKind.LOST, False, "upstream_broken", id="reply lost, order"),
        pytest.param(FailureKind.LATE, False, "upstream_timeout", id="reply late, order"),
        pytest.param(FailureKind.LATE, True, "upstream_timeout", id="reply late, read"),
    ],
)
def test_is_given_up_at_once_after(fate: FailureKind, slug: str, *, is_read: bool) -> None:
    told = "The exchange gave no answer: the network fell silent."
    assert failed(fate, is_read=is_read) == GiveUp(slug, told, UNKNOWN)


@pytest.mark.parametrize("is_read", [pytest.param(True, id="read"), pytest.param(False, id="order")])
def test_without_a_free_connection_nothing_is_said_of_the_exchange(*, is_read: bool) -> None:
    full = Failure(FailureKind.FULL, "no connection became free")
    verdict = after_failure(full, is_read=is_read, resends=0, time_left_s=AMPLE_S)
    assert verdict == GiveUp("queue_full", "No connection became free.", NOT_SENT)


@pytest.mark.parametrize("fate", FailureKind)
def test_only_our_own_bound_is_not_the_exchanges(fate: FailureKind) -> None:
    assert Failure(fate, "").is_own is (fate is FailureKind.FULL)
    is_for_time = fate in (FailureKind.FULL, FailureKind.CONNECT_TIMEOUT, FailureKind.LATE)
    assert Failure(fate, "").is_for_time is is_for_time


@pytest.mark.parametrize(
    ("fate", "slug", "status", "conclusion"),
    [
        pytest.param(FailureKind.FULL, "queue_full", 503, NOT_SENT, id="no free connection"),
        pytest.param(FailureKind.UNREACHABLE, "upstream_unreachable", 502, NOT_SENT, id="no connection"),
        pytest.param(FailureKind.PROXY, "upstream_unreachable", 502, NOT_SENT, id="no way through the proxy"),
        pytest.param(
            FailureKind.CONNECT_TIMEOUT, "upstream_timeout", 504, NOT_SENT, id="no connection in time"
        ),
        pytest.param(FailureKind.LOST, "upstream_broken", 502, UNKNOWN, id="reply lost"),
        pytest.param(FailureKind.LATE, "upstream_timeout", 504, UNKNOWN, id="reply late"),
    ],
)
@pytest.mark.parametrize("is_read", [pytest.param(True, id="read"), pytest.param(False, id="order")])
def test_the_last_failure_is_told(
    fate: FailureKind, slug: str, status: int, conclusion: Conclusion, *, is_read: bool
) -> None:
    verdict = failed(fate, is_read=is_read, resends=RESENDS)
    assert isinstance(verdict, GiveUp)
    assert (verdict.slug, verdict.conclusion) == (slug, conclusion)
    assert REASONS[verdict.slug].status == status


@pytest.mark.parametrize("fate", FailureKind)
def test_only_without_a_connection_nothing_was_sent(fate: FailureKind) -> None:
    verdict = failed(fate, is_read=True, resends=RESENDS)
    assert Failure(fate, "").is_unsent is (verdict.conclusion is NOT_SENT)


def test_what_fails_three_times_in_a_row_is_down() -> None:
    verdicts = [failed(FailureKind.UNREACHABLE, is_read=False, resends=resends) for resends in range(4)]
    assert [type(verdict) for verdict in verdicts] == [Again, Again, GiveUp, GiveUp]


def test_each_failure_waits_twice_as_long() -> None:
    verdicts = [failed(FailureKind.LOST, is_read=True, resends=resends) for resends in range(2)]
    assert [getattr(verdict, "after_s", None) for verdict in verdicts] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("left_s", "verdict"),
    [
        pytest.param(0.11, Again, id="time enough"),
        pytest.param(0.1, GiveUp, id="just too little"),
        pytest.param(0.0, GiveUp, id="over"),
        pytest.param(-1.0, GiveUp, id="long over"),
    ],
)
def test_nothing_goes_again_past_the_deadline(left_s: float, verdict: type) -> None:
    assert isinstance(failed(FailureKind.UNREACHABLE, is_read=True, left_s=left_s), verdict)


@given(
    st.sampled_from((FailureKind.LOST, FailureKind.LATE)),
    st.integers(0, 5),
    st.floats(allow_nan=False),
    st.text(max_size=5),
)
def test_an_order_that_was_written_never_goes_again(
    fate: FailureKind, resends: int, left_s: float, detail: str
) -> None:
    verdict = after_failure(Failure(fate, detail), is_read=False, resends=resends, time_left_s=left_s)
    assert isinstance(verdict, GiveUp)
    assert verdict.conclusion is UNKNOWN


@pytest.mark.parametrize(
    ("status", "read", "order"),
    [
        pytest.param(200, DONE, DONE, id="200"),
        pytest.param(204, DONE, DONE, id="204"),
        pytest.param(302, DONE, DONE, id="302"),
        pytest.param(399, DONE, DONE, id="399"),
        pytest.param(400, REFUSED, REFUSED, id="400"),
        pytest.param(401, REFUSED, REFUSED, id="401"),
        pytest.param(403, REFUSED, REFUSED, id="403"),
        pytest.param(409, REFUSED, REFUSED, id="409"),
        pytest.param(422, REFUSED, REFUSED, id="422"),
        pytest.param(449, REFUSED, REFUSED, id="449"),
        pytest.param(499, REFUSED, REFUSED, id="499"),
        pytest.param(500, REFUSED, UNKNOWN, id="500"),
        pytest.param(502, REFUSED, UNKNOWN, id="502"),
        pytest.param(503, REFUSED, UNKNOWN, id="503"),
        pytest.param(504, REFUSED, UNKNOWN, id="504"),
        pytest.param(599, REFUSED, UNKNOWN, id="599"),
    ],
)
def test_a_whole_reply_passes_on(status: int, read: Conclusion, order: Conclusion) -> None:
    assert replied(status, is_read=True) == Deliver(read)
    assert replied(status, is_read=False) == Deliver(order)
    assert (conclude(judged(status), is_read=True), conclude(judged(status), is_read=False)) == (read, order)


@pytest.mark.parametrize(
    ("replay", "is_read", "verdict"),
    [
        pytest.param(Replay.ALL, True, Again("rate_limited", REFUSED, 0.0), id="all, read"),
        pytest.param(Replay.ALL, False, Again("rate_limited", REFUSED, 0.0), id="all, order"),
        pytest.param(Replay.READS, True, Again("rate_limited", REFUSED, 0.0), id="reads, read"),
        pytest.param(Replay.READS, False, Deliver(REFUSED), id="reads, order"),
        pytest.param(Replay.NONE, True, Deliver(REFUSED), id="none, read"),
        pytest.param(Replay.NONE, False, Deliver(REFUSED), id="none, order"),
    ],
)
@pytest.mark.parametrize("resends", [(), ("timestamp",)])
def test_a_429_goes_again_as_configured(
    replay: Replay, verdict: Deliver | Again, resends: tuple[str, ...], *, is_read: bool
) -> None:
    got = after_reply(judged(429, TIMESTAMP), is_read=is_read, replay=replay, resends=resends)
    assert got == verdict


@pytest.mark.parametrize("is_read", [pytest.param(True, id="read"), pytest.param(False, id="order")])
@pytest.mark.parametrize("replay", Replay)
def test_a_refused_timestamp_goes_again_once(replay: Replay, *, is_read: bool) -> None:
    def verdict(*resends: str) -> Deliver | Again:
        return after_reply(judged(401, TIMESTAMP), is_read=is_read, replay=replay, resends=resends)

    assert verdict() == verdict("rate_limited", "nonce") == Again("timestamp", REFUSED, 0.0)
    assert verdict("timestamp") == Deliver(REFUSED)


@pytest.mark.parametrize("is_read", [pytest.param(True, id="read"), pytest.param(False, id="order")])
@pytest.mark.parametrize("replay", Replay)
def test_a_refused_nonce_goes_again_once(replay: Replay, *, is_read: bool) -> None:
    refused = Verdict(Means.NONCE, "nonce_invalid", Whose.SETUP, "")

    def verdict(*resends: str) -> Deliver | Again:
        return after_reply(refused, is_read=is_read, replay=replay, resends=resends)

    assert verdict() == verdict("rate_limited", "timestamp") == Again("nonce", REFUSED, 0.0)
    assert verdict("nonce") == Deliver(REFUSED)


@pytest.mark.parametrize(
    ("status", "body", "is_refusal"),
    [
        pytest.param(401, TIMESTAMP, True, id="as spec.md words it"),
        pytest.param(401, TIMESTAMP.replace(b"5000", b"60000"), True, id="another window"),
        pytest.param(401, TIMESTAMP.lower(), True, id="in lower case"),
        pytest.param(401, b'{"detail":"Invalid timestamp"}', True, id="the other wording of spec.md"),
        pytest.param(400, b'{"detail":"Invalid timestamp"}', False, id="a body refused, perhaps"),
        pytest.param(401, b'{"detail":"Invalid or expired session token"}', False, id="wrong session"),
        pytest.param(401, b'{"detail":"Missing API key auth headers"}', False, id="no headers"),
        pytest.param(401, b'{"detail":"The timestamp looks odd"}', False, id="words nobody documents"),
        pytest.param(401, b'{"detail": "Invalid HMAC signature"}', False, id="wrong signature"),
        pytest.param(401, b'{"detail": "Invalid API key"}', False, id="wrong key"),
        pytest.param(401, b"", False, id="no body"),
        pytest.param(401, b"Invalid timestamp", False, id="no detail"),
        pytest.param(
            401, b'{"detail": "Invalid API key", "path": "/Invalid timestamp"}', False, id="in another field"
        ),
        pytest.param(403, TIMESTAMP, False, id="another status"),
        pytest.param(200, TIMESTAMP, False, id="a success that quotes it"),
    ],
)
def test_only_the_words_of_the_specification_mean_the_timestamp(
    status: int, body: bytes, *, is_refusal: bool
) -> None:
    assert isinstance(replied(status, body, is_read=False), Again) is is_refusal


@given(st.integers(100, 599), st.binary(max_size=10) | st.just(TIMESTAMP), st.sampled_from(Replay))
def test_an_order_goes_again_only_where_the_exchange_refused_it(
    status: int, body: bytes, replay: Replay
) -> None:
    verdict = after_reply(judged(status, body), is_read=False, replay=replay, resends=())
    if isinstance(verdict, Again):
        assert status in {401, 429}
        assert verdict.conclusion is REFUSED
