"""How many bots and readers of the admin address may connect; what the system grants is made up."""

import resource

import pytest

from sealgate.machine.process import room_for_admin, room_for_bots

WITHOUT_END = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "room", "raised_to"),
    [
        pytest.param(65_536, 65_536, 1000, None, id="enough"),
        pytest.param(1024, 65_536, 1000, 1138, id="raised as far as needed"),
        pytest.param(1024, 1024, 886, None, id="no more to be had"),
        pytest.param(256, 512, 374, 512, id="raised as far as possible"),
        pytest.param(32, 32, 1, None, id="hardly any"),
        pytest.param(WITHOUT_END, WITHOUT_END, 1000, None, id="without a limit"),
        pytest.param(1024, WITHOUT_END, 1000, 1138, id="without a hard limit"),
    ],
)
def test_bots_get_what_is_left(
    soft: int, hard: int, room: int, raised_to: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    assert room_for_bots(1000, 36) == room
    assert set_to == ([] if raised_to is None else [(raised_to, hard)])


@pytest.mark.parametrize(("limit", "room"), [(WITHOUT_END, 64), (1138, 64), (256, 32), (80, 10), (4, 1)])
def test_the_admin_address_gets_a_small_part_of_a_small_limit(
    limit: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert room_for_admin() == room
