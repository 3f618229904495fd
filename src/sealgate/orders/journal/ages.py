"""The age of rows, independent of changes of the wall clock."""


class Ages:
    """Dates rows. Created at the start; `wall` is epoch seconds, `now` a monotonic clock.

    `newest` is the date of the file's newest settled row, by the same count; None if there is none.

    With a wall clock that is ahead, every Idempotency-Key would seem old and be forgotten, and an order could
    be sent twice. So a row's age is the time for which gateways have run since: a row is dated by the newest
    row at the start plus the time since the start. The wall clock is read only once, for a new file.
    """

    def __init__(self, wall: float, now: float, newest: float | None) -> None:
        self._started = (wall if newest is None else newest) - now

    def at(self, now: float) -> float:
        """Return the date of a row that ends at `now`, which is also the reference for ages."""
        return self._started + now
