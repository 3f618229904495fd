"""What is wrong with the keys of an account, by the exchange's list and by the configuration.

One row of a table per finding. `fail` is what stops bots now or soon, or lets a thief trade; `warn` is what
to look at. A key that is no longer active and is not configured here harms nobody and is passed over.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sealgate.keys.key_records import DAY_S, KeyState, ListedKey
from sealgate.machine.findings import RENEW, Level, sentence

_OLD_DAYS = 365
_NEW_DAYS = 1  # a key that young may well be unused
_EVERYBODY = frozenset({"0.0.0.0/0", "::/0"})
_TRADE = "trade"
_REPLACE = "Make a new API key, put it into keys.*, run `sealgate reload`, then revoke this one."
NOT_LISTED = "not_listed"
_NOT_LISTED_ADVICE = "Compare keys.*.api_key with the exchange's list; the session must belong to the "
"key's user."


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key of the configuration. `may` is what the bots that have it may do: "read", "trade"."""

    alias: str
    api_key: str
    may: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """One thing that is wrong, and what to do about it."""

    kind: str
    level: Level
    api_key: str
    words: str
    advice: str


@dataclass(frozen=True, slots=True)
class _Case:
    key: ListedKey
    own: OwnKey | None
    now: float

    @property
    def state(self) -> KeyState:
        return self.key.record.state(self.now)

    @property
    def is_over(self) -> bool:
        return self.state in (KeyState.ENDED, KeyState.INACTIVE)

    @property
    def days_left(self) -> float:
        return self.key.record.days_left(self.now)

    @property
    def days_old(self) -> float:
        """0 if the list does not say."""
        return 0.0 if self.key.created_at is None else (self.now - self.key.created_at) / DAY_S

    @property
    def may_trade(self) -> bool:
        return _TRADE in self.key.permissions

    @property
    def is_open(self) -> bool:
        whitelist = {*self.key.ip_whitelist}
        return not whitelist or not _EVERYBODY.isdisjoint(whitelist)

    @property
    def bots_may(self) -> frozenset[str]:
        return self.own.may if self.own else frozenset()


def cannot_trade(permissions: Sequence[str], may: frozenset[str]) -> bool:
    """Return whether bots may trade with a key that may not. A list without permissions does not tell."""
    return bool(permissions) and _TRADE in may and _TRADE not in permissions


class Check(NamedTuple):
    """A finding: when it holds, how bad it is, what is wrong, what to do about it."""

    when: Callable[[_Case], object]
    is_grave: Callable[[_Case], object]
    words: Callable[[_Case], str]
    advice: str


def _never(_: _Case) -> bool:
    return False


# fmt: off
CHECKS: dict[str, Check] = {
    "expired": Check(
        lambda c: c.own and c.state is KeyState.ENDED, lambda c: c.own,
        lambda c: f"expired {-c.days_left:.0f} days ago", sentence(RENEW)),
    "revoked": Check(
        lambda c: c.own and c.state is KeyState.INACTIVE, lambda c: c.own,
        lambda _: "is not active: it was revoked",
        "Make a new API key: a revoked one never becomes valid again."),
    "expires_soon": Check(
        lambda c: c.state is KeyState.ENDS_SOON, lambda c: c.own,
        lambda c: f"expires in {c.days_left:.1f} days", _REPLACE),
    "no_whitelist": Check(
        lambda c: c.is_open and not c.is_over, lambda c: c.may_trade,
        lambda c: "has no whitelist: anybody who steals its secret can "
        f"{'trade' if c.may_trade else 'read'} from anywhere",
        "Whitelist the public IP address of the machine that uses it."),
    "too_wide": Check(
        lambda c: c.own and c.may_trade and _TRADE not in c.bots_may and not c.is_over, _never,
        lambda _: "has trade permission, but no bot here may trade with it",
        "Remove the permission at the exchange, or let a bot trade (bots.*.may)."),
    "too_narrow": Check(
        lambda c: cannot_trade(c.key.permissions, c.bots_may) and not c.is_over, _never,
        lambda _: "has no trade permission, but bots.*.may allows trading: the exchange will refuse orders",
        "Give it the permission at the exchange, or remove `trade` from bots.*.may."),
    "never_used": Check(
        lambda c: c.key.last_used_at is None and c.days_old > _NEW_DAYS and not c.is_over, _never,
        lambda c: f"was never used in {c.days_old:.0f} days",
        "Revoke it, unless you keep it in reserve."),
    "old": Check(
        lambda c: c.days_old > _OLD_DAYS and not c.is_over, _never,
        lambda c: f"is {c.days_old:.0f} days old", _REPLACE),
    "not_here": Check(
        lambda c: not c.own and not c.is_over, _never,
        lambda _: "is not in this configuration", "Revoke it, unless you know who uses it."),
}
# fmt: on


def audit(listed: Iterable[ListedKey], own: Sequence[OwnKey], now: float) -> list[KeyFinding]:
    """Return what is wrong, the worst first. `now` is epoch seconds."""
    by_id = {key.api_key: key for key in own}
    keys = {key.api_key: key for key in listed}
    findings = [
        KeyFinding(NOT_LISTED, Level.FAIL, key.api_key, "is not in the exchange's list", _NOT_LISTED_ADVICE)
        for key in own
        if key.api_key not in keys
    ]
    for key in keys.values():
        case = _Case(key, by_id.get(key.api_key), now)
        for kind, check in CHECKS.items():
            if check.when(case):
                level = Level.FAIL if check.is_grave(case) else Level.WARN
                findings.append(KeyFinding(kind, level, key.api_key, check.words(case), check.advice))
    return sorted(findings, key=lambda finding: finding.level is not Level.FAIL)
