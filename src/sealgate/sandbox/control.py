"""The control calls under /_sandbox, and the state that they switch: limit, clock, faults."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from sealgate.sandbox.account import Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment, ServerClock
from sealgate.sandbox.faults import FaultPlan, fits_any
from sealgate.sandbox.gate import Gate
from sealgate.sandbox.keys import KeyDesk
from sealgate.sandbox.market import plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.control import (
    ChangeKey,
    ChangeUser,
    Clock,
    Faults,
    KeyState,
    KeySystem,
    Limit,
    NewUser,
    UserGrant,
    UserState,
)
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.records import User
from sealgate.sandbox.registry import Registry
from sealgate.sandbox.sessions import SessionDesk
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.system import System
from sealgate.sandbox.validation import invalid_field

ADDRESS_BYTES = 20
_NO_CALL = "fits no call of the exchange; write 'METHOD /path', such as 'POST /v1/trade/order'"


class CostError(ValueError):
    """A cost is given for no call of the exchange. `str()` has cause and fix."""


class Conditions:
    """Limit, clock and faults as they are now; each is replaced whole, never changed in place."""

    def __init__(self, settings: SandboxSettings, system: System) -> None:
        self._system = system
        self._first_limit = Limit(
            kind=settings.limit_kind,
            requests=settings.limit_requests,
            window_s=settings.limit_window_s,
            burst=settings.limit_burst,
            rejects_count=settings.limit_rejects_count,
            retry_after=settings.retry_after,
            costs=dict(settings.limit_costs),
            ban_after=settings.ban_after,
            ban_s=settings.ban_s,
        )
        self._first_clock = Clock(skew_ms=settings.skew_ms, drift_ppm=settings.drift_ppm)
        self.gate = Gate(self._first_limit)
        self.plan = FaultPlan(Faults(), system.dice())
        self.clock = self._clock(self._first_clock)
        self._calls: frozenset[str] = frozenset()

    def serve(self, calls: frozenset[str]) -> None:
        """Take the exchange's calls, each a `METHOD /template`: a fault or cost that fits none is refused.

        Raises CostError where that is a cost of the start.
        """
        self._calls = calls
        for name in self._unknown_costs(self._first_limit):
            raise CostError(f"{name!r} {_NO_CALL}")

    def _unknown_costs(self, limit: Limit) -> Iterator[str]:
        for name in limit.costs:
            is_path = "*" not in name and "{" not in name
            if name not in self._calls and not (is_path and fits_any(name, self._calls)):
                yield name

    def now(self) -> Moment:
        """Read all clocks at once."""
        return self.clock.moment(self._system.wall_ms(), self._system.steady_s())

    def _clock(self, clock: Clock) -> ServerClock:
        return ServerClock(clock.skew_ms, clock.drift_ppm, self._system.steady_s())

    def reset(self) -> None:
        """Put all of them back to what they were at the start."""
        self.gate = Gate(self._first_limit)
        self.clock = self._clock(self._first_clock)
        self.plan = FaultPlan(Faults(), self._system.dice())

    def set_limit(self, call: Call[Limit]) -> Limit:
        """Set the rate limit; counting starts anew."""
        for name in self._unknown_costs(call.input):
            raise invalid_field("body", "costs", name, message=_NO_CALL)
        self.gate = Gate(call.input)
        return call.input

    def reset_limit(self, _: Call[Nothing]) -> Limit:
        """Put the rate limit back to what it was at the start."""
        self.gate = Gate(self._first_limit)
        return self._first_limit

    def set_clock(self, call: Call[Clock]) -> Clock:
        """Set the clock: the skew steps at once, the drift starts from it."""
        self.clock = self._clock(call.input)
        return call.input

    def reset_clock(self, _: Call[Nothing]) -> Clock:
        """Put the clock back to what it was at the start."""
        self.clock = self._clock(self._first_clock)
        return self._first_clock

    def set_faults(self, call: Call[Faults]) -> Faults:
        """Make faults happen."""
        for number, fault in enumerate(call.input.faults):
            if not fits_any(fault.match, self._calls):
                message = f"{_NO_CALL} or 'POST *'"
                raise invalid_field("body", "faults", number, "match", message=message)
        self.plan = FaultPlan(call.input, self._system.dice(call.input.seed))
        return call.input

    def reset_faults(self, _: Call[Nothing]) -> Faults:
        """Make no more faults happen."""
        self.plan = FaultPlan(Faults(), self._system.dice())
        return self.plan.faults


class UserDesk:
    """Makes users and switches what they have done in the app."""

    def __init__(self, registry: Registry, sessions: SessionDesk, accounts: Accounts, system: System) -> None:
        self._registry = registry
        self._sessions = sessions
        self._accounts = accounts
        self._system = system

    def create(self, call: Call[NewUser]) -> UserGrant:
        """Make a user with a session."""
        grant = self._sessions.grant(self.add(call.input), call.now)
        return UserGrant(user_address=grant.user_address, session_token=grant.session_token)

    def add(self, new: NewUser) -> str:
        """Make a user; give the address."""
        user = User("0x" + self._system.token(ADDRESS_BYTES).hex(), new.onboarded, new.traded)
        self._registry.save_user(user)
        return user.address

    def change(self, call: Call[ChangeUser]) -> UserState:
        """Switch what a user has done in the app."""
        user = self._registry.users.get(call.params["address"].lower())
        if user is None:
            raise ApiError("user_unknown")
        body, given = call.input, call.input.model_fields_set
        user = replace(
            user,
            onboarded=body.onboarded if "onboarded" in given else user.onboarded,
            traded=body.traded if "traded" in given else user.traded,
        )
        self._registry.save_user(user)
        account = self._accounts.of(user.address)
        if "transferred" in given:
            account.has_transferred = body.transferred
        if "usdc" in given:
            account.usdc = Decimal(body.usdc)
        return UserState(
            user_address=user.address,
            onboarded=user.onboarded,
            traded=user.traded,
            transferred=account.has_transferred,
            usdc=plain(account.usdc),
        )


class KeyControl:
    """What no documented call sets: a key's recv_window, and whether key management works at all."""

    def __init__(self, registry: Registry, keys: KeyDesk) -> None:
        self._registry = registry
        self._keys = keys

    def change(self, call: Call[ChangeKey]) -> KeyState:
        """Set the recv_window of a key."""
        live = self._registry.keys.get(call.params["api_key"])
        if live is None:
            raise ApiError("key_unknown")
        key = replace(live.current(), recv_window_ms=call.input.recv_window_ms)
        self._registry.save_keys([key], [])
        return KeyState(api_key=key.api_key, recv_window_ms=key.recv_window_ms)

    def switch(self, call: Call[KeySystem]) -> KeySystem:
        """Switch key management off or on."""
        self._keys.is_available = call.input.available
        return call.input
