"""Whose errors a refusal looks like: those of the exchange that the request names, token or not."""

import json

from rig.bot import check_problem, request
from rig.two_exchanges import GRID, SPOT_ONLY, two_exchanges

UPGRADE = (b"Upgrade: websocket", b"Connection: Upgrade")


async def test_a_refusal_looks_like_the_errors_of_the_exchange_that_the_request_names() -> None:
    """The first segment tells before anybody is known; where it names no exchange, the problem is plain."""
    exchanges = {"venue": "bybit", "clock": {"path": "/v1/trade/time", "field": "/serverTime"}}
    async with two_exchanges(
        exchanges=lambda spot, perp: {"spot": {"base_url": spot}, "perp": {"base_url": perp, **exchanges}}
    ) as two:
        # 1. In the shape: without a token, with one that may not use that exchange, with one that may.
        for number, (raw, reason, code) in enumerate(
            (
                (request(b"GET", b"/perp/v5/order"), "bot_unauthenticated", 10003),
                (request(b"GET", b"/perp/v5/order", SPOT_ONLY), "unknown_exchange", 10001),
                (request(b"GET", b"/perp/v5//order", GRID), "ambiguous_target", 10001),
            ),
            1,
        ):
            answer = await two.ask(raw)
            told = json.loads(answer.body)
            assert (answer.status, told["reason"], told["retCode"]) == (200, reason, code)
            assert told["retMsg"] == f"{reason}: {told['detail']}"
            assert (await two.outcomes.until(number)).status == told["status"] > 200
        # 2. The status stays where a client may look at nothing else.
        head = await two.ask(request(b"HEAD", b"/perp/v5/order"))
        assert (head.status, head.body) == (401, b"")
        upgrade = await two.ask(request(b"GET", b"/perp/stream.bybit.com/v5/private", *UPGRADE))
        assert (upgrade.status, json.loads(upgrade.body)["retCode"]) == (401, 10003)
        page = request(b"GET", b"/perp/v5/order", GRID, b"Origin: https://page.example")
        assert (await two.ask(page)).status == 403
        elsewhere = request(b"GET", b"/perp/v5/order", GRID).replace(b"127.0.0.1", b"page.example")
        assert (await two.ask(elsewhere)).status == 421
        # 3. Plain: the other exchange, and none.
        check_problem(await two.ask(request(b"GET", b"/spot/v1/trade/x")), 401, "bot_unauthenticated")
        plain = await two.ask(request(b"GET", b"/other/v5/order", GRID))
        assert (plain.status, plain.reason, plain.text("X-Gateway-Detail")) == (404, "unknown_exchange", None)
        assert "retCode" not in json.loads(plain.body)
        assert not two.spot.received
        assert not two.perp.received
