"""What the gateway does with a bot's request at venues that want something of their own."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from structlog.testing import capture_logs

from rig.station import Station, running_station
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


async def test_what_a_venue_cannot_sign_is_refused_and_nothing_is_sent() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        batch = post("/0/private/AddOrderBatch", b'{"orders": []}', "application/json")
        refused = await station.ask(batch)
        assert (refused.status, refused.text("X-Gateway-Error")) == (400, "bad_request")
        assert refused.outcome == "not_sent"
        assert b"signs no such body" in refused.body
        assert upstream.received == []


async def test_nonces_rise_with_every_request_also_where_many_come_at_once() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        order = post("/0/private/AddOrder", b"pair=XBTUSD&volume=1")
        replies = await asyncio.gather(*(station.ask(order) for _ in range(20)))
        assert {reply.status for reply in replies} == {200}
        assert len(nonces(upstream)) == len(set(nonces(upstream))) == 20


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
            assert nonces(upstream) == sorted(nonces(upstream))


async def test_a_cancel_is_the_next_where_requests_go_one_at_a_time() -> None:
    answer = asyncio.Event()
    cancel = post("/0/private/CancelOrder", b"txid=O1")
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        upstream.answers.append(hold_until(answer, say(OK)))
        asked = [asyncio.create_task(station.ask(ORDER)) for _ in range(3)]
        await upstream.until_received(1)
        await station.until(lambda: waiting(station) == 2)
        asked.append(asyncio.create_task(station.ask(cancel)))
        await station.until(lambda: waiting(station) == 3)
        answer.set()
        await asyncio.gather(*asked)
        paths = [one.target.rpartition(b"/")[2] for one in upstream.received]
        assert paths == [b"AddOrder", b"CancelOrder", b"AddOrder", b"AddOrder"]


def waiting(station: Station) -> int:
    return sum(station.gateway.generation.exchange.live_keys["main"].scheduler.status().waiting.values())


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
        await station.until(lambda: waiting(station) == 1)
        assert (await station.ask(by_other)).outcome == "done"
        assert waiting(station) == 1
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


async def test_a_nonce_is_above_those_before_a_restart() -> None:
    async with running_upstream() as upstream:
        for _ in range(2):
            async with running_station(upstream, ENVIRON, **at("kraken")) as station:
                await station.ask(post("/0/private/AddOrder", b"pair=XBTUSD"))
        before, after = nonces(upstream)
        assert after > before


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


async def test_a_dummy_nonce_is_cut_out_and_the_rest_stays() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        await station.ask(post("/0/private/AddOrder", b"nonce=1&pair=XBT%2FUSD&volume=1"))
        (received,) = upstream.received
        assert received.body.startswith(b"nonce=")
        assert received.body.partition(b"&")[2] == b"pair=XBT%2FUSD&volume=1"
        assert received.head.value(b"Content-Length") == b"%d" % len(received.body)


# A bot that signs by itself writes another time, nonce and signature with each try.
TRIES: Mapping[str, tuple[str, Callable[[int, int], bytes]]] = {
    "in the query": (
        "binance",
        lambda t, size: post(
            f"/api/v3/order?symbol=BTCUSDT&quantity={size}&timestamp={t}&signature=a{t}", b""
        ),
    ),
    "in the form": (
        "binance",
        lambda t, size: post("/api/v3/order", b"quantity=%d&timestamp=%d&signature=a%d" % (size, t, t)),
    ),
    "in the query and in the form": (
        "binance",
        lambda t, size: post(f"/api/v3/order?timestamp={t}", b"quantity=%d&signature=a%d" % (size, t)),
    ),
    "a nonce": (
        "kraken",
        lambda t, size: post("/0/private/AddOrder", b"nonce=%d&pair=XBTUSD&volume=%d" % (t, size)),
    ),
    "in the query, beside JSON": (
        "htx",
        lambda t, size: post(
            f"/v1/order/orders/place?Timestamp={t}&Signature=a{t}",
            b'{"amount": %d}' % size,
            "application/json",
        ),
    ),
}


def keyed(raw: bytes) -> bytes:
    return raw.replace(b"\r\n", b"\r\nIdempotency-Key: k-1\r\n", 1)


@pytest.mark.parametrize(("venue", "attempt"), TRIES.values(), ids=TRIES)
async def test_a_bot_that_signs_by_itself_sends_an_order_with_one_idempotency_key_once(
    venue: str, attempt: Callable[[int, int], bytes], tmp_path: Path
) -> None:
    settings = at(venue, journal={"file": str(tmp_path / "journal.db")})
    async with running_upstream() as upstream:
        upstream.answers.append(say(reply(b"200 OK", b"the first")))
        async with running_station(upstream, ENVIRON, **settings) as station:
            first = await station.ask(keyed(attempt(1, 1)))
            again = await station.ask(keyed(attempt(2, 1)))
        async with running_station(upstream, ENVIRON, **settings) as station:
            after_a_restart = await station.ask(keyed(attempt(3, 1)))
            other = await station.ask(keyed(attempt(1, 2)))
        for one in (first, again, after_a_restart):
            assert (one.status, one.body) == (200, b"the first")
        assert [one.text("X-Gateway-Replayed") for one in (first, again)] == [None, "true"]
        assert other.reason == "key_reused"
        assert len(upstream.received) == 1


ROUTES = {
    "public": ("/api/v3/ticker/price?symbol=BTCUSDT", set()),
    "with the key alone": ("/api/v3/historicalTrades?symbol=BTCUSDT", {"X-MBX-APIKEY"}),
    "signed": ("/api/v3/account", {"X-MBX-APIKEY", "signature"}),
}


@pytest.mark.parametrize(("target", "proof"), ROUTES.values(), ids=ROUTES)
async def test_a_route_proves_itself_as_the_venues_file_says(target: str, proof: set[str]) -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("binance")) as station:
        await station.ask(get(target, "X-MBX-APIKEY: dummy"))
        (received,) = upstream.received
        own = {name.decode() for name, _ in received.fields if name == b"X-MBX-APIKEY"}
        assert own | ({"signature"} if b"&signature=" in received.target else set()) == proof
        assert b"dummy" not in received.raw


RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "private/buy", "params": {"amount": 1}}'
BY_POST = [f"/api/v2{path}" for path in ("", "/private/get_positions", "/public/get_time", "/private/cancel")]


@pytest.mark.parametrize("path", BY_POST)
@pytest.mark.parametrize("may", [["read"], ["read", "trade"]], ids=["reads", "trades"])
async def test_a_bot_that_reads_or_trades_sends_no_json_rpc(path: str, may: list[str]) -> None:
    venue = at("deribit", bots={"bot": {"token": "env:TOKEN", "may": may}})
    environ = ENVIRON | {"TOKEN": "t0"}
    rpc = post(path, RPC, "application/json").replace(b"\r\n", b"\r\nAuthorization: Bearer t0\r\n", 1)
    async with running_upstream() as upstream, running_station(upstream, environ, **venue) as station:
        assert (await station.ask(rpc)).reason == "bot_forbidden"
        by_get = await station.ask(
            rpc.replace(b"POST " + path.encode(), b"GET /api/v2/private/get_positions")
        )
        assert (by_get.reason, by_get.outcome) == ("bad_request", "not_sent")
        assert upstream.received == []


@pytest.mark.parametrize("path", BY_POST)
async def test_json_rpc_goes_as_an_order_whatever_its_path_says(path: str) -> None:
    venue = at("deribit", bots={"clerk": {"token": "env:TOKEN", "may": ["keys"]}})
    environ = ENVIRON | {"TOKEN": "t0"}
    rpc = post(path, RPC, "application/json").replace(b"\r\n", b"\r\nAuthorization: Bearer t0\r\n", 1)
    async with running_upstream() as upstream, running_station(upstream, environ, **venue) as station:
        assert (await station.ask(rpc)).outcome == "done"
        assert (await station.outcomes.until(1)).lane == "order"


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


async def test_orders_that_go_by_get_are_orders() -> None:
    venue = at("deribit", bots={"reader": {"token": "env:TOKEN", "may": ["read"]}})
    environ = ENVIRON | {"TOKEN": "t0"}
    async with running_upstream() as upstream, running_station(upstream, environ, **venue) as station:
        may_not = await station.ask(get("/api/v2/private/buy?amount=1", "Authorization: Bearer t0"))
        may = await station.ask(get("/api/v2/private/get_positions", "Authorization: Bearer t0"))
        assert (may_not.text("X-Gateway-Error"), may.status) == ("bot_forbidden", 200)
        (received,) = upstream.received
        assert (received.head.value(b"Authorization") or b"").startswith(b"deri-hmac-sha256 id=KEY4f0e,")


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


FENCES = {
    "a window that the exchange documents": (
        "okx",
        "/api/v5/trade/order",
        {"passphrase": "env:SECRET"},
        True,
    ),
    "a window that goes with the request": ("bybit", "/v5/order/create", {}, True),
    "no time in the request": ("kraken", "/0/private/AddOrder", {}, False),
    "a time that nobody says how long it holds": ("woo-v1", "/v1/order", {}, False),
    "a window that the user sets": ("woo-v1", "/v1/order", {"recv_window_ms": 30_000}, True),
}


@pytest.mark.parametrize(("venue", "path", "key", "is_fenced"), FENCES.values(), ids=FENCES)
async def test_a_fence_is_told_only_where_it_holds(
    venue: str, path: str, key: dict[str, Any], *, is_fenced: bool
) -> None:
    tables = at(venue, keys={"main": KEY | key})
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **tables) as station:
        upstream.answers.append(say_and_reset(b""))
        lost = await station.ask(post(path, b"pair=XBTUSD"))
        assert lost.outcome == "unknown"
        assert (lost.text("X-Gateway-Fence-Ms") is not None) is is_fenced


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


async def test_a_countdown_to_the_reset_is_waited_for() -> None:
    spent = reply(
        b"200 OK",
        b'{"code":"200000"}',
        *(b"gw-ratelimit-limit: 4000", b"gw-ratelimit-remaining: 0", b"gw-ratelimit-reset: 400"),
    )
    passphrase = {"keys": {"main": KEY | {"passphrase": "env:SECRET"}}}
    async with (
        running_upstream() as upstream,
        running_station(upstream, ENVIRON, **at("kucoin", **passphrase)) as station,
    ):
        upstream.answers.append(say(spent))
        for _ in range(2):
            asked = await station.ask(get("/api/v1/accounts", "X-Gateway-Deadline-Ms: 9000"))
            assert asked.status == 200
        first, second = upstream.received
        assert second.at - first.at > 0.3


async def test_no_member_of_a_body_takes_the_place_of_the_gateways() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("gemini")) as station:
        refused = await station.ask(post("/v1/order/new", b'{"nonce": "1"}', "application/json"))
        assert (refused.reason, refused.outcome) == ("bad_request", "not_sent")
        taken = await station.ask(post("/v1/order/new", b' {"options": {"nonce": [1]}}', "application/json"))
        assert taken.outcome == "done"
        assert len(upstream.received) == 1


async def test_a_parameter_that_a_server_might_take_for_the_gateways_is_refused() -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("kraken")) as station:
        asked = [
            await station.ask(post("/0/private/AddOrder", b"pair=XBTUSD&+nonce=1&volume=1")),
            await station.ask(post("/0/private/AddOrder?+nonce=1", b"pair=XBTUSD")),
        ]
        assert {(one.reason, one.outcome) for one in asked} == {("bad_request", "not_sent")}
        fine = b"nonces=1&my_nonce=2&pair=nonce&note=a%3Bnonces%3D1%26c"
        assert (await station.ask(post("/0/private/AddOrder", fine))).outcome == "done"
        assert len(upstream.received) == 1


_PART = b'--x\r\nContent-Disposition: form-data; name="timestamp"\r\n\r\n1999999999999\r\n--x--\r\n'


async def test_a_body_that_is_neither_form_nor_json_hides_nothing() -> None:
    form = b"recvWindow=60000&timestamp=1999999999999&nonce=1&Timestamp=1"
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at("mexc")) as station:
        for body, content_type in (
            (b"[a=1&" + form, "application/x-www-form-urlencoded"),
            (b"{a=1&" + form, "application/json"),
            (_PART, "multipart/form-data; boundary=x"),
        ):
            refused = await station.ask(post("/a", body, content_type))
            assert (refused.status, refused.reason, refused.outcome) == (400, "bad_request", "not_sent")
        assert upstream.received == []


async def test_what_a_file_adds_is_the_gateways_also_where_it_cuts_nothing_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{query}"\n'
        'query = "key={api_key}&api.time={timestamp}"\nquery_end = "&sign={signature}"\n'
    )
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at(str(file))) as station:
        for name in ("key", "api.time", "api_time", "SIGN", "sign[]"):
            assert (await station.ask(get(f"/orders?{name}=1"))).reason == "bad_request"
        assert (await station.ask(get("/orders?keys=1"))).status == 200
        assert len(upstream.received) == 1


@pytest.mark.parametrize(
    ("venue", "target"),
    [
        ("deribit", "/api/v2/private/get_positions"),  # a body would name another call
        ("deribit", "/api/v2/private/buy"),
        ("bybit", "/v5/account/wallet-balance"),  # it would shut out all bots, as after a 403 everybody waits
        ("bybit", "/v5/market/tickers"),
    ],
)
async def test_a_body_is_refused_where_the_exchange_takes_none(venue: str, target: str) -> None:
    async with running_upstream() as upstream, running_station(upstream, ENVIRON, **at(venue)) as station:
        asked = await station.ask(post(target, b"{}", "application/json").replace(b"POST", b"GET", 1))
        assert (asked.reason, asked.outcome) == ("bad_request", "not_sent")
        assert (await station.ask(get(target))).status == 200
        assert len(upstream.received) == 1
