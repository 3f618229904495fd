"""Refusals by a firewall in front of the exchange: whose requests pause, and when the address is shut out.

Its page does not tell whether it refuses one request for its contents, or this IP address. There are three
cases:

1. A first refusal is about the request: that bot's requests to that route pause, each time for twice as long.
2. The next refusal is the same bot's, on any route: the same, because one bot must not stop the others. From
   its fourth route on, if none passed, all of its requests pause as well, so that ever new paths are slowed.
3. It is another bot's, and nothing was accepted since the first was sent: the address is shut out. The
   gateway's own request for the time counts as another bot's, so that one bot is enough to find this out.
"""

from dataclasses import dataclass

FIRST_S, LONGEST_S = 1.0, 300.0
_MOST_ROUTES = 3  # of a bot, before all of its requests pause
_ALL = "*"  # stands for all routes of a bot
_MOST = 1000  # pauses that are remembered
_FORGOTTEN_S = 3600.0  # after which a refusal is the first again


@dataclass(frozen=True, slots=True)
class RoutePause:
    """One bot's requests to one route, or to all: none until then."""

    until: float
    length_s: float


class Firewall:
    """The pauses after its refusals."""

    def __init__(self) -> None:
        self._pauses: dict[tuple[str, str], RoutePause] = {}
        self._suspect: tuple[str, float] | None = None  # the bot refused first, and when it had sent

    @property
    def is_alert(self) -> bool:
        """Whether it has refused a request of late; if not, nothing else need be asked."""
        return self._suspect is not None or bool(self._pauses)

    def paused_until(self, bot: str, route: str) -> float:
        """Return until when a bot's requests to a route pause, 0 if they do not."""
        pauses = (self._pauses.get((bot, one)) for one in (route, _ALL))
        return max((pause.until for pause in pauses if pause is not None), default=0.0)

    def pauses_all(self, bot: str, now: float) -> bool:
        """Return whether all requests of a bot pause, and not only those to one route."""
        pause = self._pauses.get((bot, _ALL))
        return pause is not None and now < pause.until

    def refused(self, bot: str, route: str, sent_at: float, now: float) -> bool:
        """Take in that a request sent at `sent_at` was refused; return whether the address is shut out."""
        self._pauses = {key: one for key, one in self._pauses.items() if now - one.until < _FORGOTTEN_S}
        if len(self._pauses) >= _MOST:
            del self._pauses[next(iter(self._pauses))]
        self._pause(bot, route, now)
        if sum(whose == bot for whose, _ in self._pauses) > _MOST_ROUTES:
            self._pause(bot, _ALL, now)
        if self._suspect is None:
            self._suspect = bot, sent_at
        return self._suspect[0] != bot

    def _pause(self, bot: str, route: str, now: float) -> None:
        before = self._pauses.get((bot, route))
        if before is None or now >= before.until:  # otherwise it was under way when the pause began
            length_s = FIRST_S if before is None else min(2 * before.length_s, LONGEST_S)
            self._pauses[bot, route] = RoutePause(now + length_s, length_s)

    def accepted(self, bot: str, route: str, sent_at: float) -> None:
        """Take in that a request that was sent at `sent_at` passed the firewall."""
        for one in (route, _ALL):
            self._pauses.pop((bot, one), None)
        if self._suspect is not None and sent_at > self._suspect[1]:
            self._suspect = None
