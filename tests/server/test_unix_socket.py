"""The Unix socket: who can reach it, what it replaces, and what it leaves behind."""

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.bot import request
from rig.listeners import bot_on, needs_root, open_folder, unix_connection
from rig.station import running_station
from rig.upstream import Upstream, say_and_close
from sealgate.machine.process import StartError
from sealgate.server.sockets import UnixSocket, bind_unix

SETTING = "listen.unix"
STRANGER, GROUP = 4711, 4712


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "bots.sock"


@pytest.fixture
def bound(path: Path) -> Iterator[UnixSocket]:
    one = bind_unix(path, SETTING)
    yield one
    one.remove()
    one.sock.close()


def refusal(path: Path, group: int | None = None) -> str:
    with pytest.raises(StartError) as caught:
        bind_unix(path, SETTING, group)
    told = str(caught.value)
    assert told.startswith(f"cannot listen on {path}: ")
    assert "; " in told
    return told


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_socket_and_folder_are_ours_alone_whatever_the_umask(path: Path, umask: int) -> None:
    previous = os.umask(umask)
    try:
        bound = bind_unix(path, SETTING)
        assert os.umask(umask) == umask
    finally:
        os.umask(previous)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert not os.get_inheritable(bound.sock.fileno())
    bound.remove()
    bound.sock.close()
    assert not path.exists()
    assert path.parent.exists()


@needs_root
def test_a_group_is_let_in_to_the_socket_and_no_further(path: Path) -> None:
    bound = bind_unix(path, SETTING, GROUP)
    assert (mode(path), path.stat().st_gid) == (0o660, GROUP)
    assert (mode(path.parent), path.parent.stat().st_gid) == (0o710, GROUP)
    bound.sock.close()


