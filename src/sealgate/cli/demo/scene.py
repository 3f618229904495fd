"""The scene at one moment: both teams, the exchanges' journals, the key and the clock."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.cli.demo.gauges import DemoKey, Gateway, Journal
from sealgate.cli.demo.stage import LIMIT_WINDOW_S
from sealgate.cli.demo.summary import Count, whole_windows
from sealgate.cli.demo.tally import Tally
from sealgate.cli.demo.teams import Team
from sealgate.gateway.platform.system import System


@dataclass(frozen=True, slots=True)
class Column:
    """One team at one moment: what its bots counted, and what the exchange's journal says."""

    tallies: Mapping[str, Tally]
    count: Count


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is shown at one moment, `elapsed_s` after the start.

    `windows` of the limit are over by then, and were not yet begun at the start.
    """

    elapsed_s: float
    key: DemoKey
    through: Column
    alone: Column
    windows: range = range(0)


@dataclass(frozen=True, slots=True)
class Side:
    """A team and the journal of its exchange."""

    team: Team
    journal: Journal

    def column(self) -> Column:
        """Return its part of the picture."""
        by_window = dict(self.journal.by_window)
        return Column(self.team.tallies, Count(sum(by_window.values()), self.journal.limited, by_window))


@dataclass(frozen=True, slots=True)
class Scene:
    """What the pictures are taken of; the start is a reading of `host.now`, and one of `host.wall`."""

    system: System
    started: float
    started_wall_s: float
    gateway: Gateway
    through: Side
    alone: Side

    async def picture(self) -> Picture:
        """Ask everybody, and put the answers together."""
        elapsed_s, wall_s = self.system.now() - self.started, self.system.wall()
        await asyncio.gather(self.gateway.read(), self.through.journal.read(), self.alone.journal.read())
        return Picture(
            elapsed_s=elapsed_s,
            key=self.gateway.key,
            through=self.through.column(),
            alone=self.alone.column(),
            windows=whole_windows(self.started_wall_s, wall_s, LIMIT_WINDOW_S),
        )
