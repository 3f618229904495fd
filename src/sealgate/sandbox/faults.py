"""Faults on purpose: which one strikes a request. Pure but for the dice; `server` makes them happen."""

from fnmatch import fnmatchcase
from typing import Protocol

from sealgate.sandbox.models.control import Fault, Faults


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
    return pattern in {"", f"{method} {template}"} or fnmatchcase(f"{method} {path}", pattern)
