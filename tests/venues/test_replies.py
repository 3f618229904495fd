import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from sealgate.venues.replies import (
    LONGEST_DONE,
    LONGEST_ERROR,
    Judge,
    Means,
    Scope,
    WaitRule,
    Whose,
    doc_link,
    unpacked,
)
from sealgate.venues.venue import VenueError, read_venue

LEAST = 'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "m"\n'

RULES = """
[[replies]]
at = "/code"
is = ["50011", "1"]
means = "limited"
kind = "too_fast"
[[replies]]
status = [200, 401]
at = "/code"
begins = ["51"]
contains = ["bad SIGN"]
means = "signature"
kind = "signature"
advice = "Look."
whose = "bot"
[[replies]]
status = [400]
at = "/detail"
contains = ["window"]
finds = { server_time = 'time: (\\d+)', address = 'from (\\S+)' }
means = "timestamp"
kind = "outside"
[[replies]]
status = [418]
means = "banned"
kind = "banned"
[[replies]]
status = [200]
at = "/code"
not = ["0"]
means = "unknown"
kind = "unlisted"
"""


def judge_of(rules: str) -> Judge:
    return read_venue("mine.toml", LEAST + rules).replies


@pytest.mark.parametrize(
    ("status", "body", "means", "kind"),
    [
        (200, {"code": "0"}, Means.DONE, ""),
        (200, {}, Means.DONE, ""),
        (200, {"code": "50011"}, Means.LIMITED, "too_fast"),
        (429, {"code": 1}, Means.LIMITED, "too_fast"),
        (503, {"code": 1}, Means.UNKNOWN, "other_5xx"),
        (200, {"code": True}, Means.UNKNOWN, "unlisted"),
        (200, {"code": False}, Means.UNKNOWN, "unlisted"),
        (200, {"code": None}, Means.DONE, ""),
        (200, {"code": "51008"}, Means.SIGNATURE, "signature"),
        (401, {"code": "A Bad sign."}, Means.SIGNATURE, "signature"),
        (401, {"code": "9"}, Means.REFUSED, "other_4xx"),
        (200, {"code": "9"}, Means.UNKNOWN, "unlisted"),
        (400, {"detail": "outside the Window"}, Means.TIMESTAMP, "outside"),
        (400, {"detail": [{"msg": "a"}, {"msg": "window"}, 5, {}]}, Means.TIMESTAMP, "outside"),
        (400, {"detail": []}, Means.REFUSED, "other_4xx"),
        (418, {}, Means.BANNED, "banned"),
        (429, {}, Means.LIMITED, "rate_limited"),
        (404, {}, Means.REFUSED, "other_4xx"),
        (302, {}, Means.DONE, ""),
        (502, {}, Means.UNKNOWN, "other_5xx"),
    ],
)
def test_the_first_rule_that_matches_decides_and_else_the_status(
    status: int, body: object, means: Means, kind: str
) -> None:
    verdict = judge_of(RULES).judge(status, json.dumps(body).encode())
    assert (verdict.means, verdict.kind) == (means, kind)


CLOUDFRONT = b"""<HTML><HEAD><TITLE>ERROR: The request could not be satisfied</TITLE></HEAD><BODY>
<H1>403 ERROR</H1>
<HR noshade>The Amazon CloudFront distribution is configured to block access from your country.
We can't connect to the server for this app or website at this time.<BR></BODY></HTML>"""
BLOCKED = "The Amazon CloudFront distribution is configured to block access from your country"
RESTRICTED = "Service unavailable from a restricted location according to the terms."
BY_STATUS = '[[replies]]\nstatus = [403]\nmeans = "banned"\nkind = "banned"\n'
BY_CODE = '[[replies]]\nstatus = [403]\nat = "/code"\nis = ["7"]\nmeans = "permission"\nkind = "lacks"\n'


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, CLOUDFRONT, f"{BLOCKED}."),
        (403, gzip.compress(CLOUDFRONT), f"{BLOCKED}."),
        (403, json.dumps({"error": BLOCKED}).encode(), BLOCKED),
        (403, b"error code: 1009", "error code: 1009"),
        (403, b"<p>The owner has banned the country or region your IP address is in (US).</p>", None),
        (403, b'{"msg": "Not available in your region."}', None),
        (451, json.dumps({"msg": RESTRICTED}).encode(), RESTRICTED),
        (451, b"", ""),
        (451, b"\xff", ""),
    ],
)
@pytest.mark.parametrize("rules", ["", BY_STATUS, BY_CODE])
def test_a_country_that_is_not_served_is_told_in_the_exchanges_words(
    status: int, body: bytes, words: str | None, rules: str
) -> None:
    """Whatever a rule makes of the status alone, such as a ban: waiting for that would not help."""
    judge = replace(judge_of(rules), words_at=("/msg",))
    coding = b"gzip" if body.startswith(b"\x1f\x8b") else None
    for is_order in (True, False):
        verdict = judge.judge(status, body, coding, is_order=is_order)
        assert (verdict.means, verdict.kind, verdict.is_limited) == (Means.COUNTRY, "country_refused", False)
        assert words is None or verdict.words == words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"access too frequent\n", "access too frequent"),
        (b"<html>too many</html>", ""),
        (b'{"msg": 1}', ""),
        (b"\x00\xff", ""),
        (b"word " * 200, ""),
    ],
)
def test_the_words_of_a_refusal_in_plain_text_are_its_body(body: bytes, words: str) -> None:
    assert Judge().judge(429, body).words == words


