"""The lock beside the journal; that one gateway has it at a time is in test_file.py."""

import subprocess
from pathlib import Path

import pytest

from sealgate.gateway.journal import JournalError
from sealgate.gateway.journal.file import Lock, is_in_use, lock_file


def test_it_has_a_file_of_its_own(file: Path) -> None:
    assert lock_file(file) == file.with_name("journal.db-lock")
    Lock(file).release()
    assert lock_file(file).stat().st_mode & 0o777 == 0o600
    assert not file.exists()


def test_where_there_is_none_nobody_has_it_and_none_is_made(file: Path) -> None:
    assert not is_in_use(file)
    assert not lock_file(file).exists()


def test_a_folder_in_its_place(file: Path) -> None:
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