def test_a_group_that_we_are_not_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chown(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path.parent.mkdir(mode=0o700)
    monkeypatch.setattr(os, "chown", chown)
    assert refusal(path, GROUP).endswith(": operation not permitted; add this user to the group")
    assert not path.exists()


def test_what_a_dead_gateway_left_is_replaced(path: Path) -> None:
    bind_unix(path, SETTING).sock.close()
    assert path.is_socket()
    again = bind_unix(path, SETTING)
    unix_connection(path).close()
    again.sock.close()


def test_a_socket_on_which_somebody_listens_stays(path: Path, bound: UnixSocket) -> None:
    who = f"another program (process {os.getpid()}) listens there, most likely another gateway"
    assert f"{who}; stop it, or set listen.unix" in refusal(path)
    bound.sock.listen(0)
    assert "another program listens there" in refusal(path)  # also while it cannot take one more


def test_what_is_no_socket_stays(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("x")
    assert "is not a socket; remove it" in refusal(path)
    assert path.read_text() == "x"


def test_a_link_is_never_followed(path: Path, tmp_path: Path) -> None:
    """Neither to a dead socket elsewhere, which would be removed, nor to nothing, which would be made."""
    path.parent.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    assert "is not a socket" in refusal(path)
    bind_unix(elsewhere, SETTING).sock.close()
    assert "is not a socket" in refusal(path)
    assert elsewhere.is_socket()


@needs_root
def test_a_socket_of_a_stranger_stays(path: Path) -> None:
    bind_unix(path, SETTING).sock.close()
    os.chown(path, STRANGER, -1)
    assert f"a socket of user {STRANGER} is there" in refusal(path)


@pytest.mark.parametrize("open_mode", [0o777, 0o775, 0o772])
def test_a_folder_in_which_others_can_replace_it(path: Path, open_mode: int) -> None:
    path.parent.mkdir()
    path.parent.chmod(open_mode)
    told = refusal(path)
    assert f"others may write to its folder {path.parent} (mode {open_mode:04o}); chmod go-w " in told
    assert not path.exists()


def test_a_sticky_folder_will_do(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o1777)
    bind_unix(path, SETTING).sock.close()


@needs_root
def test_a_folder_of_a_stranger(path: Path) -> None:
    path.parent.mkdir()
    os.chown(path.parent, STRANGER, -1)
    assert f"its folder {path.parent} belongs to user {STRANGER}, neither this one nor root; " in refusal(
        path
    )


def test_a_folder_in_no_folder(tmp_path: Path) -> None:
    told = refusal(tmp_path / "no" / "such" / "x.sock")
    assert told.endswith(": no such file or directory; set listen.unix to another path")


def test_two_that_start_at_once(path: Path) -> None:
    import fcntl  # noqa: PLC0415 - this test alone plays the other gateway

    path.parent.mkdir(mode=0o700)
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    assert "another gateway is starting there right now; try again" in refusal(path)
    os.close(folder)


def test_the_socket_of_a_successor_is_not_removed(path: Path, bound: UnixSocket) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as successor:
        successor.bind(str(path))
        bound.remove()
        assert path.is_socket()
    path.unlink()
    bound.remove()


async def test_bots_on_the_socket_alone(upstream: Upstream, path: Path) -> None:
    async with running_station(upstream, listen={"tcp": "", "unix": str(path)}) as station:
        assert station.gateway.listeners.urls == (f"unix:{path}",)
        with pytest.raises(LookupError):
            _ = station.gateway.address
        async with bot_on(unix_connection(path)) as bot:
            assert (await bot.ask(request())).status == 200
            assert (await bot.ask(request())).status == 200
    assert os.listdir(path.parent) == []  # noqa: PTH208 - nothing blocks here


async def test_a_large_reply_whose_end_could_not_be_told_from_a_cut(upstream: Upstream, path: Path) -> None:
    """A Unix socket knows no reset, and HTTP/1.0 no chunks: nothing is said rather than a part."""
    upstream.answers.append(say_and_close(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 400_000))
    async with (
        running_station(upstream, listen={"tcp": "", "unix": str(path)}) as station,
        bot_on(unix_connection(path)) as bot,
    ):
        await bot.send(request(b"POST", b"/v1/trade/order").replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert await bot.rest() == b""
        assert (await station.outcomes.until(1)).conclusion == "unknown"


async def test_while_draining_the_socket_is_gone_and_the_bot_on_it_served(
    upstream: Upstream, path: Path
) -> None:
    async with running_station(upstream, listen={"unix": str(path)}) as station:
        async with bot_on(unix_connection(path)) as bot:
            assert (await bot.ask(request())).status == 200
            drain = asyncio.create_task(station.gateway.drain())
            await station.until(lambda: not path.exists())
            assert (await bot.ask(request())).status == 200
        await drain


LOCALS: list[tuple[dict[str, object], int | None]] = [
    ({}, None),
    ({"unix_mode": "0660", "unix_group": GROUP}, STRANGER),
]


@needs_root
@pytest.mark.parametrize(("settings", "user"), LOCALS, ids=["our own user", "one of the group"])
async def test_who_is_local_on_the_socket(
    upstream: Upstream, settings: dict[str, object], user: int | None
) -> None:
    with open_folder() as folder:
        path = folder / "bots.sock"
        async with (
            running_station(upstream, listen={"unix": str(path), **settings}),
            bot_on(unix_connection(path, user, GROUP)) as bot,
        ):
            assert (await bot.ask(request())).status == 200


@needs_root
async def test_a_socket_that_somebody_opened_by_hand_still_lets_no_stranger_in(upstream: Upstream) -> None:
    with open_folder() as folder:
        path = folder / "bots.sock"
        async with running_station(upstream, listen={"unix": str(path)}):
            with pytest.raises(PermissionError):
                unix_connection(path, STRANGER)
            path.chmod(0o666)
            async with bot_on(unix_connection(path, STRANGER)) as bot:
                reply = await bot.ask(request())
    assert (reply.status, reply.reason) == (401, "bot_unauthenticated")
    assert upstream.received == []
