"""A wall clock that jumps makes no Idempotency-Key forgotten."""

from pathlib import Path

import pytest

from orders.journal.test_orders import DONE, KEEPING, ORDER, order, until
from sealgate.machine.system import System
from sealgate.orders.journal import OrderJournal, writer
from sealgate.orders.journal.ledger import Ledger
from sealgate.orders.journal.orders import settled_row
from sealgate.orders.journal.writer import Ages

DAY_S = 86400.0


class JumpyHost(System):
    """Its wall clock is set ahead, or back, by hand."""

    ahead_s = 0.0

    def wall(self) -> float:
        """Return the wrong time."""
        return super().wall() + self.ahead_s


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_LOOK_S", 0.005)


async def looked_after(book: OrderJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a round of pruning that began from now on."""
    rounds: list[float] = []
    look_after = Ledger.look_after

    def noting(ledger: Ledger, wall: float) -> None:
        look_after(ledger, wall)
        rounds.append(wall)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "look_after", noting)
        await until(lambda: len(rounds) > 1)
    assert book.status.trouble is None


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
async def test_a_wall_clock_a_day_off_and_right_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    """What was settled before the jump is there, and what was settled while the clock was wrong."""
    file, system = tmp_path / "journal.db", JumpyHost()
    during = ORDER._replace(id="a1-2", idempotency_key="k-2")
    book = OrderJournal(file, KEEPING, system)
    await book.intent(ORDER)
    book.ended(ORDER, DONE)
    await book.intent(order(3))
    system.ahead_s = jump_s
    await looked_after(book, monkeypatch)
    await book.intent(during)
    book.ended(during, DONE)
    await looked_after(book, monkeypatch)
    system.ahead_s = 0.0
    await looked_after(book, monkeypatch)
    await book.close()
    book = OrderJournal(file, KEEPING, system)
    assert {kept.name.key for kept in book.recall()} == {"k-1", "k-2"}
    await book.close()


async def test_a_start_with_a_wall_clock_a_day_ahead_forgets_nothing_then_nor_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, system = tmp_path / "journal.db", JumpyHost()
    ledger = Ledger(file, KEEPING)
    ledger.write([settled_row(ORDER, DONE, int(system.wall() * 1000))])
    ledger.close()
    system.ahead_s = DAY_S
    book = OrderJournal(file, KEEPING, system)
    assert [kept.name.key for kept in book.recall()] == ["k-1"], "or its order could be sent twice now"
    await looked_after(book, monkeypatch)
    await book.close()
    system.ahead_s = 0.0
    book = OrderJournal(file, KEEPING, system)
    assert [kept.name.key for kept in book.recall()] == ["k-1"]
    await book.close()


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
        book = OrderJournal(file, KEEPING, system)
        assert {one.name.key for one in book.recall()} == keys
        await book.intent(ended)
        book.ended(ended, DONE)
        await book.intent(in_flight)
        await looked_after(book, monkeypatch)
        await book.close()
        keys |= {f"ended-{number}", f"in-flight-{number}"}


def test_time_for_which_gateways_ran_makes_orders_old() -> None:
    first = Ages(wall=1000.0, now=50.0, newest=None)
    assert first.at(now=50.0) == 1000.0
    assert first.at(now=60.0) == 1010.0
    assert Ages(wall=99_000.0, now=7.0, newest=1010.0).at(now=17.0) == 1020.0
