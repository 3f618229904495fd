"""A limit on requests at a time, told from one per time by what was under way.

Such a limiter refuses when `n` are under way, however few went before, and accepts whenever fewer are. So
every refusal finds at least `least` others under way, and what is sent right after it may be accepted, long
before the wait that was stated is over: no limit per time does that. Where trips are short, so that little
is sent before a refusal is heard, it is enough that several episodes agree and nothing was accepted beside
more than were under way when it refused. A limit per time shows the opposite soon: an even pace is refused
with one under way.

What is refused is not under way for the server, so it counts for none of those sent after it; and what is
sent right after a request may overtake it on the way.
"""

import sys

_EPISODES = 2  # that must agree before it is believed
_INTERLEAVED = 2  # accepted between a refusal and the end of the stated wait
_FEW = 8  # a cap up to this is tried after one episode: if it is none, few are refused
_LEAST = 3  # fewer under way than this is what an even pace looks like
_SEEN_LONGER = 2.0  # a request is under way for us up to so much longer than for the server: the trips


class InFlight:
    """The requests under way, and the `cap` on them: None where there is none."""

    def __init__(self) -> None:
        # Those under way, in order: when each went, and how many others were under way then.
        self._sent: dict[str, tuple[float, int]] = {}
        self._episodes = 0
        self._interleaved = 0
        self._least = sys.maxsize
        self._most = 0
        self.cap: int | None = None

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def is_suspected(self) -> bool:
        """Whether all that is known could be a limit on requests at a time."""
        return self._episodes > 0 and self._least >= _LEAST and self._most <= self._least

    def has_room(self) -> bool:
        """Whether one more may be under way."""
        return self.cap is None or len(self._sent) < self.cap

    def sent(self, claim_id: str, now: float) -> None:
        """One more is under way."""
        self._sent[claim_id] = now, len(self._sent)

    def over(self, claim_id: str) -> None:
        """One is not under way any more."""
        self._sent.pop(claim_id, None)

    def accepted(self, claim_id: str, *, is_interleaved: bool = False) -> None:
        """One was accepted beside so many others, maybe inside the wait that another was told."""
        most = self._sent.pop(claim_id)[1] + 1
        if most > self._most or is_interleaved:
            self._most = max(self._most, most)
            self._interleaved += is_interleaved
            self._judge()

    def refused(self, claim_id: str, jitter_s: float, *, is_first: bool) -> None:
        """One was refused, the first of an episode or one more; arrivals are true to `jitter_s`."""
        names = list(self._sent)
        later = {name: self._sent[name] for name in names[names.index(claim_id) + 1 :]}
        sent_at, others = self._sent.pop(claim_id)
        overtaking = sum(at <= sent_at + jitter_s for at, _ in later.values())
        self._least = min(self._least, others + overtaking)
        for name, (at, beside) in later.items():
            self._sent[name] = at, beside - 1
        self._episodes += is_first
        self._judge()

    def _judge(self) -> None:
        is_interleaved = self._interleaved >= _INTERLEAVED and self._most <= _SEEN_LONGER * self._least
        is_agreed = self.is_suspected and (self._episodes >= _EPISODES or self._least <= _FEW)
        if self.cap is not None:
            is_agreed = self._most <= _SEEN_LONGER * self._least
        is_believed = self._least >= _LEAST and (is_interleaved or is_agreed)
        self.cap = self._least if is_believed else None
