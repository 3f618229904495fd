"""What came of a login on a stream, as a line: the words, the causes, and what nobody is to read."""

import json

import pytest

from rig.refused_reads import facts
from rig.verdicts import judged
from sealgate.config.venues import built_in_venue, default_venue
from sealgate.diagnose.causes import WholeReply, causes_of_login
from sealgate.diagnose.logins import (
    Attempt,
    Outcome,
    judge_login,
    outcome_of,
    reply_over_stream,
    secrets_in,
    secrets_of,
)
from sealgate.machine.findings import Level, Weight
from sealgate.venues.replies import Means
from sealgate.venues.streams import MessageSigning, ReplyRule
from sealgate.venues.venue import read_venue

VENUE = """name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
headers = { SIGN = "{signature}" }
[[streams]]
host = "ws.example.com"
[[streams.messages]]
when = { "/op" = "login" }
login = true
signs = "{timestamp}"
parts = { both = '["{api_key}","{signature}"]' }
[streams.messages.puts]
"/who" = "{uid}"
"/version" = "2"
"/time" = "{timestamp}"
"/sign" = "{both|bare}"
[streams.messages.reply]
"""
BY_ID = 'id = "/id"\ndone = { "/ok" = true }\nlimited = { "/code" = 429 }\n'
BY_KIND = (
    'when = { "/op" = "login" }\ndone = { "/ok" = true }\nrefused = { "/ok" = false }\nstatus = "/code"\n'
)


def rule(reply: str) -> ReplyRule:
    found = read_venue("mine.toml", VENUE + reply).streams[0].messages[0].reply
    assert found is not None
    return found


def signing() -> MessageSigning:
    found = read_venue("mine.toml", VENUE + BY_ID).streams[0].messages[0].signing
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reply", "text", "expected"),
    [
        (BY_ID, '{"id":"7","ok":true}', (Outcome.ACCEPTED, 200)),
        (BY_ID, '{"id":7,"ok":false}', (Outcome.REFUSED, 401)),
        (BY_ID, '{"id":7,"code":429}', (Outcome.LIMITED, 401)),
        (BY_ID, '{"id":8,"ok":true}', None),
        (BY_ID, "pong", None),
        (BY_KIND, '{"op":"login","ok":true}', (Outcome.ACCEPTED, 200)),
        (BY_KIND, '{"op":"login","ok":false,"code":403}', (Outcome.REFUSED, 403)),
        (BY_KIND, '{"op":"login","hint":"wait"}', None),
        (BY_KIND, '{"op":"news"}', None),
    ],
)
def test_a_message_says_what_came_of_a_login(
    reply: str, text: str, expected: tuple[Outcome, int] | None
) -> None:
    assert outcome_of(rule(reply), '{"id":7,"op":"login"}', text) == expected


def test_key_user_and_signature_are_what_nobody_is_to_read() -> None:
    sent = {"version": "2", "time": "1790000000000", "who": "u", "sign": ["the-key-of-mine", "signature=="]}
    text = json.dumps(sent)
    found = set(secrets_in(text, signing()))
    assert {"u", "the-key-of-mine", "signature==", json.dumps(sent["sign"])} <= found
    assert not {"2", "1790000000000"} & found
    assert set(secrets_of(["Bearer head.claims.signature", "7"])) == {
        *("Bearer head.claims.signature", "head.claims.signature", "7"),
    }


def attempt(outcome: Outcome, text: str = "", reply: WholeReply | None = None, *hidden: str) -> Attempt:
    return Attempt("the login", "ws.example.com/v1", outcome, 12, text, reply, hidden)


WHAT = "the login on ws.example.com/v1"


