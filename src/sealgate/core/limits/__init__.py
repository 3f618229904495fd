"""Learn the limits of an upstream from what it accepted, what it refused, and what it says of them.

1. A limiter refuses when it is full, so whatever its kind, one number was the same at every refusal: how
   full it was, its level.
2. A 429 and whatever follows until a scout is accepted is one event: it began when the limiter was full, and
   the limiter gave way between two known moments; stated waits that contradict each other say nothing, and
   after two such events no stated wait does; nor does a ban, which is a punishment (`throttle.py`).
3. The level of a window of any length lies between two counts, one for each of those moments; the less is
   known about the moment, the further apart they are and the less they prove.
4. The hypothesis that is believed is the one whose level was the same at the last events, six at the most
   (`fit.py`): a window, a bucket, a cap on concurrent requests (a window as long as a round trip, counted by
   what is in flight), and from three events on separate windows for reads and for everything else, a window
   in which everything else costs more than a read, or two windows.
5. Agreement is a likelihood: no event adds more to it than a bound, so that neither a ban nor another user
   of the limit can outweigh the rest, nor more than the level moved by since the event before, as what is
   nearly full all the time is full at a refusal by chance; what is not believed yet pays for parameters
   beyond those of one window or bucket: a cap half of what one event can add, costs and separate windows as
   much as one, two windows as much as two.
6. Whatever was accepted between two events counts against every limit that would not have allowed it.
7. To its agreement a hypothesis adds the logarithm of the rate that it allows, so that the least restrictive
   of equals wins, a little if it is the one that is believed, and more if all its numbers and windows are
   such as people publish, unless it limits one class alone.
8. If the last two or three events alone are explained clearly better, the limit changed before them; if the
   last level is off, a higher one is the limit, and a lower one has the median of the last three believed,
   or the lower of two.
9. While nobody waits, a request goes at once if it fits into every window; once somebody has to wait,
   requests go at an even pace, slower where a window is nearly used up, until one comes to a free turn: that
   nobody waits for the length of a trip, as after reads that went as one, does not end it; a flood waits
   before a long window is full, so that no cancel has to wait for its end; and a learned limit that was
   refused less than three times, or not for a while, holds nobody for long, as a 429 costs less than that.
10. The pace is `low`, which is believed to hold; `high` is the most that the events allow, infinite where
    they say nothing above `low`.
11. A step up, towards the middle of the two or beyond an exact `low`, is carried by reads (by all others
    where no read came), never closer together than its rate says; what went and held becomes `low`.
12. A step needs a budget, which accepted requests fill and events empty, the less the further apart the two
    are; none begins when four refusals came within ten seconds, and beyond what is exact a step waits until
    the standstill of the last event was a small part of the time.
13. A pace that was refused while somebody waited is lowered by a small step, doubled each time in a row, if
    it had held and the limiter soon gave way, or if its numbers still look published; otherwise, and the
    third time in a row, it becomes what the events say or, where that is no lower, the middle of it and of
    what was delivered, but at least half; a break lets the limiter drain.
14. A cap is raised one by one after a long time without a refusal, until the next one.
15. A published limit is kept to and never exceeded: where it is refused, somebody else uses it, and its pace
    alone is lowered, then searched up to what is published; a remainder that a reply states holds until its
    reset; a limit that a reply states is ignored once much more was accepted in its window.
"""

from sealgate.core.limits.estimator import LimitEstimator, Step
from sealgate.core.limits.limit import ALL, OTHERS, READS, Limit, Weights

__all__ = ["ALL", "OTHERS", "READS", "Limit", "LimitEstimator", "Step", "Weights"]
