"""A bot that knows no secret: it asks the gateway in its pod for the symbols, every ten seconds."""

import os
import time
import urllib.request

GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8787")

while True:
    with urllib.request.urlopen(f"{GATEWAY}/v1/trade/symbols/list", timeout=45) as reply:
        print(reply.headers["X-Gateway-Outcome"], reply.read().decode())
    time.sleep(10)
