"""What a venue's reply means: its rules make one verdict of the status and of one value of a short body."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from sealgate.core.json_pointer import pick
from sealgate.core.venues.document import Table

# Bytes: what an error may take. A reply that says "done" by its status is looked into only where it is as
# short as errors are, since what is longer is data.
LONGEST_ERROR, LONGEST_DONE = 65_536, 4_096

_SLUG = re.compile(r"[a-z][a-z0-9_]{0,47}")
_POINTER = re.compile(r"(/[^/]*)+")


class Means(StrEnum):
    """What the gateway may conclude of a reply."""

    DONE = "done"
    REFUSED = "refused"
    LIMITED = "limited"
    BANNED = "banned"
    TIMESTAMP = "timestamp"
    NONCE = "nonce"
    SIGNATURE = "signature"
    KEY = "key"
    ADDRESS = "address"
    PERMISSION = "permission"
    UNKNOWN = "unknown"


class Whose(StrEnum):
    """Where to look first."""

    BOT = "bot"  # what it asked for
    SETUP = "setup"  # key, secret, clock, signing settings
    UPSTREAM = "upstream"  # the exchange, and the way to it


_WHOSE = {
    Means.DONE: Whose.UPSTREAM,
    Means.REFUSED: Whose.BOT,
    Means.LIMITED: Whose.UPSTREAM,
    Means.BANNED: Whose.UPSTREAM,
    Means.UNKNOWN: Whose.UPSTREAM,
}
_ADVICE = {
    Means.DONE: "",
    Means.REFUSED: "Read the reply: the exchange says what it refuses.",
    Means.LIMITED: "Nothing to do: requests pause, then go on below the learned limit.",
    Means.BANNED: "The exchange shut this address or key out for a while: the gateway waits.",
    Means.TIMESTAMP: "The gateway syncs and sends once more. If it stays, look at `recv_window_ms`.",
    Means.NONCE: "Another program uses this key: give each its own.",
    Means.SIGNATURE: "Check that secret and passphrase are this key's.",
    Means.KEY: "Compare `api_key` with the exchange's list: it may be mistyped, revoked or expired.",
    Means.ADDRESS: "Add this machine's public address to the key's list at the exchange.",
    Means.PERMISSION: "Give the key this permission at the exchange, or use another key.",
    Means.UNKNOWN: "Look an order up before you send it again: it may have been executed.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reply means, for all who ask. `kind` is "" where nothing is wrong; `found`: see `finds`."""

    means: Means
    kind: str
    whose: Whose
    advice: str
    found: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: statuses (none: any), the field that it looks at ("": none), and what that must be."""

    statuses: tuple[int, ...]
    at: str
    exact: frozenset[str]
    begins: tuple[str, ...]
    contains: tuple[str, ...]
    others: frozenset[str]  # anything but these
    finds: tuple[tuple[str, "re.Pattern[str]"], ...]
    means: Means
    verdict: Verdict

    def matches(self, text: str | None) -> bool:
        """Ask whether the field's text is what the rule wants; None: there is no such field."""
        if not self.at:
            return True
        if text is None:
            return False
        if self.others:
            return text not in self.others
        low = text.lower()
        return text in self.exact or low.startswith(self.begins) or any(word in low for word in self.contains)


REPLY_KEYS = ("status", "at", "is", "not", "begins", "contains", "finds", "means", "kind", "whose", "advice")
_FINDABLE = ("server_time", "recv_window", "address", "permission", "until")


def read_rules(tables: Iterable[Table]) -> tuple[Rule, ...]:
    """Read `[[replies]]`. Raises VenueError."""
    return tuple(_rule(table) for table in tables)


