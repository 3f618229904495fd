"""The journal's file before it is used: whose it is, what is in it, and who else has it."""

import errno
import fcntl
import os
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from orders.journal.test_orders import ORDER
from sealgate.orders.journal import JournalError, LimitsTable, orders
from sealgate.orders.journal.file import VERSION, Lock, connect, is_in_use, lock_file, prepare
from sealgate.orders.journal.orders import sent_row, settled_row
from sealgate.orders.outcome import Conclusion, Ending

STRANGER = 4711

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def value(file: Path, pragma: str) -> object:
    with closing(connect(file)) as database:
        return database.execute(f"PRAGMA {pragma}").fetchone()[0]


def make_version_1(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE learned (subject TEXT PRIMARY KEY, limits TEXT, at REAL) STRICT")
        database.execute("INSERT INTO learned VALUES ('s', '[]', 1.0)")
        database.execute("PRAGMA user_version = 1")


def test_it_is_readable_by_its_owner_only(file: Path) -> None:
    file.touch(0o644)
    prepare(file)
    with closing(connect(file)) as database, database:
        database.execute("INSERT INTO learned VALUES ('s', '[]', 1.0)")
        assert {mode(part) for part in file.parent.iterdir()} == {0o600}


def test_a_file_of_version_1_is_taken_over(file: Path) -> None:
    make_version_1(file)
    prepare(file)
    assert (value(file, "user_version"), value(file, "auto_vacuum")) == (VERSION, 2)
    assert LimitsTable(file).learned("s", 1.0) == []
    prepare(file)


def test_the_orders_of_a_file_of_an_earlier_version_stay(file: Path) -> None:
    prepare(file)
    with closing(connect(file)) as database:
        orders.write(database, [settled_row(ORDER, Ending(Conclusion.UNKNOWN, ORDER.fence_ms), 0)])
        database.execute("ALTER TABLE orders DROP COLUMN sent_body")
        database.execute("PRAGMA user_version = 4")
    prepare(file)
    assert value(file, "user_version") == VERSION
    with closing(connect(file)) as database:
        (doubt,) = orders.in_doubt(database, orders.ALL)
        assert (doubt.id, doubt.terms_words) == (ORDER.id, "")
        orders.write(database, [sent_row(ORDER._replace(id="new", sent_body=b"{}"))])


def test_a_file_of_version_6_counts_by_the_rule_of_this_one(file: Path) -> None:
    """It counted an order that was not sent after all."""
    prepare(file)
    with closing(connect(file)) as database:
        for name in ("orders_are_counted", "counts_follow_orders"):
            database.execute(f"DROP TRIGGER IF EXISTS {name}")
        database.execute(
            "CREATE TRIGGER orders_are_counted AFTER INSERT ON orders WHEN NEW.counted > 0 BEGIN"
            " INSERT INTO counted VALUES (NEW.bot, NEW.sent_ms / 1000, NEW.counted); END"
        )
        database.execute("PRAGMA user_version = 6")
    prepare(file)
    with closing(connect(file)) as database:
        one = ORDER._replace(counted=1)
        orders.write(database, [settled_row(one, Ending(Conclusion.NOT_SENT, 0), 0)])
        assert list(orders.passed(database)) == []


def test_a_new_file_can_give_space_back(file: Path) -> None:
    prepare(file)
    assert (value(file, "auto_vacuum"), value(file, "journal_mode")) == (2, "wal")


def damage(file: Path) -> None:
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xff" * 4096)


def test_a_damaged_file_is_not_used(file: Path) -> None:
    prepare(file)
    with closing(connect(file)) as database, database:
        rows = [(str(number), "[]" * 100, 1.0) for number in range(100)]
        database.executemany("INSERT INTO learned VALUES (?, ?, ?)", rows)
    damage(file)
    with pytest.raises(JournalError, match=r"journal\.db: .+; move it away, and look up"):
        prepare(file)


def test_damage_that_only_a_check_finds(file: Path) -> None:
    prepare(file)
    with closing(connect(file)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'orders_in_doubt'")
    with pytest.raises(JournalError, match="move it away, and look up"):
        prepare(file)


def test_a_cut_file_is_not_used(file: Path) -> None:
    prepare(file)
    with file.open("r+b") as raw:
        raw.truncate(5000)
    with pytest.raises(JournalError, match="malformed; move it away"):
        prepare(file)


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o772, 0o1777, 0o1775])
def test_a_folder_that_others_may_write(file: Path, bits: int) -> None:
    file.parent.chmod(bits)
    with pytest.raises(JournalError) as caught:
        prepare(file)
    fix = "use a folder of this user" if bits & stat.S_ISVTX else f"chmod go-w {file.parent}"
    assert f"others may write to its folder {file.parent} (mode {bits:04o}); {fix}" in str(caught.value)
    assert not file.exists()


