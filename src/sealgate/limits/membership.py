"""Which pools a request passes, by the rules of a venue's file."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from sealgate.limits.pool import PART, of_in
from sealgate.venues.limit_rules import ALL, PoolRule
from sealgate.venues.order_terms import read_parameter
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Auth, Route

_WIDTHS = {Scope.KEY: 0, Scope.ACCOUNT: 1, Scope.ADDRESS: 2}
_MOST_LETTERS = 64  # of a parameter's value: a longer one is none that an exchange counts by
_MOST_PLACES = 1000  # that are shown: with one for each value of a parameter, bots choose how many there are


class Subjects(NamedTuple):
    """Whom an exchange may count together, or shut out: a key, its account, the address that it sees.

    Of what needs no key all three are the address.
    """

    key: str
    account: str
    address: str

    def of(self, scope: Scope) -> str:
        """Return the one of a scope."""
        return self[_WIDTHS[scope]]


class Membership:
    """The pools of one key's requests, or of all that need no key.

    `always` are the places of the pools that all of them pass, `places` those of all pools that are known by
    now: one for each route or parameter is there once it was met.
    """

    def __init__(self, rules: Iterable[PoolRule], subjects: Subjects, *, is_open: bool) -> None:
        self.subjects = tuple(dict.fromkeys(subjects))
        self.address = subjects.address
        self.places: dict[str, PoolRule] = {}
        self._of = subjects
        self._is_open = is_open
        # From the narrowest: whom it counts together, then how many requests of theirs.
        self._rules = sorted(rules, key=_width)
        # By method, template and lane: the places, unless a parameter decides, and the rules.
        self._found: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._rules_of: dict[tuple[str, str, str], list[PoolRule]] = {}
        for rule in self._rules:
            if not (rule.per or rule.per_parameter or (rule.is_signed if is_open else rule.is_open)):
                self._place(rule, "")
        self.always = tuple(place for place, rule in self.places.items() if _is_always(rule))
        self._only = self._rules[0] if len(self._rules) == 1 and self._rules[0].has_all else None

    def pools_of(
        self, method: str, route: Route, query: str | None = None, body: bytes = b""
    ) -> tuple[str, ...]:
        """Return the places of the pools that a request passes."""
        asked = method, route.template, route.lane.value
        if (found := self._found.get(asked)) is not None:
            return found
        rules = self._rules_of.get(asked)
        if rules is None:
            rules = [rule for rule in self._rules if self._passes(rule, method, route)]
            self._rules_of[asked] = rules
        places = []
        for rule in rules:
            # RFC 9110 section 9.3.2: HEAD is GET without the content.
            part = (
                route.per or f"{'GET' if method == 'HEAD' else method} {route.template}" if rule.per else ""
            )
            if rule.per_parameter:
                part = read_parameter(route.per or rule.per_parameter, query, body)
                part = part if part.isprintable() and len(part) <= _MOST_LETTERS else ""
            places.append(self._place(rule, part))
        if not places:  # no rule is about it: then nothing more is known of its limit
            places.append(self._place(PoolRule(ALL, Scope.KEY), ""))
        found = tuple(places)
        if not any(rule.per_parameter for rule in rules):
            self._found[asked] = found
        return found

    def shut_out_by(self, scope: Scope) -> str:
        """Return the subject of a ban, "" where one pool that all of its requests pass says the same."""
        is_said = self._only is not None and self._only.scope is scope
        return "" if is_said else self._of.of(scope)

    def _passes(self, rule: PoolRule, method: str, route: Route) -> bool:
        is_open = self._is_open or route.auth is Auth.OPEN
        if route.pools:  # a message of a stream says it by itself
            return rule.name in route.pools and not rule.is_open
        return (
            (not rule.lanes or route.lane in rule.lanes)
            and rule.takes(method, route.template)
            and (is_open or not rule.is_open)
            and not (is_open and rule.is_signed)
        )

    def _place(self, rule: PoolRule, part: str) -> str:
        place = PART.join(
            [self._of.of(rule.scope), rule.name, part] if part else [self._of.of(rule.scope), rule.name]
        )
        if place not in self.places:
            if len(self.places) >= _MOST_PLACES:
                values = (one for one, its in self.places.items() if its.per_parameter and of_in(one))
                self.places.pop(next(values, ""), None)
            self.places[place] = rule
        return place


def _is_always(rule: PoolRule) -> bool:
    """Ask whether all of a key's signed requests pass a pool together."""
    return replace(rule, is_signed=False).has_all


def _width(rule: PoolRule) -> tuple[int, int]:
    members = (rule.lanes, rule.routes, rule.outside, rule.is_open, rule.is_signed)
    return _WIDTHS[rule.scope], -sum(map(bool, (*members, rule.per, rule.per_parameter)))
