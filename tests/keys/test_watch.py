"""Which files hold secrets, what tells one state of them from another, and when a change is told."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.hand_host import HandHost
from rig.station import make_config
from sealgate.config import Config
from sealgate.keys.watch import Debounce, SecretWatch, secret_paths

URL = "https://api.example.com"


def config_of(secret: str, *, session: str | None = None, token: str | None = None) -> Config:
    key: dict[str, Any] = {"api_key": "ak-1", "secret": secret}
    if session is not None:
        key["session"] = session
    bots = {} if token is None else {"grid": {"token": token, "key": "main"}}
    return make_config(URL, keys={"main": key}, bots=bots)


def test_the_files_of_keys_sessions_bots_and_credentials() -> None:
    config = config_of("file:/s/main", session="systemd:session", token="file:/s/grid")
    assert list(secret_paths(config, {"CREDENTIALS_DIRECTORY": "/c"})) == ["/s/main", "/c/session", "/s/grid"]


def test_the_file_of_a_proxys_password() -> None:
    proxy = {"proxy": "http://grid@127.0.0.1:3128", "proxy_password": "file:/s/proxy"}
    assert list(secret_paths(make_config("http://127.0.0.1:9", upstream=proxy), {})) == ["/s/proxy"]


def test_what_is_in_no_file_is_not_watched() -> None:
    config = config_of("env:S", session="systemd:session", token="cmd:pass file:/x")
    assert list(secret_paths(config, {})) == []


def write_again(file: Path) -> None:
    file.write_text("other")


def replace(file: Path) -> None:
    """Write what was there into a new file, as an editor does."""
    new = file.with_suffix(".new")
    new.write_text(file.read_text())
    new.rename(file)


def lead_elsewhere(file: Path) -> None:
    """Put a link in its place, to a file that was there before: its own times do not change."""
    file.unlink()
    file.symlink_to(file.with_name("older"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "written again": write_again,
    "replaced": replace,
    "gone": Path.unlink,
    "a link": lead_elsewhere,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(tmp_path: Path, change: Callable[[Path], object]) -> None:
    file = tmp_path / "main"
    file.write_text("s3cret")
    file.with_name("older").write_text("s3cret")
    config = config_of(f"file:{file}")
    watch = SecretWatch(lambda: config, {}, HandHost())
    before = watch.snapshot(config)
    assert watch.snapshot(config) == before
    os.utime(file, ns=(0, 0))
    before = watch.snapshot(config)
    change(file)
    assert watch.snapshot(config) != before


class Steps(HandHost):
    """Who would sleep does the next step instead, and is stopped after the last one."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._steps = [*steps]

    async def sleep(self, seconds: float) -> None:
        """Go on at once."""
        del seconds
        if not self._steps:
            raise asyncio.CancelledError
        self._steps.pop(0)()


def nothing() -> None:
    """Leave all as it is."""


async def told_by(config: Callable[[], Config], *steps: Callable[[], object]) -> int:
    """Return how often a change was told while the steps were done."""
    told = 0

    async def tell() -> None:
        nonlocal told
        told += 1

    watch = SecretWatch(config, {}, Steps(*steps))
    with pytest.raises(asyncio.CancelledError):
        await watch.run(tell)
    return told


async def test_a_change_is_told_once_it_has_come_to_rest(tmp_path: Path) -> None:
    file = tmp_path / "main"
    file.write_text("")
    config = config_of(f"file:{file}")
    in_steps = [lambda: file.write_text("half"), lambda: file.write_text("the whole"), nothing, nothing]
    assert await told_by(lambda: config, *in_steps[:2]) == 0
    assert await told_by(lambda: config, *in_steps) == 1


async def test_the_files_of_the_configuration_in_use_are_watched(tmp_path: Path) -> None:
    file = tmp_path / "main"
    file.write_text("s3cret")
    configs = [config_of("env:S")]
    change = [lambda: configs.append(config_of(f"file:{file}")), nothing, nothing]
    assert await told_by(lambda: configs[-1], *change) == 1


async def test_what_was_read_meanwhile_is_not_told(tmp_path: Path) -> None:
    file = tmp_path / "main"
    file.write_text("s3cret")
    config = config_of(f"file:{file}")
    told: list[str] = []

    async def tell() -> None:
        told.append("changed")

    def reload() -> None:
        file.write_text("other")
        watch.note(watch.snapshot(config))

    watch = SecretWatch(lambda: config, {}, Steps(reload, nothing, nothing))
    with pytest.raises(asyncio.CancelledError):
        await watch.run(tell)
    assert told == []


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ("aaa", [False, False, False]),
        ("abb", [False, False, True]),
        ("abbb", [False, False, True, False]),
        ("abab", [False, False, False, False]),
        ("abcc", [False, False, False, True]),
        ("abbaa", [False, False, True, False, True]),
        ("baaa", [False, False, False, False]),
    ],
)
def test_when_a_change_is_told(seen: str, told: list[bool]) -> None:
    debounce = Debounce("a")
    assert [debounce.is_settled(state) for state in seen] == told


def test_what_was_acted_on_is_not_told_again() -> None:
    debounce = Debounce("a")
    debounce.is_settled("b")
    debounce.accept("b")
    assert not debounce.is_settled("b")
    assert not debounce.is_settled("b")