@needs_root
@pytest.mark.parametrize("bits", [0o700, 0o755, 0o1777])
def test_a_folder_of_another_user(file: Path, bits: int) -> None:
    file.parent.chmod(bits)
    os.chown(file.parent, STRANGER, -1)
    with pytest.raises(JournalError, match=f"belongs to user {STRANGER}, neither this one nor root"):
        prepare(file)
    assert not file.exists()


@needs_root
def test_a_link_of_another_user_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    os.chown(tmp_path / "link", STRANGER, -1, follow_symlinks=False)
    with pytest.raises(JournalError, match=f"a link that belongs to user {STRANGER}"):
        prepare(tmp_path / "link" / "journal.db")


def test_a_folder_in_its_place(file: Path) -> None:
    file.mkdir()
    with pytest.raises(JournalError, match="is a directory; choose a writable path"):
        prepare(file)


def test_a_folder_that_is_gone(file: Path) -> None:
    with pytest.raises(JournalError, match="no such file or directory; choose"):
        prepare(file / "journal.db")


def test_where_write_ahead_logging_does_not_work(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *_args, **_options: real(":memory:"))
    with pytest.raises(JournalError, match="write-ahead logging does not work there"):
        prepare(file)


def test_one_gateway_at_a_time(file: Path) -> None:
    prepare(file)
    assert not is_in_use(file)
    lock = Lock(file)
    assert is_in_use(file)
    with pytest.raises(JournalError, match="another gateway uses it; stop that one, or give each"):
        Lock(file)
    lock.release()
    assert not is_in_use(file)
    Lock(file).release()


def test_a_lock_that_cannot_be_made(file: Path) -> None:
    with pytest.raises(JournalError, match="no such file or directory; choose a writable path"):
        Lock(file / "journal.db")


def test_a_disk_without_locks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one line, and nothing stays open."""
    descriptors: list[int] = []

    def flock(descriptor: int, _kind: int) -> None:
        descriptors.append(descriptor)
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    for ask in (Lock, is_in_use):
        with pytest.raises(JournalError) as raised:
            ask(file)
        cause = "it cannot be locked: no locks available"
        assert str(raised.value) == f"journal.file {file}: {cause}; choose a path on a disk of this machine"
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(descriptors.pop())


def test_it_has_a_file_of_its_own(file: Path) -> None:
    assert lock_file(file) == file.with_name("journal.db-lock")
    Lock(file).release()
    assert lock_file(file).stat().st_mode & 0o777 == 0o600
    assert not file.exists()


def test_where_there_is_none_nobody_has_it_and_none_is_made(file: Path) -> None:
    assert not is_in_use(file)
    assert not lock_file(file).exists()


def test_a_folder_in_the_place_of_its_lock(file: Path) -> None:
    lock_file(file).mkdir()
    with pytest.raises(JournalError, match="is a directory; choose a writable path"):
        Lock(file)


def test_a_program_that_the_gateway_starts_does_not_inherit_it(file: Path) -> None:
    """A `cmd:` that leaves a process behind would keep the next gateway out for ever."""
    lock = Lock(file)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        assert not is_in_use(file)
        assert child.stdin is not None
        child.stdin.close()
