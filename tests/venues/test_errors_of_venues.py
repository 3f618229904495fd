"""What each venue's rules make of replies as the venues document them: their codes, most in an HTTP 200."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from sealgate.venues.replies import Means
from sealgate.venues.venue import Scope
from venues.through import HERE, named, printed_by, table_of

NAMED = (
    *("binance", "bybit", "okx", "kucoin", "bitget", "gate", "kraken", "coinbase", "mexc", "htx", "deribit"),
    *("bitfinex", "bitmex", "upbit", "bithumb", "bithumb-v1", "bigone", "backpack", "woofipro"),
)


def halves(code: int, cancelled: str, placed: str) -> object:
    """Return how a cancelReplace ended of which not all was done."""
    return {"code": code, "data": {"cancelResult": cancelled, "newOrderResult": placed}}


def coded(name: str, *rows: str) -> list[tuple[int, object, Means]]:
    """Read rows of "status code means" for bodies that have a code, and no more, under that name."""
    return [(int(status), {name: code}, Means(means)) for status, code, means in map(str.split, rows)]


def numbered(name: str, *rows: str) -> list[tuple[int, object, Means]]:
    return [(int(status), {name: int(code)}, Means(means)) for status, code, means in map(str.split, rows)]


def error_named(*rows: str) -> list[tuple[int, object, Means]]:
    """Read rows for bodies whose error has a name, as those of Upbit and Bithumb have."""
    return [(status, {"error": body}, means) for status, body, means in coded("name", *rows)]


def batch_at_bybit(*codes: int) -> object:
    """Return the reply to a batch, in which each order has a code of its own."""
    return {"retCode": 0, "result": {"list": []}, "retExtInfo": {"list": [{"code": code} for code in codes]}}


def notification(status: str) -> object:
    """Return how Bitfinex says what became of an order."""
    return [1790000000000, "on-req", None, None, [], None, status, "Invalid order: not enough balance"]


_CASES: dict[str, list[tuple[int, object, Means]]] = {
    "binance": [
        (200, {"orderId": 1}, Means.DONE),
        (429, {"code": -1003, "msg": "Too many requests."}, Means.LIMITED),
        (418, {"code": -1003, "msg": "Way too many requests; IP banned until 1790000000000."}, Means.BANNED),
        (418, {}, Means.BANNED),
        *numbered("code", "400 -1015 limited", "400 -1021 timestamp", "408 -1007 unknown"),
        *numbered("code", "400 -1022 signature", "401 -2014 key", "401 -2015 permission"),
        *numbered("code", "400 -2010 refused", "503 -1000 unknown"),
        (200, {"cancelResult": "SUCCESS", "newOrderResult": "SUCCESS"}, Means.DONE),
        (409, halves(-2021, "FAILURE", "SUCCESS"), Means.UNKNOWN),
        (409, halves(-2021, "SUCCESS", "FAILURE"), Means.UNKNOWN),
        (429, halves(-1015, "SUCCESS", "FAILURE"), Means.UNKNOWN),
        (400, halves(-2022, "FAILURE", "NOT_ATTEMPTED"), Means.REFUSED),
        (400, {"code": -2021, "msg": "Order would immediately trigger."}, Means.REFUSED),
        (200, [{"orderId": 1}, {"code": -1006, "msg": "Unexpected response."}], Means.UNKNOWN),
        (200, [{"orderId": 1}, {"code": -2010}], Means.DONE),
        (200, [{"code": -1015}, {"code": -1015}], Means.DONE),
        *numbered("code", "400 -1004 unknown", "400 -3000 unknown", "400 -3044 unknown", "200 -2010 unknown"),
        *numbered("code", "200 200 done"),
        (408, "", Means.UNKNOWN),
    ],
    "bybit": [
        (200, {"retCode": 0, "result": {}}, Means.DONE),
        (200, {"retCode": 10006}, Means.LIMITED),
        (200, {"retCode": 10018}, Means.BANNED),
        (403, "access too frequent", Means.BANNED),
        *numbered("retCode", "200 10002 timestamp", "200 170007 unknown", "200 10000 unknown"),
        *numbered("retCode", "200 10004 signature", "200 10003 key", "200 10010 address"),
        *numbered("retCode", "200 10005 permission", "200 10001 refused", "200 110007 refused"),
        *numbered("retCode", "200 999999 unknown", "200 170035 unknown", "200 170001 unknown"),
        *numbered("retCode", "200 3400214 unknown"),
        (200, batch_at_bybit(0, 110007), Means.DONE),
        (200, batch_at_bybit(0, 170007), Means.UNKNOWN),
    ],
    "okx": [
        (200, {"code": "0", "data": [{"sCode": "0"}]}, Means.DONE),
        (200, {"code": "2", "data": [{"sCode": "50011"}]}, Means.DONE),
        (200, {"code": "1", "data": [{"sCode": "51008"}]}, Means.REFUSED),
        (200, {"code": "1", "data": [{"sCode": "50004"}]}, Means.UNKNOWN),
        (200, {"code": "1", "data": [{"sCode": "50011"}, {"sCode": "50004"}]}, Means.UNKNOWN),
        (200, {"code": "1", "data": [{"sCode": "50011"}, {"sCode": "50011"}]}, Means.LIMITED),
        (200, {"code": "1", "data": [{"sCode": "51008"}, {"sCode": "50011"}]}, Means.REFUSED),
        (200, {"code": "1", "data": [{"sCode": "51008"}, {"sCode": "54000"}]}, Means.UNKNOWN),
        (200, {"code": "1", "data": [{"sCode": "0"}, {"sCode": "50011"}]}, Means.UNKNOWN),
        (200, {"code": "2", "data": [{"sCode": "0"}, {"sCode": "50004"}]}, Means.UNKNOWN),
        *coded("code", "504 504 unknown", "504 0 unknown", "429 50011 limited"),
        *coded("code", "200 50011 limited", "200 50061 limited", "401 50102 timestamp"),
        *coded("code", "200 50004 unknown", "401 50113 signature", "401 50111 key"),
        *coded("code", "401 50101 refused", "401 50119 key"),
        *coded("code", "401 50110 address", "401 50120 permission", "200 51000 refused"),
        *coded("code", "200 88888 unknown", "200 51149 unknown", "200 51054 unknown"),
        (200, {"code": "1", "data": [{"sCode": "51149"}]}, Means.UNKNOWN),
        (200, {"code": "2", "data": [{"sCode": "0"}, {"sCode": "51149"}]}, Means.UNKNOWN),
    ],
    "kucoin": [
        *coded("code", "200 200000 done", "429 429000 limited", "200 429000 limited"),
        *coded("code", "400 400002 timestamp", "200 400005 signature", "200 400003 key"),
        *coded("code", "200 400006 address", "200 400007 permission", "200 500000 unknown"),
        *coded("code", "200 300003 refused", "200 xyz unknown", "200 408000 unknown", "400 408000 unknown"),
    ],
    "bitget": [
        *coded("code", "200 00000 done", "429 429 limited", "400 40008 timestamp"),
        *coded("code", "400 40010 unknown", "400 40009 signature", "400 40006 key"),
        *coded("code", "400 40018 address", "400 40014 permission", "200 43012 refused"),
        *coded("code", "200 x unknown", "400 30009 unknown"),
        (200, {"code": "00000", "data": {"failureList": [{"errorCode": "45110"}]}}, Means.DONE),
        (200, {"code": "00000", "data": {"failureList": [{"errorCode": "40010"}]}}, Means.UNKNOWN),
    ],
    "gate": [
        (201, {"id": "1"}, Means.DONE),
        *coded("label", "429 TOO_MANY_REQUESTS limited", "403 REQUEST_EXPIRED timestamp"),
        *coded("label", "401 INVALID_SIGNATURE signature", "401 INVALID_KEY key"),
        *coded("label", "403 IP_FORBIDDEN address", "403 FORBIDDEN permission"),
        *coded("label", "400 BALANCE_NOT_ENOUGH refused", "400 SERVER_ERROR unknown"),
        *coded("label", "200 BALANCE_NOT_ENOUGH unknown", "201 BALANCE_NOT_ENOUGH unknown"),
        (200, [{"succeeded": True}, {"succeeded": False, "label": "BALANCE_NOT_ENOUGH"}], Means.DONE),
        (200, [{"succeeded": True}, {"succeeded": False, "label": "SERVER_ERROR"}], Means.UNKNOWN),
    ],
    "kraken": [
        (200, {"error": [], "result": {}}, Means.DONE),
        (200, {"error": ["EAPI:Rate limit exceeded"]}, Means.LIMITED),
        (200, {"error": ["EOrder:Rate limit exceeded"]}, Means.LIMITED),
        (200, {"error": ["EOrder:Rate limit exceeded"], "result": {"txid": ["O1"]}}, Means.UNKNOWN),
        (200, {"error": ["EAPI:Invalid nonce"], "result": {"txid": ["O1"]}}, Means.UNKNOWN),
        (200, {"error": [], "result": {"txid": ["O1"]}}, Means.DONE),
        (200, {"error": ["EGeneral:Temporary lockout"]}, Means.BANNED),
        (200, {"error": ["EAPI:Invalid nonce"]}, Means.NONCE),
        (200, {"error": ["EAPI:Rate limit exceeded", "EGeneral:Internal error"]}, Means.UNKNOWN),
        (200, {"error": ["EAPI:Invalid nonce", "EService:Timeout"]}, Means.UNKNOWN),
        (200, {"error": ["EOrder:Insufficient funds", "EService:Timeout"]}, Means.UNKNOWN),
        (200, {"error": ["WTrade:Slow", "EOrder:Insufficient funds"]}, Means.UNKNOWN),
        (200, {"error": ["EAPI:Invalid signature"]}, Means.SIGNATURE),
        (200, {"error": ["EAPI:Invalid key"]}, Means.KEY),
        (200, {"error": ["EGeneral:Permission denied"]}, Means.PERMISSION),
        (200, {"error": ["EOrder:Insufficient funds"]}, Means.REFUSED),
        (200, {"error": ["EGeneral:Invalid arguments:volume"]}, Means.REFUSED),
        (200, {"error": ["EService:Unavailable"]}, Means.UNKNOWN),
        (200, {"error": ["EGeneral:Internal error"]}, Means.UNKNOWN),
    ],
    "coinbase": [
        (200, {"success": True, "order_id": "1"}, Means.DONE),
        (429, {"error": "resource_exhausted"}, Means.LIMITED),
        (
            401,
            {"errors": [{"id": "authentication_error", "message": "request timestamp expired"}]},
            Means.TIMESTAMP,
        ),
        (401, {"errors": [{"id": "authentication_error", "message": "invalid signature"}]}, Means.SIGNATURE),
        (401, {"errors": [{"id": "revoked_token"}]}, Means.KEY),
        (403, {"error": "PERMISSION_DENIED"}, Means.PERMISSION),
        (200, {"success": False, "error_response": {"error": "INSUFFICIENT_FUND"}}, Means.REFUSED),
        (200, {"success": False, "error_response": {"error": "UNKNOWN_FAILURE_REASON"}}, Means.UNKNOWN),
        (500, {}, Means.UNKNOWN),
    ],
    "mexc": [
        (200, {"orderId": "1"}, Means.DONE),
        *numbered("code", "429 429 limited", "400 700003 timestamp", "400 700002 signature"),
        *numbered("code", "400 10072 key", "400 700006 address", "400 700007 permission"),
        *numbered("code", "400 504 unknown", "400 30004 refused", "400 501 unknown", "400 20002 unknown"),
        *numbered("code", "200 30004 unknown", "200 200 done", "200 0 done"),
    ],
    "htx": [
        (200, {"status": "ok", "data": "1"}, Means.DONE),
        (200, {"status": "error", "err-code": "rate-too-many-requests"}, Means.LIMITED),
        (200, {"status": "error", "err_code": 1032}, Means.LIMITED),
        (
            200,
            {"status": "error", "err-code": "api-signature-not-valid", "err-msg": "Incorrect Timestamp"},
            Means.TIMESTAMP,
        ),
        (200, {"status": "error", "err-code": "api-signature-not-valid", "err-msg": "x"}, Means.SIGNATURE),
        (200, {"code": 1003, "message": "invalid signature"}, Means.SIGNATURE),
        (200, {"status": "error", "err-code": "timeout"}, Means.UNKNOWN),
        (200, {"status": "error", "err-code": "order-internal-error"}, Means.UNKNOWN),
        (200, {"status": "error", "err-code": "order-orderamount-min-error"}, Means.REFUSED),
        (200, {"status": "error", "err_code": 1004, "err_msg": "System busy."}, Means.UNKNOWN),
        (200, {"status": "error", "err_code": 403, "err_msg": "Verification failure"}, Means.SIGNATURE),
        (200, {"status": "ok", "data": {"errors": [{"err_code": 1061}], "successes": "1"}}, Means.DONE),
        (200, {"status": "ok", "data": {"errors": [{"err_code": 1004}], "successes": "1"}}, Means.UNKNOWN),
        *numbered("code", "200 200 done", "200 2002 refused", "200 500 unknown", "200 1002 unknown"),
    ],
    "deribit": [
        (200, {"result": {}}, Means.DONE),
        (429, {"error": {"code": 10028}}, Means.LIMITED),
        (400, {"error": {"code": 10028}}, Means.LIMITED),
        (400, {"error": {"code": 13004}}, Means.SIGNATURE),
        (403, {"error": {"code": 13021}}, Means.PERMISSION),
        (400, {"error": {"code": 10009}}, Means.REFUSED),
        (400, {"error": {"code": 11094}}, Means.UNKNOWN),
        (400, {"error": {"code": 13008}}, Means.UNKNOWN),
        (400, {"error": {"code": 13888}}, Means.UNKNOWN),
        (400, {"error": {"code": -32602}}, Means.REFUSED),
    ],
    "bitfinex": [
        (200, [1, "on-req", None], Means.DONE),
        (429, {"error": "ERR_RATE_LIMIT"}, Means.LIMITED),
        (500, ["error", 11010, "ratelimit: error"], Means.LIMITED),
        (500, ["error", 10114, "nonce: small"], Means.NONCE),
        (500, ["error", 10100, "apikey: invalid"], Means.KEY),
        (500, ["error", 10100, "apikey: digest invalid"], Means.SIGNATURE),
        (500, ["error", 10001, "Invalid order: not enough exchange balance"], Means.REFUSED),
        (500, ["error", 10001, "something"], Means.UNKNOWN),
        (200, notification("SUCCESS"), Means.DONE),
        (200, notification("ERROR"), Means.UNKNOWN),
    ],
    "upbit": [
        (201, {"uuid": "1"}, Means.DONE),
        *error_named("429 too_many_requests limited", "418 blocked banned", "401 nonce_used nonce"),
        *error_named("401 jwt_verification signature", "401 invalid_query_payload signature"),
        *error_named("401 invalid_access_key key", "401 expired_access_key key"),
        *error_named("401 no_authorization_i_p address", "403 out_of_scope permission"),
        *error_named("400 insufficient_funds_bid refused", "400 under_min_total_ask refused"),
        *error_named("404 order_not_found refused", "500 server_error unknown"),
        (401, {"error": {"name": "x", "message": "This key has expired."}}, Means.KEY),
    ],
    "bithumb": [
        (201, {"uuid": "1"}, Means.DONE),
        *error_named("429 too_many_requests limited", "401 expired_jwt timestamp"),
        *error_named("401 jwt_verification signature", "401 NotAllowIP address"),
        *error_named("401 out_of_scope permission", "403 blocked_member_id permission"),
        *error_named("400 invalid_price refused", "404 order_not_found refused", "500 x unknown"),
    ],
    "bithumb-v1": [
        *coded("status", "200 0000 done", "200 5600 refused", "200 5300 key", "200 5302 permission"),
        *coded("status", "200 5900 unknown", "200 5400 unknown", "200 9999 unknown", "500 5600 unknown"),
        (200, {"status": "5100", "message": "Bad Request.(Auth Data)"}, Means.SIGNATURE),
        (200, {"status": "5302", "message": "Method Not Allowed.(Access IP)"}, Means.ADDRESS),
    ],
    "bigone": [
        (200, {"code": 0, "data": {"id": 1}}, Means.DONE),
        (200, [{"id": "1"}], Means.DONE),
        *numbered("code", "429 10429 limited", "200 10429 limited", "401 40004 signature"),
        *numbered("code", "401 40106 signature", "403 10403 permission", "400 10014 refused"),
        *numbered("code", "200 10014 refused", "500 10005 unknown", "200 10005 unknown"),
    ],
    "bitmex": [
        (200, {"orderID": "1"}, Means.DONE),
        (429, {"error": {"message": "Rate limit exceeded"}}, Means.LIMITED),
        (
            401,
            {"error": {"message": "This request has expired - `expires` is in the past."}},
            Means.TIMESTAMP,
        ),
        (401, {"error": {"message": "Signature not valid."}}, Means.SIGNATURE),
        (401, {"error": {"message": "Invalid API Key."}}, Means.KEY),
        (403, {"error": {"message": "Access Denied"}}, Means.PERMISSION),
        (503, {"error": {"message": "The system is currently overloaded."}}, Means.REFUSED),
        (503, {"error": {"message": "Service unavailable"}}, Means.UNKNOWN),
    ],
    "backpack": [
        (200, {"id": "1", "status": "New"}, Means.DONE),
        *coded("code", "429 TOO_MANY_REQUESTS limited", "400 INVALID_SIGNATURE signature"),
        *coded("code", "401 UNAUTHORIZED key", "403 FORBIDDEN permission", "400 TIMEOUT unknown"),
        *coded("code", "400 SERVER_ERROR unknown", "400 INSUFFICIENT_MARGIN refused", "503 X unknown"),
        *coded("code", "400 TRADING_PAUSED refused", "400 MAINTENANCE unknown"),
        (429, "", Means.LIMITED),
        (400, {"code": "INVALID_CLIENT_REQUEST", "message": "Request has expired"}, Means.TIMESTAMP),
        (400, {"code": "INVALID_CLIENT_REQUEST", "message": "Invalid market symbol"}, Means.REFUSED),
        (200, [{"id": "1"}, {"code": "INVALID_ORDER"}], Means.DONE),
        (200, [{"id": "1"}, {"code": "TIMEOUT"}], Means.UNKNOWN),
    ],
    "woofipro": [
        (200, {"success": True, "data": {}}, Means.DONE),
        *numbered("code", "429 -1003 limited", "401 -1001 signature", "401 -1002 key", "400 2 timestamp"),
        *numbered("code", "400 -1011 unknown", "400 -1012 refused", "400 -1101 refused", "500 -1000 unknown"),
        *numbered("code", "200 -1103 refused"),
        (400, {"success": False, "code": -1001, "message": "Timestamp expired"}, Means.TIMESTAMP),
        (200, {"success": False, "code": -7777}, Means.UNKNOWN),
        (200, {"anything": "else"}, Means.UNKNOWN),
    ],
}


@pytest.mark.parametrize(
    ("name", "status", "body", "means"),
    [(name, *case) for name, cases in _CASES.items() for case in cases],
    ids=str,
)
def test_a_documented_reply_means(name: str, status: int, body: object, means: Means) -> None:
    verdict = named(name).replies.judge(status, json.dumps(body).encode())
    assert verdict.means is means
    assert bool(verdict.kind) is (means is not Means.DONE)


def listed() -> Iterator[tuple[str, int, str, Means]]:
    venue = ""
    for line in (HERE / "replies.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            venue = line.strip("[]")
        elif line and not line.startswith("#"):
            said, means = line.split(" -> ")
            status, body = said.split(" ", 1)
            yield venue, int(status), body, Means(means)


@pytest.mark.parametrize(("name", "status", "body", "means"), list(listed()), ids=str)
def test_a_listed_reply_to_an_order_means(name: str, status: int, body: str, means: Means) -> None:
    verdict = named(name).replies.judge(status, body.encode(), is_order=True)
    assert verdict.means is means
    assert bool(verdict.kind) is (means is not Means.DONE)


# The body of a reply with one code, as each venue writes it.
_BODIES: dict[str, Callable[[str], object]] = {
    "binance": lambda code: {"code": code},
    "bybit": lambda code: {"retCode": code},
    "okx": lambda code: {"code": code},
    "kucoin": lambda code: {"code": code},
    "bitget": lambda code: {"code": code},
    "gate": lambda code: {"label": code},
    "kraken": lambda code: {"error": [code]},
    "mexc": lambda code: {"code": code},
    "mexc-contract": lambda code: {"success": False, "code": code},
    "htx": lambda code: {"status": "error", "err-code": code},
    "deribit": lambda code: {"error": {"code": code}},
    "backpack": lambda code: {"code": code},
    "woofipro": lambda code: {"success": False, "code": code},
}
_UNSURE = re.compile(
    r"time[- ]?out|timed out|system (is )?(error|busy|abnormality)|server is busy|internal exception"
    r"|(internal|server|service|network) (system )?(error|failure)|service (call|abnormality)"
    r"|request failed, please|for processing!",
    re.IGNORECASE,
)
# What waited in line for too long was not executed; one is a message, whose code is -1000; one was rejected.
_SURE = {("binance", "-5041"), ("binance", "System abnormality"), ("woofipro", "-1012")}


def test_an_order_is_in_doubt_after_what_ccxt_calls_a_timeout_or_an_error_of_the_exchange() -> None:
    printed = printed_by("venues.oracle", "errors", *_BODIES)
    unsure = {
        (row["venue"], row["code"], row["comment"])
        for row in map(json.loads, printed.splitlines())
        if (row["is_late"] or _UNSURE.search(row["comment"])) and (row["venue"], row["code"]) not in _SURE
    }
    assert len(unsure) > 50
    assert [
        (name, code, comment, status)
        for name, code, comment in sorted(unsure)
        for status in (200, 400)
        if judged(name, status, code) is not Means.UNKNOWN
    ] == []


def judged(name: str, status: int, code: str) -> Means:
    body = json.dumps(_BODIES[name](code)).encode()
    return named(name).replies.judge(status, body, is_order=True).means


_SEVERAL: list[tuple[str, int, object, str, str]] = [
    (
        "binance",
        401,
        {"code": -2015, "msg": "Invalid API-key, IP, or permissions for action, request ip: 203.0.113.5"},
        "permission address key",
        "203.0.113.5",
    ),
    (
        "binance",
        400,
        {"code": -2015, "msg": "Invalid API-key, IP, or permissions for action."},
        "permission address key",
        "",
    ),
    (
        "okx",
        401,
        {"code": "50110", "msg": "Your IP 2001:db8::9 is not included in your API key's b68 IP whitelist."},
        "address",
        "2001:db8::9",
    ),
    ("okx", 401, {"code": "50114", "msg": "Invalid authorization"}, "permission key signature", ""),
    (
        "kucoin",
        403,
        {"code": "400006", "msg": "Invalid request ip, the current clientIp is:203.0.113.5"},
        "address",
        "203.0.113.5",
    ),
    (
        "mexc",
        400,
        {"code": 700006, "msg": "IP [203.0.113.5] not in the ip white list"},
        "address",
        "203.0.113.5",
    ),
    ("mexc", 400, {"code": 700002, "msg": "Signature for this request is not valid."}, "signature key", ""),
    (
        "gate",
        403,
        {"label": "FORBIDDEN", "message": "Request IP not in whitelist: 203.0.113.5"},
        "permission address",
        "203.0.113.5",
    ),
    (
        "gate",
        403,
        {"label": "IP_FORBIDDEN", "message": "Request IP not in whitelist: 2001:db8::9"},
        "address",
        "2001:db8::9",
    ),
    ("gate", 401, {"label": "INVALID_CREDENTIALS"}, "key signature", ""),
    ("bybit", 200, {"retCode": 10007, "retMsg": "User authentication failed."}, "key signature", ""),
    ("bybit", 200, {"retCode": 10024, "retMsg": "Compliance rules triggered"}, "country permission", ""),
    ("bitget", 400, {"code": "40012", "msg": "apikey/password is incorrect"}, "signature key", ""),
    ("kraken", 200, {"error": ["EAPI:Invalid key"]}, "key signature", ""),
    ("whitebit", 401, {"message": "X. Enable your key in API settings"}, "key address", ""),
    ("cryptocom", 401, {"code": 40101}, "signature key", ""),
    ("kraken", 200, {"error": ["EGeneral:Permission denied"]}, "permission address", ""),
    ("kucoin", 403, {"code": "400302", "msg": "Our services are currently unavailable in"}, "country", ""),
    ("coinbase", 401, {"errors": [{"id": "authentication_error"}]}, "signature key address", ""),
    (
        "htx",
        200,
        {"err-code": "api-signature-not-valid", "err-msg": "Signature not valid: Incorrect Access key [x]"},
        "key",
        "",
    ),
    (
        "htx",
        200,
        {"err-code": "api-signature-not-valid", "err-msg": "Signature not valid: API key has no permission"},
        "permission",
        "",
    ),
    (
        "htx",
        200,
        {"err-code": "api-signature-not-valid", "err-msg": "Signature not valid: Verification failure [x]"},
        "signature key",
        "",
    ),
]


@pytest.mark.parametrize(("name", "status", "body", "meanings", "address"), _SEVERAL)
def test_a_reply_for_several_things_means_all_of_them_and_states_the_address(
    name: str, status: int, body: object, meanings: str, address: str
) -> None:
    verdict = named(name).replies.judge(status, json.dumps(body).encode())
    assert " ".join((verdict.means, *verdict.others)) == meanings
    assert verdict.found.get("address", "") == address
    assert not verdict.others or verdict.advice.startswith("One of: ")


def test_a_ban_says_until_when() -> None:
    body = b'{"code": -1003, "msg": "Way too many requests; IP banned until 1790000000000."}'
    assert named("binance").replies.judge(418, body).found == {"until": "1790000000000"}


_WAITS: list[tuple[str, int, object, float | str, str]] = [
    ("kraken", 200, {"error": ["EGeneral:Temporary lockout"]}, 900.0, "account"),
    ("kraken", 200, {"error": ["EService: Throttled: 1790000000"]}, "1790000000", ""),
    ("kraken", 200, {"error": ["EService:Throttled: [1790000000]"]}, "1790000000", ""),
    ("bybit", 403, "403, access too frequent", 600.0, "address"),
    ("bybit", 200, {"retCode": 10018}, 600.0, "address"),
    ("bybit", 200, {"retCode": 10006}, "x-bapi-limit-reset-timestamp as epoch_ms", ""),
    ("gate", 429, {"label": "TOO_MANY_REQUESTS"}, "x-gate-ratelimit-reset-timestamp as epoch_s", ""),
    ("kucoin", 429, {"code": "429000"}, "gw-ratelimit-reset as in_ms", ""),
    ("kucoin", 200, {"code": "200002"}, 10.0, ""),
    ("kucoin", 403, {"code": "1015"}, 30.0, "address"),
    ("bitfinex", 500, ["error", 11010, "ratelimit: error"], 60.0, ""),
    ("mexc", 418, {}, 120.0, "address"),
    ("htx", 200, {"status": "error", "err_code": 1032}, "ratelimit-reset as epoch_ms", ""),
    ("binance", 418, {}, 120.0, "address"),
]


@pytest.mark.parametrize(("name", "status", "said", "wait", "scope"), _WAITS)
def test_a_refusal_says_how_long_to_wait_as_the_exchange_documents_it(
    name: str, status: int, said: object, wait: float | str, scope: str
) -> None:
    verdict = named(name).replies.judge(status, json.dumps(said).encode())
    rule = verdict.wait
    assert verdict.is_limited
    stated = f"{rule.header} as {rule.moment}" if rule.header else verdict.found.get("until")
    assert (stated or rule.documented_s, rule.scope or "") == (wait, scope)


# They have no path for it, and what most of them sign carries a nonce and no time.
_CLOCKLESS = {"bitfinex", "upbit", "bithumb", "bithumb-v1"}


@pytest.mark.parametrize("name", NAMED)
def test_a_venue_with_rules_says_how_it_counts_and_what_a_check_may_read(name: str) -> None:
    one = named(name)
    assert one.signed_read
    assert one.clock_path or name in _CLOCKLESS
    assert set(_CASES) == set(NAMED)
    by_address = {"binance", "bitfinex", "bithumb", "bithumb-v1", "bigone"}
    by_key = {"kraken", "woofipro"}
    scope = Scope.KEY if name in by_key else Scope.ADDRESS if name in by_address else Scope.ACCOUNT
    assert one.limits.scope is scope


def test_orders_that_are_sent_by_get_are_no_reads() -> None:
    table = table_of("deribit")
    for path in ("buy", "sell", "edit", "edit_by_label", "close_position", "anything_else"):
        route = table.find("GET", f"/api/v2/private/{path}")
        assert (route.needs.value, route.lane.value, route.is_read) == ("trade", "order", False)
