import json
from dataclasses import asdict, replace

import pytest

from sealgate.core.doubts import Doubt, JournalStatus, Terms, read_terms

DOUBT = Doubt(
    id="a1-1",
    request_id="mine",
    bot="grid",
    key="main",
    method="POST",
    route="/order",
    target="/v1/trade/order",
    idempotency_key=None,
    timestamp_ms=1_790_000_000_000,
    fence_ms=1_790_000_005_000,
    attempts=1,
    sent_ms=1_790_000_000_012,
)


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
        (b'{"symbol":null,"side":true,"size":{},"price":[1]}', (None,) * 4),
        (b'{"symbol":"\\u001b[31m","side":"","size":"' + b"1" * 65 + b'"}', (None,) * 4),
        (b'[{"symbol":"BTC"}]', (None,) * 4),
        (b"symbol=BTC", (None,) * 4),
        (b"\xff", (None,) * 4),
        (b"[" * 100_000, (None,) * 4),
        (b"", (None,) * 4),
        (None, (None,) * 4),
    ],
    ids=[
        "texts",
        "numbers as they were written",
        "beyond a float",
        "other kinds",
        "cannot be shown",
        "a batch",
        "a form",
        "no text",
        "too deep",
        "empty",
        "not kept",
    ],
)
def test_the_terms_of_an_order(body: bytes | None, terms: tuple[str | None, ...]) -> None:
    assert read_terms(body) == Terms(*terms)


def test_other_pointers_find_them_elsewhere() -> None:
    pointers = {"symbol": "/args/0/instId", "side": "/args/0/a~1b", "price": "/args/9"}
    body = b'{"args": [{"instId": "BTC-USDT", "a/b": "sell"}]}'
    assert read_terms(body, pointers) == Terms("BTC-USDT", "sell")


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms("BTC", "buy", "0.1", "65000"), "buy 0.1 BTC at 65000"),
        (Terms("BTC", "sell", "0.1"), "sell 0.1 BTC"),
        (Terms(), ""),
    ],
)
def test_the_terms_in_words(terms: Terms, words: str) -> None:
    assert replace(DOUBT, **terms._asdict()).terms_words == words
