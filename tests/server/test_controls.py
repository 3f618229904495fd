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
    "nearly an exchange": (Scope(exchange="servise"), "there is no exchange servise; did you mean service?"),
    "no exchange at all": (Scope("grid", exchange="x"), "there is no exchange x; known: service"),
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


TWO = {
    "base_url": None,
    "exchanges": {"spot": {"base_url": URL}, "perp": {"base_url": "https://perp.example.com"}},
    "keys": {"main": {**KEY, "exchange": "spot"}, "swap": {**KEY, "exchange": "perp"}},
    "bots": {"grid": {"uid": 1001, "keys": ["main", "swap"]}, "cash": {"uid": 1002, "key": "main"}},
}


@pytest.mark.parametrize(
    ("scope", "error"),
    [
        (Scope(exchange="sopt"), "there is no exchange sopt; did you mean spot?"),
        (Scope("cash", exchange="perp"), "there is no bot cash at perp; known: grid"),
        (Scope(None, "main", "perp"), "there is no key main at perp; known: swap"),
    ],
)
@pytest.mark.parametrize("command", ["halt", "resume"])
async def test_of_several_exchanges_a_name_must_be_known_at_the_one_that_is_named(
    command: str, scope: Scope, error: str
) -> None:
    running = Running(**TWO)
    assert await getattr(running.controls, command)(scope) == (404, {"error": error})


async def test_a_halt_at_one_exchange_is_shown_and_lifted_by_its_name() -> None:
    running = Running(**TWO)
    status, document = await running.controls.halt(Scope("cash", "main", "spot"))
    (halt,) = document["halts"]
    assert (status, halt["bot"], halt["key"], halt["exchange"]) == (200, "cash", "main", "spot")
    assert (await running.controls.resume(Scope(exchange="perp")))[1]["lifted"] == []
    (lifted,) = (await running.controls.resume(Scope(exchange="spot")))[1]["lifted"]
    assert lifted["words"] == "bot cash with key main at spot"


async def test_a_halt_at_an_exchange_that_is_no_more_can_be_lifted() -> None:
    running = Running(**TWO)
    await running.halt(Scope(exchange="gone"))
    assert (await running.controls.resume(Scope(exchange="gone")))[1]["halts"] == []


@pytest.mark.parametrize("scope", [Scope("grid"), Scope(None, "main"), Scope(exchange="service")])
async def test_a_reload_is_of_everything(scope: Scope) -> None:
    running = Running(bots=BOTS)
    assert (await running.controls.reload(scope))[0] == 400
    assert running.reloads == []
