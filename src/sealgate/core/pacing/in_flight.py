"""A limit on requests at a time, told from one per time by what was under way.

Such a limiter refuses when `n` are under way, however few went before, and accepts whenever fewer are. So
if every episode began with at least `least` others under way, and never many more than that were accepted,
the limit is on requests at a time. A limit per time shows the opposite soon: a burst goes through with many
under way, and an even pace is refused with one.
"""

_EPISODES = 2  # that must agree before it is believed
_LEAST = 3  # fewer under way than this is what an even pace looks like
_SEEN_LONGER = 2.0  # a request is under way for us up to so much longer than for the server: the trips


class InFlight:
    """The requests under way, and the `cap` on them: None where there is none."""

    def __init__(self) -> None:
        self._others: dict[str, int] = {}  # under way, and how many others were when it went
        self._episodes = 0
        self._least = 0
        self._most = 0

    def __len__(self) -> int:
        return len(self._others)

    @property
    def cap(self) -> int | None:
        """How many may be under way at a time, as far as is known."""
        is_believed = self._episodes >= _EPISODES and self._least >= _LEAST
        return self._least if is_believed and self._most <= _SEEN_LONGER * self._least else None

    def has_room(self) -> bool:
        """Whether one more may be under way."""
        cap = self.cap
        return cap is None or len(self._others) < cap

    def sent(self, claim_id: str) -> None:
        """One more is under way."""
        self._others[claim_id] = len(self._others)

    def over(self, claim_id: str) -> None:
        """One is not under way any more."""
        self._others.pop(claim_id, None)

    def accepted(self, claim_id: str) -> None:
        """One was accepted beside so many others."""
        self._most = max(self._most, self._others.pop(claim_id, 0) + 1)

    def refused(self, claim_id: str, *, is_first: bool) -> None:
        """One was refused; only the first of an episode counts, the others belong to it."""
        others = self._others.pop(claim_id, 0)
        if is_first:
            self._least = min(self._least, others) if self._episodes else others
            self._episodes += 1
