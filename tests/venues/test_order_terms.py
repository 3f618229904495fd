"""What is read of an order, and what is not because two servers could read it differently."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from sealgate.http.headers import HeaderRules
from sealgate.venues.order_terms import (
    OrderShape,
    OrderTerms,
    PriceShape,
    UnreadableError,
    read_orders,
    read_price,
    read_prices,
    steps,
)

FLAT = OrderShape(symbol=("symbol",), size=("size",), price=("price",), reduce_only=("reduceOnly",))
FORM = OrderShape(
    False, True, symbol=("symbol",), size=("size",), price=("price",), reduce_only=("reduceOnly",)
)
BATCH = OrderShape(each=("orders",), symbol=("symbol",), size=("size",))
LIMITED = OrderShape(
    size=("size",),
    price=("price",),
    kind=("type",),
    limit=frozenset({"limit"}),
    side=("side",),
    buys=frozenset({"buy"}),
    trigger=("stop",),
)
JSON_TYPE = b"application/json"


def read(
    shape: OrderShape,
    body: bytes,
    query: str | None = None,
    content_type: bytes | None = None,
    field: tuple[bytes, bytes] = (b"Accept", b"*/*"),
) -> list[OrderTerms]:
    fields = [field] if content_type is None else [field, (b"Content-Type", content_type)]
    return read_orders(shape, query, body, HeaderRules(()).sort(fields))


def test_an_order_is_read_with_absolute_amounts() -> None:
    body = b'{"symbol": "BTC", "size": "-0.50", "price": 6.6e4, "reduceOnly": true, "more": [{"a": 1}]}'
    assert read(FLAT, body) == [OrderTerms("BTC", Decimal("0.50"), Decimal(66000), reduces=True)]


def test_what_an_order_does_not_say_is_none() -> None:
    nothing = OrderTerms(None, None, None, reduces=False)
    assert read(FLAT, b"{}") == read(FLAT, b'{"size": null, "price": 0}') == [nothing]


def test_an_order_is_read_from_query_and_form_together() -> None:
    terms = OrderTerms("BTC/USD", Decimal("0.1"), Decimal(5), reduces=True)
    text = "symbol=BTC%2FUSD&size=0.1"
    assert read(FORM, b"price=5&reduceOnly=true", text) == [terms]
    assert read(FORM, text.encode() + b"&price=5&reduceOnly=true") == [terms]


def test_each_order_of_a_batch_is_read() -> None:
    body = b'{"orders": [{"symbol": "BTC", "size": 1}, {"symbol": "ETH", "size": 2}]}'
    assert [(terms.symbol, terms.size) for terms in read(BATCH, body)] == [
        ("BTC", Decimal(1)),
        ("ETH", Decimal(2)),
    ]
    alone = OrderShape(each=(), symbol=("symbol",))
    assert [terms.symbol for terms in read(alone, b'[{"symbol": "BTC"}]')] == ["BTC"]


@pytest.mark.parametrize("body", [b'{"orders": []}', b'{"orders": {}}', b"{}", b"[]", b'{"orders": [1]}'])
def test_a_batch_without_orders_is_not_read(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read(BATCH, body)


@pytest.mark.parametrize(
    ("order", "price", "is_capped"),
    [
        ('"price": 5, "type": "limit", "side": "buy"', 5, True),
        ('"price": "0.25", "type": "limit", "side": "buy"', 0.25, True),
        ('"price": 5, "type": "limit", "side": "buy", "stop": 9', 5, True),
        ('"price": 5, "type": "limit", "side": "sell"', 5, False),
        ('"price": 5, "type": "limit", "side": "BUY"', 5, False),
        ('"price": 5, "type": "limit"', 5, False),
        ('"price": 5, "type": "market", "side": "buy"', 5, False),
        ('"price": 5, "type": true, "side": "buy"', 5, False),
        ('"price": 5, "side": "buy"', 5, False),
        ('"price": -5, "type": "limit", "side": "buy"', 5, False),
        ('"price": 0, "type": "limit", "side": "buy"', None, False),
        ('"type": "limit", "side": "buy"', None, False),
        ('"stop": 9, "type": "market", "side": "buy"', 9, False),
        ('"stop": 9, "price": 5, "type": "limit", "side": "sell"', 9, False),
        ('"stop": 4, "price": "5", "type": "limit", "side": "sell"', 5, False),
    ],
)
def test_only_a_buy_with_a_limit_is_capped_by_its_price(
    order: str, price: float | None, *, is_capped: bool
) -> None:
    (terms,) = read(LIMITED, f'{{"size": 1, {order}}}'.encode())
    assert (terms.price, terms.is_capped) == (price, is_capped)


KINDS = OrderShape(
    size=("size",),
    only=(
        {("category",): re.compile("linear")},
        {("category",): re.compile("spot"), ("unit",): re.compile("base|")},
    ),
)


@pytest.mark.parametrize(
    ("order", "is_known"),
    [
        ('"category": "linear", "unit": "quote"', True),
        ('"category": "spot"', True),
        ('"category": "spot", "unit": "base"', True),
        ('"category": "spot", "unit": "quote"', False),
        ('"category": "spot", "unit": true', False),
        ('"category": "Linear"', False),
        ('"unit": "base"', False),
    ],
)
def test_only_the_kinds_of_orders_that_the_file_knows_are_read(order: str, *, is_known: bool) -> None:
    body = f'{{"size": 1, {order}}}'.encode()
    if is_known:
        assert read(KINDS, body)
        return
    with pytest.raises(UnreadableError):
        read(KINDS, body)


def test_what_stands_beside_a_batch_stands_there_alone_and_the_rest_in_its_orders() -> None:
    batch = replace(KINDS, each=("rows",), beside=(("category",),))
    assert len(read(batch, b'{"category": "spot", "rows": [{"size": 1}, {"size": 1, "unit": "base"}]}')) == 2
    for odd in (
        b'{"category": "spot", "rows": [{"size": 1, "unit": "quote"}]}',
        b'{"category": "inverse", "rows": [{"size": 1, "category": "linear"}]}',
        b'{"category": "linear", "rows": [{"size": 1, "category": "linear"}]}',
        b'{"category": "spot", "unit": "base", "rows": [{"size": 1}]}',
        b'{"category": "linear", "size": 1, "rows": [{"size": 1}]}',
        b'{"category": "linear", "rows": [{"size": 1}, 5]}',
        b'{"rows": [{"size": 1, "category": "linear"}]}',
    ):
        with pytest.raises(UnreadableError):
            read(batch, odd)
    alone = replace(KINDS, each=())
    assert len(read(alone, b'[{"category": "linear"}]')) == 1


def test_reduce_only_counts_only_where_the_file_says() -> None:
    shape = replace(FLAT, reduce_only_if=({("category",): re.compile("linear")},))
    reduces = {
        body: read(shape, b'{"reduceOnly": true%b}' % body)[0].reduces
        for body in (b', "category": "linear"', b', "category": "spot"', b"")
    }
    assert list(reduces.values()) == [True, False, False]


SPELLED = replace(KINDS, symbol=("order_symbol",), trigger=("stopPrice",), never=(("quote", "size"),))


@pytest.mark.parametrize(
    "odd",
    [
        *("Size", "\u017fize", "SIZE", "stopprice", "stop_price", "stop-price", "orderSymbol", "Quote"),
        *("Category", "UNIT", "_unit"),
        *(
            *("size ", " size", "size\\t", "size\\u0000", "size\\u0000x", "size\\u00a0", "size\\u200b"),
            *("si.ze", "size[]"),
        ),
    ],
)
def test_a_key_that_some_servers_take_for_one_that_is_read_is_refused(odd: str) -> None:
    body = f'{{"category": "linear", "{odd}": "9"}}'.encode()
    with pytest.raises(UnreadableError, match="is not spelled as"):
        read(SPELLED, body)
    batch = replace(SPELLED, each=("rows",), beside=(("category",),))
    for beside, within in ((f', "{odd}": "9"', ""), ("", f', "{odd}": "9"')):
        body = f'{{"category": "linear"{beside}, "rows": [{{"size": 1{within}}}]}}'.encode()
        with pytest.raises(UnreadableError, match="is not spelled as"):
            read(batch, body)


def test_a_parameter_that_some_servers_take_for_one_that_is_read_is_refused() -> None:
    for odd in ("Size=9", "Price=9", "reduce_only=true"):
        with pytest.raises(UnreadableError, match="is not spelled as"):
            read(FORM, odd.encode(), "symbol=X")
    assert read(FORM, b"Sized=9&clientId=1", "symbol=X")


@pytest.mark.parametrize("truth", [b'"true"', b"1", b"false", b"null", b'"yes"'])
def test_only_a_true_of_json_reduces(truth: bytes) -> None:
    (terms,) = read(FLAT, b'{"reduceOnly": %b}' % truth)
    assert not terms.reduces


def test_what_makes_it_another_kind_of_order_is_not_read() -> None:
    shape = OrderShape(size=("size",), never=(("quote", "size"),))
    assert read(shape, b'{"size": 1, "quote": {}}')[0].size == 1
    with pytest.raises(UnreadableError, match="quote/size"):
        read(shape, b'{"size": 1, "quote": {"size": 9}}')


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"[1", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"size": NaN}', "NaN"),
        (b'{"size": 1} {}', "goes on after the JSON"),
        (b'{"size": 1, "size": 1}', "twice"),
        (b'{"a": [{"b": 1, "B": 2}]}', "twice"),
        ('{"size": 1, "\u017fize": 2}'.encode(), "is not spelled as"),
        (b'"size"', "no object"),
        (b'{"size": [1]}', "list"),
        (b'{"size": true}', "size is neither text nor a number"),
        (b'{"size": "01"}', "not a JSON number"),
        (
            b'{"size": 1, "price": "1e-400"}',
            "not a JSON number",
        ),  # many read a zero there: an order without a price
        (b'{"size": "' + b"1" * 89 + b'"}', "not a JSON number"),
        ('{"size": "\u0661"}'.encode(), "not a JSON number"),
        (b'{"symbol": 1}', "not text"),
    ],
)
def test_a_body_that_has_two_readings_is_not_read(body: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        read(FLAT, body)


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("size=1&size=1", b""),
        ("size=1&SIZE=2", b""),
        ("a=1&A=2", b""),
        ("size=1", b"size=1"),
        ("size", b""),
        ("size[]=1", b""),
        ("%73ize=1", b""),
        ("size=1&", b""),
        ("symbol=%ff", b""),
        ("symbol=A%26size=9", b""),
        (None, b"symbol=A%3bsize=9"),
        (None, b"symbol=A%2526size=9"),
        (None, b"size=1;size=2"),
        (None, b"size=1\n"),
        (None, b"size=\xc3\xa9"),
        (None, b'{"size": 1}'),
        ("size=1+", b""),
    ],
)
def test_parameters_that_have_two_readings_are_not_read(query: str | None, body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read(FORM, body, query)


@pytest.mark.parametrize(
    "content_type",
    [None, b"", JSON_TYPE, b"Application/JSON; charset=UTF-8", JSON_TYPE + b';charset="utf-8"'],
)
def test_json_is_read_as_json(content_type: bytes | None) -> None:
    assert read(FLAT, b"{}", content_type=content_type)


@pytest.mark.parametrize("parameter", [b"", b";charset=utf-8", b"; charset=UTF-8"])
def test_a_form_is_read_as_a_form(parameter: bytes) -> None:
    assert read(FORM, b"size=1", content_type=b"application/x-www-form-urlencoded" + parameter)


@pytest.mark.parametrize(
    "content_type", [b"text/plain", b"application/json; charset=utf-16", b"application/x-www-form-urlencoded"]
)
def test_what_is_said_to_be_something_else_is_not_read(content_type: bytes) -> None:
    with pytest.raises(UnreadableError, match="Content-Type"):
        read(FLAT, b"{}", content_type=content_type)
    with pytest.raises(UnreadableError, match="Content-Type"):
        read(FORM, b"size=1", content_type=JSON_TYPE)


def test_the_type_of_a_body_that_is_empty_says_nothing() -> None:
    """Binance's own library states JSON with every request, and has all parameters in the query."""
    terms = OrderTerms("BTC", Decimal(1), None, reduces=False)
    assert read(FORM, b"", "symbol=BTC&size=1", content_type=b"application/json;charset=utf-8") == [terms]


