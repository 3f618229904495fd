"""What a venue's file says of the messages of an exchange: replies, and challenges."""

from typing import Any

import pytest

from sealgate.venues.key_kinds import Kind
from sealgate.venues.streams import MessageRule, ReplyRule, id_of
from sealgate.venues.venue import read_venue

HEAD = """name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
headers = { SIGN = "{signature}" }
[[streams]]
host = "ws.example.com"
"""
MESSAGE = """[[streams.messages]]
when = { "/op" = "auth" }
"""


def rule_of(text: str, message: Any) -> MessageRule:
    [stream] = read_venue("mine.toml", HEAD + text).streams
    rule, _ = stream.find(message, Kind.HMAC)
    assert rule is not None
    return rule


def reply_of(text: str) -> ReplyRule:
    reply = rule_of(f"{MESSAGE}[streams.messages.reply]\n{text}", {"op": "auth"}).reply
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"id": 1}, "1"),
        ({"id": "1"}, "1"),
        ({"id": ""}, None),
        ({"id": True}, None),
        ({"id": 1.5}, None),
        ({"id": None}, None),
        ({"id": ["1"]}, None),
        ({}, None),
        ([], None),
    ],
)
def test_an_id_is_a_text_or_a_whole_number(message: Any, expected: str | None) -> None:
    assert id_of(message, "/id") == expected


def test_a_reply_is_known_by_its_id_or_by_what_it_must_have() -> None:
    text = 'at = "/header/ref"\nwhen = { "/kind" = "r" }\ndone = { "/ok" = true }\n'
    by_id = rule_of(f'{MESSAGE}[streams.messages.reply]\nid = "/id"\n{text}', {"op": "auth"}).reply
    by_words = rule_of(f"{MESSAGE}[streams.messages.reply]\n{text}", {"op": "auth"}).reply
    assert by_id is not None
    assert by_words is not None
    for reply in (by_id, by_words):
        assert reply.answers("7", {"kind": "r", "header": {"ref": 7}})
        assert not reply.answers("7", {"kind": "x", "header": {"ref": 7}})
    for header in ({"ref": 8}, {"ref": True}, {}):
        assert not by_id.answers("7", {"kind": "r", "header": header})
        assert by_words.answers("7", {"kind": "r", "header": header})
    assert not by_id.answers(None, {"kind": "r"})
    assert by_words.answers(None, {"kind": "r"})


def test_a_reply_means_the_first_of_what_it_may_mean_that_is_in_it() -> None:
    text = """[streams.messages.reply]
id = "/id"
limited = { "/code" = 429 }
unknown = [{ "/code" = 500 }, { "/late" = true }]
done = { "/code" = [0, 429, 500] }
refused = { "/code" = "*" }
"""
    reply = rule_of(MESSAGE + text, {"op": "auth"}).reply
    assert reply is not None
    for message, meaning in (
        ({"code": 429}, "limited"),
        ({"code": 500}, "unknown"),
        ({"code": 0, "late": True}, "unknown"),
        ({"code": 0}, "done"),
        ({"code": "0"}, "refused"),
        ({"ack": True}, ""),
        ([], ""),
    ):
        assert reply.meaning(message) == meaning


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"s": 429}, 429),
        ({"s": 200}, 200),
        ({"s": "429"}, 503),
        ({"s": 429.0}, 503),
        ({"s": True}, 503),
        ({"s": 7}, 503),
        ({}, 503),
    ],
)
def test_a_reply_may_state_a_status(reply: Any, status: int) -> None:
    assert reply_of('id = "/id"\ndone = { "/s" = 200 }\nstatus = "/s"').status_of(reply, 503) == status
    assert reply_of('id = "/id"\ndone = { "/s" = 200 }').status_of(reply, 503) == 503


@pytest.mark.parametrize(
    ("moment", "value", "wait_s"),
    [
        ("in_s", 5, 5.0),
        ("in_s", 0.5, 0.5),
        ("in_ms", 1500, 1.5),
        ("epoch_s", 1007, 7.0),
        ("epoch_ms", 1_000_250, 0.25),
        ("epoch_ms", 999_999, None),
        ("in_s", 0, None),
        ("in_s", -1, None),
        ("in_s", "5", None),
        ("in_s", True, None),
        ("in_s", float("inf"), None),
        ("in_s", float("nan"), None),
        ("in_s", 10**400, None),
        ("in_ms", 10**400, None),
        ("in_s", None, None),
    ],
)
def test_a_reply_may_ask_to_wait(moment: str, value: Any, wait_s: float | None) -> None:
    rule = reply_of(f'id = "/id"\ndone = {{ "/s" = 200 }}\nwait = "/w as {moment}"')
    assert rule.wait_s({"w": value}, 1000.0) == wait_s
    assert reply_of('id = "/id"\ndone = { "/s" = 200 }').wait_s({"w": value}, 1000.0) is None


@pytest.mark.parametrize(
    ("when", "text", "may_be"),
    [
        ('"/event" = "challenge"', '{"event":"challenge"}', True),
        ('"/event" = "challenge"', '{"event":"info"}', False),
        ('"/event" = "chal*nge"', '{"event":"challenge"}', True),
        ('"/event" = "chal*x"', '{"event":"challenge"}', False),
        ('"/event" = ["a", "info"]', '{"event":"info"}', True),
        ('"/event" = "*"', "{}", True),
        ('"/event" = 5', "{}", True),
        ("", "{}", True),
    ],
)
def test_what_cannot_be_a_challenge_need_not_be_read(when: str, text: str, may_be: bool) -> None:
    text_of = f'[streams.challenge]\nat = "/message"\nwhen = {{ {when} }}\n'
    [stream] = read_venue("mine.toml", HEAD + text_of).streams
    assert stream.challenge is not None
    assert stream.challenge.may_be(text) is may_be
