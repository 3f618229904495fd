"""How old settled orders are, where the wall clock may jump.

The wall clock alone would forget every Idempotency-Key once it jumps ahead, if only for a second, and an
order could be sent twice after the next start. So an order is written down with the later of two times: the
wall clock's, and that of the start plus what has passed since on a clock that nobody sets. It is judged by
the earlier of two: the wall clock's, and that of the newest row at the start plus what has passed. Both err
towards keeping: a row goes only after the gateway saw its time pass, or where newer rows show that it did.
"""


class Ages:
    """Made at the start. `wall` is epoch seconds, `now` a clock that nobody sets.

    `newest` is when the newest row of the file was written, epoch seconds, None where there is none.
    """

    def __init__(self, wall: float, now: float, newest: float | None) -> None:
        self._started_wall = wall - now
        self._started_rows = min(wall, wall if newest is None else newest) - now

    def written_at(self, wall: float, now: float) -> float:
        """Return the time to write down for what ends now."""
        return max(wall, self._started_wall + now)

    def judged_at(self, wall: float, now: float) -> float:
        """Return the time to which the age of a row is counted."""
        return min(wall, self._started_rows + now)
