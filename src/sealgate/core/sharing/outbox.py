"""What a member has to tell the lead: collected between two visits to Redis, so that one carries many."""

import math

from sealgate.core.limits.claims import Claim
from sealgate.core.sharing.notes import Note, Over

_LATER_S = 0.01  # what nobody waits for may wait for company


class Outbox:
    """One note in the making. `due_at` is when it should go."""

    def __init__(self) -> None:
        self._note = Note()
        self.due_at = math.inf

    def clear(self) -> None:
        """Drop everything: whoever it was for is gone."""
        self.take()

    def take(self) -> Note:
        """Return what there is to tell, and begin anew."""
        note, self._note, self.due_at = self._note, Note(), math.inf
        return note

    def begin(self, waits: list[Claim], spent: list[tuple[float, float]], now: float) -> None:
        """Introduce oneself to a lead: this is all there is."""
        self._note = Note(is_new=True, waits=waits, spent=spent)
        self.due_at = now

    def waits(self, claim: Claim, now: float) -> None:
        """Tell that a claim stands in line."""
        self._note.waits.append(claim)
        self.due_at = now

    def gone(self, name: str) -> None:
        """Tell that a claim, or a credit, is not wanted any more: others may have its room at once."""
        standing = [claim for claim in self._note.waits if claim.id != name]
        if len(standing) < len(self._note.waits):
            self._note.waits = standing  # the lead has not heard of it
        else:
            self._note.gone.append(name)
            self.due_at = -math.inf

    def sent(self, name: str, now: float) -> None:
        """Tell that it was sent only now."""
        self._note.sent.append((name, now))
        self._later(now)

    def over(self, over: Over, now: float, *, is_urgent: bool) -> None:
        """Tell that it was answered, or is lost."""
        self._note.over.append(over)
        if is_urgent:
            self.due_at = now
        else:
            self._later(now)

    def wants(self, credits_wanted: int, now: float) -> None:
        """Ask for credits."""
        self._note.wants = credits_wanted
        self._later(now)

    def _later(self, now: float) -> None:
        self.due_at = min(self.due_at, now + _LATER_S)
