"""The journal's file before it is used: whose it is, what is in it, and who else has it."""

import errno
import fcntl
import os
import re
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rig.damage import damage
from sealgate.orders.journal import JournalError
from sealgate.orders.journal.file import as_journal_error, connect, prepare
from sealgate.orders.journal.lock import UNNAMED, Lock, lock_file, user_of

STRANGER = 4711

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def value(file: Path, pragma: str) -> object:
    with closing(connect(file)) as database:
        return database.execute(f"PRAGMA {pragma}").fetchone()[0]


def test_it_is_readable_by_its_owner_only(file: Path) -> None:
    file.touch(0o644)
    prepare(file)
    with closing(connect(file)) as database, database:
        database.execute("INSERT INTO learned VALUES ('s', '[]', 1.0)")
        assert {mode(part) for part in file.parent.iterdir()} == {0o600}


def test_a_new_file_can_give_space_back(file: Path) -> None:
    prepare(file)
    assert (value(file, "auto_vacuum"), value(file, "journal_mode")) == (2, "wal")


@pytest.mark.parametrize("version", [1, 99])
def test_a_journal_of_another_version_is_left_as_it_is(file: Path, version: int) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE news (of TEXT)")
        database.execute(f"PRAGMA user_version = {version}")
    told = f"created by another version ({version}); start the version of Sealgate that created it"
    with pytest.raises(JournalError, match=re.escape(told)):
        prepare(file)
    with closing(sqlite3.connect(file)) as database:
        assert list(database.execute("SELECT name FROM sqlite_schema")) == [("news",)]


def test_a_database_of_another_program_is_left_as_it_is(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE news (of TEXT)")
    with pytest.raises(JournalError, match="it is not a journal; start the gateway once, or name another"):
        prepare(file)
    with closing(sqlite3.connect(file)) as database:
        assert list(database.execute("SELECT name FROM sqlite_schema")) == [("news",)]


def test_a_file_that_is_no_database(file: Path) -> None:
    file.write_text("not a database, " * 100)
    with pytest.raises(JournalError, match=r"journal\.db: file is not a database; name another"):
        prepare(file)
    assert file.read_text().startswith("not a database")


def test_an_empty_file_is_used(file: Path) -> None:
    file.touch()
    prepare(file)
    assert value(file, "integrity_check") == "ok"


def test_no_connection_makes_a_file(file: Path) -> None:
    """An empty one in the place of one that was moved away would know no order."""
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect(file)
    assert not file.exists()


def test_a_full_disk_under_a_journal_asks_for_space_and_not_for_another_file(file: Path) -> None:
    """SQLite says only `disk I/O error` of it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    with (
        pytest.raises(JournalError, match=r"journal\.db: disk I/O error; free space on that disk, or repair"),
        as_journal_error(file),
    ):
        raise error


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
    assert user_of(file) is None
    lock = Lock(file)
    assert user_of(file) == UNNAMED, "nobody takes this process for another"
    with pytest.raises(JournalError, match="another gateway uses it; stop the other gateway"):
        Lock(file)
    lock.release()
    assert user_of(file) is None
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
    for ask in (Lock, user_of):
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
    assert user_of(file) is None
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
        assert user_of(file) is None
        assert child.stdin is not None
        child.stdin.close()
