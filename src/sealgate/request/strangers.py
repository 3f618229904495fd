"""Wrong tokens: the origin that they count for, and the delay of the reply to a further one."""

from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network, ip_address

_ONE_CUSTOMER = 64  # bits of an IPv6 prefix that a provider assigns to one customer
FREE = 10  # wrong tokens that are answered immediately
FORGIVEN_AFTER_S = 1.0  # each
HELD_BACK_S = 1.0
_MOST_DEBT = 60
_MOST_ORIGINS = 1024


class WrongTokens:
    """For each origin, the time when all its wrong tokens are forgiven. The oldest origins are forgotten.

    After several in a row, the reply to each further one is delayed. Only failures are delayed: a valid token
    passes immediately from anywhere, so that no program can lock out a bot at the same address. Guessing is
    hopeless because of a token's size; this only keeps a bot with an old token, or a guesser, from filling
    the log and wasting time.
    """

    def __init__(self) -> None:
        self._clear_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clear_at)

    def note(self, origin: str, now: float) -> float:
        """Count one more, and return the delay of its reply in seconds."""
        debt_s = max(self._clear_at.pop(origin, now) - now, 0.0) + FORGIVEN_AFTER_S
        self._clear_at[origin] = now + min(debt_s, _MOST_DEBT * FORGIVEN_AFTER_S)
        if len(self._clear_at) > _MOST_ORIGINS:
            self._clear_at.popitem(last=False)
        return HELD_BACK_S if debt_s > FREE * FORGIVEN_AFTER_S else 0.0


def origin_of(client: str) -> str:
    """Return the origin of a client: its IP address, for IPv6 the prefix of one customer."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(IPv6Network((address, _ONE_CUSTOMER), strict=False))
    return str(address)
