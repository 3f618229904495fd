"""Halts: which orders are stopped until a person resumes them, by bot, key and exchange.

A halt names some of the three; what it leaves open it means all of. It stops whatever is neither a read nor a
cancel, withdrawals included: after a halt, orders must still be seen and taken back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sealgate.venues.routes import Lane, Permission, Route


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom a command means: None stands for all of them."""

    bot: str | None = None
    key: str | None = None
    exchange: str | None = None

    def covers(self, other: "Scope") -> bool:
        """Whether all that the other one means is meant here too."""
        return (
            self.bot in (None, other.bot)
            and self.key in (None, other.key)
            and self.exchange in (None, other.exchange)
        )

    @property
    def words(self) -> str:
        """Whose orders, for people."""
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
    """Who gave a command, and why: None where the system does not say, "" where the person did not."""

    uid: int | None = None
    pid: int | None = None
    reason: str = ""

    @property
    def who(self) -> str:
        """Name the user and the process, for people."""
        if self.uid is None:
            return "an unknown user"
        return f"user {self.uid}" if self.pid is None else f"user {self.uid}, process {self.pid}"


UNKNOWN = Origin()


@dataclass(frozen=True, slots=True)
class Halt:
    """One halt, since when it stands, in epoch ms by this host's clock, and where it comes from."""

    scope: Scope
    since_ms: int
    origin: Origin = UNKNOWN


class Halts:
    """All halts that stand, by scope. A value: every change returns a new one. False where there are none."""

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
        """Return what stands once the scope is halted from `at_ms` on.

        A halt of the same scope that stands already keeps its time and its origin.
        """
        return self if scope in self.by_scope else Halts(*self, Halt(scope, at_ms, origin))

    def within(self, scope: Scope) -> "Halts":
        """Return those that resuming the scope lifts."""
        return Halts(*(halt for halt in self if scope.covers(halt.scope)))

    def without(self, scope: Scope) -> "Halts":
        """Return what stands once everything within the scope is resumed."""
        return Halts(*(halt for halt in self if not scope.covers(halt.scope)))

    def find(self, bot: str, key: str, exchange: str) -> Halt | None:
        """Return the widest halt that stops a bot with a key at an exchange, the oldest of equal ones."""
        asked = Scope(bot, key, exchange)
        stopping = (halt for halt in self if halt.scope.covers(asked))
        return min(stopping, key=lambda halt: halt.scope.narrowness, default=None)


def is_stoppable(route: Route) -> bool:
    """Whether a halt or a drain stops a route: it is neither a read nor named as a cancel.

    What needs `keys` cancels no order, even by DELETE: that removes keys and accounts. Its reads list them.
    """
    if route.needs is Permission.KEYS:
        return not route.is_read and route.lane is not Lane.READ
    return not route.is_read and not route.is_cancel
