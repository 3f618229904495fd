"""A bot that places an order and knows afterwards what became of it, whatever went wrong on the way.

    python examples/careful_bot.py http://127.0.0.1:8787 [ADDRESS_OF_THE_ACCOUNT]

It needs Python alone, a gateway with `journal.file`, and an exchange whose orders look as those of `sealgate
sandbox` do. Your own exchange's differ in `ORDER` and `look_up`; when to ask again and when to stop do not.
If the gateway wants a token, it is read from the file that $TOKEN_FILE names.
"""

import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request
import uuid

ORDER = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}
TOO_MANY = 429
# Why the gateway may send nothing now, and would later. All else it refuses again.
AGAIN = {
    "rate_limited",
    "queue_full",
    "draining",
    "clock_unsynced",
    "upstream_unreachable",
    "deadline_exceeded",
}
TIMEOUT_S = 45  # longer than the gateway may take


def ask(url, body=None, key=None):
    """Return status, outcome, reason, wait in seconds, and text of a reply; None if there is none."""
    request = urllib.request.Request(url, method="POST" if body else "GET")
    if body:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", key)
    if "TOKEN_FILE" in os.environ:
        token = pathlib.Path(os.environ["TOKEN_FILE"]).read_text().strip()
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
            said, reason = reply.headers["X-Gateway-Outcome"], reply.headers["X-Gateway-Error"]
            return reply.status, said, reason, 0, reply.read().decode()
    except urllib.error.HTTPError as reply:
        # Retry-After may be fractional at some exchanges, and a date at others.
        stated = reply.headers["Retry-After"] or "1"
        wait_s = float(stated) if stated.replace(".", "", 1).isdigit() else 1
        with reply:
            said, reason = reply.headers["X-Gateway-Outcome"], reply.headers["X-Gateway-Error"]
            return reply.status, said, reason, wait_s, reply.read().decode()
    except OSError:
        return None


def place(gateway, order, tries=10, pause=time.sleep):
    """Place an order at most once. Return its outcome and the last reply's text.

    The key stays the same: where a reply was lost between gateway and bot, the second one is the first once
    more, and nothing is sent. An outcome `unknown` is final here: the order is to be looked up, and only then
    may another one go, with another key.
    """
    key, is_lost = str(uuid.uuid4()), False
    outcome, text = "unknown", "no reply"
    for number in range(tries):
        reply = ask(f"{gateway}/v1/trade/order", order, key)
        if reply is None:  # the gateway restarts: with a journal it knows the key afterwards
            outcome, text, is_lost = "unknown", "no reply", True
            pause(min(2**number, 30))
            continue
        status, said, reason, wait_s, text = reply
        # After a lost reply, `not_sent` is said of this try alone, perhaps before its key was looked up.
        outcome = "unknown" if is_lost and said == "not_sent" else said
        may_go_later = status == TOO_MANY or reason in AGAIN
        if said == "refused" and may_go_later:  # it did not execute, but may have used its key
            key, is_lost = str(uuid.uuid4()), False
        elif said != "not_sent" or not may_go_later:
            break  # it is known what became of it, or the gateway refuses it, and would again
        pause(max(wait_s, min(2**number, 30)))
    return outcome, text


def look_up(gateway, address):
    """Return the open orders of an account."""
    reply = ask(f"{gateway}/v1/trade/user/{address}/openOrders")
    return None if reply is None or reply[1] != "done" else json.loads(reply[4])["orders"]


def main(gateway, address=None):
    """Place the order, and say what became of it."""
    outcome, text = place(gateway, ORDER)
    print(outcome, text)
    if outcome == "unknown" and address:
        print("open orders:", look_up(gateway, address))


if __name__ == "__main__":
    main(*sys.argv[1:])
