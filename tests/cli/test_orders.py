import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rig import journals
from rig.damage import empty_index
from rig.journals import leave_behind
from sealgate.cli.orders import command
from sealgate.orders.journal import JournalError, Order
from sealgate.orders.journal.file import connect
from sealgate.orders.journal.lock import Lock
from sealgate.orders.journal.rows import sent_row, settled_row
from sealgate.orders.outcome import Conclusion, Ending

ENVIRON = {
    "SEALGATE_BASE_URL": "http://127.0.0.1:9",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:NOWHERE",
}
ORDER = journals.ORDER._replace(
    target="/v1/trade/order",
    idempotency_key=None,
    digest=None,
    fence_ms=1_790_000_005_100,
    attempts=2,
    sent_body=b'{"symbol": "BTC", "side": "buy", "size": "0.0010", "price": 65000.0}',
)
UNKNOWN = Ending(Conclusion.UNKNOWN, ORDER.fence_ms)
TABLE = """\
            bot
            exchange  order                    sent, UTC     fence, UTC
request id  key       Idempotency-Key          (exchange)    (exchange)    times
────────────────────────────────────────────────────────────────────────────────
mine        grid      POST /v1/trade/order     2026-09-21    2026-09-21    2
            spot      buy 0.0010 BTC at        14:13:20.012  14:13:25.100
            main      65000.0
                      3f2c7a52-4f3d-4a52-9a7d
                      -0123456789ab
a1-2        grid      POST /v1/trade/order     2026-09-21    2026-09-21    2
            spot      -                        14:13:20.013  14:13:25.100
            main
"""
IDEMPOTENT = ORDER._replace(idempotency_key="3f2c7a52-4f3d-4a52-9a7d-0123456789ab")


