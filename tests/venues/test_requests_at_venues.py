"""What the gateway does with a bot's request at venues that want something of their own."""

import asyncio
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from structlog.testing import capture_logs

from rig.station import running_station
from rig.upstream import Act, Received, Upstream, Wire, hold_until, running_upstream, say, say_and_reset
from rig.wire import OK, let_pass, reply
from sealgate.orders.journal.file import connect, prepare

CLOCK = {"path": "/v1/trade/time", "field": ""}
ENVIRON = {"SECRET": "c2VjcmV0IG9mIGEga2V5"}
KEY = {"api_key": "KEY4f0e", "secret": "env:SECRET"}


def at(venue: str, **more: Any) -> dict[str, Any]:
    return {"venue": venue, "keys": {"main": KEY}, "clock": CLOCK, **more}


def post(path: str, body: bytes, kind: str = "application/x-www-form-urlencoded") -> bytes:
    lines = ("Host: 127.0.0.1", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "", "")
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines]).encode() + body


def get(target: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def nonces(upstream: Upstream) -> list[int]:
    return [int(parse_qs(one.body.decode())["nonce"][0]) for one in upstream.received]


class Busy:
    """Answers after a while, and counts how many requests it has at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def __call__(self, request: Received) -> Act:
        del request

        async def act(wire: Wire) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            await let_pass(0.01)
            self.now -= 1
            await wire.write(OK)

        return act


ASKED = {
    "where nonces must rise": ("kraken", post("/0/private/AddOrder", b"pair=XBTUSD&volume=1"), True),
    "where each needs to be new only": ("deribit", get("/api/v2/private/get_positions"), False),
    "where there are none": ("binance", post("/api/v3/order", b"symbol=BTCUSDT"), False),
    "where it is not signed": ("kraken", get("/0/public/Ticker?pair=XBTUSD"), False),
}


@pytest.mark.parametrize(("venue", "asked", "is_serial"), ASKED.values(), ids=ASKED)
async def test_no_request_overtakes_another_whose_nonce_is_lower(
    venue: str, asked: bytes, *, is_serial: bool
) -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at(venue)) as station:
        upstream.script = busy = Busy()
        replies = await asyncio.gather(*(station.ask(asked) for _ in range(8)))
        assert {reply.status for reply in replies} == {200}
        assert (busy.most == 1) is is_serial
        if is_serial:
            assert nonces(upstream) == sorted(set(nonces(upstream)))


async def test_a_cancel_is_the_next_where_requests_go_one_at_a_time() -> None:
    answer = asyncio.Event()
    cancel = post("/0/private/CancelOrder", b"txid=O1")
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        upstream.answers.append(hold_until(answer, say(OK)))
        asked = [asyncio.create_task(station.ask(ORDER)) for _ in range(3)]
        await upstream.until_received(1)
        await station.until(lambda: station.waiting() == 2)
        asked.append(asyncio.create_task(station.ask(cancel)))
        await station.until(lambda: station.waiting() == 3)
        answer.set()
        await asyncio.gather(*asked)
        paths = [one.target.rpartition(b"/")[2] for one in upstream.received]
        assert paths == [b"AddOrder", b"CancelOrder", b"AddOrder", b"AddOrder"]


async def test_a_key_that_waits_for_its_reply_holds_up_no_other_key() -> None:
    """Though an exchange that counts by address has them all in one line."""
    answer = asyncio.Event()
    order = post("/v2/auth/w/order/submit", b"{}", "application/json")
    by_other = order.replace(b"Host", b"X-Gateway-Key: other\r\nHost", 1)
    tables = at("bitfinex", keys={"main": KEY, "other": KEY | {"api_key": "OTHER"}})
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **tables) as station:
        upstream.answers.append(hold_until(answer, say(OK)))
        asked = [asyncio.create_task(station.ask(order)) for _ in range(2)]
        await upstream.until_received(1)
        await station.until(lambda: station.waiting() == 1)
        assert (await station.ask(by_other)).outcome == "done"
        assert station.waiting() == 1
        answer.set()
        await asyncio.gather(*asked)


async def test_after_a_lost_reply_the_next_request_goes() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        upstream.answers.append(say_and_reset(b""))
        first, second = await asyncio.gather(station.ask(ORDER), station.ask(ORDER))
        assert {first.outcome, second.outcome} == {"unknown", "done"}
        assert len(upstream.received) == 2


INVALID_NONCE = reply(b"200 OK", b'{"error": ["EAPI:Invalid nonce"]}')


@pytest.mark.parametrize(
    ("refused", "outcome", "attempts"), [(1, "done", 2), (2, "refused", 2)], ids=["once", "twice"]
)
async def test_an_order_refused_for_its_nonce_is_sent_once_more_with_a_higher_one(
    refused: int, outcome: str, attempts: int
) -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        upstream.answers.extend([say(INVALID_NONCE)] * refused)
        asked = await station.ask(ORDER)
        assert (asked.outcome, asked.text("X-Gateway-Attempts")) == (outcome, str(attempts))
        first, second = nonces(upstream)
        assert second > first


ORDER = post("/0/private/AddOrder", b"pair=XBTUSD")


async def test_a_nonce_is_above_those_before_a_restart_also_where_the_time_was_set_back(
    tmp_path: Path,
) -> None:
    settings = at("kraken", journal={"file": str(tmp_path / "journal.db")})
    async with running_upstream() as upstream:
        async with running_station(upstream, ENVIRON, **settings) as station:
            await station.ask(ORDER)
        upstream.skew_ms = -60_000
        with capture_logs() as logs:
            async with running_station(upstream, ENVIRON, **settings) as station:
                asked = await asyncio.gather(*(station.ask(ORDER) for _ in range(5)))
                assert {one.status for one in asked} == {200}
    before, *after = nonces(upstream)
    assert min(after) > before
    assert len(set(after)) == 5
    [told] = [line for line in logs if line["event"] == "nonces_ahead"]
    assert (told["key"], told["log_level"]) == ("main", "warning")
    assert "ahead of the exchange's time" in told["cause"]


async def test_few_requests_reserve_nonces_and_none_where_the_venue_has_none(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with running_upstream() as upstream:
        for venue in ("kraken", "binance"):
            async with running_station(
                upstream, ENVIRON, **at(venue, journal={"file": str(file)})
            ) as station:
                with closing(connect(file)) as database:
                    database.execute("CREATE TABLE IF NOT EXISTS writes (at)")
                    database.execute(
                        "CREATE TRIGGER IF NOT EXISTS seen AFTER INSERT ON nonces"
                        " BEGIN INSERT INTO writes VALUES (new.until); END"
                    )
                    for _ in range(5):
                        await station.ask(get("/api/v3/account") if venue == "binance" else ORDER)
                    assert database.execute("SELECT count(*) FROM writes").fetchone() == (1,)


async def test_a_disk_that_reserves_no_nonce_is_told_once_and_requests_go_on(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    with closing(connect(file)) as database, database:
        full = "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        database.execute(f"CREATE TRIGGER full BEFORE INSERT ON nonces {full}")
    async with running_upstream() as upstream:
        with capture_logs() as logs:
            settings = at("kraken", journal={"file": str(file)})
            async with running_station(upstream, ENVIRON, **settings) as station:
                asked = [await station.ask(ORDER) for _ in range(3)]
        assert [one.status for one in asked] == [200] * 3
        assert nonces(upstream) == sorted(set(nonces(upstream)))
    [told] = [line for line in logs if line["event"] == "nonces_not_reserved"]
    assert "disk is full" in told["cause"]


async def test_nobody_waits_for_a_disk_that_reserves_a_nonce_and_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.orders.journal.journal.HANGS_AFTER_S", 0.05)
    file, balance = tmp_path / "journal.db", post("/0/private/Balance", b"")
    async with running_upstream() as upstream:
        with capture_logs() as logs:
            settings = at("kraken", journal={"file": str(file)})
            async with running_station(upstream, ENVIRON, **settings) as station:
                with closing(connect(file)) as disk:
                    disk.execute("BEGIN IMMEDIATE")  # who writes to it waits
                    asked = [await station.ask(balance) for _ in range(3)]
                    disk.rollback()
        assert [one.status for one in asked] == [200] * 3
        assert nonces(upstream) == sorted(set(nonces(upstream)))
    [told] = [line for line in logs if line["event"] == "nonces_not_reserved"]
    assert told["cause"] == "the disk does not respond"


async def test_an_order_whose_reply_is_longer_than_any_error_is_in_doubt() -> None:
    paged = b'{"retCode": 0}' + b" " * 100_000
    keys = {"keys": {"main": KEY}}
    async with (
        running_upstream() as upstream,
        running_station(upstream, ENVIRON, **at("bybit", **keys)) as station,
    ):
        upstream.otherwise = say(reply(b"200 OK", paged))
        order = await station.ask(post("/v5/order/create", b"{}", "application/json"))
        read = await station.ask(get("/v5/order/history"))
        assert (order.outcome, order.body, read.outcome) == ("unknown", paged, "done")


def dated(request: Received) -> Act:
    """Answer as any server does that has no such page."""
    del request
    return say(reply(b"404 Not Found", b"", b"Date: " + formatdate(usegmt=True).encode()))


async def test_a_venue_without_a_time_is_followed_by_its_date_headers() -> None:
    async with running_upstream() as upstream:
        upstream.script = dated
        async with running_station(upstream, ENVIRON, **at("coincheck", clock={})) as station:
            clock = station.gateway.status().clock
            assert clock.error_s is not None
            assert clock.error_s < 1.5
            assert clock.trouble is None
            assert {one.target for one in upstream.received} == {b"/"}


async def test_a_limit_that_replies_count_is_not_run_into() -> None:
    used = reply(b"200 OK", b"{}", b"X-MBX-USED-WEIGHT-1M: 5999")
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("binance")) as station:
        upstream.answers.append(say(used))
        first = await station.ask(get("/api/v3/account"))
        second = await station.ask(get("/api/v3/account", "X-Gateway-Deadline-Ms: 50"))
        third = await station.ask(get("/api/v3/account", "X-Gateway-Deadline-Ms: 50"))
        assert first.status == 200
        assert {second.status, third.status} & {429, 504}
        assert third.outcome == "not_sent"


_PART = b'--x\r\nContent-Disposition: form-data; name="timestamp"\r\n\r\n1999999999999\r\n--x--\r\n'
REFUSED = {
    "no such body": ("kraken", post("/0/private/AddOrderBatch", b'{"orders": []}', "application/json")),
    "declared as what hides parameters": ("mexc", post("/a", _PART, "multipart/form-data; boundary=x")),
    # It would name another call.
    # The gateway would begin it.
    "no body, declared as an encoded one": ("kraken", post("/0/private/Balance", b"", "x; charset=utf-16")),
    "no body, declared as JSON": ("kraken", post("/0/private/Balance", b"", "application/json")),
    "a body where none is taken": ("deribit", get("/api/v2/private/buy", "Content-Length: 2") + b"{}"),
}


@pytest.mark.parametrize(("venue", "asked"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_signed_or_has_two_readings_is_refused_and_not_sent(
    venue: str, asked: bytes
) -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at(venue)) as station:
        refused = await station.ask(asked)
        assert (refused.status, refused.reason, refused.outcome) == (400, "bad_request", "not_sent")
        assert upstream.received == []


def attempt(time: int, quantity: int) -> bytes:
    """Write an order as a bot that signs by itself does: with another time and signature at each attempt."""
    form = b"quantity=%d&signature=a%d" % (quantity, time)
    raw = post(f"/api/v3/order?timestamp={time}", form)
    return raw.replace(b"\r\n", b"\r\nIdempotency-Key: k-1\r\n", 1)


async def test_a_bot_that_signs_by_itself_sends_an_order_with_one_idempotency_key_once(
    tmp_path: Path,
) -> None:
    settings = at("binance", journal={"file": str(tmp_path / "journal.db")})
    async with running_upstream() as upstream:
        upstream.answers.append(say(reply(b"200 OK", b"the first")))
        async with running_station(upstream, ENVIRON, **settings) as station:
            first = await station.ask(attempt(1, 1))
            again = await station.ask(attempt(2, 1))
        async with running_station(upstream, ENVIRON, **settings) as station:
            after_a_restart = await station.ask(attempt(3, 1))
            other = await station.ask(attempt(1, 2))
        for one in (first, again, after_a_restart):
            assert (one.status, one.body) == (200, b"the first")
        assert [one.text("X-Gateway-Replayed") for one in (first, again)] == [None, "true"]
        assert other.reason == "key_reused"
        assert len(upstream.received) == 1


async def test_a_route_proves_itself_as_the_venues_file_says() -> None:
    """In public, with the key alone, and signed."""
    targets = ("/api/v3/ticker/price?symbol=X", "/api/v3/historicalTrades?symbol=X", "/api/v3/account")
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("binance")) as station:
        for target in targets:
            await station.ask(get(target, "X-MBX-APIKEY: dummy"))
        assert not any(b"dummy" in one.raw for one in upstream.received)
        proofs = [
            (one.head.value(b"X-MBX-APIKEY"), b"&signature=" in one.target) for one in upstream.received
        ]
        assert proofs == [(None, False), (b"KEY4f0e", False), (b"KEY4f0e", True)]
