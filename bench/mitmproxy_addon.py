"""The signature as an addon of mitmproxy, in whose own virtual environment this runs. Prints the port."""

import hashlib
import hmac
import os
import time
from typing import Any


class Sign:
    """Sign each request: timestamp + METHOD + path (without the prefix) + body (spec.md)."""

    def __init__(self) -> None:
        self._state = hmac.new(os.environ["BENCH_SECRET"].encode(), digestmod=hashlib.sha256)

    def load(self, loader: Any) -> None:
        self._addons = loader.master.addons

    def running(self) -> None:
        print(self._addons.get("proxyserver").listen_addrs()[0][1], flush=True)

    def request(self, flow: Any) -> None:
        request = flow.request
        timestamp = str(time.time_ns() // 1_000_000)
        path = request.path.partition("?")[0].removeprefix("/v1/trade")
        state = self._state.copy()
        state.update(f"{timestamp}{request.method}{path}".encode() + (request.raw_content or b""))
        request.headers.pop("Authorization", None)
        request.headers["X-SERVICE-APIKEY"] = os.environ["API_KEY"]
        request.headers["X-SERVICE-TIMESTAMP"] = timestamp
        request.headers["X-SERVICE-SIGNATURE"] = state.hexdigest()


addons = [Sign()]
