"""Several exchanges in one gateway: which of them a request is for, and what is known of the others."""

from typing import Any

import pytest

from rig.bot import request
from rig.two_exchanges import GRID, SPOT_ONLY, two_exchanges
from rig.upstream import say, say_and_stall
from rig.wire import reply

ORDER = b"/v1/trade/order"


async def test_the_first_segment_names_the_exchange_and_is_neither_signed_nor_sent() -> None:
    async with two_exchanges() as two:
        for name, upstream, key in ((b"spot", two.spot, b"ak-public-1"), (b"perp", two.perp, b"ak-swap")):
            replied = await two.ask(request(b"POST", b"/%b%b?a=/b" % (name, ORDER), GRID, body=b"{}"))
            assert (replied.status, replied.outcome) == (200, "done")
            (received,) = upstream.received
            assert received.target == ORDER + b"?a=/b"
            assert received.head.value(b"X-SERVICE-APIKEY") == key
        outcomes = [await two.outcomes.until(number) for number in (1, 2)]
        assert [one.exchange for one in outcomes] == ["spot", "perp"]


BOTH = ["spot", "perp"]
NOWHERE: dict[str, tuple[bytes, bytes, int, str, list[str]]] = {
    "an exchange that is not there": (
        b"/swap/v1/trade/order",
        GRID,
        404,
        "unknown_exchange",
        ["spot", "perp"],
    ),
    "none": (ORDER, GRID, 404, "unknown_exchange", BOTH),
    "one that the bot has no key for": (b"/perp" + ORDER, SPOT_ONLY, 404, "unknown_exchange", ["spot"]),
    "another case": (b"/Spot" + ORDER, GRID, 404, "unknown_exchange", BOTH),
    "an escape": (b"/sp%6Ft" + ORDER, GRID, 404, "unknown_exchange", BOTH),
    "a slash before it": (b"//spot" + ORDER, GRID, 404, "unknown_exchange", BOTH),
    "a dot segment before it": (b"/./spot" + ORDER, GRID, 404, "unknown_exchange", BOTH),
    "in a query": (b"/?/spot" + ORDER, GRID, 404, "unknown_exchange", BOTH),
    "its name alone": (b"/spot", GRID, 400, "ambiguous_target", []),
    "its name and a query": (b"/spot?a=/b", GRID, 400, "ambiguous_target", []),
    "its name alone, at one without a key": (b"/perp", SPOT_ONLY, 404, "unknown_exchange", ["spot"]),
    "a way out of it": (b"/spot/../perp" + ORDER, GRID, 400, "ambiguous_target", []),
    "an empty segment behind it": (b"/spot/" + ORDER, GRID, 400, "ambiguous_target", []),
    "the root of it": (b"/spot/", GRID, 404, "outside_prefix", []),
    "no token": (b"/swap" + ORDER, b"X-Any: 1", 401, "bot_unauthenticated", []),
    "no token at one that is there": (
        b"/spot" + ORDER,
        b"X-Any: 1",
        401,
        "bot_unauthenticated",
        [],
    ),
}


async def test_a_request_for_no_exchange_of_its_bot_is_sent_to_none() -> None:
    async with two_exchanges() as two:
        for case, (target, token, status, reason, names) in NOWHERE.items():
            replied = await two.ask(request(b"POST", target, token, body=b"{}"))
            assert (case, replied.status, replied.reason) == (case, status, reason)
            assert replied.outcome == "not_sent"
            assert replied.document().get("exchanges", []) == names
        assert (two.spot.received, two.perp.received) == ([], [])


async def test_a_client_that_uses_the_gateway_as_a_proxy_is_told() -> None:
    async with two_exchanges() as two:
        replied = await two.ask(request(b"GET", b"http://api.example.com" + ORDER))
        assert replied.reason == "ambiguous_target"
        assert "as a proxy" in replied.document()["detail"]


