"""The inputs and outputs of pacing, as frozen values.

Times are absolute seconds on the clock that `now` is read from. A cost is what the limit counts, 1 for most.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum

from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

OWN_BOT = "(gateway)"  # in whose name the gateway asks; no bot can have this name
ONLY = ("all",)  # the pools of a limit of which nothing more is known
LONGEST_DEADLINE_MS = 3_600_000  # nothing that is an hour old is worth sending


@dataclass(slots=True, init=False)
class Claim:
    """A request in the queue. `is_again`: it was refused once, and precedes its bot's other claims.

    Of those with one `serial` a single one is under way at a time; "" is none.
    Claims with an equal `alike` want the same reply at the same cost: once one of them goes, the others that
    wait need not. None is like no other. `pools` are the places of those that it passes, from the narrowest;
    `subjects` are whom the exchange may shut out with it: its key, account and address.
    """

    id: str
    bot: str
    lane: Lane
    give_up_at: float
    weight: float
    cost: float
    is_read: bool
    is_again: bool
    serial: str
    pools: tuple[str, ...]
    subjects: tuple[str, ...]
    key: str
    alike: Hashable  # mypyc cannot make a dataclass with an `object`: the module fails to load

    # Written out, as are those of Answer and Reply: mypyc does not compile the one that `dataclass` makes.
    def __init__(  # noqa: PLR0913, PLR0917 - its fields
        self,
        id: str,  # noqa: A002 - the field's name
        bot: str,
        lane: Lane,
        give_up_at: float,
        weight: float = 1.0,
        cost: float = 1.0,
        is_read: bool = False,  # noqa: FBT001, FBT002 - a field
        is_again: bool = False,  # noqa: FBT001, FBT002 - a field
        serial: str = "",
        alike: Hashable = None,
        pools: tuple[str, ...] = ONLY,
        subjects: tuple[str, ...] = (),
        key: str = "",
    ) -> None:
        self.id = id
        self.bot = bot
        self.lane = lane
        self.give_up_at = give_up_at
        self.weight = weight
        self.cost = cost
        self.is_read = is_read
        self.is_again = is_again
        self.serial = serial
        self.alike = alike
        self.pools = pools
        self.subjects = subjects
        self.key = key


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why the pacer does not send a claim: `slug` is a key of the table of reasons."""

    claim: Claim
    slug: str
    detail: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """What to do now: send `go`, answer `rejected`, look again at `look_again_at` (None: at the next event).

    `shared` are claims that left the line with another one, alike and among `go`: the claim, and that one.
    """

    go: tuple[Claim, ...]
    rejected: tuple[Rejection, ...]
    look_again_at: float | None
    shared: tuple[tuple[Claim, Claim], ...] = ()


class Fate(StrEnum):
    """How a sent claim ended, as far as the limit is concerned."""

    ACCEPTED = "accepted"
    LIMITED = "limited"
    BANNED = "banned"  # shut out, for longer than the limit itself would refuse
    LOST = "lost"  # nobody knows whether it was counted: taken as counted


@dataclass(frozen=True, slots=True)
class LimitReply:
    """The reply to a claim, as far as the rate limit is concerned.

    `retry_after_s` is what a 429 stated, true to `resolution_s`: 1 for whole seconds and dates, 0 for a
    fraction; if `is_documented`, the reply stated nothing, and the exchange's documents ask for that wait.
    `quotas` are what the header fields said. `words` are the exchange's own about a refusal, "" without any.
    `pools` are the names of those that may have refused, none where that is not said; `shuts_out` is the
    subject of which everything is refused, "" where it is only what passes the pools. `server_now` is the
    exchange's time, in epoch seconds, where it was known.
    """

    fate: Fate
    retry_after_s: float | None = None
    resolution_s: float = 1.0
    quotas: tuple[Quota, ...] = ()
    words: str = ""
    is_documented: bool = False
    pools: tuple[str, ...] = ()
    shuts_out: str = ""
    server_now: float | None = field(default=None, compare=False)

    @property
    def is_refusal(self) -> bool:
        """Whether the exchange refused it for its limit, so that nothing is sent for a while."""
        return self.fate is Fate.LIMITED or self.fate is Fate.BANNED
