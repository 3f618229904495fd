"""What one episode of 429s says about the limit.

An episode begins with a 429 and ends with the first request that is accepted after the pause. In between,
the window that was full gave way: an exact `Retry-After` says when, a rounded one within a second, and
without any it was between the last refusal and that acceptance.

The window of length W that ended at that moment held just what the limit allows per W, be the limit fixed
or sliding. So each candidate W names its own limit: what was accepted in that window. A candidate that held
nothing is too short. Of the others the one of the highest rate is taken, because it is the least
restriction that explains the refusal; if it was too generous, the next episode comes soon and corrects it.
"""

from dataclasses import dataclass

from sealgate.core.pacing.sent_log import SentLog

# Seconds: what exchanges publish, and below a second what buckets with a small burst look like.
CANDIDATES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 900.0, 3600.0)
_TOLERANCE = 1.02  # a rate is not known better than this, so a candidate this little above is still below


@dataclass(frozen=True, slots=True)
class Episode:
    """The first refusal was sent at `began`; the window gave way between `earliest` and `latest`."""

    began: float
    earliest: float
    latest: float

    @property
    def gave_way(self) -> float:
        """The best single guess."""
        return (self.earliest + self.latest) / 2

    @property
    def blur_s(self) -> float:
        """How far off the guess may be."""
        return (self.latest - self.earliest) / 2

    def refused_again(self, sent_at: float, stated_s: float | None, resolution_s: float) -> "Episode":
        """Return the episode after one more refusal of what was sent at `sent_at`."""
        if sent_at < self.earliest and stated_s is None:
            return self
        if stated_s is None:
            return Episode(self.began, sent_at, float("inf"))
        return Episode(self.began, max(sent_at, sent_at + stated_s - resolution_s), sent_at + stated_s)

    def ended(self, sent_at: float) -> "Episode":
        """Return the episode after an acceptance of what was sent at `sent_at`."""
        return Episode(self.began, min(self.earliest, sent_at), min(self.latest, sent_at))


def read_episode(episode: Episode, log: SentLog, at_most: float = float("inf")) -> tuple[float, float] | None:
    """Return the limit as (n, window), of a rate up to `at_most` if there is one; None if nothing fits."""
    counts = ((log.count(episode.gave_way - window, episode.began), window) for window in CANDIDATES)
    fitting = [(n, window) for n, window in counts if n > 0]
    slow_enough = [(n, window) for n, window in fitting if n / window <= at_most * _TOLERANCE]
    return max(slow_enough or fitting[-1:], key=lambda one: one[0] / one[1], default=None)
