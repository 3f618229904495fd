"""A wall clock that jumps makes no Idempotency-Key forgotten."""

import sqlite3
from pathlib import Path

import pytest

from rig.journals import DONE, KEEPING, ORDER, order
from rig.wire import until
from sealgate.machine.system import System
from sealgate.orders.journal import Journal, thread
from sealgate.orders.journal import journal as journal_module
from sealgate.orders.journal.upkeep import Keeping, look_after

DAY_S = 86400.0


class JumpyHost(System):
    """Its wall clock is set ahead, or back, by hand."""

    ahead_s = 0.0

    def wall(self) -> float:
        """Return the wrong time."""
        return super().wall() + self.ahead_s


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "_LOOK_S", 0.005)


async def looked_after(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a round of pruning that began from now on."""
    rounds: list[float] = []

    def noting(database: sqlite3.Connection, keeping: Keeping, now_s: float) -> None:
        look_after(database, keeping, now_s)
        rounds.append(now_s)

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "look_after", noting)
        await until(lambda: len(rounds) > 1)
    assert journal.status.trouble is None


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
async def test_a_wall_clock_a_day_off_and_right_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    """What was settled before the jump is there, and what was settled while the clock was wrong."""
    file, system = tmp_path / "journal.db", JumpyHost()
    during = ORDER._replace(id="a1-2", idempotency_key="k-2")
    journal = Journal(file, KEEPING, system)
    await journal.intent(ORDER)
    journal.ended(ORDER, DONE)
    await journal.intent(order(3))
    system.ahead_s = jump_s
    await looked_after(journal, monkeypatch)
    await journal.intent(during)
    journal.ended(during, DONE)
    await looked_after(journal, monkeypatch)
    system.ahead_s = 0.0
    await looked_after(journal, monkeypatch)
    await journal.close()
    journal = Journal(file, KEEPING, system)
    assert {kept.name.key for kept in journal.recall()} == {"k-1", "k-2"}
    await journal.close()


@pytest.mark.parametrize("aheads_s", [(2 * DAY_S, 2 * DAY_S), (-2 * DAY_S, 0.0), (0.0, 5 * DAY_S, 9 * DAY_S)])
async def test_starts_by_a_wall_clock_that_is_wrong_forget_no_key(
    file: Path, monkeypatch: pytest.MonkeyPatch, aheads_s: tuple[float, ...]
) -> None:
    """Nor does what ends meanwhile, or is in flight at the end, make the keys of before old."""
    system = JumpyHost()
    keys = set[str]()
    for number, ahead_s in enumerate((0.0, *aheads_s, 0.0)):
        system.ahead_s = ahead_s
        ended, in_flight = (
            ORDER._replace(
                id=f"{name}-{number}", idempotency_key=f"{name}-{number}", sent_ms=int(system.wall() * 1e3)
            )
            for name in ("ended", "in-flight")
        )
        journal = Journal(file, KEEPING, system)
        assert {one.name.key for one in journal.recall()} == keys
        await journal.intent(ended)
        journal.ended(ended, DONE)
        await journal.intent(in_flight)
        await looked_after(journal, monkeypatch)
        await journal.close()
        keys |= {f"ended-{number}", f"in-flight-{number}"}
