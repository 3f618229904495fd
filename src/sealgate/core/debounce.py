"""When a change that is seen by looking again and again is over.

A secret may be written in several steps (truncated, filled, renamed, its link swapped), and nobody says which
was the last. So a change counts once two looks in a row saw the same.
"""


class Debounce:
    """Tells each change once. `baseline` is what was there at the start; states are compared by equality."""

    def __init__(self, baseline: object) -> None:
        self._known = self._last = baseline

    def look(self, seen: object) -> bool:
        """Take in what is seen now; say whether it is new and has come to rest."""
        is_new = seen != self._known and seen == self._last
        self._last = seen
        if is_new:
            self._known = seen
        return is_new

    def accept(self, seen: object) -> None:
        """Take what is seen now for known: somebody has just acted on it."""
        self._known = self._last = seen
