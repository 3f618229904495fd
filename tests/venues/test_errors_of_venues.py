"""What each venue's rules make of replies as the venues document them: their codes, most in an HTTP 200."""

import json

import pytest

from sealgate.core.venues.replies import Means
from sealgate.core.venues.venue import Scope, Venue
from venues.through import FOLDER, venue_of

NAMED = (
    *("binance", "bybit", "okx", "kucoin", "bitget", "gate", "kraken", "coinbase", "mexc", "htx", "deribit"),
    *("bitfinex", "bitmex"),
)


def venue(name: str) -> Venue:
    return venue_of(FOLDER / f"{name}.toml")


def halves(code: int, cancelled: str, placed: str) -> object:
    """Return how a cancelReplace ended of which not all was done."""
    return {"code": code, "data": {"cancelResult": cancelled, "newOrderResult": placed}}


_CASES: dict[str, list[tuple[int, object, Means]]] = {
    "binance": [
        (200, {"orderId": 1}, Means.DONE),
        (429, {"code": -1003, "msg": "Too many requests."}, Means.LIMITED),
        (418, {"code": -1003, "msg": "Way too many requests; IP banned until 1790000000000."}, Means.BANNED),
        (418, {}, Means.BANNED),
        (400, {"code": -1015}, Means.LIMITED),
        (400, {"code": -1021}, Means.TIMESTAMP),
        (408, {"code": -1007}, Means.UNKNOWN),
        (400, {"code": -1022}, Means.SIGNATURE),
        (401, {"code": -2014}, Means.KEY),
        (401, {"code": -2015}, Means.PERMISSION),
        (400, {"code": -2010}, Means.REFUSED),
        (503, {"code": -1000}, Means.UNKNOWN),
        (200, {"cancelResult": "SUCCESS", "newOrderResult": "SUCCESS"}, Means.DONE),
        (409, halves(-2021, "FAILURE", "SUCCESS"), Means.UNKNOWN),
        (409, halves(-2021, "SUCCESS", "FAILURE"), Means.UNKNOWN),
        (429, halves(-1015, "SUCCESS", "FAILURE"), Means.UNKNOWN),
        (400, halves(-2022, "FAILURE", "NOT_ATTEMPTED"), Means.REFUSED),
        (400, {"code": -2021, "msg": "Order would immediately trigger."}, Means.REFUSED),
        (200, [{"orderId": 1}, {"code": -1006, "msg": "Unexpected response."}], Means.UNKNOWN),
        (200, [{"orderId": 1}, {"code": -2010}], Means.DONE),
        (200, [{"code": -1015}, {"code": -1015}], Means.DONE),
    ],
    "bybit": [
        (200, {"retCode": 0, "result": {}}, Means.DONE),
        (200, {"retCode": 10006}, Means.LIMITED),
        (200, {"retCode": 10018}, Means.BANNED),
        (403, "access too frequent", Means.BANNED),
        (200, {"retCode": 10002}, Means.TIMESTAMP),
        (200, {"retCode": 170007}, Means.UNKNOWN),
        (200, {"retCode": 10000}, Means.UNKNOWN),
        (200, {"retCode": 10004}, Means.SIGNATURE),
        (200, {"retCode": 10003}, Means.KEY),
        (200, {"retCode": 10010}, Means.ADDRESS),
        (200, {"retCode": 10005}, Means.PERMISSION),
        (200, {"retCode": 10001}, Means.REFUSED),
        (200, {"retCode": 110007}, Means.REFUSED),
        (200, {"retCode": 999999}, Means.UNKNOWN),
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
        (504, {"code": "504"}, Means.UNKNOWN),
        (504, {"code": "0"}, Means.UNKNOWN),
        (429, {"code": "50011"}, Means.LIMITED),
        (200, {"code": "50011"}, Means.LIMITED),
        (200, {"code": "50061"}, Means.LIMITED),
        (401, {"code": "50102"}, Means.TIMESTAMP),
        (200, {"code": "50004"}, Means.UNKNOWN),
        (401, {"code": "50113"}, Means.SIGNATURE),
        (401, {"code": "50111"}, Means.KEY),
        (401, {"code": "50110"}, Means.ADDRESS),
        (401, {"code": "50120"}, Means.PERMISSION),
        (200, {"code": "51000"}, Means.REFUSED),
        (200, {"code": "88888"}, Means.UNKNOWN),
    ],
    "kucoin": [
        (200, {"code": "200000"}, Means.DONE),
        (429, {"code": "429000"}, Means.LIMITED),
        (200, {"code": "429000"}, Means.LIMITED),
        (400, {"code": "400002"}, Means.TIMESTAMP),
        (200, {"code": "400005"}, Means.SIGNATURE),
        (200, {"code": "400003"}, Means.KEY),
        (200, {"code": "400006"}, Means.ADDRESS),
        (200, {"code": "400007"}, Means.PERMISSION),
        (200, {"code": "500000"}, Means.UNKNOWN),
        (200, {"code": "300003"}, Means.REFUSED),
        (200, {"code": "xyz"}, Means.UNKNOWN),
    ],
    "bitget": [
        (200, {"code": "00000"}, Means.DONE),
        (429, {"code": "429"}, Means.LIMITED),
        (400, {"code": "40008"}, Means.TIMESTAMP),
        (400, {"code": "40010"}, Means.UNKNOWN),
        (400, {"code": "40009"}, Means.SIGNATURE),
        (400, {"code": "40006"}, Means.KEY),
        (400, {"code": "40018"}, Means.ADDRESS),
        (400, {"code": "40014"}, Means.PERMISSION),
        (200, {"code": "43012"}, Means.REFUSED),
        (200, {"code": "x"}, Means.UNKNOWN),
    ],
    "gate": [
        (201, {"id": "1"}, Means.DONE),
        (429, {"label": "TOO_MANY_REQUESTS"}, Means.LIMITED),
        (403, {"label": "REQUEST_EXPIRED"}, Means.TIMESTAMP),
        (401, {"label": "INVALID_SIGNATURE"}, Means.SIGNATURE),
        (401, {"label": "INVALID_KEY"}, Means.KEY),
        (403, {"label": "IP_FORBIDDEN"}, Means.ADDRESS),
        (403, {"label": "FORBIDDEN"}, Means.PERMISSION),
        (400, {"label": "BALANCE_NOT_ENOUGH"}, Means.REFUSED),
        (400, {"label": "SERVER_ERROR"}, Means.UNKNOWN),
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
        (429, {"code": 429}, Means.LIMITED),
        (400, {"code": 700003}, Means.TIMESTAMP),
        (400, {"code": 700002}, Means.SIGNATURE),
        (400, {"code": 10072}, Means.KEY),
        (400, {"code": 700006}, Means.ADDRESS),
        (400, {"code": 700007}, Means.PERMISSION),
        (400, {"code": 504}, Means.UNKNOWN),
        (400, {"code": 30004}, Means.REFUSED),
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
        (200, {"status": "error", "err-code": "order-orderamount-min-error"}, Means.REFUSED),
    ],
    "deribit": [
        (200, {"result": {}}, Means.DONE),
        (429, {"error": {"code": 10028}}, Means.LIMITED),
        (400, {"error": {"code": 10028}}, Means.LIMITED),
        (400, {"error": {"code": 13004}}, Means.SIGNATURE),
        (403, {"error": {"code": 13021}}, Means.PERMISSION),
        (400, {"error": {"code": 10009}}, Means.REFUSED),
        (400, {"error": {"code": 11094}}, Means.UNKNOWN),
        (400, {"error": {"code": -32602}}, Means.REFUSED),
    ],
    "bitfinex": [
        (200, [1, "on-req", None], Means.DONE),
        (429, {"error": "ERR_RATE_LIMIT"}, Means.LIMITED),
        (500, ["error", 11010, "ratelimit: error"], Means.LIMITED),
        (500, ["error", 10114, "nonce: small"], Means.NONCE),
        (500, ["error", 10100, "apikey: invalid"], Means.KEY),
        (500, ["error", 10001, "Invalid order: not enough exchange balance"], Means.REFUSED),
        (500, ["error", 10001, "something"], Means.UNKNOWN),
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
}


@pytest.mark.parametrize(
    ("name", "status", "body", "means"),
    [(name, *case) for name, cases in _CASES.items() for case in cases],
    ids=str,
)
def test_a_documented_reply_means(name: str, status: int, body: object, means: Means) -> None:
    verdict = venue(name).replies.judge(status, json.dumps(body).encode())
    assert verdict.means is means
    assert bool(verdict.kind) is (means is not Means.DONE)


def test_a_ban_says_until_when() -> None:
    body = b'{"code": -1003, "msg": "Way too many requests; IP banned until 1790000000000."}'
    assert venue("binance").replies.judge(418, body).found == {"until": "1790000000000"}


@pytest.mark.parametrize("name", NAMED)
def test_a_venue_with_rules_says_how_it_counts_and_what_a_check_may_read(name: str) -> None:
    one = venue(name)
    assert one.signed_read
    assert one.clock_path or name == "bitfinex"  # which has none: its signatures carry a nonce, no time
    assert set(_CASES) == set(NAMED)
    assert one.limits.scope is {"binance": Scope.ADDRESS, "bitfinex": Scope.ADDRESS, "kraken": Scope.KEY}.get(
        name, Scope.ACCOUNT
    )


def test_orders_that_are_sent_by_get_are_no_reads() -> None:
    rows = {row.template: row for row in venue("deribit").routes if row.method == "GET"}
    subtree = rows["/**"]
    assert subtree.needs is not None
    assert subtree.needs.value == "trade"
    assert not {"/api/v2/private/buy", "/api/v2/private/sell", "/api/v2/private/edit"} & set(rows)
