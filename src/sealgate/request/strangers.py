"""Wrong tokens: whom they are counted with, and how long the answer to a further one is held back."""

from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network, ip_address

_ONE_CUSTOMER = 64  # bits of an IPv6 address that a provider gives to one
FREE = 10  # wrong tokens that are answered at once
FORGIVEN_AFTER_S = 1.0  # each
HELD_BACK_S = 1.0
_MOST_DEBT = 60
_MOST_ORIGINS = 1024


class WrongTokens:
    """One number for each origin: when all its wrong tokens are forgiven. The oldest are forgotten.

    After some in a row, the answer to each further one is held back. Only failures are: a right token passes
    at once wherever it comes from, so that no program can lock out a bot behind the same address. What makes
    guessing hopeless is the size of a token; this keeps a bot with an old token, or a guesser, from filling
    log and time.
    """

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


def origin_of(client: str) -> str:
    """Return whom a client is counted with: all of an IPv6 address that a provider gives to one customer."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(IPv6Network((address, _ONE_CUSTOMER), strict=False))
    return str(address)