def _rule(table: Table) -> Rule:
    at = table.checked("at", _POINTER, "JSON pointer: it is such as /code", "")
    exact, others = table.texts("is"), table.texts("not")
    begins, contains = table.texts("begins"), table.texts("contains")
    tests = [key for key in ("is", "not", "begins", "contains") if table.data.get(key)]
    if bool(at) != bool(tests):
        raise table.error(tests[0] if tests else "at", "at goes with is, not, begins or contains")
    if others and len(tests) > 1:
        raise table.error("not", "not stands alone: what it leaves out is refused by rules before it")
    means = Means(table.text("means", Means.REFUSED, list(Means)))
    finds = table.table("finds", _FINDABLE)
    statuses = table.integers("status")
    if not statuses and not at:
        raise table.error(None, "a rule needs status, or at")
    kind = table.checked("kind", _SLUG, "slug such as rate_limited", "" if means is Means.DONE else None)
    whose = Whose(table.text("whose", _WHOSE.get(means, Whose.SETUP), list(Whose)))
    advice = table.text("advice", _ADVICE[means])
    return Rule(
        statuses,
        at,
        frozenset(exact),
        tuple(word.lower() for word in begins),
        tuple(word.lower() for word in contains),
        frozenset(others),
        tuple((name, finds.pattern(name)) for name in finds.data),
        means,
        Verdict(means, kind, whose, advice),
    )


class Judge:
    """Classifies replies by rules; the first that matches decides, and where none does the status alone."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self._any = tuple(rule for rule in rules if not rule.statuses)
        self._by_status = {
            status: tuple(rule for rule in rules if not rule.statuses or status in rule.statuses)
            for rule in rules
            for status in rule.statuses
        }
        self.looks_into_done = any(
            rule.at and (not rule.statuses or min(rule.statuses) < HTTPStatus.BAD_REQUEST) for rule in rules
        )

    def judge(self, status: int, body: bytes) -> Verdict:
        """Classify a whole reply."""
        texts: dict[str, str | None] = {}
        document: Any = None
        for rule in self._by_status.get(status, self._any):
            if rule.at and not texts:
                document = _document(status, body)
            if rule.at not in texts:
                texts[rule.at] = _text(pick(document, rule.at)) if rule.at else ""
            text = texts[rule.at]
            if rule.matches(text):
                return _with_found(rule, text or "")
        return by_status(status)


def _with_found(rule: Rule, text: str) -> Verdict:
    if not rule.finds:
        return rule.verdict
    matches = ((name, pattern.search(text)) for name, pattern in rule.finds)
    found = {name: match[1] for name, match in matches if match}
    verdict = rule.verdict
    return Verdict(verdict.means, verdict.kind, verdict.whose, verdict.advice, MappingProxyType(found))


def _document(status: int, body: bytes) -> object:
    """Return a short body's JSON, None where it is long or no JSON."""
    if len(body) > (LONGEST_DONE if status < HTTPStatus.BAD_REQUEST else LONGEST_ERROR):
        return None
    try:
        return json.loads(body.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _text(value: object) -> str | None:
    """Return a field's text; a list is that of its messages, as field-level errors come."""
    if isinstance(value, list):
        parts = [_text(one.get("msg") if isinstance(one, dict) else one) for one in value]
        return "; ".join(part for part in parts if part) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


_DONE = Verdict(Means.DONE, "", Whose.UPSTREAM, "")
_LIMITED = Verdict(Means.LIMITED, "rate_limited", Whose.UPSTREAM, _ADVICE[Means.LIMITED])
_REFUSED = Verdict(
    Means.REFUSED, "other_4xx", Whose.BOT, "Read the reply: the exchange's documents do not list it."
)
_UNKNOWN = Verdict(Means.UNKNOWN, "other_5xx", Whose.UPSTREAM, _ADVICE[Means.UNKNOWN])


def by_status(status: int) -> Verdict:
    """Return what a status alone says."""
    if status < HTTPStatus.BAD_REQUEST:
        return _DONE
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return _LIMITED
    return _REFUSED if status < HTTPStatus.INTERNAL_SERVER_ERROR else _UNKNOWN
