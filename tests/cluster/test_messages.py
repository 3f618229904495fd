"""Notes, grants and limits: what is written is read again, and infinite times have a place in JSON."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.cluster.messages import (
    Completion,
    Grant,
    MessageError,
    Note,
    RejectedClaim,
    SharedLimit,
    read_grant,
    read_message,
    read_note,
    read_shared,
    shares,
    write_grant,
    write_note,
    write_shared,
)
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

numbers = st.integers(0, 1000).map(float)
positive = st.integers(1, 1000).map(float)
names = st.text("abc-+", min_size=1, max_size=6)
quotas = st.builds(
    Quota,
    st.just(math.inf) | positive,
    st.just(math.inf) | positive,
    st.none() | numbers,
    st.none() | numbers,
    names | st.sampled_from(["", "\xa0"]),  # as the exchange writes it
)
replies = st.builds(
    LimitReply,
    st.sampled_from(Fate),
    st.none() | numbers,
    st.sampled_from([0.0, 1.0]),
    st.lists(quotas, max_size=2).map(tuple),
    is_documented=st.booleans(),
)
claims = st.builds(
    Claim, names, names, st.sampled_from(Lane), numbers, positive, positive, st.booleans(), st.booleans()
)
notes = st.builds(
    Note,
    st.booleans(),
    st.lists(st.tuples(numbers, numbers), max_size=3),
    st.lists(names, max_size=3),
    st.lists(st.tuples(names, numbers), max_size=3),
    st.lists(st.builds(Completion, names, replies, numbers, numbers), max_size=3),
    st.lists(claims, max_size=3),
    st.integers(0, 64),
)


@given(notes, numbers, numbers)
def test_a_note_means_the_same_on_another_clock(note: Note, here: float, there: float) -> None:
    note.completed = [
        one._replace(sent_at=min(one.sent_at, here), at=min(one.at, here)) for one in note.completed
    ]
    message = json.loads(write_note(note, "me", 7, here))
    assert (message["from"], message["epoch"]) == ("me", 7)
    later_s = there - here
    note.waits = [replace(claim, give_up_at=claim.give_up_at + later_s) for claim in note.waits]
    note.sent = [(name, at + later_s) for name, at in note.sent]
    note.completed = [
        Completion(name, reply, sent + later_s, at + later_s) for name, reply, sent, at in note.completed
    ]
    assert read_note(message["note"], there) == note


CLAIM = ["1", "bot", "order", 5.0, 1.0, 1.0, False, False]
OVER: list[Any] = ["1", "accepted", None, 1.0, False, [], 0.5, 0.1]


@pytest.mark.parametrize(
    ("over", "waits"),
    [
        pytest.param([], [[*CLAIM[:5], "9", *CLAIM[6:]]], id="a cost that is text"),
        pytest.param([], [[*CLAIM[:5], 0, *CLAIM[6:]]], id="no cost"),
        pytest.param([], [[*CLAIM[:4], -1.0, *CLAIM[5:]]], id="a weight below 0"),
        pytest.param([], [[*CLAIM[:4], 0, *CLAIM[5:]]], id="no weight"),
        pytest.param([], [[*CLAIM[:4], 1e999, *CLAIM[5:]]], id="a weight without end"),
        pytest.param([], [[*CLAIM[:5], 1e999, *CLAIM[6:]]], id="a cost without end"),
        pytest.param([], [[CLAIM[0], None, *CLAIM[2:]]], id="no bot"),
        pytest.param([], [CLAIM[:5]], id="too short"),
        pytest.param([], [[*CLAIM[:3], 10**400, *CLAIM[4:]]], id="too far"),
        pytest.param([[*OVER[:4], [[0, 1.0, None, None, ""]], *OVER[5:]]], [], id="a quota of nothing"),
        pytest.param([[*OVER[:4], [[1, 0, None, None, ""]], *OVER[5:]]], [], id="a quota in no time"),
    ],
)
def test_a_note_that_makes_no_sense_is_none(over: list[Any], waits: list[Any]) -> None:
    with pytest.raises(MessageError):
        read_note([False, [], [], [], over, waits, 0], 100.0)


STRANGE: dict[str, bytes] = {
    "no JSON": b"{",
    "no UTF-8": b"\xff",
    "no object": b"[1]",
    "deep": b"[" * 100_000,
    "an epoch that is text": b'{"epoch":"1"}',
    "an epoch below 0": b'{"epoch":-1}',
    "a truth value for an epoch": b'{"epoch":true}',
    "a pause without end": b'{"pause":Infinity}',
    "a pause that is no number": b'{"pause":NaN}',
    "a pause of many digits": b'{"pause":1' + b"0" * 400 + b"}",
    "a pause of years": b'{"pause":63072000}',
    "a pause before now": b'{"pause":-1}',
    "nobody's note": b'{"from":5,"note":[false,[],[],[],[],[],0]}',
    "a sender in two words": b'{"from":"a b","note":[false,[],[],[],[],[],0]}',
    "a sender without end": b'{"from":"' + b"x" * 2000 + b'","note":[false,[],[],[],[],[],0]}',
    "a note that is none": b'{"from":"a","note":{}}',
    "names that are none": b'{"from":"a","note":[false,[],[1],[],[],[],0]}',
    "a wish that is none": b'{"from":"a","note":[false,[],[],[],[],[],0.5]}',
    "a truth that is none": b'{"from":"a","note":[0,[],[],[],[],[],0]}',
    "a grant of another version": b'{"grant":[["a"],[]]}',
    "a grant of names that are none": b'{"grant":[[["a"]],[],[]]}',
    "a refusal for no reason": b'{"grant":[[],[],[["a","x","y",null]]]}',
    "a refusal in words that move a terminal's cursor": (
        b'{"grant":[[],[],[["a","deadline_exceeded","\\u001b[2J",null]]]}'
    ),
    "a bot whose name ends the line": (
        b'{"from":"a","note":[false,[],[],[],[],[["1","b\\nc","order",5.0,1.0,1.0,false,false]],0]}'
    ),
    "an announcement that is none": b'{"beat":{}}',
    "an announcement of limits that are none": b'{"beat":{"limits":[{}],"statuses":[],"at_a_time":null}}',
}


@pytest.mark.parametrize("raw", STRANGE.values(), ids=STRANGE)
def test_a_message_that_makes_no_sense_is_none(raw: bytes) -> None:
    with pytest.raises(MessageError):
        read_message(raw, 100.0)


@pytest.mark.parametrize("pause_s", [0.0, 3.0, 366 * 86_400.0])
def test_any_pause_that_an_exchange_can_state_is_read(pause_s: float) -> None:
    assert read_message(json.dumps({"pause": pause_s}), 0.0).pause_s == pause_s


def test_nothing_ended_in_the_future() -> None:
    [completion] = read_note([False, [], [], [], [[*OVER[:-2], -1e9, -1e9]], [], 0], 100.0).completed
    assert (completion.sent_at, completion.at) == (100.0, 100.0)


@pytest.mark.parametrize(
    "change",
    [{"n": 0}, {"n": math.inf}, {"window": 0.0}, {"window": -1.0}, {"window": math.inf}, {"n": "20"}],
)
def test_a_limit_that_makes_no_sense_is_none(change: dict[str, Any]) -> None:
    plain = write_shared(SharedLimit((Limit(20.0, 1.0, 20.0),)), 100.0)
    plain["limits"][0] |= change
    with pytest.raises(MessageError):
        read_shared(plain, 100.0)


def test_only_a_note_that_says_something_is_true() -> None:
    assert not Note()
    assert Note(wants=1)
    assert Note(is_new=True)


def test_a_grant_is_read_as_it_was_written() -> None:
    rejected = RejectedClaim("c", "deadline_exceeded", "The queue is longer than you can wait.", 2.5)
    grant = Grant(["a", "b"], ["+1"], [rejected, rejected._replace(retry_after_s=None)])
    assert read_grant(json.loads(write_grant(grant, 3))["grant"]) == grant


def test_limits_are_handed_over_with_what_was_searched() -> None:
    searched = Limit(19.0, 1.0, 18.5, 21.0, seen=3, last_seen=90.0, is_held=True, rest_s=40.0)
    published = Limit(1.0, 60.0, 1 / 60, 1 / 60, most=1 / 60)
    plain = json.loads(json.dumps(write_shared(SharedLimit((searched, published)), 100.0)))
    first, second = read_shared(plain, 1000.0).limits
    assert (first.n, first.window, first.low, first.high) == (19.0, 1.0, 18.5, 21.0)
    assert (first.last_seen, first.is_held, first.rest_s, first.most) == (990.0, True, 40.0, math.inf)
    assert first.next_at > 1000.0
    assert (second.n, second.most, second.seen) == (1.0, 1 / 60, 0)


def test_a_share_is_no_more_than_its_part_and_is_not_probed_beyond() -> None:
    [half] = shares([Limit(20.0, 1.0, 20.0)], 2, is_alone=False)
    assert (half.n, half.window, half.most) == (10.0, 1.0, 10.0)
    [careful] = shares([Limit(20.0, 1.0, 20.0)], 2, is_alone=True)
    assert careful.n == 8.0
    [more_than_one] = shares([Limit(3.0, 1.0, 3.0)], 2, is_alone=False)
    assert (more_than_one.n, more_than_one.window) == (1.5, 1.0)
    [little] = shares([Limit(2.0, 1.0, 2.0)], 8, is_alone=False)
    assert (little.n, little.window) == (1.0, 4.0)
