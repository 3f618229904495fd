"""What an episode changes in the limit that refused.

| the refusal came | what it says | what changes |
|---|---|---|
| while a probe was under way | the step was too high | back to what held |
| at a pace that held, a little too early | the pace is a little too fast | just so much slower |
| at a pace that held, a window far below | others spend it, or it was lowered | down to what was accepted |
| in a burst, at a rate that held | the burst is smaller than thought | the burst |
| before anything held | the window is another | all episodes are read again, unless published |

A cycle reaches from one giving way to the next: what was accepted in it, over its length, is what the limiter
delivers, whatever its kind.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sealgate.core.pacing.bucket import explain_bucket
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import CANDIDATES, explain, explain_last
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.patience import SPAN_S
from sealgate.core.pacing.reading import Evidence, Kind, Reading
from sealgate.core.pacing.sent_log import Tally

_NEAR = 0.7  # of the limit: with less than this in the window it cannot be the pace
_INSTANT_S = 1e-3  # the shortest cycle that is divided by
_AT_LEAST_S = 1.0  # a count over less is hardly a rate
_SAME = 0.02  # of a rate: less is jitter
_KEPT = 0.25  # of the excess over the delivered rate is kept: the pause itself makes that rate look low
_KEPT_BLURRED = 0.5  # where the end is known to a second only, the pause was longer than needed by about half
_SLOTS = 1.5  # a request that is early by more is not refused for its pace
_UNEXPLAINED = 4  # episodes that nothing explains: the limit has changed, or others spend it
_SHORT_OF = 0.95  # of what held: the rate of a bucket that was always empty is higher
_PRECISE_S = 5.0  # the rate of a bucket over so long is not blurred by jitter any more
_LOOKS_S = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)  # back, for a rate beside which a burst is little
_HELD = 2.0  # windows, and a second, without a refusal: the pace holds


@dataclass(frozen=True, slots=True)
class Lesson:
    """A limit, the episode in which it refused, and what it counted; times are true to `jitter_s`.

    Before `slow_until` less was sent than the limit allows; where patience is thin no more may be tried than
    was delivered.
    """

    limit: Limit
    episode: Episode
    log: Tally
    now: float
    jitter_s: float = 0.005
    slow_until: float = -math.inf
    is_patience_thin: bool = False

    def correct(self) -> None:
        """Change a limit that was known by what the episode says."""
        limit, episode = self.limit, self.episode
        paced_since = math.inf if limit.paced_since is None else limit.paced_since
        is_paced = episode.began >= paced_since + limit.window / 2
        resumed = max(limit.episodes[-1].resumed if limit.episodes else limit.cycle_start, self.slow_until)
        has_held = limit.is_proven or episode.began - resumed >= _HELD * limit.window + 1.0
        limit.heard(episode)
        if is_paced:
            limit.refused_paced(is_little=self._is_little, is_sharp=not self._is_blurred)
        if self._refill():
            return
        if limit.step and limit.paced_since is not None:
            limit.probe_failed(self.now)
        elif is_paced and has_held:
            self._correct_pace()
        elif limit.most < math.inf:
            self._lower()
        elif has_held and limit.is_proven:
            self._shrink()
        else:
            self._read_again(is_paced=is_paced)

    def take_up(self, found: Reading) -> None:
        """Believe what was read, and search for the true height from there."""
        limit, episode = self.limit, self.episode
        is_blurred = self._is_blurred_for(found.window)
        # One end that is hardly known tells no kind from another.
        kind = Kind.UNKNOWN if is_blurred and len(limit.episodes) == 1 else found.kind
        limit.become(kind, found.n, found.window)
        # What a sliding window holds when it refuses needs no end to be known.
        blur_s = 0.0 if found.kind is Kind.SLIDING else episode.blur_s
        counted = self.log.count(self._cycle_start, episode.began)  # true to one
        blur_s = max(blur_s, found.window / max(counted, 1.0))
        failed = limit.failed_rate * limit.window if is_blurred else math.inf
        limit.search(self.now, blur_s, failed)

    def bounded(self, found: Reading) -> Reading:
        """Return what was read, but not below what was delivered; nor above, where patience is thin."""
        episodes = self.limit.episodes
        last, first = episodes[-1], _first_of_late(episodes)
        if first is None and found.window >= _AT_LEAST_S:
            return found  # counted over all of its window
        rate = max(found.rate, self._rate(first.gave_way, last.began, last.latest) if first else 0.0)
        if self.is_patience_thin:
            since = (
                max(first.resumed, self.slow_until)
                if first
                else max(self.log.first(), last.began - _AT_LEAST_S)
            )
            rate = min(rate, self._highest_rate(since - _INSTANT_S, last.began, last.earliest))
        if rate <= 0 or abs(rate / found.rate - 1) < _SAME:
            return found
        if found.kind is Kind.BUCKET:
            return Reading(found.kind, found.n, found.n / rate)
        window = max(found.window, _AT_LEAST_S)
        return Reading(Kind.UNKNOWN, rate * window, window)

    def evidence(self, episodes: Sequence[Episode]) -> Evidence:
        """Return the episodes with all that is known of the limit."""
        limit = self.limit
        return Evidence(episodes, self.log, self.jitter_s, limit.failed_rate, limit.since, self.slow_until)

    @property
    def _cycle_start(self) -> float:
        return max(self.limit.cycle_start, self.slow_until)

    @property
    def _accepted(self) -> float:
        return self.log.count(self._cycle_start, self.episode.began)

    @property
    def _is_little(self) -> bool:
        """Whether the request was early by no more than a slot or so."""
        episode = self.episode
        return episode.blur_s < _INSTANT_S and episode.wait_s <= _SLOTS / self.limit.rate

    @property
    def _is_blurred(self) -> bool:
        return self._is_blurred_for(self.limit.window)

    def _is_blurred_for(self, window: float) -> bool:
        return self.episode.blur_s > window / 4

    def _rate(self, since: float, until: float, end: float) -> float:
        return self.log.count(since, until) / max(end - since, CANDIDATES[0])

    def _highest_rate(self, since: float, until: float, end: float) -> float:
        """Return the rate of what went; of what is too short for a count there may have been one more."""
        more = 1.0 if end - since < CANDIDATES[0] else 0.0
        return self._rate(since, until, end) + more / CANDIDATES[0]

    def _shrink(self) -> None:
        """Keep the rate, and take the burst that was accepted."""
        limit, began = self.limit, self.episode.began
        n = max(1.0, min(limit.n, self.log.count(began - limit.window, began)))
        limit.become(limit.kind, n, n / limit.rate)

    def _read_again(self, *, is_paced: bool) -> None:
        limit = self.limit
        if is_paced and not self._is_little:
            limit.failed_evenly()
        evidence = self.evidence(limit.episodes)
        found = explain(evidence)
        if found is not None:
            found = self.bounded(found)
            is_same = (found.n, found.window) == (limit.n, limit.window)
            self.take_up(found)
            if is_same and is_paced and self._is_little:
                self._slow()
            return
        limit.become(Kind.UNKNOWN, limit.n, limit.window)
        if len(limit.episodes) > _UNEXPLAINED:
            limit.forget(self.episode.began)
        if is_paced:
            self._lower()
        elif (last := explain_last(evidence, self._delivered_rate())) is not None:
            self.take_up(self.bounded(last))

    def _refill(self) -> bool:
        """Where all episodes are those of a bucket, take its rate: each refusal tells it better."""
        limit = self.limit
        if limit.kind not in (Kind.UNKNOWN, Kind.BUCKET) or limit.most < math.inf:
            return False
        found = explain_bucket(self.evidence(limit.episodes))
        if found is None:
            return False
        if limit.kind is Kind.BUCKET and (rate := self._rate_beside(limit.n)) > found.rate:
            found = Reading(found.kind, limit.n, limit.n / rate)
        # A burst that was seen before may come back, unless it is refused.
        failed_rate = limit.rate * (1 + limit.step)
        is_short_of = limit.step > 0 and found.rate < _SHORT_OF * limit.rate
        n = max(found.n, limit.n) if limit.kind is Kind.BUCKET else found.n
        limit.become(found.kind, n, n / found.rate)
        if is_short_of:  # it was full for a while, at a pace below its rate
            limit.search(self.now, 0.0, failed_rate * limit.window)
            return True
        seen_s = limit.episodes[-1].gave_way - limit.episodes[0].gave_way
        if seen_s >= _PRECISE_S:
            limit.rest(self.now)
        else:
            limit.search(self.now, limit.window * self.jitter_s / seen_s)
        return True

    def _rate_beside(self, burst: float) -> float:
        """Return the least rate that filled a bucket of that burst, which may have been full, of late."""
        end = self.episode.gave_way
        looks = [look_s for look_s in _LOOKS_S if end - look_s > self.limit.cycle_start]
        return max(((self.log.count(end - s, self.episode.began) - burst) / s for s in looks), default=0.0)

    def _correct_pace(self) -> None:
        limit, episode = self.limit, self.episode
        end = episode.began if self._is_blurred else episode.gave_way
        used = self.log.count(end - limit.window, episode.began)
        # A window is judged only when all of it lies after the last pause.
        if 0 < used < _NEAR * limit.n - 1:
            limit.fall(self.now, used)
        elif self._is_little:
            self._slow()
        else:
            self._lower()

    def _slow(self) -> None:
        episode = self.episode
        delivered = self._rate(self._cycle_start, episode.began, episode.gave_way)
        self.limit.slow(episode.wait_s, delivered)

    def _lower(self) -> None:
        self.limit.lower(self.now, self._delivered_rate(), self._accepted)

    def _delivered_rate(self) -> float:
        """Return the rate to go on with: that of the last cycle and a part of what was tried beyond."""
        if self._cycle_start == -math.inf:
            return self.limit.rate
        delivered = self._accepted / max(self.episode.gave_way - self._cycle_start, _INSTANT_S)
        kept = _KEPT_BLURRED if self._is_blurred else _KEPT
        return delivered + kept * (self.limit.rate - delivered)


def _first_of_late(episodes: Sequence[Episode]) -> Episode | None:
    """Return the first episode of those shortly before the last."""
    late = (one for one in episodes[:-1] if one.gave_way > episodes[-1].began - SPAN_S)
    return next(late, None)
