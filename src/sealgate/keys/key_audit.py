"""What is wrong with the keys of an account, by the exchange's list and by the configuration.

One row of a table per finding. `fail` is what stops bots now or soon, or lets a thief trade; `warn` is what
to look at. A key that is no longer active and is not configured here harms nobody and is passed over.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sealgate.keys.key_records import DAY_S, KeyState, ListedKey
from sealgate.machine.findings import RENEW, Level, sentence

_OLD_DAYS = 365
_NEW_DAYS = 1  # a key that young may well be unused
_EVERYBODY = frozenset({"0.0.0.0/0", "::/0"})
_TRADE = "trade"
_REPLACE = "Make a new key in the app, put it into keys.*, run `sealgate reload`, then revoke this one."
NOT_LISTED = "not_listed"
_NOT_LISTED_ADVICE = "Compare keys.*.api_key with the app; the session must be of the user whose key it is."


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
    def days_left(self) -> float:
        return self.key.record.days_left(self.now)

    @property
    def days_old(self) -> float:
        """0 where the list does not say."""
        return 0.0 if self.key.created_at is None else (self.now - self.key.created_at) / DAY_S

    @property
    def has_ended(self) -> bool:
        return self.state in (KeyState.ENDED, KeyState.INACTIVE)

    @property
    def may_trade(self) -> bool:
        return _TRADE in self.key.permissions


@dataclass(frozen=True, slots=True)
class _Check:
    """`words` returns what is wrong, "" where nothing is."""

    words: Callable[[_Case], str]
    level: Callable[[_Case], Level]
    advice: str


def _by_owner(case: _Case) -> Level:
    return Level.FAIL if case.own else Level.WARN


def _by_permission(case: _Case) -> Level:
    return Level.FAIL if case.may_trade else Level.WARN


def _warn(_: _Case) -> Level:
    return Level.WARN


def _expired(case: _Case) -> str:
    is_mine = case.own and case.state is KeyState.ENDED
    return f"expired {-case.days_left:.0f} days ago" if is_mine else ""


def _revoked(case: _Case) -> str:
    return "is not active: it was revoked" if case.own and case.state is KeyState.INACTIVE else ""


def _ends_soon(case: _Case) -> str:
    return f"expires in {case.days_left:.1f} days" if case.state is KeyState.ENDS_SOON else ""


def _unrestricted(case: _Case) -> str:
    if case.has_ended or not (_EVERYBODY & {*case.key.ip_whitelist} or not case.key.ip_whitelist):
        return ""
    what = "trade" if case.may_trade else "read"
    return f"has no whitelist: whoever steals its secret can {what} from anywhere"


def _wide(case: _Case) -> str:
    is_wide = case.own and case.may_trade and _TRADE not in case.own.may and not case.has_ended
    return "may trade, though no bot here may trade with it" if is_wide else ""


def cannot_trade(permissions: Sequence[str], may: frozenset[str]) -> bool:
    """Ask whether bots may trade with a key that may not. A list without permissions does not tell."""
    return bool(permissions) and _TRADE in may and _TRADE not in permissions


def _narrow(case: _Case) -> str:
    is_narrow = case.own and cannot_trade(case.key.permissions, case.own.may) and not case.has_ended
    return "may not trade, though bots here may: their orders are refused" if is_narrow else ""


def _unused(case: _Case) -> str:
    is_unused = case.key.last_used_at is None and case.days_old > _NEW_DAYS and not case.has_ended
    return f"was never used in {case.days_old:.0f} days" if is_unused else ""


def _old(case: _Case) -> str:
    return f"is {case.days_old:.0f} days old" if case.days_old > _OLD_DAYS and not case.has_ended else ""


def _foreign(case: _Case) -> str:
    return "" if case.own or case.has_ended else "is not in this configuration"


CHECKS: dict[str, _Check] = {
    "expired": _Check(_expired, _by_owner, sentence(RENEW)),
    "revoked": _Check(_revoked, _by_owner, "Make a new key in the app: a revoked one never comes back."),
    "expires_soon": _Check(_ends_soon, _by_owner, _REPLACE),
    "no_whitelist": _Check(
        _unrestricted, _by_permission, "Whitelist the public address of the machine that uses it, in the app."
    ),
    "too_wide": _Check(_wide, _warn, "Take the permission away in the app, or let a bot trade (bots.*.may)."),
    "too_narrow": _Check(
        _narrow, _warn, "Give it the permission in the app, or take `trade` away here (bots.*.may)."
    ),
    "never_used": _Check(_unused, _warn, "Revoke it in the app, unless you keep it in reserve."),
    "old": _Check(_old, _warn, _REPLACE),
    "not_here": _Check(_foreign, _warn, "Revoke it in the app, unless you know who uses it."),
}


def audit(listed: Iterable[ListedKey], own: Sequence[OwnKey], now: float) -> list[KeyFinding]:
    """Return what is wrong, the worst first. `now` is epoch seconds."""
    by_id = {key.api_key: key for key in own}
    keys = {key.api_key: key for key in listed}
    findings = [
        finding for key in keys.values() for finding in _findings(_Case(key, by_id.get(key.api_key), now))
    ]
    missing = [
        KeyFinding(NOT_LISTED, Level.FAIL, key.api_key, "is not in the exchange's list", _NOT_LISTED_ADVICE)
        for key in own
        if key.api_key not in keys
    ]
    return sorted([*missing, *findings], key=lambda finding: finding.level is not Level.FAIL)


def _findings(case: _Case) -> Iterator[KeyFinding]:
    for kind, check in CHECKS.items():
        words = check.words(case)
        if words:
            yield KeyFinding(kind, check.level(case), case.key.api_key, words, check.advice)
