"""What a person may tell a gateway: which names it takes, and what it answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from rig.hand_host import HandHost
from rig.station import KEY, make_config
from sealgate.orders.halts import Origin, Scope
from sealgate.request.context import InFlightRequests
from sealgate.request.halting import Halted, Halting
from sealgate.server.gateway import Controls

URL = "https://api.example.com"
BOTS = {"grid": {"uid": 1001}, "watch": {"uid": 1002}}
KEYS = {"main": KEY, "alt": {**KEY, "api_key": "ak-2"}}


class Running:
    """A gateway as far as the commands know it. `trouble` is what a reload ends with."""

    def __init__(self, **tables: Any) -> None:
        self.config = make_config(URL, **{"keys": KEYS, **tables})
        self._halting = Halting(InFlightRequests(), None, HandHost())
        self.services = SimpleNamespace(halting=self._halting)
        self.reloader = self
        self.trouble: Exception | None = None
        self.reloads: list[str] = []

    async def halt(self, scope: Scope, *origin: Origin) -> Halted:
        return await self._halting.halt(scope, *origin)

    async def resume(self, scope: Scope, *origin: Origin) -> Halted:
        return await self._halting.resume(scope, *origin)

    async def reload(self, cause: str) -> tuple[str, ...]:
        self.reloads.append(cause)
        if self.trouble is not None:
            raise self.trouble
        return ("log.level takes effect after a restart",)

    @property
    def controls(self) -> Controls:
        gateway: Any = self
        return Controls(gateway)


UNKNOWN = {
    "nearly a bot": (Scope("gird"), "there is no bot gird; did you mean grid?"),
    "no bot at all": (Scope("x"), "there is no bot x; known: grid, watch"),
    "nearly a key": (Scope("grid", "mian"), "there is no key mian; did you mean main?"),
    "no key at all": (Scope(None, "zzz"), "there is no key zzz; known: main, alt"),
}


@pytest.mark.parametrize(("scope", "error"), UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("command", ["halt", "resume"])
async def test_a_name_that_is_none_halts_and_resumes_nobody(command: str, scope: Scope, error: str) -> None:
    running = Running(bots=BOTS)
    await running.halt(Scope())
    before = running.services.halting.halts
    assert await getattr(running.controls, command)(scope) == (404, {"error": error})
    assert running.services.halting.halts is before


async def test_without_bots_the_one_there_is_has_its_name() -> None:
    running = Running()
    assert (await running.controls.halt(Scope("local")))[0] == 200
    assert (await running.controls.halt(Scope("grid")))[1]["error"].endswith("; known: local")


async def test_a_halt_of_what_is_no_more_can_be_lifted() -> None:
    running = Running(bots=BOTS)
    await running.halt(Scope("gone"))
    status, document = await running.controls.resume(Scope("gone"))
    assert (status, document["halts"]) == (200, [])
    assert (await running.controls.resume(Scope("gone")))[0] == 404


@pytest.mark.parametrize("scope", [Scope("grid"), Scope(None, "main")])
async def test_a_reload_is_of_everything(scope: Scope) -> None:
    running = Running(bots=BOTS)
    assert (await running.controls.reload(scope))[0] == 400
    assert running.reloads == []