async def test_at_its_own_address_the_whole_path_is_the_exchanges() -> None:
    def exchanges(spot: str, perp: str) -> dict[str, Any]:
        return {"spot": {"base_url": spot}, "perp": {"base_url": perp, "listen": "127.0.0.1:0"}}

    async with two_exchanges(exchanges=exchanges) as two:
        port = int(two.gateway.listeners.exchange_urls["perp"].rpartition(":")[2])
        named = request(b"POST", b"/perp" + ORDER, GRID, body=b"{}")
        assert (await two.ask(named)).status == 200
        # The same bytes on the other listener are another request.
        assert (await two.ask(named, port)).reason == "outside_prefix"
        assert (await two.ask(named)).status == 200
        assert (await two.ask(request(b"POST", ORDER, GRID, body=b"{}"), port)).status == 200
        assert (
            await two.ask(request(b"POST", ORDER, SPOT_ONLY, body=b"{}"), port)
        ).reason == "unknown_exchange"
        assert [received.target for received in two.perp.received] == [ORDER] * 3
        assert two.spot.received == []


async def test_the_key_is_the_first_of_the_bots_that_is_valid_there() -> None:
    keys = {
        "main": {"api_key": "ak-main", "secret": "env:EXCHANGE_SECRET", "exchange": "spot"},
        "swap": {"api_key": "ak-swap", "secret": "env:OTHER_SECRET", "exchange": "perp"},
        "both": {"api_key": "ak-both", "secret": "env:EXCHANGE_SECRET", "exchanges": ["perp", "spot"]},
    }
    bots = {"grid": {"token": "env:GRID", "keys": ["both", "main", "swap"]}}
    async with two_exchanges(keys=keys, bots=bots) as two:
        for name, upstream in ((b"spot", two.spot), (b"perp", two.perp)):
            await two.ask(request(b"GET", b"/%b%b" % (name, ORDER), GRID))
            assert upstream.received[-1].head.value(b"X-SERVICE-APIKEY") == b"ak-both"
        chosen = request(b"GET", b"/perp" + ORDER, GRID, b"X-Gateway-Key: swap")
        assert (await two.ask(chosen)).status == 200
        assert two.perp.received[-1].head.value(b"X-SERVICE-APIKEY") == b"ak-swap"
        of_the_other = request(b"GET", b"/perp" + ORDER, GRID, b"X-Gateway-Key: main")
        assert (await two.ask(of_the_other)).reason == "bot_forbidden"


async def test_a_redirect_leads_no_bot_to_another_exchange() -> None:
    """A client takes both for one origin, and would follow with its token and the body of its order."""
    async with two_exchanges() as two:
        order = request(b"POST", b"/perp" + ORDER, GRID, b"Idempotency-Key: k", body=b"{}")
        two.perp.otherwise = say(
            reply(b"307 Temporary Redirect", b"moved", b"location:   /spot" + ORDER, b"X-Own: 1")
        )
        for _ in range(2):  # also from what is kept for the key
            replied = await two.ask(order)
            assert (replied.status, replied.body, replied.text("Location")) == (307, b"moved", None)
            assert replied.text("X-Own") == "1"
        two.perp.otherwise = say(reply(b"201 Created", b"{}", b"Location: /v1/trade/order/1"))
        assert (await two.ask(request(b"POST", b"/perp" + ORDER, GRID, body=b"{}"))).text(
            "Location"
        ) is not None
        assert two.spot.received == []


@pytest.mark.parametrize("fault", ["limited", "hangs"])
async def test_what_one_exchange_does_holds_up_nobody_at_the_other(fault: str) -> None:
    async with two_exchanges() as two:
        two.spot.otherwise = (
            say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 60"))
            if fault == "limited"
            else say_and_stall(b"")
        )
        hurried = (GRID, b"X-Gateway-Deadline-Ms: 300")
        assert (await two.ask(request(b"POST", b"/spot" + ORDER, *hurried, body=b"{}"))).status in (429, 504)
        for _ in range(20):
            replied = await two.ask(request(b"POST", b"/perp" + ORDER, GRID, body=b"{}"))
            assert (replied.outcome, replied.text("X-Gateway-Queue-Ms")) == ("done", "0")
