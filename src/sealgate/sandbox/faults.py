"""Faults on purpose: which one strikes a request. Pure but for the dice; `server` makes them happen."""

from fnmatch import fnmatchcase
from typing import Protocol

from sealgate.sandbox.models.control import Fault, Faults


class Dice(Protocol):
    """Where chance comes from."""

    def random(self) -> float:
        """Give a number from 0 up to, but not, 1."""


class FaultPlan:
    """Draws once per fault that matches, in their order, so that a seed repeats the whole course."""

    def __init__(self, faults: Faults, dice: Dice) -> None:
        self.faults = faults
        self._dice = dice

    def strike(self, method: str, template: str, path: str) -> Fault | None:
        """Give the first fault that matches and happens."""
        for fault in self.faults.faults:
            if _matches(fault.match, method, template, path) and self._dice.random() < fault.probability:
                return fault
        return None


def _matches(pattern: str, method: str, template: str, path: str) -> bool:
    return pattern in {"", f"{method} {template}"} or fnmatchcase(f"{method} {path}", pattern)
