"""A class of ccxt for an exchange that ccxt does not know: as few paths as a bot needs, and no signing.

The paths are those of `sealgate sandbox`. ccxt's own rate limit is off, as the gateway paces all bots. This
version of ccxt (4.5.90) does not hand the headers of a single request to `sign`, so the `Idempotency-Key`
is a parameter, which becomes a header.
"""

import ccxt


class Sealed(ccxt.Exchange):
    def describe(self):
        mine = {
            "id": "sealed",
            "urls": {"api": {"trade": "http://127.0.0.1:8787/v1/trade"}},
            "timeout": 45000,
            "enableRateLimit": False,
        }
        return self.deep_extend(super().describe(), mine)

    def sign(self, path, api="trade", method="GET", params=None, *_):
        url = f"{self.urls['api'][api]}/{path}"
        headers = {"Authorization": "Bearer TOKEN"}
        body = None
        params = params or {}
        if "Idempotency-Key" in params:
            headers["Idempotency-Key"] = params["Idempotency-Key"]
            params = self.omit(params, "Idempotency-Key")
        if method == "GET":
            url += f"?{self.urlencode(params)}" if params else ""
        else:
            headers["Content-Type"] = "application/json"
            body = self.json(params)
        return {"url": url, "method": method, "headers": headers, "body": body}


exchange = Sealed()
print(exchange.request("symbols/list", "trade", "GET"))
order = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}
key = {"Idempotency-Key": "ccxt-2026-11-21-0001"}
print(exchange.request("order", "trade", "POST", {**order, **key}))
print(exchange.last_response_headers["X-Gateway-Outcome"])
