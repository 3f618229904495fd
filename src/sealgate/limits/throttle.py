"""A 429 and the refusals that follow it until the limiter accepts again."""

import math

LIE = 0.25  # of a stated wait, and of a second: two ends of one event that are further apart contradict


class ThrottleEvent:
    """Refusals up to the next acceptance. The first refused request was sent at `refused_at`.

    A request sent until `mixed_until` may have arrived before it; `tried` is the rate that was being tried.
    The limiter gave way between `earliest` and `latest`: that is what `Retry-After` states, less its
    resolution, intersected over the refusals of one volley and cut at the first acceptance. A ban lasts as
    long as a punishment does, and does not tell when the limiter gave way.
    """

    __slots__ = (
        "cost",
        "earliest",
        "in_flight",
        "is_ban",
        "is_lie",
        "is_read",
        "last_at",
        "latest",
        "lost",
        "mixed_until",
        "peak",
        "refused_at",
        "resumed_at",
        "tried",
    )

    def __init__(self, sent_at: float, mixed_until: float, *, is_read: bool, tried: float | None) -> None:
        self.refused_at, self.mixed_until = sent_at, mixed_until
        self.earliest, self.latest, self.resumed_at = sent_at, math.inf, math.inf
        self.is_read, self.tried = is_read, tried
        self.last_at, self.is_lie, self.is_ban = sent_at, False, False
        self.cost = 1.0  # the least cost that was refused: so much more did not fit
        self.lost = 0.0  # the cost of all refused requests
        self.in_flight = 1_000_000  # the fewest others in flight at a refusal
        self.peak = 0  # the most in flight at an acceptance since the event before

    @property
    def ended_at(self) -> float:
        """When the limiter gave way, at the best guess."""
        return (self.earliest + self.latest) / 2

    @property
    def wait_s(self) -> float:
        """For how long it refused everything, at the least."""
        return self.earliest - self.refused_at

    @property
    def stood_s(self) -> float:
        """For how long nothing was accepted because of the limiter."""
        return self.wait_s if self.is_ban else self.resumed_at - self.refused_at

    def add(
        self,
        sent_at: float,
        cost: float,
        stated_s: float | None,
        resolution_s: float,
        *,
        is_ban: bool = False,
    ) -> None:
        """Take in one refusal. Stated waits that contradict each other say nothing."""
        # 1. Count it. If it may have arrived first, the event began with it.
        self.cost = min(self.cost, cost) if self.lost else cost
        self.lost += cost
        self.last_at = max(self.last_at, sent_at)
        if self.refused_at < sent_at <= self.mixed_until:
            self.refused_at = sent_at
        # 2. The wait of a ban says nothing of the limiter.
        if is_ban or self.is_ban:
            self.is_ban = True
            return
        # 3. A stated wait bounds the moment at which the limiter gives way. A refusal after it begins anew;
        #    one of the same volley narrows the bounds, unless the two contradict each other.
        if stated_s is not None and not self.is_lie:
            latest = sent_at + stated_s
            earliest = max(sent_at, latest - resolution_s)
            if self.latest == math.inf or sent_at > self.latest:
                self.earliest, self.latest = earliest, latest
            elif earliest <= self.latest and latest >= self.earliest:
                self.earliest, self.latest = max(earliest, self.earliest), min(latest, self.latest)
            else:
                self.is_lie = max(earliest - self.latest, self.earliest - latest) > LIE * (1 + stated_s)
        # 4. Without one, it gives way at some time after the last refusal.
        if stated_s is None or self.is_lie:
            self.earliest, self.latest = self.last_at, math.inf

    def ended(self, sent_at: float) -> None:
        """Cut the bounds at the first acceptance, of a request sent at `sent_at`."""
        self.latest = min(self.latest, sent_at)
        self.earliest = min(self.earliest, self.latest)
        self.resumed_at = sent_at