def second(request_id: str = "a1-2") -> Order:
    return ORDER._replace(
        id="a1-2", request_id=request_id, sent_ms=ORDER.sent_ms + 1, sent_body=b'{"order_id": 7}'
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def run(file: Path | str, *arguments: str) -> Result:
    environ = ENVIRON | {"SEALGATE_JOURNAL__FILE": str(file), "COLUMNS": "80"}
    return CliRunner().invoke(command, arguments, env=environ)


def listed(file: Path) -> list[str]:
    document = json.loads(run(file, "--json").stdout)
    return [order["id"] for order in document["orders"]]


def test_orders_in_doubt_are_a_table(file: Path) -> None:
    leave_behind(file, sent_row(IDEMPOTENT), settled_row(second(), UNKNOWN, 0))
    result = run(file)
    assert (result.exit_code, result.stdout) == (0, TABLE)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_or_json(file: Path) -> None:
    leave_behind(file, sent_row(ORDER))
    (order,) = json.loads(run(file, "--json").stdout)["orders"]
    terms = {"symbol": "BTC", "side": "buy", "size": "0.0010", "price": "65000.0", "client_id": None}
    given = ORDER._asdict() | terms
    assert order == {name: given[name] for name in order}
    assert terms.keys() < order.keys()
    assert {"request_id", "fence_ms", "target"} < set(order)


def test_an_order_over_a_stream_says_which_stream_and_what_it_is_there(file: Path) -> None:
    body = b'{"reqId":"7","op":"order.create","args":[{"symbol":"BTC","side":"Buy","qty":"1","price":"2"}]}'
    order = ORDER._replace(
        method="WS",
        route="stream.bybit.com/v5/trade order.create",
        target="/stream.bybit.com/v5/trade",
        sent_body=body,
    )
    leave_behind(file, sent_row(order))
    text = run(file).stdout
    for piece in ("stream.bybit.com/v5/tra", "de order.create", "Buy 1 BTC at 2"):
        assert piece in text
    (shown,) = json.loads(run(file, "--json").stdout)["orders"]
    assert (shown["method"], shown["route"]) == ("WS", "stream.bybit.com/v5/trade order.create")
    assert run(file, "--settle", order.request_id).stdout == f"settled {order.request_id}\n"
    assert listed(file) == []


def test_none_is_said_so(file: Path) -> None:
    leave_behind(file, settled_row(ORDER, Ending(Conclusion.DONE), 0))
    assert (run(file).exit_code, run(file).stdout) == (0, "no orders in doubt\n")
    assert run(file, "--settle-all").stdout == "no orders in doubt\n"
    assert run(file, "--json").stdout == '{"orders": []}\n'


def test_what_a_running_gateway_has_under_way_is_not_in_doubt(file: Path) -> None:
    leave_behind(file, sent_row(ORDER), settled_row(second(), UNKNOWN, 0))
    lock = Lock(file)
    assert listed(file) == ["a1-2"]
    lock.release()
    assert listed(file) == ["a1-1", "a1-2"]


@pytest.mark.parametrize("given", ["mine", "a1-1"])
def test_one_is_settled(file: Path, given: str) -> None:
    leave_behind(file, sent_row(ORDER), sent_row(second()))
    result = run(file, "--settle", given)
    assert (result.exit_code, result.stdout) == (0, "settled mine\n")
    assert listed(file) == ["a1-2"]


def test_a_settled_key_stays_spent_and_a_new_one_is_asked_for(file: Path) -> None:
    leave_behind(file, sent_row(IDEMPOTENT), sent_row(second()))
    assert run(file, "--settle-all").stdout == (
        "settled mine; its Idempotency-Key stays spent: use a new one to send the order again\nsettled a1-2\n"
    )
    with closing(connect(file)) as database:
        assert database.execute("SELECT count(*) FROM orders WHERE sent_body IS NULL").fetchone() == (2,)


def test_all_are_settled(file: Path) -> None:
    leave_behind(file, sent_row(ORDER), sent_row(second()))
    result = run(file, "--settle-all", "--json")
    assert [order["id"] for order in json.loads(result.stdout)["orders"]] == ["a1-1", "a1-2"]
    assert listed(file) == []


def test_a_request_id_that_nobody_has(file: Path) -> None:
    leave_behind(file, sent_row(ORDER))
    result = run(file, "--settle", "other")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "sealgate: no order in doubt has the request id other\n"


def test_a_request_id_that_a_bot_used_twice(file: Path) -> None:
    leave_behind(file, sent_row(ORDER), sent_row(second("mine")))
    assert "ID a1-1" in run(file).stdout
    result = run(file, "--settle", "mine")
    assert result.exit_code == 1
    assert result.stderr == "sealgate: 2 orders have the request id mine; give an ID: a1-1, a1-2\n"
    assert run(file, "--settle", "a1-2").stdout == "settled mine\n"
    assert listed(file) == ["a1-1"]


def at_two(file: Path) -> None:
    """Leave the same request id at two exchanges, of which none is configured."""
    leave_behind(file, sent_row(ORDER), sent_row(second("mine")._replace(exchange="perp")))


def test_those_at_one_exchange_are_listed_though_it_is_no_longer_configured(file: Path) -> None:
    at_two(file)
    orders = [
        json.loads(run(file, "--json", *asked).stdout)["orders"]
        for asked in ((), ("--exchange", "spot"), ("--exchange", "perp"), ("--exchange", "service"))
    ]
    spot, perp = ("a1-1", "spot"), ("a1-2", "perp")
    assert [[(one["id"], one["exchange"]) for one in some] for some in orders] == [
        [spot, perp],
        [spot],
        [perp],
        [],
    ]
    assert run(file, "--exchange", "service").stdout == "no orders in doubt at service\n"


def test_those_at_one_exchange_are_settled(file: Path) -> None:
    at_two(file)
    assert run(file, "--exchange", "perp", "--settle", "mine").stdout == "settled mine\n"
    assert listed(file) == ["a1-1"]
    assert run(file, "--exchange", "service", "--settle-all").stdout == "no orders in doubt at service\n"
    assert run(file, "--exchange", "spot", "--settle-all").stdout == "settled mine\n"
    assert listed(file) == []


def test_an_exchange_that_is_neither_configured_nor_has_any(file: Path) -> None:
    at_two(file)
    for name, hint in (("sopt", "did you mean spot?"), ("zzz", "it may be service, spot, perp")):
        result = run(file, "--exchange", name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"sealgate: error: there is no exchange {name}; {hint}\n"


def test_the_two_ways_to_settle_exclude_each_other(file: Path) -> None:
    result = run(file, "--settle", "mine", "--settle-all")
    assert result.exit_code == 2
    assert "cannot be combined" in result.stderr


def test_without_a_journal() -> None:
    result = run("")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("sealgate: error: journal.file is not set")


def error_of(file: Path) -> str:
    """Return what cli/frame.py tells and turns into exit code 2."""
    error = run(file).exception
    assert isinstance(error, JournalError)
    return str(error)


def test_a_file_that_no_gateway_has_made(file: Path) -> None:
    assert error_of(file).endswith("there is no such file yet; start the gateway once, or correct the path")
    assert not file.exists()


def test_a_damaged_file_does_not_say_that_none_is_in_doubt(file: Path) -> None:
    leave_behind(file, settled_row(ORDER, UNKNOWN, 0))
    lock = Lock(file)
    assert listed(file) == ["a1-1"]
    empty_index(file, "orders_in_doubt")
    assert error_of(file).endswith("damaged; move it away, and look up the latest orders at the exchange")
    lock.release()
