import json
from dataclasses import asdict, replace

import pytest

from rig.doubts import DOUBT
from rig.verdicts import upstream_error
from sealgate.orders.doubts import Doubt, JournalStatus, Terms, read_terms
from sealgate.orders.outcome import Outcome


@pytest.mark.parametrize(
    ("times_s", "added_s"),
    [
        pytest.param((0.0, 0.0, 0.0, 0.25), 0.25, id="answered by the gateway"),
        pytest.param((1.0, 0.5, 0.0, 1.75), 0.25, id="waited and sent"),
        pytest.param((0.0, 0.5, 1.0, 1.75), 0.25, id="sent, and taken slowly by the bot"),
        pytest.param((0.0, 2.0, 0.0, 2.0), 0.0, id="nothing of its own"),
        pytest.param((0.0, 2.0, 0.0, 1.75), 0.0, id="never less than nothing"),
    ],
)
def test_the_gateways_own_share_of_the_time(
    times_s: tuple[float, float, float, float], added_s: float
) -> None:
    queue_s, upstream_s, bot_s, total_s = times_s
    outcome = Outcome("r1", "POST", 100.0)
    outcome.queue_s, outcome.upstream_s, outcome.bot_s = queue_s, upstream_s, bot_s
    outcome.end(200, 100.0 + total_s)
    assert (outcome.total_s, outcome.added_s) == (total_s, added_s)


def test_the_last_reason_for_a_resend_counts_only_if_it_led_to_one() -> None:
    outcome = Outcome("r1", "POST", 100.0)
    outcome.attempts, outcome.resends = 2, ("rate_limited", "timestamp")
    outcome.end(504, 101.0)
    assert list(outcome.resends) == ["rate_limited"]


def test_how_often_the_limit_refused_it_is_how_many_of_its_errors_say_so() -> None:
    outcome = Outcome("r1", "POST", 100.0)
    kinds = ("rate_limited", "off_tick", "handshake_limited")
    outcome.upstream_errors = tuple(upstream_error(kind, 1.0) for kind in kinds)
    assert outcome.times_limited == 2
    assert tuple(error.kind for error in outcome.upstream_errors) == kinds


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reason", "rate_limited"),
        ("detail", "Not refused, as ..."),
        ("upstream_errors", (upstream_error("off_tick", 1.0),)),
        ("resends", ("timestamp",)),
        ("broken", "the reply was cut off"),
        ("has_hung_up", True),
        ("shared", "r1"),
    ],
)
def test_what_there_is_more_to_say_of_is_not_plain(field: str, value: object) -> None:
    outcome = Outcome("r2", "POST", 100.0)
    assert outcome.is_plain
    setattr(outcome, field, value)
    assert not outcome.is_plain


def test_the_status_page_can_show_it() -> None:
    status = JournalStatus(1, (DOUBT,), None, is_refusing=False)
    shown = json.loads(json.dumps(asdict(status)))
    assert shown["in_doubt"] == 1
    assert Doubt(**shown["doubts"][0]) == DOUBT


@pytest.mark.parametrize(
    ("body", "terms"),
    [
        (b'{"symbol":"BTC","side":"buy","size":"0.10","price":"65000.0"}', ("BTC", "buy", "0.10", "65000.0")),
        (b'{"symbol":"BTC","size":0.10,"price":65000}', ("BTC", None, "0.10", "65000")),
        (b'{"size":1e400,"price":NaN}', (None, None, "1e400", "NaN")),
        (b'{"symbol":null,"side":true,"size":{},"price":[1]}', ()),
        (b'{"symbol":"\\u001b[31m","side":"","size":"' + b"1" * 65 + b'"}', ()),
        (b'[{"symbol":"BTC"},{"symbol":"BTC"}]', ()),
        (b'[{"symbol":"BTC"}]', ("BTC",)),
        (b"pair=XBTUSD&volume=0.1&cl_ord_id=a%20b", ("XBTUSD", None, "0.1", None, "a b")),
        (
            b'{"instId":"BTC-USDT","side":"buy","sz":"1","px":"2","clOrdId":"c"}',
            ("BTC-USDT", "buy", "1", "2", "c"),
        ),
        (
            b'{"reqId":"7","op":"order.create","args":[{"symbol":"BTCUSDT","side":"Buy","qty":"1"}]}',
            ("BTCUSDT", "Buy", "1"),
        ),
        (
            b'{"method":"add_order","params":{"symbol":"BTC/USD","order_qty":0.10,"limit_price":2},"req_id":1}',
            ("BTC/USD", None, "0.10", "2"),
        ),
        (b'[0,"on",null,{"symbol":"tBTCUSD","amount":"-1","price":"2"}]', ("tBTCUSD", None, "-1", "2")),
        (b'{"op":"batch","args":[{"symbol":"BTC"},{"symbol":"ETH"}]}', ()),
        (b'{"symbol":"BTC","attached":{"symbol":"ETH","price":"5"}}', ("BTC",)),
        (b"\xff", ()),
        (b"[" * 100_000, ()),
        (b"", ()),
        (None, ()),
    ],
    ids=[
        *("texts", "numbers as they were written", "beyond a float", "other kinds", "cannot be shown"),
        *("a batch", "a batch of one", "a form", "another exchange's names"),
        *("in a list of a message", "in a message", "a message that is a list", "a batch in a message"),
        *("with something attached", "no text", "too deep", "empty"),
        "not kept",
    ],
)
def test_the_terms_of_an_order(body: bytes | None, terms: tuple[str | None, ...]) -> None:
    assert read_terms(body) == Terms(*terms)


def test_the_terms_of_an_order_without_a_body_are_in_its_query() -> None:
    target = "/api/v3/order?symbol=BTCUSDT&side=BUY&quantity=0.10&price=65000&newClientOrderId=c1"
    assert read_terms(b"", target) == Terms("BTCUSDT", "BUY", "0.10", "65000", "c1")


def test_the_call_over_a_stream_is_the_stream_and_what_it_is_there() -> None:
    assert DOUBT.call == f"{DOUBT.method} {DOUBT.target}"
    over_stream = replace(DOUBT, method="WS", route="stream.example.com/v5 order.create")
    assert over_stream.call == "WS stream.example.com/v5 order.create"


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms("BTC", "buy", "0.1", "65000"), "buy 0.1 BTC at 65000"),
        (Terms("BTC", "buy", client_id="c1"), "buy BTC as c1"),
        (Terms("BTC", "sell", "0.1"), "sell 0.1 BTC"),
        (Terms(), ""),
    ],
)
def test_the_terms_in_words(terms: Terms, words: str) -> None:
    assert replace(DOUBT, **terms._asdict()).terms_words == words