@pytest.mark.parametrize(
    ("status", "body", "means"),
    [
        (403, {"code": "7", "msg": "Not available in your country"}, Means.PERMISSION),
        (403, {"msg": "country"}, Means.REFUSED),
        (400, {"msg": "Not available in your country"}, Means.REFUSED),
        (503, {"msg": "Not available in your country"}, Means.UNKNOWN),
    ],
)
def test_a_code_and_a_status_say_more_than_words_of_a_country(
    status: int, body: object, means: Means
) -> None:
    assert judge_of(BY_CODE).judge(status, json.dumps(body).encode()).means is means


def test_a_page_that_is_longer_than_errors_are_is_not_searched() -> None:
    assert judge_of("").judge(403, CLOUDFRONT + b" " * LONGEST_ERROR).means is Means.FIREWALL


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff", b"[" * 50_000])
def test_what_is_no_json_is_judged_by_its_status(body: bytes) -> None:
    assert judge_of(RULES).judge(200, body).means is Means.DONE


def test_what_is_too_long_for_an_error_is_judged_by_its_status() -> None:
    judge = judge_of(RULES).judge
    for status, longest in ((200, LONGEST_DONE), (401, LONGEST_ERROR)):
        padding = longest - len(b'{"code":"50011"}')
        assert judge(status, b'{"code":"50011"}' + b" " * padding).means is Means.LIMITED
        assert judge(status, b'{"code":"50011"}' + b" " * (padding + 1)).means is not Means.LIMITED


def test_a_rule_says_what_it_found_whose_it_is_and_what_to_do() -> None:
    judge = judge_of(RULES).judge
    verdict = judge(400, b'{"detail": "window. Server TIME: 1790"}')
    assert dict(verdict.found) == {"server_time": "1790"}
    assert verdict.whose is Whose.SETUP
    assert "recv_window_ms" in verdict.advice
    signature = judge(200, b'{"code": "51"}')
    assert (signature.whose, signature.advice) == (Whose.BOT, "Look.")
    assert judge(418, b"").whose is Whose.UPSTREAM


def test_an_error_of_a_users_own_file_is_explained_by_its_meaning() -> None:
    """docs/errors.md cannot have the kinds that a user makes up."""
    for file, topic in (("okx.toml", "too_fast"), ("./mine.toml", "limited")):
        verdict = read_venue(file, LEAST + RULES).replies.judge(429, b'{"code": 1}')
        assert (verdict.kind, doc_link(verdict)) == ("too_fast", f"docs/errors.md#{topic}")


def test_a_venue_without_rules_for_it_leaves_done_replies_alone() -> None:
    assert judge_of(RULES).looks_into_done
    assert not judge_of('[[replies]]\nstatus = [400]\nat = "/a"\nis = ["1"]\nkind = "x"').looks_into_done
    assert not judge_of('[[replies]]\nstatus = [200]\nkind = "x"').looks_into_done


STATED = """
[[replies]]
at = "/code"
is = ["0"]
means = "done"
[[replies]]
at = "/code"
begins = ["5"]
means = "refused"
kind = "refused"
[[replies]]
at = "/rows/*/code"
is = ["51"]
means = "limited"
kind = "limited"
"""


@pytest.mark.parametrize(
    ("status", "body", "means"),
    [
        (200, b'{"code":"0"}', Means.DONE),
        (200, b"<html>", Means.UNKNOWN),
        (302, b'{"code":"0"}', Means.UNKNOWN),
        (429, b'{"code":"0"}', Means.LIMITED),
        (504, b'{"code":"0"}', Means.UNKNOWN),
        (400, b'{"code":"504"}', Means.REFUSED),
        (504, b'{"code":"504"}', Means.UNKNOWN),
        (200, b'{"rows":[{"code":51},{"code":51}]}', Means.LIMITED),
        (200, b'{"rows":[{"code":0},{"code":51}]}', Means.UNKNOWN),
        (200, b'{"code":' + b"[" * 900 + b"]" * 900 + b"}", Means.UNKNOWN),
        (200, b"x" * (LONGEST_DONE + 1), Means.DONE),
    ],
    ids=lambda value: str(value)[:40],
)
def test_no_body_makes_an_order_refused_or_done_against_its_status(
    status: int, body: bytes, means: Means
) -> None:
    assert judge_of(STATED).judge(status, body).means is means


WORDS = 'words = ["/data/*/msg", "/msg"]\n'
EACH = """
[[replies]]
at = "/data/*/code"
is = ["1"]
means = "unknown"
kind = "maybe"
"""


@pytest.mark.parametrize(
    ("document", "means", "words"),
    [
        ({"data": [{"code": 0}, {"code": 1, "msg": "late"}], "msg": "x"}, Means.UNKNOWN, "late"),
        ({"data": [{"code": 0}], "msg": "x"}, Means.REFUSED, "x"),
        ({"data": {"code": 1}}, Means.REFUSED, ""),
        ({"data": []}, Means.REFUSED, ""),
    ],
)
def test_a_star_means_each_of_a_list(document: object, means: Means, words: str) -> None:
    verdict = read_venue("mine.toml", WORDS + LEAST + EACH).replies.judge(400, json.dumps(document).encode())
    assert (verdict.means, verdict.words) == (means, words)


@pytest.mark.parametrize(
    ("coding", "body", "means"),
    [
        (None, b'{"code":"50011"}', Means.LIMITED),
        (b"identity", b'{"code":"50011"}', Means.LIMITED),
        (b" GZip ", gzip.compress(b'{"code":"50011"}'), Means.LIMITED),
        (b"deflate", zlib.compress(b'{"code":"50011"}'), Means.LIMITED),
        (b"gzip", gzip.compress(b'{"code":"50011"}')[:-9], Means.DONE),
        (b"gzip", b'{"code":"50011"}', Means.DONE),
        (b"gzip", gzip.compress(b'{"code":"50011"}' + b" " * LONGEST_DONE), Means.DONE),
        (b"br", b'{"code":"50011"}', Means.DONE),
        (b"gzip,gzip", gzip.compress(gzip.compress(b'{"code":"50011"}')), Means.DONE),
    ],
)
def test_a_body_is_unpacked_as_far_as_errors_are_long(
    coding: bytes | None, body: bytes, means: Means
) -> None:
    assert judge_of(RULES).judge(200, body, coding).means is means


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_read_is_data_once_it_is_longer_than_errors_are(pack: Callable[[bytes], bytes]) -> None:
    """Where the exchange says "done" in so many words, what is no longer than errors must say so."""
    judge = judge_of(STATED).judge
    coding = b"identity" if pack is bytes else b"gzip"
    for rows, size, means in (
        (b"[]", LONGEST_DONE, Means.UNKNOWN),
        (b'{"code":"0"}', LONGEST_DONE, Means.DONE),
        (b"[]", LONGEST_DONE + 1, Means.DONE),
        (b"[]", 10_000_000, Means.DONE),
    ):
        assert judge(200, pack(rows.ljust(size)), coding).means is means
    order = pack(b'{"code":"0"}'.ljust(LONGEST_ERROR + 1))
    assert judge(200, order, coding, is_order=True).means is Means.UNKNOWN


def test_a_few_bytes_never_unpack_to_more_than_counts() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(unpacked(bomb, b"gzip", LONGEST_DONE) or b"") == LONGEST_DONE + 1


def test_a_head_is_judged_by_its_status_but_an_order_that_goes_as_one_is_not() -> None:
    judge = judge_of(STATED).judge
    assert judge(200, b"", is_head=True).means is Means.DONE
    assert judge(200, b"").means is Means.UNKNOWN
    assert judge(200, b"", is_order=True, is_head=True).means is Means.UNKNOWN


@pytest.mark.parametrize("status", [204, 304])
def test_a_read_without_a_body_is_done_where_bodies_say_so_but_an_order_is_not(status: int) -> None:
    judge = judge_of(STATED).judge
    assert judge(status, b"").means is Means.DONE
    assert judge(status, b"", is_order=True).means is Means.UNKNOWN


def test_every_kind_has_a_row_with_all_that_leads_to_it() -> None:
    more = '[[replies]]\nstatus = [419]\nmeans = "banned"\nkind = "banned"\n'
    more += '[[replies]]\nat = "/ok"\nis = ["1"]\nmeans = "done"\n'
    more += '[[replies]]\nat = "/code"\nis = ["50012"]\nmeans = "limited"\nkind = "too_fast"\n'
    rows = judge_of(RULES + more).errors()
    own = ["too_fast", "signature", "outside", "banned", "unlisted"]
    assert [*rows][:8] == [*own, "rate_limited", "country_refused", "firewall"]
    assert [*rows][8:10] == ["other_4xx", "other_5xx"]
    assert [*rows][10:] == ["unreachable", "proxy", "connect_timeout", "lost", "late"]
    assert rows["banned"].statuses == (418, 419)
    assert set(rows["too_fast"].words) == {"50011", "50012", "1"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('status = [400]\nkind = "x"', 'status = [401]\nkind = "y"'),
        ('status = [400]\nkind = "x"', 'at = "/a"\nis = ["1"]\nkind = "y"'),
        ('at = "/a"\nis = ["1"]\nkind = "x"', 'at = "/b"\nis = ["1"]\nkind = "y"'),
        ('status = [400]\nat = "/a"\nis = ["1"]\nkind = "x"', 'at = "/a"\nis = ["1"]\nkind = "y"'),
    ],
)
def test_a_rule_may_stand_behind_what_leaves_it_something(first: str, second: str) -> None:
    assert len(judge_of(f"[[replies]]\n{first}\n[[replies]]\n{second}\n").rules) == 2


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ('at = "/a"\nkind = "x"', "6: at needs is, not, begins or contains, and these need at"),
        ('is = ["1"]\nkind = "x"', "6: at needs is, not, begins or contains, and these need at"),
        ('at = "/a"\nis = ["1"]\nnot = ["2"]\nkind = "x"', "8: not cannot be combined with "),
        (
            'status = [400]\nkind = "lost"',
            "7: kind = 'lost' is one of the gateway's own kinds; choose another name",
        ),
        ('kind = "x"', "5: a rule needs status, or at"),
        ("status = [400]", "5: kind is missing"),
        ('status = [400]\nkind = "Too fast"', "7: kind = 'Too fast' is not a slug such as rate_limited"),
        ('status = ["400"]\nkind = "x"', "6: status must be a list of whole numbers"),
        (
            'status = [400]\nmeans = "limit"\nkind = "x"',
            "7: means = 'limit' is unknown; did you mean limited?",
        ),
        ('at = "code"\nis = ["1"]\nkind = "x"', "6: at = 'code' is not a JSON pointer such as /code"),
        ('at = "/a~b"\nis = ["1"]\nkind = "x"', "6: at = '/a~b' is not a JSON pointer such as /code"),
        (
            'status = [400, 401]\nkind = "x"\n[[replies]]\nstatus = [401]\nat = "/a"\nis = "1"\nkind = "y"',
            "9: never matches: the rule x before it takes all these replies",
        ),
        (
            'at = "/a"\nbegins = ["51"]\nkind = "x"\n[[replies]]\nat = "/a"\nis = ["7", "510"]\nkind = "y"',
            "11: '510' never matches: the rule x before it has it already",
        ),
        (
            'at = "/a"\nis = ["0"]\nmeans = "done"\n[[replies]]\nat = "/a"\nis = ["0"]\nkind = "y"',
            "11: '0' never matches: the rule done before it has it already",
        ),
        (
            'status = [429]\nmeans = "limited"\nkind = "x"\nwait = "X-Reset as epoch_ms"',
            "9: wait = 'X-Reset as epoch_ms' is not header NAME as epoch_s | epoch_ms | in_s | in_ms",
        ),
        (
            'status = [429]\nmeans = "limited"\nkind = "x"\nwait_s = 0',
            "9: wait_s must be a number above 0",
        ),
        (
            'status = [418]\nmeans = "banned"\nkind = "x"\nscope = "host"',
            "9: scope = 'host' is unknown; it may be key, account, address",
        ),
        (
            'status = [401]\nmeans = "key"\nor = ["refused"]\nkind = "x"',
            "8: means and or must be different ones of signature, key, address, permission, country",
        ),
        (
            'status = [401]\nmeans = "key"\nor = ["key"]\nkind = "x"',
            "8: means and or must be different ones of ",
        ),
        (
            'status = [401]\nor = ["key"]\nkind = "x"',
            "7: means and or must be different ones of ",
        ),
        (
            'status = [400]\nkind = "x"\nwait_s = 5',
            "8: wait_s needs means = 'limited', 'banned' or 'firewall'",
        ),
        (
            'status = [400]\nfinds = { adress = "(1)" }\nkind = "x"',
            "7: unknown key adress; did you mean address?",
        ),
    ],
)
def test_a_broken_rule_is_refused_with_its_line(rule: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        judge_of(f"[[replies]]\n{rule}\n")
    assert str(raised.value).startswith(f"mine.toml:{error}")


@pytest.mark.parametrize(
    ("rules", "body", "means"),
    [
        (RULES, b'{"code":"50011"}' + b" " * LONGEST_DONE, Means.LIMITED),
        (RULES, b'{"code":"0"}' + b" " * LONGEST_DONE, Means.DONE),
        (RULES, b'{"code":"0"}' + b" " * LONGEST_ERROR, Means.UNKNOWN),
        (RULES, b"<html>", Means.UNKNOWN),
        (RULES, b"", Means.DONE),
        (STATED, b'{"code":"0"}' + b" " * LONGEST_DONE, Means.DONE),
        (STATED, b'{"code":"504"}' + b" " * LONGEST_DONE, Means.REFUSED),
        (STATED, b"x" * (LONGEST_ERROR + 1), Means.UNKNOWN),
        ('[[replies]]\nstatus = [400]\nat = "/a"\nis = ["1"]\nkind = "x"', b"<html>", Means.DONE),
    ],
    ids=str,
)
def test_the_reply_to_an_order_is_looked_into_as_far_as_errors_are_long(
    rules: str, body: bytes, means: Means
) -> None:
    assert judge_of(rules).judge(200, body, is_order=True).means is means


def test_an_error_that_names_an_order_may_have_executed() -> None:
    judge = read_venue("mine.toml", 'order_ids = "/ids/*"\n' + LEAST + RULES).replies
    for body, means in (
        (b'{"code": "50011", "ids": []}', Means.LIMITED),
        (b'{"code": "50011", "ids": ["a"]}', Means.UNKNOWN),
        (b'{"code": "0", "ids": ["a"]}', Means.DONE),
    ):
        assert judge.judge(200, body).means is means
    with pytest.raises(VenueError, match="'ids' in order_ids is not a JSON pointer"):
        read_venue("mine.toml", 'order_ids = "ids"\n' + LEAST)


@pytest.mark.parametrize(
    "words",
    [
        "Order timed out. Please try again.",
        "Network timeout, please try again later",
        "Timeout waiting for response from backend server.",
        "API endpoint REQUEST TIMEOUT",
        "Server time-out",
    ],
)
def test_an_order_whose_error_tells_of_a_timeout_may_have_executed_whatever_its_code(words: str) -> None:
    judge = read_venue("mine.toml", 'words = "/msg"\n' + LEAST + RULES).replies
    body = json.dumps({"code": "51001", "msg": words}).encode()
    for status in (200, 400, 401, 429):
        assert judge.judge(status, body, is_order=True).means is Means.UNKNOWN
    assert judge.judge(200, body).means is Means.SIGNATURE, "a read has nothing to execute"
    limited = json.dumps({"code": "50011", "msg": words}).encode()
    assert judge.judge(200, limited, is_order=True).means is Means.UNKNOWN, "it would be sent again"


@pytest.mark.parametrize("words", ["Timestamp request expired", "Parameter timeOut error", "timeInForce"])
def test_other_words_leave_the_rules_as_they_are(words: str) -> None:
    judge = read_venue("mine.toml", 'words = "/msg"\n' + LEAST + RULES).replies
    body = json.dumps({"code": "51001", "msg": words}).encode()
    assert judge.judge(200, body, is_order=True).means is Means.SIGNATURE


def test_words_can_be_judged_under_another_status() -> None:
    judge = read_venue("mine.toml", 'words = "/detail"\n' + LEAST + RULES).replies
    assert judge.judge_words(400, "outside the window").means is Means.TIMESTAMP
    assert judge.judge_words(400, "else").means is Means.REFUSED
    assert judge.judge_words(200, "outside the window").means is Means.DONE


SEVERAL = """
[[replies]]
at = "/code"
is = ["7"]
finds = { address = 'ip: ([0-9.]+)' }
means = "permission"
or = ["address", "key"]
kind = "key_refused"
"""


def test_a_rule_for_several_things_names_them_all_and_finds_values_in_the_words() -> None:
    judge = replace(judge_of(SEVERAL), words_at=("/msg",))
    verdict = judge.judge(401, b'{"code": 7, "msg": "Key, IP or permission, your ip: 203.0.113.5."}')
    assert (verdict.means, verdict.others) == (Means.PERMISSION, (Means.ADDRESS, Means.KEY))
    assert verdict.found == {"address": "203.0.113.5."}
    assert verdict.advice == (
        "One of: the key lacks a permission; this machine's IP address is not on the key's whitelist; "
        "the API key is mistyped, revoked, expired or from another environment. "
        "`sealgate check` excludes what it can."
    )
    assert judge.judge(401, b'{"code": 7, "msg": "No more."}').found == {}
    assert judge.judge(401, b'{"code": 7}').found == {}


def test_a_rule_says_how_long_to_wait_and_who_is_shut_out() -> None:
    judge = judge_of(
        '[[replies]]\nstatus = [429]\nmeans = "limited"\nkind = "slow"\nwait = "header X-Reset as in_ms"\n'
        '[[replies]]\nstatus = [403]\nmeans = "banned"\nkind = "out"\nwait_s = 600\nscope = "address"\n'
    )
    assert judge.judge(429, b"").wait == WaitRule("x-reset", "in_ms")
    assert judge.judge(403, b"").wait == WaitRule("", "", 600.0, Scope.ADDRESS)
    assert judge.judge(400, b"").wait == WaitRule()


PAGE = b"\xef\xbb\xbf <!DOCTYPE HTML><html>no</html>"


def test_a_page_for_people_is_a_firewalls_and_no_ban() -> None:
    judge = judge_of(
        '[[replies]]\nstatus = [403]\nbody = "html"\nmeans = "firewall"\nkind = "wall"\nwait_s = 600\n'
        '[[replies]]\nstatus = [403]\nmeans = "banned"\nkind = "out"\n'
    )
    assert [judge.judge(403, body).kind for body in (PAGE, gzip.compress(PAGE), b"no", b'{"a":1}')] == [
        "wall",
        "out",
        "out",
        "out",
    ]
    assert judge.judge(403, gzip.compress(PAGE), b"gzip").wait.documented_s == 600.0
    without = judge_of("")
    assert (without.judge(403, PAGE).kind, without.judge(403, b"no").kind) == ("firewall", "other_4xx")
    assert without.judge(404, PAGE).kind == "other_4xx"


def test_a_ban_is_for_whom_its_rule_says_or_else_for_all_that_are_counted_together() -> None:
    judge = judge_of(
        '[[replies]]\nstatus = [403]\nmeans = "banned"\nkind = "out"\nscope = "address"\n'
        '[[replies]]\nstatus = [418]\nmeans = "banned"\nkind = "key_out"\n'
    )
    by_status = {status: judge.judge(status, b"") for status in (200, 403, 418, 429)}
    scopes = {status: verdict.shuts_out(Scope.ACCOUNT) for status, verdict in by_status.items()}
    assert scopes == {200: None, 403: Scope.ADDRESS, 418: Scope.ACCOUNT, 429: None}
