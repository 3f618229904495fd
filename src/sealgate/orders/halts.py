"""Halts: orders stopped, by bot, key and exchange, until a person lifts the halt.

A halt names some of the three; it applies to all values of the others. It stops every request that is neither
a read nor a cancel, including withdrawals: during a halt, bots must still be able to see and cancel orders.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sealgate.venues.routes import Lane, Permission, Route


@dataclass(frozen=True, slots=True)
class Scope:
    """The orders that a command applies to; None means all."""

    bot: str | None = None
    key: str | None = None
    exchange: str | None = None

    def covers(self, other: "Scope") -> bool:
        """Whether this scope includes the other one."""
        return (
            self.bot in (None, other.bot)
            and self.key in (None, other.key)
            and self.exchange in (None, other.exchange)
        )

    @property
    def words(self) -> str:
        """The scope in words."""
        whose = [
            f"{kind} {name}" for kind, name in (("bot", self.bot), ("key", self.key)) if name is not None
        ]
        where = "" if self.exchange is None else f" at {self.exchange}"
        return (" with ".join(whose) or "all bots") + where

    @property
    def resume(self) -> str:
        """The command that lifts its halt."""
        named = (("bot", self.bot), ("key", self.key), ("exchange", self.exchange))
        options = (f"--{kind} {name}" for kind, name in named if name is not None)
        return " ".join(("sealgate resume", *options))

    @property
    def narrowness(self) -> int:
        """How many names it has."""
        return sum(name is not None for name in (self.bot, self.key, self.exchange))


@dataclass(frozen=True, slots=True)
class Origin:
    """The user and process that gave a command, and the reason: None if unknown, "" if none was given."""

    uid: int | None = None
    pid: int | None = None
    reason: str = ""

    @property
    def who(self) -> str:
        """The user and the process in words."""
        if self.uid is None:
            return "an unknown user"
        return f"user {self.uid}" if self.pid is None else f"user {self.uid}, process {self.pid}"


UNKNOWN = Origin()


@dataclass(frozen=True, slots=True)
class Halt:
    """One halt: its scope, its start (epoch ms on this machine's clock), and its origin."""

    scope: Scope
    since_ms: int
    origin: Origin = UNKNOWN


class Halts:
    """All halts in force, by scope. Immutable: every change returns a new value. False if there are none."""

    def __init__(self, *halts: Halt) -> None:
        self.by_scope = {halt.scope: halt for halt in halts}

    def __bool__(self) -> bool:
        return bool(self.by_scope)

    def __iter__(self) -> Iterator[Halt]:
        return iter(self.by_scope.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Halts) and self.by_scope == other.by_scope

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def extended(self, scope: Scope, at_ms: int, origin: Origin = UNKNOWN) -> "Halts":
        """Return the halts in force once the scope is halted from `at_ms` on.

        An existing halt of the same scope keeps its time and its origin.
        """
        return self if scope in self.by_scope else Halts(*self, Halt(scope, at_ms, origin))

    def within(self, scope: Scope) -> "Halts":
        """Return the halts that a resume of the scope lifts."""
        return Halts(*(halt for halt in self if scope.covers(halt.scope)))

    def without(self, scope: Scope) -> "Halts":
        """Return the halts left once all halts within the scope are lifted."""
        return Halts(*(halt for halt in self if not scope.covers(halt.scope)))

    def find(self, bot: str, key: str, exchange: str) -> Halt | None:
        """Return the widest halt that stops a bot with a key at an exchange, or the oldest of these."""
        asked = Scope(bot, key, exchange)
        stopping = (halt for halt in self if halt.scope.covers(asked))
        return min(stopping, key=lambda halt: halt.scope.narrowness, default=None)


def is_stoppable(route: Route) -> bool:
    """Whether a halt or a drain stops a route, which is neither a read nor a known cancel.

    A call that needs `keys` never cancels an order, even with DELETE: that removes keys and accounts. Its
    reads list them.
    """
    if route.needs is Permission.KEYS:
        return not route.is_read and route.lane is not Lane.READ
    return not route.is_read and not route.is_cancel
