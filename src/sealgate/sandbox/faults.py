"""Faults on purpose: which one strikes a request. Pure but for the dice; `server` makes them happen."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Protocol

from sealgate.sandbox.models.control import Fault, Faults

_ANYTHING = frozenset("*{")  # wildcards, which stand for nothing as well
_PARAMETER = re.compile(r"\{[^/{}]*\}")


class Dice(Protocol):
    """Where chance comes from."""

    def random(self) -> float:
        """Give a number from 0 up to, but not, 1."""


class FaultPlan:
    """Draws once per fault that matches and is not used up, in their order: a seed repeats it all."""

    def __init__(self, faults: Faults, dice: Dice) -> None:
        self.faults = faults
        self._dice = dice
        self._left = [fault.next for fault in faults.faults]  # None: as often as chance has it

    def strike(self, method: str, template: str, path: str) -> Fault | None:
        """Give the first fault that matches and happens."""
        for at, fault in enumerate(self.faults.faults):
            left = self._left[at]
            if left == 0 or not _matches(fault.match, method, template, path):
                continue
            if self._dice.random() < fault.probability:
                self._left[at] = None if left is None else left - 1
                return fault
        return None


def _matches(pattern: str, method: str, template: str, path: str) -> bool:
    is_template = _PARAMETER.sub("{}", pattern) == _PARAMETER.sub("{}", f"{method} {template}")
    return not pattern or is_template or fnmatchcase(f"{method} {path}", pattern)


def fits_any(pattern: str, calls: Iterable[str]) -> bool:
    """Whether a pattern can match a request for one of these calls, each a `METHOD /template`."""
    mine = re.sub(r"\*+", "*", _PARAMETER.sub("{", pattern))
    return not pattern or any(_overlap(mine, _PARAMETER.sub("{", call)) for call in calls)


def _overlap(one: str, other: str) -> bool:
    """Whether some text fits both, where `*` stands for anything, and `{` for anything without a slash."""
    todo, seen = [(0, 0)], set[tuple[int, int]]()
    while todo:
        at = i, j = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        here, there = one[i : i + 1], other[j : j + 1]
        if not here and not there:
            return True
        if here == there:
            todo.append((i + 1, j + 1))
        if _takes(here, there):
            todo.append((i, j + 1))
        if _takes(there, here):
            todo.append((i + 1, j))
        todo += [(i + 1, j)] * (here in _ANYTHING) + [(i, j + 1)] * (there in _ANYTHING)
    return False


def _takes(wildcard: str, letter: str) -> bool:
    return bool(letter) and (wildcard == "*" or (wildcard == "{" and letter != "/"))
