"""One episode of 429s: from the first refusal to the first request that is accepted after the pause.

In between, the window that was full gave way: an exact `Retry-After` says when, a rounded one within a
second, and without any it was between the last refusal and that acceptance.
"""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Episode:
    """The first refusal, of `cost`, was sent at `began`; the window gave way at `earliest` to `latest`."""

    began: float
    earliest: float
    latest: float
    cost: float = 1.0
    is_read: bool = False
    resumed: float = math.inf  # when what was accepted after it was sent
    mixed_until: float = -math.inf  # what was sent up to then may have come before the first refusal

    @property
    def gave_way(self) -> float:
        """The best single guess."""
        return (self.earliest + self.latest) / 2

    @property
    def wait_s(self) -> float:
        """How long the first refused would have had to wait."""
        return self.gave_way - self.began

    @property
    def blur_s(self) -> float:
        """How far off the guess may be."""
        return (self.latest - self.earliest) / 2

    def refused_again(self, sent_at: float, stated_s: float | None, resolution_s: float) -> "Episode":
        """Return the episode after one more refusal of what was sent at `sent_at`."""
        began = sent_at if self.began < sent_at <= self.mixed_until else self.began
        if sent_at < self.earliest and stated_s is None:
            return replace(self, began=began)
        if stated_s is None:
            return replace(self, began=began, earliest=sent_at, latest=math.inf)
        earliest = max(sent_at, sent_at + stated_s - resolution_s)
        return replace(self, began=began, earliest=earliest, latest=sent_at + stated_s)

    def ended(self, sent_at: float) -> "Episode":
        """Return the episode after an acceptance of what was sent at `sent_at`."""
        ends = min(self.earliest, sent_at), min(self.latest, sent_at)
        return replace(self, earliest=ends[0], latest=ends[1], resumed=sent_at)
