"""How many bots may connect, by what the system grants; the system's answers are made up."""

import resource

import pytest

from sealgate.gateway.host import descriptors
from sealgate.gateway.host.descriptors import room_for_bots

WITHOUT_END = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "room", "raised_to"),
    [
        pytest.param(65_536, 65_536, 1000, None, id="enough"),
        pytest.param(1024, 65_536, 1000, 1084, id="raised as far as needed"),
        pytest.param(1024, 1024, 940, None, id="no more to be had"),
        pytest.param(256, 512, 428, 512, id="raised as far as possible"),
        pytest.param(32, 32, 1, None, id="hardly any"),
        pytest.param(WITHOUT_END, WITHOUT_END, 1000, None, id="without a limit"),
        pytest.param(1024, WITHOUT_END, 1000, 1084, id="without a hard limit"),
    ],
)
def test_bots_get_what_is_left(
    soft: int, hard: int, room: int, raised_to: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    monkeypatch.setattr(descriptors, "_RESERVE", 48)
    assert room_for_bots(1000, 36) == room
    assert set_to == ([] if raised_to is None else [(raised_to, hard)])
