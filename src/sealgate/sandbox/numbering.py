"""Numbers that are never given twice: the database reserves whole ranges, memory hands them out."""

from sealgate.sandbox.store import Store

AT_ONCE = 10_000


class Numbering:
    """Gives numbers from 1 on. What is left of a range when the process ends is never given."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._left = iter(range(0))

    def next_id(self) -> int:
        """Give the next number."""
        number = next(self._left, None)
        if number is None:
            first = self._store.reserve(self._name, AT_ONCE)
            self._left = iter(range(first + 1, first + AT_ONCE))
            return first
        return number
