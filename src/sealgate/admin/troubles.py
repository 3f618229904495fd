"""What went wrong lately, for the page and the log: one record for each key and kind, however often it came.

The log gets a line when a kind comes up, and from then on at most one a minute with the number since the last
one: an exchange that is down must not fill a disk.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import structlog

from sealgate.core.catalogue import CATALOGUE, UpstreamError, Whose, doc_link
from sealgate.core.evidence import Known, evidence
from sealgate.core.outcome import Outcome

_MOST = 50  # records
_QUIET_S = 60.0

log = structlog.get_logger("sealgate.upstream")


@dataclass(slots=True)
class Trouble:
    """One kind of error of one key. Times are by the clock of `now`; `bot` had the latest one.

    `had_worked`: the key had been accepted before that one.
    """

    key: str
    kind: str
    bot: str
    count: int
    last_at: float
    unsaid: int
    said_at: float
    had_worked: bool = False


class Troubles:
    """A reader of outcomes. `known` says what is known of a key at this moment; it is asked rarely.

    `has_worked` holds the keys that were accepted since the start.
    """

    def __init__(self, known: Callable[[str], Known], has_worked: Collection[str] = ()) -> None:
        self._known = known
        self._has_worked = has_worked
        self._records: OrderedDict[tuple[str, str], Trouble] = OrderedDict()

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take a batch in."""
        for outcome in outcomes:
            for error in outcome.upstream_errors:
                self._take(error, outcome.key or "", outcome.bot or "")

    def latest(self) -> list[Trouble]:
        """Return the records, the latest first."""
        return list(reversed(self._records.values()))

    def _take(self, error: UpstreamError, key: str, bot: str) -> None:
        record = self._records.pop((key, error.kind), None)
        if record is None:
            record = Trouble(key, error.kind, bot, 0, error.at, 0, error.at - _QUIET_S)
        self._records[key, error.kind] = record
        if len(self._records) > _MOST:
            self._records.popitem(last=False)
        record.bot, record.last_at, record.had_worked = bot, error.at, key in self._has_worked
        record.count += 1
        record.unsaid += 1
        if error.at - record.said_at >= _QUIET_S:
            self._say(record)

    def _say(self, record: Trouble) -> None:
        row = CATALOGUE[record.kind]
        (log.info if row.whose is Whose.BOT else log.warning)(
            "upstream_error",
            kind=record.kind,
            key=record.key,
            bot=record.bot,
            count=record.unsaid,
            evidence=evidence(record.kind, self._known(record.key)) or None,
            advice=row.advice,
            see=doc_link(record.kind),
        )
        record.unsaid, record.said_at = 0, record.last_at
