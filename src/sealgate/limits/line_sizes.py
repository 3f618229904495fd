"""How many claims wait, by key and bot: no bot may take the whole line, nor make it slow to look through."""

from collections import Counter
from typing import Any

from sealgate.limits.claims import Claim

MOST_DIFFERENT = 200  # pools, or sets of pools, that claims of one bot may wait for at a time


class LineSizes:
    """Counts the claims that wait."""

    def __init__(self) -> None:
        self._of_key: dict[str, Counter[str]] = {}  # by key, and by bot
        self._of_bot: dict[tuple[str, str], Counter[tuple[str, ...]]] = {}  # by what they pass

    def is_full(self, claim: Claim, queue: int) -> bool:
        """Ask whether `queue` claims of this key wait, and as many of its bot as are its part of them.

        So a bot that fills the line stops the others no longer than their own requests do.
        """
        bots = self._of_key.get(claim.key)
        if bots is None or bots.total() < queue:
            return False
        return bots[claim.bot] >= queue // len({claim.bot, *bots})

    def is_spread(self, claim: Claim) -> bool:
        """Ask whether claims of this bot wait for so many different pools that one more is too much."""
        passed = self._of_bot.get((claim.key, claim.bot), ())
        return len(passed) >= MOST_DIFFERENT and claim.pools not in passed

    def add(self, claim: Claim) -> None:
        """Count one that waits."""
        self._of_key.setdefault(claim.key, Counter())[claim.bot] += 1
        self._of_bot.setdefault((claim.key, claim.bot), Counter())[claim.pools] += 1

    def remove(self, claim: Claim) -> None:
        """Count one less."""
        place = claim.key, claim.bot
        _less(self._of_bot[place], claim.pools)
        if not self._of_bot[place]:
            del self._of_bot[place]
        _less(self._of_key[claim.key], claim.bot)
        if not self._of_key[claim.key]:
            del self._of_key[claim.key]


def _less(counts: Counter[Any], one: object) -> None:
    counts[one] -= 1
    if not counts[one]:
        del counts[one]
