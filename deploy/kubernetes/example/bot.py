"""A bot that knows no secret: it asks the gateway in its pod for the balance, every ten seconds.

A refusal and a gateway that restarts are no reason to end: it asks again.
"""

import os
import time
import urllib.error
import urllib.request

GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8787")
CALL = os.environ.get("CALL", "/v5/account/wallet-balance?accountType=UNIFIED")
EVERY_S = float(os.environ.get("EVERY_S", "10"))

while True:
    try:
        with urllib.request.urlopen(f"{GATEWAY}{CALL}", timeout=45) as reply:
            print(reply.headers["X-Gateway-Outcome"], reply.read().decode())
    except urllib.error.HTTPError as reply:
        with reply:
            print(reply.headers["X-Gateway-Outcome"], reply.status, reply.read().decode())
    except OSError as error:
        print("no reply:", error)
    time.sleep(EVERY_S)
