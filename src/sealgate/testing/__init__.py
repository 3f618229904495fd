"""A pytest plugin for the tests of a bot: the sandbox exchange, and a gateway in front of it.

Pytest finds it once Sealgate is installed. Tests ask for `sealgate_sandbox` or `sealgate_gateway`, which run
in a thread of their own, for synchronous and asynchronous tests alike; docs/sandbox.md has examples. All
else is imported when the first test asks, so that other test runs pay nothing.
"""

import operator
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sealgate.testing.world import World

__all__ = ["Gateway", "Sandbox"]

# What a wrong call raises, pytest shows at the line of the test.
__tracebackhide__ = operator.methodcaller("errisinstance", ValueError)

_OF_MYPYC = r"the \(type, exc, tb\) signature of throw\(\) is deprecated"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The exchange. Its methods raise ValueError for what the exchange does not accept."""

    base_url: str
    api_key: str
    api_secret: str = field(repr=False)
    user_address: str
    session_token: str = field(repr=False)
    _world: "World" = field(repr=False)

    def limit(self, **limit: Any) -> dict[str, Any]:
        """Set the rate limit, as `limit(kind="fixed", requests=2)`; without arguments, the first one."""
        return self._switch("limit", limit)

    def clock(self, **clock: Any) -> dict[str, Any]:
        """Set the exchange's clock, as `clock(skew_ms=-7000)`; without arguments, to this machine's."""
        return self._switch("clock", clock)

    def faults(self, *faults: Mapping[str, Any], seed: int | None = None) -> dict[str, Any]:
        """Make requests fail, as `faults({"kind": "cut", "match": "POST *", "next": 1})`; else no more."""
        return self._switch("faults", {"seed": seed, "faults": faults} if faults else {})

    def market(self, **change: Any) -> dict[str, Any]:
        """Set a price (`symbol`, `price`), or fill an order (`order_id`, and `fill` for a part of it)."""
        return self._world.control("market", "PUT", change)

    def journal(self, since: int = 0) -> list[dict[str, Any]]:
        """Return what the exchange has received since the reset, the gateway's reads of `/time` too."""
        return list(self._world.control("journal", "GET", query=f"since={since}")["entries"])

    def advance(self, seconds: float) -> None:
        """Let time pass at once, for the exchange and the gateway: whatever is due by then happens now."""
        self._world.advance(seconds)

    def end_streams(self, code: int | None = None) -> int:
        """End all streams at the exchange; return how many. Without a code they vanish."""
        query = "" if code is None else f"code={code}"
        return int(self._world.control("streams", "DELETE", query=query)["ended"])

    def reset(self) -> None:
        """Put accounts, market, limit, clock and faults back to how they were at the start."""
        self._world.control("reset", "POST")

    def _switch(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return self._world.control(name, "PUT" if values else "DELETE", values)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway in front of the sandbox: bots connect to `url`; status and metrics are at `admin_url`."""

    url: str
    admin_url: str

    @property
    def stream_url(self) -> str:
        """Return the address of the exchange's stream through the gateway."""
        return f"ws{self.url.removeprefix('http')}/stream.example.com/v1/stream"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let tests that use the gateway make errors of warnings: the compiled one gives this, from 3.12 on."""
    if "_sealgate_world" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.filterwarnings(f"ignore:{_OF_MYPYC}:DeprecationWarning"))


@pytest.hookimpl(hookwrapper=True, trylast=True)  # inside of what collects the log of a test
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Log the last requests of a test before it has ended: else none of its reports has them."""
    yield
    world = getattr(item, "funcargs", {}).get("_sealgate_world")
    if world is not None:
        world.report()


@pytest.fixture(scope="session")
def _sealgate_world() -> Iterator["World"]:
    from sealgate.testing.world import running_world

    with running_world() as world:
        yield world


@pytest.fixture
def sealgate_settings() -> dict[str, Any]:
    """Return the gateway's settings, as in sealgate.toml: override it to change some."""
    return {}


@pytest.fixture
def sealgate_sandbox(_sealgate_world: "World") -> Sandbox:
    """Provide the sandbox exchange, as new."""
    world = _sealgate_world
    world.reset()
    user = world.sandbox
    return Sandbox(user.base_url, user.api_key, user.api_secret, user.user_address, user.session_token, world)


@pytest.fixture
def sealgate_gateway(
    _sealgate_world: "World", sealgate_sandbox: Sandbox, sealgate_settings: dict[str, Any]
) -> Iterator[Gateway]:
    """Provide a new gateway in front of the sandbox, ready to sign."""
    del sealgate_sandbox  # its reset comes first
    url, admin_url = _sealgate_world.start_gateway(sealgate_settings)
    yield Gateway(url, admin_url)
    _sealgate_world.stop_gateway()
