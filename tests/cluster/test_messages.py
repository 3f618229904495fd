"""Notes, grants and limits: what is written is read again, and nothing else is a message."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.cluster.messages import (
    Completion,
    Grant,
    Message,
    MessageError,
    Note,
    Passage,
    RejectedClaim,
    SharedLimits,
    SharedPool,
    read_message,
    shares,
    write,
)
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.quotas import Quota
from sealgate.limits.status import LimitStatus
from sealgate.venues.routes import Lane

numbers = st.integers(0, 1000).map(float)
positive = st.integers(1, 1000).map(float)
names = st.text("abc-+", min_size=1, max_size=6)
places = st.sampled_from(["all", "https://a.example key 1f | path | POST /v5/order", "é | pair | XBT/USD"])
pools = st.lists(places, min_size=1, max_size=3, unique=True).map(tuple)
subjects = st.lists(names, max_size=3, unique=True).map(tuple)
passages = st.builds(Passage, pools, subjects)
quotas = st.builds(
    lambda limit, *state: Quota(*limit, *state),
    st.just((math.inf, math.inf)) | st.tuples(positive, st.just(math.inf) | positive),
    st.none() | numbers,
    st.none() | numbers,
    names | st.sampled_from(["", "\xa0"]),  # as the exchange writes it
    st.just("") | names,
    st.booleans(),
)
replies = st.builds(
    LimitReply,
    st.sampled_from(Fate),
    st.none() | numbers,
    st.sampled_from([0.0, 1.0]),
    st.lists(quotas, max_size=2).map(tuple),
    is_documented=st.booleans(),
    pools=st.lists(names, max_size=2).map(tuple),
    shuts_out=st.just("") | names,
)
claims = st.builds(
    Claim,
    names,
    names,
    st.sampled_from(Lane),
    numbers,
    positive,
    positive,
    st.booleans(),
    st.booleans(),
    pools=pools,
    subjects=subjects,
)
notes = st.builds(
    Note,
    st.booleans(),
    st.dictionaries(places, st.lists(st.tuples(numbers, numbers), max_size=3), max_size=2),
    st.lists(names, max_size=3),
    st.lists(st.tuples(names, numbers), max_size=3),
    st.lists(st.builds(Completion, names, replies, numbers, numbers), max_size=3),
    st.lists(claims, max_size=3),
    st.dictionaries(passages, st.integers(0, 64), max_size=2),
)


@given(notes, numbers, numbers)
def test_a_note_means_the_same_on_another_clock(note: Note, here: float, there: float) -> None:
    note.sent = [(name, min(at, here)) for name, at in note.sent]
    note.completed = [
        one._replace(sent_at=min(one.sent_at, here), at=min(one.at, here)) for one in note.completed
    ]
    message = read_message(write(Message(7, sender="me", note=note), here), there)
    assert (message.sender, message.epoch) == ("me", 7)
    later_s = there - here
    note.waits = [replace(claim, give_up_at=claim.give_up_at + later_s) for claim in note.waits]
    note.sent = [(name, at + later_s) for name, at in note.sent]
    note.completed = [
        Completion(name, reply, sent + later_s, at + later_s) for name, reply, sent, at in note.completed
    ]
    assert message.note == note


CLAIM = ["1", "bot", "order", 5.0, 1.0, 1.0, False, False, ["key | orders", "all"], ["key"]]


def with_claim(at: int, value: object) -> dict[str, object]:
    return {"waits": [[*CLAIM[:at], value, *CLAIM[at + 1 :]]]}


def with_reply(*columns: object) -> dict[str, object]:
    return {"completed": [["1", [*columns], 0.5, 0.1]]}


def with_quota(*columns: object) -> dict[str, object]:
    return with_reply("accepted", None, 1.0, False, [], "", [[*columns]])


STRANGE_NOTES: dict[str, object] = {
    "a cost that is text": with_claim(5, "9"),
    "no cost": with_claim(5, 0),
    "a weight below 0": with_claim(4, -1.0),
    "no weight": with_claim(4, 0),
    "a weight without end": with_claim(4, math.inf),
    "a cost without end": with_claim(5, math.inf),
    "a deadline that is no number": with_claim(3, math.nan),
    "a deadline that is too far": with_claim(3, 10**400),
    "no bot": with_claim(1, None),
    "a bot whose name ends the line": with_claim(1, "b\nc"),
    "no lane": with_claim(2, "fast"),
    "a name without end": with_claim(0, "x" * 2000),
    "no pools": with_claim(8, []),
    "a pool without a name": with_claim(8, [""]),
    "a pool twice": with_claim(8, ["all", "all"]),
    "a pool that moves a terminal's cursor": with_claim(8, ["\x1b[2J"]),
    "pools without end": with_claim(8, [str(number) for number in range(101)]),
    "a subject without end": with_claim(9, ["x" * 2000]),
    "too many subjects": with_claim(9, ["1", "2", "3", "4"]),
    "too short": {"waits": [CLAIM[:5]]},
    "no reply": {"completed": [["1", None, 0.5, 0.1]]},
    "a fate of another version": with_reply("late", None, 1.0, False, [], "", []),
    "a resolution below 0": with_reply("accepted", None, -1.0, False, [], "", []),
    "a quota of nothing": with_quota(0, 1.0, None, None, "", "", False),
    "a quota in no time": with_quota(1, 0, None, None, "", "", False),
    "a cost of which sums are infinite": with_claim(5, 1e308),
    "a weight by which tags are infinite": with_claim(4, 5e-324),
    "a deadline that is never": with_claim(3, 1e300),
    "a pool that no claim names": with_claim(8, ["all | (shut out)"]),
    "a quota without end in a window": with_quota(None, 1.0, None, None, "", "", False),
    "names that are none": {"gone": [1]},
    "a refusing pool without end": with_reply("limited", None, 1.0, False, ["x" * 2000], "", []),
    "a subject that is none": with_reply("banned", None, 1.0, False, [], None, []),
    "a wish that is none": {"wants": [[["all"], [], 0.5]]},
    "a wish for nothing": {"wants": [[[], [], 1]]},
    "what was sent where is not said": {"spent": {"": [[1.0, 1.0]]}},
    "a cost below 0 that was sent": {"spent": {"all": [[1.0, -1.0]]}},
    "a cost without end that was sent": {"spent": {"all": [[1.0, 1e308]]}},
    "a truth that is none": {"is_new": 0},
    "no object": [],
}


@pytest.mark.parametrize("note", STRANGE_NOTES.values(), ids=STRANGE_NOTES)
def test_a_note_that_makes_no_sense_is_none(note: object) -> None:
    with pytest.raises(MessageError):
        read_message(json.dumps({"sender": "a", "note": note}), 100.0)


STRANGE: dict[str, bytes] = {
    "no JSON": b"{",
    "no UTF-8": b"\xff",
    "no object": b"[1]",
    "deep": b"[" * 100_000,
    "an epoch that is text": b'{"epoch":"1"}',
    "an epoch below 0": b'{"epoch":-1}',
    "an epoch that no float holds": b'{"epoch":9007199254740992}',
    "a truth value for an epoch": b'{"epoch":true}',
    "a pause without end": b'{"pauses":{"all":Infinity}}',
    "a pause that is no number": b'{"pauses":{"all":NaN}}',
    "a pause of many digits": b'{"pauses":{"all":1' + b"0" * 400 + b"}}",
    "a pause of years": b'{"pauses":{"all":63072000}}',
    "a pause before now": b'{"pauses":{"all":-1}}',
    "a pause of what cannot be shown": b'{"pauses":{"\\u001b[2J":1}}',
    "a pause of what has no end": b'{"pauses":{"' + b"x" * 2000 + b'":1}}',
    "pauses without end": json.dumps({"pauses": dict.fromkeys(map(str, range(2001)), 1.0)}).encode(),
    "nobody's note": b'{"sender":5,"note":{}}',
    "a sender in two words": b'{"sender":"a b","note":{}}',
    "a sender without end": b'{"sender":"' + b"x" * 2000 + b'","note":{}}',
    "a grant of another version": b'{"grant":[["a"],[],[]]}',
    "a grant of names that are none": b'{"grant":{"go":[["a"]]}}',
    "a refusal for no reason": b'{"grant":{"rejected":[["a","x","y",null]]}}',
    "a refusal in words that move a terminal's cursor": (
        b'{"grant":{"rejected":[["a","deadline_exceeded","\\u001b[2J",null]]}}'
    ),
    "a credit for nothing": b'{"grant":{"credits":[[[],[],["+1"]]]}}',
    "an announcement that is none": b'{"limits":[]}',
    "an announcement of limits that are none": b'{"limits":{"pools":{"all":{"limits":[{}]}}}}',
    "an announcement of what is no limit": b'{"limits":{"pools":{"all":{"limits":[1]}}}}',
    "an announcement that nothing may be under way": b'{"limits":{"pools":{"all":{"at_a_time":0}}}}',
    "an announcement of no pool": b'{"limits":{"pools":{"":{}}}}',
}


@pytest.mark.parametrize("raw", STRANGE.values(), ids=STRANGE)
def test_a_message_that_makes_no_sense_is_none(raw: bytes) -> None:
    with pytest.raises(MessageError):
        read_message(raw, 100.0)


@pytest.mark.parametrize("pause_s", [0.0, 3.0, 366 * 86_400.0])
def test_any_pause_that_an_exchange_can_state_is_read(pause_s: float) -> None:
    assert read_message(json.dumps({"pauses": {"all": pause_s}}), 0.0).pauses == {"all": pause_s}


def test_nothing_ended_in_the_future() -> None:
    plain = {"note": {"completed": [["1", ["accepted", None, 1.0, False, [], "", None, []], -1e9, -1e9]]}}
    note = read_message(json.dumps(plain), 100.0).note
    assert note is not None
    assert [(one.sent_at, one.at) for one in note.completed] == [(100.0, 100.0)]


SHOWN = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=None, next_step=""
)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("limits", {"n": 0}),
        ("limits", {"n": math.inf}),
        ("limits", {"window": 0.0}),
        ("limits", {"window": -1.0}),
        ("limits", {"n": "20"}),
        ("statuses", {"n": 0.0}),
        ("statuses", {"high": math.inf}),
        ("statuses", {"words": "\x1b[2J"}),
        ("statuses", {"words": "x" * 2000}),
    ],
)
def test_a_limit_that_makes_no_sense_is_none(part: str, change: dict[str, object]) -> None:
    shared = SharedLimits({"all": SharedPool((Limit(20.0, 1.0, 20.0),), (SHOWN,))})
    plain = json.loads(write(Message(3, limits=shared), 100.0))
    plain["limits"]["pools"]["all"][part][0] |= change
    with pytest.raises(MessageError):
        read_message(json.dumps(plain), 100.0)


def test_only_a_note_that_says_something_is_true() -> None:
    assert not Note()
    assert Note(wants={Passage(("all",), ()): 1})
    assert Note(is_new=True)


def test_a_grant_is_read_as_it_was_written() -> None:
    rejected = RejectedClaim("c", "deadline_exceeded", "The queue is longer than you can wait.", 2.5)
    orders, reads = (Passage((pool, "all"), ("key",)) for pool in ("orders", "reads"))
    grant = Grant(
        ["a", "b"], {orders: ["+1"], reads: ["+2", "+3"]}, [rejected, rejected._replace(retry_after_s=None)]
    )
    assert read_message(write(Message(3, grant=grant), 0.0), 0.0) == Message(3, grant=grant)


def test_limits_are_handed_over_with_what_was_searched() -> None:
    searched = Limit(19.0, 1.0, 18.5, 21.0, seen=3, last_seen=90.0, is_held=True, rest_s=40.0)
    published = Limit(1.0, 60.0, 1 / 60, 1 / 60, most=1 / 60)
    shared = SharedLimits({"orders": SharedPool((searched, published), (SHOWN,), 4), "all": SharedPool()})
    read = read_message(write(Message(3, limits=shared), 100.0), 1000.0).limits
    assert read is not None
    pool = read.pools["orders"]
    assert (pool.statuses, pool.at_a_time, read.pools["all"]) == ((SHOWN,), 4, SharedPool())
    first, second = pool.limits
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


def test_a_quota_that_grants_anything_in_a_window_is_none() -> None:
    quota = [None, 10.0, None, None, "", "", False]
    reply = ["accepted", None, 1.0, False, [], "", None, [quota]]
    with pytest.raises(MessageError):
        read_message(json.dumps({"note": {"completed": [["1", reply, 0.0, 0.0]]}}), 100.0)
