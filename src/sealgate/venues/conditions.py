"""Conditions on a JSON document: what must stand at which pointers. Tables of a venue's file, read once."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sealgate.venues.document import POINTER, Table, pick_all

ANYTHING = "*"
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Expected:
    """What may stand at one pointer: one of the values. In a text, * stands for any letters.

    In the pointer it is each value of a list: what is expected of one is expected of all of them.
    """

    pointer: str
    values: tuple[Value, ...]
    patterns: tuple[re.Pattern[str] | None, ...]

    def fits(self, document: object) -> int | None:
        """Return the place, among the values, of what stands there; None if it is another, or nothing."""
        places = self.places(document)
        return None if not places or None in places else places[0]

    def fits_one(self, document: object) -> bool:
        """Ask whether one of several that stand there is expected."""
        return any(place is not None for place in self.places(document))

    def places(self, document: object) -> list[int | None]:
        """Return, of all that stands there, the place among the values."""
        return [self._place(found) for found in pick_all(document, self.pointer)]

    def _place(self, found: object) -> int | None:
        if found is None:
            return None
        for place, (value, pattern) in enumerate(zip(self.values, self.patterns, strict=True)):
            if value == ANYTHING or _is_one(found, value, pattern):
                return place
        return None


Condition = tuple[Expected, ...]  # all of them


def _is_one(found: object, value: object, pattern: "re.Pattern[str] | None") -> bool:
    if pattern is not None:
        return isinstance(found, str) and pattern.fullmatch(found) is not None
    return isinstance(value, bool) == isinstance(found, bool) and value == found  # in JSON true is not 1


def holds(condition: Condition, document: object) -> bool:
    """Ask whether all that a condition expects is there."""
    return all(expected.fits(document) is not None for expected in condition)


def any_holds(conditions: Iterable[Condition], document: object) -> bool:
    """Ask whether one of several conditions holds."""
    return any(holds(condition, document) for condition in conditions)


def any_holds_of_one(conditions: Iterable[Condition], document: object) -> bool:
    """Ask the same, where of several values in a list one is enough."""
    return any(all(expected.fits_one(document) for expected in condition) for condition in conditions)


def read_condition(table: Table) -> Condition:
    """Read a table of pointers and values. Raises VenueError."""
    found = []
    for pointer in table.data:
        if pointer and not POINTER.fullmatch(pointer):
            raise table.error(pointer, f"{pointer!r} is not a JSON pointer such as /op")
        listed = table.data[pointer]
        values = listed if isinstance(listed, list) else [listed]
        if not values or not all(isinstance(value, str | int | float) for value in values):
            raise table.error(
                pointer, f"{pointer} must be a text, a number, true or false, or a list of these"
            )
        patterns = tuple(_pattern(value) if isinstance(value, str) else None for value in values)
        found.append(Expected(pointer, tuple(values), patterns))
    return tuple(found)


def read_conditions(table: Table, key: str) -> tuple[Condition, ...]:
    """Read a condition, or a list of them of which one must hold; there is none where the key is absent."""
    if isinstance(table.data.get(key), Mapping):
        return (read_condition(table.table(key)),)
    return tuple(read_condition(one) for one in table.tables(key))


def _pattern(text: str) -> re.Pattern[str]:
    """Return what matches a text with stars, in a time that grows with the length of what is matched."""
    first, *others = map(re.escape, text.split(ANYTHING))
    if others:
        middle = "".join(f"(?>.*?{piece})" for piece in others[:-1])  # the first place does: no way back
        first += f"{middle}.*{others[-1]}"
    return re.compile(first, re.DOTALL)
