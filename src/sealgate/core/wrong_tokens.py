"""Wrong tokens by where they come from: after some in a row, the answer to each further one is held back.

Only failures are held back. A right token passes at once wherever it comes from, so that no program can lock
out a bot behind the same address. What makes guessing hopeless is the size of a token (`sealgate token new`);
this keeps a bot with an old token, or a guesser, from filling log and time.
"""

from collections import OrderedDict

FREE = 10  # wrong tokens that are answered at once
FORGIVEN_AFTER_S = 1.0  # each
HELD_BACK_S = 1.0
_MOST_DEBT = 60
_MOST_ORIGINS = 1024


class WrongTokens:
    """One number for each origin: when all its wrong tokens are forgiven. The oldest are forgotten."""

    def __init__(self) -> None:
        self._clear_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clear_at)

    def note(self, origin: str, now: float) -> float:
        """Take in one more, and return for how many seconds its answer is to be held back."""
        debt_s = max(self._clear_at.pop(origin, now) - now, 0.0) + FORGIVEN_AFTER_S
        self._clear_at[origin] = now + min(debt_s, _MOST_DEBT * FORGIVEN_AFTER_S)
        if len(self._clear_at) > _MOST_ORIGINS:
            self._clear_at.popitem(last=False)
        return HELD_BACK_S if debt_s > FREE * FORGIVEN_AFTER_S else 0.0
