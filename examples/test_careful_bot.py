"""How a bot is tested: with Sealgate's pytest plugin, against an exchange that fails as the test says.

pytest examples
"""

import careful_bot


def no_pause(_):
    """Wait for nothing: a test has no time."""


def received(sandbox):
    """Return how many orders the exchange received."""
    return sum(line["method"] == "POST" for line in sandbox.journal())


def test_an_order_is_placed(sealgate_gateway, sealgate_sandbox):
    outcome, text = careful_bot.place(sealgate_gateway.url, careful_bot.ORDER, pause=no_pause)
    assert (outcome, received(sealgate_sandbox)) == ("done", 1), text


def test_an_order_that_the_exchange_refuses_is_not_tried_again(sealgate_gateway, sealgate_sandbox):
    wrong = {**careful_bot.ORDER, "symbol": "NONE"}
    outcome, text = careful_bot.place(sealgate_gateway.url, wrong, pause=no_pause)
    assert (outcome, received(sealgate_sandbox)) == ("refused", 1), text


def test_an_order_that_the_gateway_refuses_is_not_tried_again(sealgate_gateway, sealgate_sandbox):
    no_order = {"symbol": "BTC", "note": "x" * 2_000_000}
    waits = []
    outcome, text = careful_bot.place(sealgate_gateway.url, no_order, pause=waits.append)
    assert (outcome, waits, received(sealgate_sandbox)) == ("not_sent", [], 0), text


def test_an_order_whose_reply_is_lost_is_looked_up_and_not_sent_again(sealgate_gateway, sealgate_sandbox):
    sealgate_sandbox.faults({"kind": "reset_after", "next": 1, "match": "POST *"})
    outcome, _ = careful_bot.place(sealgate_gateway.url, careful_bot.ORDER, pause=no_pause)
    assert (outcome, received(sealgate_sandbox)) == ("unknown", 1)
    assert len(careful_bot.look_up(sealgate_gateway.url, sealgate_sandbox.user_address)) == 1


def test_an_order_that_meets_the_limit_is_tried_again(sealgate_gateway, sealgate_sandbox):
    """It meets a limit that ends in a minute, and waits for as long as the reply says."""
    sealgate_sandbox.limit(kind="fixed_from_first", requests=1, window_s=60)
    careful_bot.place(sealgate_gateway.url, careful_bot.ORDER, pause=no_pause)
    waits = []

    def pause(seconds):
        waits.append(seconds)
        sealgate_sandbox.advance(60)

    outcome, text = careful_bot.place(sealgate_gateway.url, careful_bot.ORDER, pause=pause)
    assert outcome == "done", text
    assert len(waits) == 1
    assert [line["status"] for line in sealgate_sandbox.journal() if line["method"] == "POST"] == [
        200,
        429,
        200,
    ]


def test_a_gateway_that_is_away_leaves_it_unknown(sealgate_sandbox):
    waits = []
    outcome, _ = careful_bot.place("http://127.0.0.1:9", careful_bot.ORDER, tries=3, pause=waits.append)
    assert (outcome, waits, received(sealgate_sandbox)) == ("unknown", [1, 2, 4], 0)


def test_after_a_lost_reply_a_full_gateway_leaves_it_unknown(monkeypatch):
    replies = [None, (503, "not_sent", "queue_full", 0, ""), (401, "not_sent", "bot_unauthenticated", 0, "")]
    monkeypatch.setattr(careful_bot, "ask", lambda *_: replies.pop(0))
    outcome, _ = careful_bot.place("http://127.0.0.1:9", careful_bot.ORDER, pause=no_pause)
    assert (outcome, replies) == ("unknown", [])