@pytest.mark.parametrize("name", [b"Content-Encoding", b"content_encoding", b"CONTENT.ENCODING"])
def test_what_is_packed_is_not_read(name: bytes) -> None:
    with pytest.raises(UnreadableError, match="Content-Encoding"):
        read(FLAT, b"{}", field=(name, b"br"))
    assert read(FLAT, b"{}", field=(b"Accept-Encoding", b"gzip"))


def test_a_query_beside_a_body_that_has_all_is_not_read() -> None:
    for shape, body in ((FLAT, b"{}"), (replace(FORM, in_query=False), b"size=9")):
        assert read(shape, body)
        with pytest.raises(UnreadableError, match="query"):
            read(shape, body, "reduceOnly=true")


def test_the_prices_of_a_reply_are_read_as_far_as_they_can_be() -> None:
    shape = PriceShape(("symbol",), ("mark",), ("rows",))
    odd = '7, {"symbol": {}}, {"symbol": "ETH"}, {"symbol": "X", "mark": true}, {"symbol": "Y", "mark": NaN}'
    body = f'{{"rows": [{{"symbol": "BTC", "mark": "5"}}, {odd}]}}'.encode()
    assert read_prices(shape, body) == {"BTC": "5"}
    assert read_prices(PriceShape(("s",), ("p",)), b'{"s": "BTC", "p": 6.50}') == {"BTC": "6.50"}
    for nothing in (b"no JSON", b"[" * 100_000, b"\xff", b'{"rows": 5}'):
        assert read_prices(shape, nothing) == {}


@pytest.mark.parametrize(
    ("text", "price"), [("6.50", Decimal("6.5")), ("0", None), ("1e999999", None), ("x", None), (None, None)]
)
def test_a_price_is_a_number_above_zero(text: str | None, price: Decimal | None) -> None:
    assert read_price(text) == price


def test_the_steps_of_a_pointer() -> None:
    assert steps("/a~1b/c~0d") == ("a/b", "c~d")
    assert steps("") == ()
