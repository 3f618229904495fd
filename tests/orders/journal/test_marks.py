"""A journal that was used and is gone: it is made anew, and said aloud."""

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.station import KEY, running_station
from rig.upstream import Upstream
from sealgate.orders.halts import Scope
from sealgate.orders.journal.marks import Marks

SECRET = "secret of one key"


class Site:
    """A gateway whose journal and secret are in folders of their own."""

    def __init__(self, upstream: Upstream, root: Path) -> None:
        self.upstream = upstream
        self.journal = root / "journals" / "journal.db"
        self.secret = root / "secrets" / "main"
        for file in (self.journal, self.secret):
            file.parent.mkdir(mode=0o700)
        self.secret.touch(mode=0o600)
        self.secret.write_text(SECRET)

    async def start(self, *, halt: bool = False) -> tuple[list[Any], str | None]:
        """Start it once; return what it logged of its journal, and what its status says is lost."""
        key = {**KEY, "secret": f"file:{self.secret}"}
        with capture_logs() as logged:
            async with running_station(
                self.upstream, {}, journal={"file": str(self.journal)}, keys={"main": key}
            ) as station:
                if halt:
                    await station.gateway.halt(Scope())
                lost = station.gateway.status().journal.lost
        return [line for line in logged if line["event"] in ("journal_lost", "journal_created")], lost

    def remove_journal(self) -> None:
        for file in self.journal.parent.glob("journal.db*"):
            file.unlink()


@pytest.fixture
def site(upstream: Upstream, tmp_path: Path) -> Site:
    return Site(upstream, tmp_path)


async def test_the_first_start_warns_of_nothing_and_neither_does_the_second(site: Site) -> None:
    [created], lost = await site.start()
    assert (created["event"], created["log_level"], lost) == ("journal_created", "info", None)
    assert await site.start() == ([], None)


@pytest.mark.parametrize("is_folder_gone", [False, True], ids=["the file", "its whole folder"])
async def test_a_journal_that_is_gone_is_said_aloud_at_the_next_start(
    site: Site, is_folder_gone: bool
) -> None:
    await site.start(halt=True)
    if is_folder_gone:
        site.journal.parent.rename(site.journal.parent.with_name("moved away"))
        site.journal.parent.mkdir(mode=0o700)
    else:
        site.remove_journal()
    [line], lost = await site.start()
    assert (line["event"], line["log_level"], line["cause"]) == ("journal_lost", "warning", lost)
    assert lost is not None
    assert lost.startswith(f"{site.journal}, which a gateway last opened on 2")
    assert lost.endswith("halts, orders in doubt and used Idempotency-Keys are forgotten")
    assert await site.start() == ([], None)


async def test_a_folder_of_secrets_that_is_read_only_does_not_stop_the_start(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def read_only(path: Any, flags: int, *others: Any, **options: Any) -> int:
        if str(path).startswith(str(site.secret.parent)) and flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return real(path, flags, *others, **options)

    monkeypatch.setattr(os, "open", read_only)
    await site.start()
    assert [*site.secret.parent.iterdir()] == [site.secret]
    site.remove_journal()
    [line], _ = await site.start()
    assert line["event"] == "journal_lost"  # by the mark beside it


def test_gateways_that_share_a_folder_of_secrets_have_marks_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two", "secrets"):
        (tmp_path / name).mkdir(mode=0o700)
    one, two = (Marks(tmp_path / name / "journal.db", (tmp_path / "secrets",)) for name in ("one", "two"))
    one.leave()
    assert one.lost() is not None
    assert two.lost() is None


def test_a_mark_follows_no_link(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "journal.db", ())
    marks.leave()
    [mark] = tmp_path.iterdir()
    mark.unlink()
    (tmp_path / "precious").write_text("precious")
    mark.symlink_to("precious")
    marks.leave()
    assert (tmp_path / "precious").read_text() == "precious"
