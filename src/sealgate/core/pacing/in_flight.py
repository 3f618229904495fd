"""A limit on requests at a time, told from one per time by what was under way.

Such a limiter refuses when `n` are under way, however few went before, and accepts whenever fewer are. So
every refusal finds at least `least` others under way, and what is sent right after it may be accepted, long
before the wait that was stated is over: no limit per time does that. Where trips are short, so that little
is sent before a refusal is heard, it is enough that several episodes agree and nothing was accepted beside
more than were under way when it refused. A limit per time shows the opposite soon: an even pace is refused
with one under way.
"""

_EPISODES = 2  # that must agree before it is believed
_INTERLEAVED = 2  # accepted between a refusal and the end of the stated wait
_FEW = 8  # a cap up to this is tried after one episode: if it is none, few are refused
_LEAST = 3  # fewer under way than this is what an even pace looks like
_SEEN_LONGER = 2.0  # a request is under way for us up to so much longer than for the server: the trips


class InFlight:
    """The requests under way, and the `cap` on them: None where there is none."""

    def __init__(self) -> None:
        self._others: dict[str, int] = {}  # under way, and how many others were when it went
        self._episodes = 0
        self._interleaved = 0
        self._least = 1 << 30
        self._most = 0
        self.cap: int | None = None

    def __len__(self) -> int:
        return len(self._others)

    @property
    def is_suspected(self) -> bool:
        """Whether all that is known could be a limit on requests at a time."""
        return self._episodes > 0 and self._least >= _LEAST and self._most <= self._least

    def has_room(self) -> bool:
        """Whether one more may be under way."""
        return self.cap is None or len(self._others) < self.cap

    def sent(self, claim_id: str) -> None:
        """One more is under way."""
        self._others[claim_id] = len(self._others)

    def over(self, claim_id: str) -> None:
        """One is not under way any more."""
        self._others.pop(claim_id, None)

    def accepted(self, claim_id: str, *, is_interleaved: bool = False) -> None:
        """One was accepted beside so many others, maybe inside the wait that another was told."""
        most = self._others.pop(claim_id, 0) + 1
        if most > self._most or is_interleaved:
            self._most = max(self._most, most)
            self._interleaved += is_interleaved
            self._judge()

    def refused(self, claim_id: str, *, is_first: bool) -> None:
        """One was refused, the first of an episode or one more."""
        self._least = min(self._least, self._others.pop(claim_id, 0))
        self._episodes += is_first
        self._judge()

    def _judge(self) -> None:
        is_interleaved = self._interleaved >= _INTERLEAVED and self._most <= _SEEN_LONGER * self._least
        is_agreed = self.is_suspected and (self._episodes >= _EPISODES or self._least <= _FEW)
        if self.cap is not None:
            is_agreed = self._most <= _SEEN_LONGER * self._least
        is_believed = self._least >= _LEAST and (is_interleaved or is_agreed)
        self.cap = self._least if is_believed else None
