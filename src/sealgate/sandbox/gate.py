"""The rate limit as callers meet it: who shares one, what a request costs, Retry-After, bans."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment, http_date
from sealgate.sandbox.limiter import LIMITERS, Limiter
from sealgate.sandbox.models.control import Limit

RETRY_AFTER: Mapping[str, Callable[[float, Moment], dict[str, str]]] = {
    "exact": lambda wait_s, _: {"Retry-After": f"{math.ceil(wait_s * 1000) / 1000:.3f}"},
    "rounded": lambda wait_s, _: {"Retry-After": str(math.ceil(wait_s))},
    # Rounded up to the second: to wait until then is to wait long enough.
    "date": lambda wait_s, now: {"Retry-After": http_date(math.ceil(now.server_ms / 1000 + wait_s))},
    "absent": lambda _, __: {},
}


@dataclass(slots=True)
class _Caller:
    limiter: Limiter
    refusals: int = 0
    bans: int = 0
    banned_until_s: float = field(default=float("-inf"))


class Gate:
    """One limit, counted per caller. A new limit is a new gate."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._callers: dict[str, _Caller] = {}

    def _caller(self, name: str) -> _Caller:
        if name not in self._callers:
            self._callers[name] = _Caller(LIMITERS[self.limit.kind](self.limit))
        return self._callers[name]

    def cost(self, method: str, template: str, path: str) -> int:
        """Look up what a request costs, by its route as a template or by its very path."""
        costs = self.limit.costs
        return costs.get(f"{method} {template}", costs.get(f"{method} {path}", 1))

    def enter(self, name: str, cost: int, now: Moment) -> Callable[[], None]:
        """Count a request, or refuse it with 429. Call what is returned when it has been answered."""
        caller = self._caller(name)
        wait_s = max(caller.banned_until_s - now.steady_s, caller.limiter.wait_s(now.steady_s, cost), 0.0)
        if wait_s:
            self._refuse(caller, cost, wait_s, now)
        caller.limiter.spend(now.steady_s, cost)
        caller.refusals = 0
        return caller.limiter.leave

    def _refuse(self, caller: _Caller, cost: int, wait_s: float, now: Moment) -> None:
        if self.limit.rejects_count and self.limit.kind != "concurrency":  # a refusal never runs
            caller.limiter.spend(now.steady_s, cost)
            wait_s = max(wait_s, caller.limiter.wait_s(now.steady_s, cost))
        wait_s = max(wait_s, self._ban_s(caller, now.steady_s))
        raise ApiError("rate_limited", headers=RETRY_AFTER[self.limit.retry_after](wait_s, now))

    def _ban_s(self, caller: _Caller, now_s: float) -> float:
        """Escalate: `ban_after` refusals in a row are a ban, and each ban is twice as long as the last."""
        caller.refusals += 1
        if not self.limit.ban_after or caller.refusals < self.limit.ban_after:
            return 0.0
        caller.refusals = 0
        ban_s = math.ldexp(self.limit.ban_s, caller.bans)
        caller.bans = min(caller.bans + 1, 10)
        caller.banned_until_s = now_s + ban_s
        return ban_s
