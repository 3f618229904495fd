"""Look-ups of names: each waits for its own DNS server alone."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from rig.wire import PATIENCE_S, until
from sealgate.machine.look_up import look_up

_LOCAL = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]
_MANY = 40  # more than any pool of an event loop has threads


async def test_names_whose_dns_servers_do_not_answer_hold_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, flags: int, **__: Any) -> Any:
        if flags == socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        asked.append(host)
        if host != "calm.test":
            assert answers.wait(PATIENCE_S)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return _LOCAL

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    lost = [asyncio.ensure_future(look_up(f"gone-{number}.test", 80)) for number in range(_MANY)]
    await until(lambda: len(asked) == _MANY)
    assert await look_up("calm.test", 80) == _LOCAL
    assert not any(one.done() for one in lost)
    lost[0].cancel()
    answers.set()
    ended = await asyncio.gather(*lost, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError)
    assert all(isinstance(one, socket.gaierror) for one in ended[1:])


@pytest.mark.parametrize("number", ["127.0.0.1", "::1"])
async def test_a_number_is_not_looked_up(number: str) -> None:
    [(_, kind, _, _, where)] = await look_up(number, 80)
    assert (kind, *where[:2]) == (socket.SOCK_STREAM, number, 80)
