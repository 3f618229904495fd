"""An exchange where everything goes wrong by a seed: it notes what it did about each request, and why.

The last segment of a target is the request's id. `deeds` are the truth that the bots' replies are held
against. The weather is what happens to all connections at once.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded

from rig import faults
from rig.acts import Act
from rig.door import Welcome
from rig.faults import Faults
from rig.upstream import Received, Upstream
from rig.wire import let_pass

Change = Callable[[], None]
Tables = dict[str, Faults]

_TARGET = re.compile(rb"[A-Z]+ \S*/([^/ ]+) HTTP/1\.1")
_EXECUTES = {"done": 1.0, "refused": 0.0, "server error": 0.5, "lost": 0.5, "late": 0.5, "cut": 0.5}
# How often each comes in a deck, which is dealt to its end: so each comes, whatever the seed.
_DECK = Counter(
    {
        "done": 70,
        "refused": 3,
        "server error": 3,
        "pause": 1,
        "timestamp": 1,
        "lost": 14,
        "late": 3,
        "cut": 2,
    }
)
_UNREAD, _UNWELCOME, _CODED = 0.06, 0.25, 0.7  # how often


@dataclass
class Deed:
    """What an exchange did about one id.

    `begun` counts first lines, `refusals` the receipts that a 429 or a timestamp's 401 answered, `receipts`
    the others, `executed` how often it was done; `bodies` are those of the whole replies, `how` names what
    was answered.
    """

    begun: int = 0
    refusals: int = 0
    receipts: int = 0
    executed: int = 0
    bodies: list[bytes] = field(default_factory=list)
    how: list[str] = field(default_factory=list)


class Mischief:
    """Drives an upstream. The same seed makes the same choices, in the order in which requests come.

    `without` names answers that it never gives. `by_codes`: it says what it means in an HTTP 200, too.
    """

    def __init__(
        self, upstream: Upstream, seed: int, without: Collection[str] = (), *, by_codes: bool = False
    ) -> None:
        self.deeds: defaultdict[str, Deed] = defaultdict(Deed)
        self.seen: Counter[str] = Counter()
        self._upstream = upstream
        self._chance = Random(seed)
        self._deck: list[str] = []
        self._without = frozenset(without)
        self._by_codes = by_codes
        upstream.early, upstream.script = self._before_it_is_read, self._answer
        upstream.door.script = self._welcome
        lost = {**faults.LOST, **(faults.LOST_IN_TLS if upstream.is_tls else {})}
        self._tables: Tables = {
            "done": faults.DONE,
            "refused": faults.REFUSED,
            "server error": faults.SERVER_ERROR,
            "lost": lost,
            "late": faults.LATE,
            "cut": faults.CUT_WHILE_PASSED_ON,
        }
        if by_codes:
            more = (
                ("done", faults.CODED_DONE),
                ("refused", faults.CODED_REFUSED),
                ("server error", faults.CODED_UNKNOWN),
                ("lost", faults.CODED_LOST),
            )
            self._tables |= {kind: {**self._tables[kind], **table} for kind, table in more}

    @property
    def kinds(self) -> set[str]:
        """The kinds of what has gone wrong so far, such as "lost"."""
        return {name.partition(":")[0] for name in self.seen}

    @property
    def kinds_by_code(self) -> set[str]:
        """The kinds of what was said by a code in a body so far."""
        return {name.partition(":")[0] for name in self.seen if "code" in name}

    async def weather(self) -> None:
        """Refuse or swallow connections and cut those that are, from time to time, until cancelled."""
        door = self._upstream.door
        turns: tuple[tuple[str, Change, float], ...] = (
            ("weather: all cut", door.reopen, 0.0),
            ("weather: refused", door.shut, 0.03),
            ("weather: refused for long", door.shut, 0.5),
            ("weather: swallowed", door.block, 0.15),
        )
        try:
            while True:
                await let_pass(self._chance.uniform(0.1, 0.4))
                name, change, seconds = self._chance.choice(turns)
                self.seen[name] += 1
                change()
                self._upstream.cut_all()
                await let_pass(seconds)
                door.reopen()
        finally:
            door.reopen()

    def _welcome(self) -> Welcome | None:
        if self._chance.random() > _UNWELCOME:
            return None
        name = self._chance.choice(list(faults.WELCOMES))
        self.seen[f"welcome: {name}"] += 1
        return faults.WELCOMES[name]

    def _before_it_is_read(self, line: bytes) -> Act | None:
        deed = self._deed(line)
        deed.begun += 1
        if self._chance.random() > _UNREAD:
            return None
        name = self._chance.choice(list(faults.UNREAD))
        self._note(deed, "unread", name)
        return faults.UNREAD[name]

    def _deed(self, line: bytes) -> Deed:
        found = _TARGET.fullmatch(line)
        return self.deeds[found[1].decode() if found else repr(line)]

    def _note(self, deed: Deed, kind: str, name: str) -> None:
        deed.how.append(f"{kind}: {name}")
        self.seen[deed.how[-1]] += 1

    def _answer(self, request: Received) -> Act:
        deed = self._deed(request.head.line)
        kind = self._deal()
        if kind not in self._tables:
            return self._refuse_for_now(deed, kind)
        deed.receipts += 1
        deed.executed += self._chance.random() < _EXECUTES[kind]
        name = self._chance.choice(list(self._tables[kind]))
        self._note(deed, kind, name)
        body = b'{"n":%d,"id":"%b"}' % (len(self._upstream.received), request.target.rpartition(b"/")[2])
        act = self._tables[kind][name](body)
        if kind in ("done", "refused", "server error"):
            deed.bodies += [body, *(faults.bodies_with_codes(body) if self._by_codes else ())]
        return act

    def _deal(self) -> str:
        if not self._deck:
            self._deck = [kind for kind in _DECK.elements() if kind not in self._without]
            self._chance.shuffle(self._deck)
        return self._deck.pop()

    def _refuse_for_now(self, deed: Deed, kind: str) -> Act:
        deed.refusals += 1
        if self._by_codes and self._chance.random() < _CODED:
            self._note(deed, kind, "for now, by a code")
            if kind == "pause":
                return faults.pause_by_code(self._chance.choice((b"50011", b"50013")))
            return faults.timestamp_refusal_by_code()
        self._note(deed, kind, "for now")
        return faults.pause() if kind == "pause" else faults.timestamp_refusal(self._upstream.now_ms())


async def stop(task: "asyncio.Task[None]") -> None:
    """End a background task."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
