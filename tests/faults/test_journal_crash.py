"""The journal against the real thing: a process that is killed, a file that may grow no more."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.halts import read_halts
from sealgate.orders.journal.journal import orders_in_doubt

# Both run as programs of their own: the first is killed, the second has a limit that would hit pytest too.
START = """
import asyncio, json, resource, sys
from pathlib import Path
from sealgate.orders.outcome import Conclusion
from sealgate.orders.outcome import Ending
from sealgate.venues.routes import Lane
from sealgate.machine.system import System
from sealgate.orders.journal import Journal, Keeping, Order, thread

FILE = Path(sys.argv[1])
KEEPING = Keeping(3600.0, 10**8)
thread._LOOK_S = 0.01

def order(number):
    place = "mine", "grid", "spot", "main", "POST", "/order", Lane.ORDER, "/v1/trade/order", None, None
    return Order(f"a1-{number}", *place, 1_790_000_000_000, 1_790_000_005_000, 1, 1_790_000_000_000)
"""
WRITES_UNTIL_KILLED = f"""{START}
async def bot(book, first):
    for number in range(first, 10**9, 8):
        assert await book.intent(order(number))
        print(number, flush=True)
        if number % 2:
            book.ended(order(number), Ending(Conclusion.DONE))

async def main():
    book = Journal(FILE, KEEPING, System())
    await asyncio.gather(*(bot(book, first) for first in range(8)))

asyncio.run(main())
"""
HALTS_UNTIL_KILLED = f"""{START}
from functools import partial
from sealgate.orders.halts import Halt, Halts, Scope
from sealgate.orders.journal.halts import write_halts

async def main():
    book = Journal(FILE, KEEPING, System())
    for number in range(10**9):
        await book.run(partial(write_halts, halts=Halts(Halt(Scope(), number))))
        print(number, flush=True)

asyncio.run(main())
"""
FILLS_ITS_DISK = f"""{START}
async def main():
    book = Journal(FILE, KEEPING, System())
    assert await book.intent(order(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    number = 1
    while await book.intent(order(number)):
        number += 1
    trouble, is_refusing = book.status.trouble, book.status.is_refusing
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    while not await book.intent(order(number)):
        await asyncio.sleep(0)
    print(json.dumps([number, trouble, is_refusing, book.status.trouble]))
    await book.close()

asyncio.run(main())
"""


def ids_in(file: Path) -> set[str]:
    with closing(connect(file)) as database:
        return {one for (one,) in database.execute("SELECT id FROM orders")}


@pytest.mark.parametrize("acknowledged", [1, 50, 2000])
def test_every_order_that_was_promised_outlives_a_kill(tmp_path: Path, acknowledged: int) -> None:
    file = tmp_path / "journal.db"
    command = [sys.executable, "-c", WRITES_UNTIL_KILLED, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        told = [program.stdout.readline() for _ in range(acknowledged)]
        program.kill()
        told += [line for line in program.stdout if line.endswith("\n")]
    prepare(file)
    assert {f"a1-{line.strip()}" for line in told} <= ids_in(file)


def test_what_was_under_way_when_it_was_killed_can_be_settled(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    command = [sys.executable, "-c", WRITES_UNTIL_KILLED, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        while int(program.stdout.readline()):
            pass  # until the even number 0 is told, which is never settled
        with orders_in_doubt(file) as in_doubt:
            assert in_doubt.doubts == (), "its gateway lives"
        program.kill()
    with orders_in_doubt(file) as in_doubt:
        assert "a1-0" in {doubt.id for doubt in in_doubt.doubts}
        in_doubt.settle(in_doubt.doubts, 1_700_000_000_000)
    with orders_in_doubt(file) as in_doubt:
        assert in_doubt.doubts == ()


def test_a_halt_that_was_promised_outlives_a_kill_among_later_ones(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    command = [sys.executable, "-c", HALTS_UNTIL_KILLED, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        told = [program.stdout.readline() for _ in range(20)]
        program.kill()
        told += [line for line in program.stdout if line.endswith("\n")]
    prepare(file)
    with closing(connect(file)) as database:
        (halt,) = read_halts(database)
    assert halt.since_ms >= int(told[-1])


def test_a_file_that_may_grow_no_more(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    command = [sys.executable, "-c", FILLS_ITS_DISK, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    number, trouble, is_refusing, trouble_after = json.loads(lines[-1])
    assert "journal_failed" in lines[0]
    assert "journal_recovered" in lines[1]
    assert (bool(trouble), is_refusing, trouble_after) == (True, True, None)
    assert {f"a1-{one}" for one in range(number + 1)} <= ids_in(file), "those before and after"
