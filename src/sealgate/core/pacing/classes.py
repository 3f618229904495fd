"""Reads and the rest: counted together, or each by itself.

An exchange may count them apart. Then the 429s do not fit any count of all that was sent, but those of reads
fit a count of the reads, and the others one of the others.
"""

from collections.abc import Sequence

from sealgate.core.pacing.bucket import explain_bucket
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import explain_window
from sealgate.core.pacing.reading import Evidence, Reading
from sealgate.core.pacing.sent_log import LimitScope, SentLog

KEPT = 8  # episodes that are looked at
_LEAST = 3  # episodes, or too much fits them
_LEAST_BLURRED = 6  # the same where it is not stated exactly when they end
_SHARP_S = 0.1
_FEW = 5  # requests: fits to less than that are what jitter makes of a bucket
_ALONE = (LimitScope.READS, LimitScope.OTHERS)


def read_apart(episodes: Sequence[Episode], log: SentLog, jitter_s: float) -> dict[LimitScope, Reading]:
    """Return what each class is limited to, as far as it was refused; nothing where they count together."""
    is_sharp = all(one.blur_s <= _SHARP_S for one in episodes)
    if len(episodes) < (_LEAST if is_sharp else _LEAST_BLURRED) or _read(
        LimitScope.ALL, episodes, log, jitter_s
    ):
        return {}
    if explain_bucket(Evidence(episodes, log.all, jitter_s)):
        return {}
    by_class = _by_class(episodes)
    found = {scope: _read(scope, some, log, jitter_s) for scope, some in by_class.items()}
    readings = {scope: reading for scope, reading in found.items() if reading is not None}
    if len(readings) < len(found) or any(reading.n < _FEW for reading in readings.values()):
        return {}
    # A single episode fits any window: it says something where the other class has the same.
    is_agreed = min(map(len, by_class.values())) > 1 or len({one.window for one in readings.values()}) == 1
    return readings if is_agreed else {}


def read_together(episodes: Sequence[Episode], log: SentLog, jitter_s: float) -> Reading | None:
    """Return the limit on both that explains what a limit on each does not; None where there is none."""
    if len(episodes) < _LEAST:
        return None
    if all(_read(scope, some, log, jitter_s) for scope, some in _by_class(episodes).items()):
        return None
    return _read(LimitScope.ALL, episodes, log, jitter_s)


def _by_class(episodes: Sequence[Episode]) -> dict[LimitScope, list[Episode]]:
    by_class = {scope: [one for one in episodes if scope.covers(is_read=one.is_read)] for scope in _ALONE}
    return {scope: some for scope, some in by_class.items() if some}


def _read(scope: LimitScope, episodes: Sequence[Episode], log: SentLog, jitter_s: float) -> Reading | None:
    return explain_window(Evidence(episodes, log.of(scope), jitter_s))
