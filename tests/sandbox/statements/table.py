"""The numbered statements of spec.md: each is a sentence and the case that holds the sandbox to it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from sandbox.client import Bot

Case = Callable[[Bot], Awaitable[None]]


@dataclass(frozen=True)
class Statement:
    """A sentence of spec.md, where it stands, its case, and the options that the case starts with.

    A repetition says what another statement says; its case is that one's.
    """

    part: str
    text: str
    case: Case
    settings: dict[str, Any] = field(default_factory=dict)
    is_repetition: bool = False

    @property
    def name(self) -> str:
        return self.case.__name__


class Part:
    """Collects the statements of one part of spec.md, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.statements: list[Statement] = []

    def states(self, text: str, **settings: Any) -> Callable[[Case], Case]:
        """Decorate the case of a statement."""

        def add(case: Case) -> Case:
            self.statements.append(Statement(self.name, text, case, settings))
            return case

        return add

    def repeats(self, text: str, case: Case) -> None:
        """Add a statement that repeats another one, whose case this is."""
        self.statements.append(Statement(self.name, text, case, is_repetition=True))
