"""The place of the admin socket: ours alone, or not at all."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from sealgate.config.files import OFF, default_places, why_not_private
from sealgate.machine.process import StartError
from sealgate.server.sockets import UnixSocket, bind_admin


@pytest.fixture
def runtime(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose default place is in the test's own folder."""
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


def bound(setting: Path | str | None, environ: dict[str, str]) -> UnixSocket:
    found = bind_admin(setting, environ)
    assert found is not None
    return found


def test_the_default_places() -> None:
    own = Path(f"/tmp/sealgate-{os.geteuid()}/admin.sock")  # noqa: S108 - its folder is checked
    assert default_places({}) == (own,)
    assert default_places({"XDG_RUNTIME_DIR": "relative"}) == (own,)
    assert default_places({"XDG_RUNTIME_DIR": "/run/user/7"})[0] == Path("/run/user/7/sealgate/admin.sock")
    assert default_places({"XDG_RUNTIME_DIR": "/run/user/7"})[1] == own


def test_it_is_ours_alone(runtime: dict[str, str], tmp_path: Path) -> None:
    control = bound(None, runtime)
    with closing(control.sock):
        assert control.path == tmp_path / "sealgate" / "admin.sock"
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(control.path.parent.stat().st_mode) == 0o700


def test_a_second_gateway_does_not_start_at_the_same_place(runtime: dict[str, str], tmp_path: Path) -> None:
    """Else `sealgate halt` would stop the first one's orders, and nobody would know of the second."""
    for setting in (None, tmp_path / "own" / "admin.sock"):
        with (
            closing(bound(setting, runtime).sock),
            pytest.raises(
                StartError,
                match=r"process \d+\) listens there, most likely another gateway; .* set admin\.unix to",
            ),
        ):
            bind_admin(setting, runtime)


def test_it_can_be_turned_off() -> None:
    assert bind_admin(OFF, {}) is None


def _open_to_others(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(0o750)


def _a_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("make", "words"),
    [(_open_to_others, "open to others"), (_a_link, "is not a folder"), (Path.touch, "is not a folder")],
)
def test_a_folder_that_is_not_ours_alone_is_not_used(
    runtime: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: object,
    words: str,
) -> None:
    assert callable(make)
    make(tmp_path / "sealgate")
    assert bind_admin(None, runtime) is None
    assert words in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(runtime: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "sealgate"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    assert why_not_private(folder) == "belongs to user 12345"
    assert bind_admin(None, runtime) is None