@pytest.mark.parametrize(
    ("tried", "level", "text", "fix"),
    [
        (attempt(Outcome.ACCEPTED), Level.OK, f"{WHAT} is accepted (12 ms)", ""),
        (
            attempt(Outcome.UNREACHABLE, "no connection in time"),
            Level.FAIL,
            f"{WHAT} is not possible: no connection in time",
            "streams have hosts of their own: check the network, environment and upstream.streams",
        ),
        (
            attempt(Outcome.LIMITED, "too many of the-key", None, "the-key"),
            Level.WARN,
            f"{WHAT} was refused because of the rate limit, too many of …; the check stopped here",
            "wait a while, and run the check again",
        ),
        (
            attempt(Outcome.UNSAID),
            Level.WARN,
            f"{WHAT} was sent, but the venue's file does not describe the reply; no reply arrived",
            "compare the reply with the exchange's documents",
        ),
        (
            attempt(Outcome.UNSAID, '{"ok":1}'),
            Level.WARN,
            f'{WHAT} was sent, but the venue\'s file does not describe the reply; the reply is {{"ok":1}}',
            "compare the reply with the exchange's documents",
        ),
        (
            attempt(Outcome.SILENT),
            Level.FAIL,
            f"{WHAT} was not answered",
            "look at the exchange's status page, and run the check again",
        ),
        (
            attempt(Outcome.SILENT, "pong"),
            Level.FAIL,
            f"{WHAT} was not answered; the last message is pong",
            "look at the exchange's status page, and run the check again",
        ),
    ],
)
def test_a_line_for_each_outcome(tried: Attempt, level: Level, text: str, fix: str) -> None:
    line = judge_login(tried, facts())
    assert (line.area, line.level, line.text, line.fix) == ("keys.main", level, text, fix)


def over_stream(text: str) -> WholeReply:
    return reply_over_stream(default_venue().replies, 401, text)


def test_a_refusal_is_told_in_the_exchanges_words_or_as_it_came() -> None:
    known = '{"detail": "Invalid HMAC signature."}'
    line = judge_login(attempt(Outcome.REFUSED, known, over_stream(known)), facts())
    assert line.text.startswith(f"{WHAT} was refused, Invalid HMAC signature: ")
    unknown = '{"op":"login","success":false,"sign":"5ec7e7"}'
    line = judge_login(attempt(Outcome.REFUSED, unknown, over_stream(unknown), "5ec7e7"), facts())
    assert f'{WHAT} was refused, {{"op":"login","success":false,"sign":"…"}}' in line.text
    escaped = '{"sign":"5ec\\/7e7=","phrase":"a \\"phrase\\"\\u00fc"}'
    hidden = secrets_of(["5ec/7e7=", 'a "phrase"\u00fc'])
    line = judge_login(attempt(Outcome.REFUSED, escaped, over_stream(escaped), *hidden), facts())
    assert 'was refused, {"sign":"…","phrase":"…"}' in line.text
    page = b"<html><body>Blocked for the-key</body></html>"
    refused = WholeReply(403, page, judged(403, page))
    line = judge_login(attempt(Outcome.REFUSED, "", refused, "the-key"), facts())
    assert line.text.startswith(f"{WHAT} was refused, 403 Blocked for …: ")


def causes(reply: WholeReply, **known: object) -> list[tuple[Weight, str]]:
    found = causes_of_login(reply, facts(**known))
    return [(cause.weight, cause.text.partition(":")[0]) for cause in found]


LACKS = (Weight.POSSIBLE, "the key lacks what this stream needs")
ELSEWHERE = (Weight.POSSIBLE, "the stream and the key belong to different environments or regions")
WRONG = (Weight.LIKELY, "the key or its secret is wrong")
ACCEPTED = {"accepted_read": "GET /v1/x"}


def test_without_a_rule_the_signed_read_of_the_same_key_says_what_is_likely() -> None:
    reply = over_stream("no")
    assert causes(reply) == [LACKS, ELSEWHERE]
    assert causes(reply, **ACCEPTED) == [LACKS, ELSEWHERE]
    assert causes(reply, is_read_refused=True) == [WRONG, LACKS, ELSEWHERE]


def test_a_rule_says_more_unless_an_accepted_read_speaks_against_it() -> None:
    reply = over_stream('{"detail": "Invalid HMAC signature."}')
    assert reply.verdict.means is Means.SIGNATURE
    assert LACKS not in causes(reply)
    assert causes(reply, **ACCEPTED) == [LACKS, ELSEWHERE]
    outside = over_stream('{"detail": "Timestamp outside recv_window (5000ms). Server time: 1"}')
    assert outside.verdict.means is Means.TIMESTAMP
    assert LACKS not in causes(outside, **ACCEPTED)


def test_what_means_several_things_is_told_as_for_reads() -> None:
    body = b'{"code": -2015, "msg": "Invalid API-key, IP, or permissions for action."}'
    verdict = built_in_venue("binance").replies.judge(401, body)
    found = causes(WholeReply(0, body, verdict), **ACCEPTED)
    assert LACKS not in found
    assert (Weight.UNLIKELY, "the API key is mistyped, revoked or expired") in found
