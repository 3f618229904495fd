"""Sessions, the handshake that grants them with its own rate limit, and the passkey step-up."""

import math
from collections.abc import Callable

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment, iso
from sealgate.sandbox.limiter import FixedFromFirst
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.control import Limit, PasskeyGrant
from sealgate.sandbox.models.keys import Handshake, SessionGrant
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.registry import Registry
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.system import System

# spec.md, Limits: "Handshake retry wait 10 to 15 seconds".
HANDSHAKE_WAIT_S = (10.0, 15.0)
TOKEN_BYTES = 24


class SessionDesk:
    """Grants sessions."""

    def __init__(self, registry: Registry, settings: SandboxSettings, system: System) -> None:
        self._registry = registry
        self._settings = settings
        self._system = system
        self._dice = system.dice()
        self._limiters: dict[str, FixedFromFirst] = {}
        self._blocked_until_s: dict[str, float] = {}

    def handshake(self, call: Call[Handshake]) -> SessionGrant:
        """Grant a session token to a known user."""
        user = self._registry.users.get(call.input.user_address.lower())
        if user is None:
            raise ApiError("user_unknown")
        self._check_limit(user.address, call.now.steady_s)
        return self.grant(user.address, call.now)

    def grant(self, address: str, now: Moment) -> SessionGrant:
        """Make a session token."""
        token = self._system.token(TOKEN_BYTES).hex()
        expires_ms = now.server_ms + round(self._settings.session_ttl_s * 1000)
        self._registry.save_session(token, address, expires_ms)
        return SessionGrant(session_token=token, user_address=address, expires_at=iso(expires_ms))

    def reset(self) -> None:
        """Forget all handshakes."""
        self._limiters.clear()
        self._blocked_until_s.clear()

    def _check_limit(self, address: str, now_s: float) -> None:
        wait_s = self._blocked_until_s.get(address, now_s) - now_s
        if wait_s > 0:
            raise _handshake_limited(wait_s)
        limiter = self._limiters.setdefault(address, FixedFromFirst(self._limit()))
        if limiter.wait_s(now_s, 1):
            wait_s = self._dice.uniform(*HANDSHAKE_WAIT_S)
            self._blocked_until_s[address] = now_s + wait_s
            self._limiters[address] = FixedFromFirst(self._limit())
            raise _handshake_limited(wait_s)
        limiter.spend(now_s, 1)

    def _limit(self) -> Limit:
        return Limit(
            kind="fixed_from_first",
            requests=self._settings.handshake_requests,
            window_s=self._settings.handshake_window_s,
        )


def _handshake_limited(wait_s: float) -> ApiError:
    return ApiError("handshake_limited", headers={"Retry-After": str(math.ceil(wait_s))})


class PasskeyDesk:
    """Issues passkey tokens, as the app would, and takes each back once. They are not kept over a restart."""

    def __init__(self, settings: SandboxSettings, token: Callable[[int], bytes]) -> None:
        self._ttl_ms = round(settings.passkey_ttl_s * 1000)
        self._token = token
        self._issued: dict[str, tuple[str, int]] = {}

    def issue(self, call: Call[Nothing]) -> PasskeyGrant:
        """Issue a passkey token, as the app would."""
        self._forget_expired(call.now.server_ms)
        token = self._token(TOKEN_BYTES).hex()
        self._issued[token] = (call.address, call.now.server_ms + self._ttl_ms)
        return PasskeyGrant(passkey_token=token)

    def reset(self) -> None:
        """Forget all that were issued."""
        self._issued.clear()

    def _forget_expired(self, server_ms: int) -> None:
        """Drop unused tokens from the oldest on; all live equally long."""
        while self._issued and next(iter(self._issued.values()))[1] <= server_ms:
            del self._issued[next(iter(self._issued))]

    def redeem(self, token: str | None, address: str, now: Moment) -> bool:
        """Take a token; whether it was this user's, unused and in time."""
        owner, expires_ms = self._issued.pop(token or "", ("", 0))
        return owner == address and now.server_ms < expires_ms
