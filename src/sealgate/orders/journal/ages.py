"""How old the rows are, whatever the wall clock says."""


class Ages:
    """Made at the start. `wall` is epoch seconds, `now` a clock that nobody sets.

    `newest` is when the newest row of the file was settled, by the same count; None where there is none.

    Once the wall clock is ahead, at a start or later, every Idempotency-Key would seem old and be forgotten,
    and an order could be sent twice. So a row's age is the time for which gateways ran since: rows are dated
    by the newest row at the start plus the time that has passed since the start. The wall clock is read once
    in the life of a file, to begin with.
    """

    def __init__(self, wall: float, now: float, newest: float | None) -> None:
        self._started = (wall if newest is None else newest) - now

    def at(self, now: float) -> float:
        """Return the time by which a row that ends now is dated, and to which ages are counted."""
        return self._started + now
