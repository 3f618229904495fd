"""The thread that the exchange and the gateway of the tests run in, and the time that passes there.

Each test gets a gateway of its own, because nothing else forgets everything: limits, pauses, keys of orders.
"""

import asyncio
import contextlib
import json
import logging
import operator
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeVar

import pytest
import structlog
from multidict import CIMultiDict, CIMultiDictProxy

from sealgate.config import ConfigError
from sealgate.config.load import config_of
from sealgate.errors import Refusal
from sealgate.keys.sources import SecretError
from sealgate.machine.clocks import SystemClocks
from sealgate.machine.process import StartError
from sealgate.machine.system import System
from sealgate.observe.log import log_requests
from sealgate.orders.journal.file import JournalError
from sealgate.sandbox.message import Reply, Request
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.system import System as SandboxHost
from sealgate.server.gateway import Gateway
from sealgate.server.serving import running_with_admin

_READY_S = 10.0
_ANSWER_S = 60.0  # for an answer of the thread: longer than any of them takes on a slow machine
_TURNS = 20  # of the loop: more than a request and its reply take
_STEP_S = 1.0  # that pass at a time while a gateway or the exchange ends
_MOST_AHEAD_S = 1e9  # 31 years: the gateway takes no reading for the time that lies after 2100
_SECRET = "SEALGATE_TESTING_SECRET"  # noqa: S105 - the name of a variable

# What a wrong call raises, pytest shows at the line of the test.
__tracebackhide__ = operator.methodcaller("errisinstance", ValueError)

T = TypeVar("T")


class SetupError(pytest.fail.Exception):  # type: ignore[misc,name-defined] # mypy sees no class there
    """A gateway cannot start with these settings. `str()` has cause and fix, and is all that pytest shows."""

    def __init__(self, why: str) -> None:
        super().__init__(f"sealgate_gateway cannot start: {why}", pytrace=False)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose timers can be brought forward."""

    ahead_s = 0.0

    def time(self) -> float:
        """Return the loop's time."""
        return super().time() + self.ahead_s


class _GatewayHost(System):
    """The gateway's clocks, ahead of this machine's by what has been advanced."""

    def __init__(self, ahead_s: Callable[[], float]) -> None:
        super().__init__()
        self._ahead_s = ahead_s

    def now(self) -> float:
        """Return seconds on a clock that nobody sets."""
        return System.now() + self._ahead_s()

    def wall(self) -> float:
        """Return epoch seconds."""
        return super().wall() + self._ahead_s()

    def clocks(self) -> SystemClocks:
        """Return a reading of all three clocks."""
        clocks = super().clocks()
        return replace(clocks, mono=clocks.mono + self._ahead_s())


class _SandboxHost(SandboxHost):
    """The exchange's clocks, ahead by the same."""

    def __init__(self, ahead_s: Callable[[], float]) -> None:
        super().__init__()
        self._ahead_s = ahead_s

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return super().wall_ms() + round(self._ahead_s() * 1000)

    def steady_s(self) -> float:
        """Return seconds that never run backwards."""
        return super().steady_s() + self._ahead_s()


class World:
    """One sandbox for a whole test run, one gateway at a time. Other threads call its methods."""

    sandbox: Sandbox

    def __init__(self) -> None:
        self._loop = _Loop()
        self._ahead_s = 0.0  # since the test began
        self._exchange, self._gateway = contextlib.AsyncExitStack(), contextlib.AsyncExitStack()
        self._running: Gateway | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sealgate-testing", daemon=True)

    def start(self) -> None:
        """Start the thread and the sandbox."""
        self._thread.start()
        system = _SandboxHost(lambda: self._ahead_s)
        self.sandbox = self._call(self._exchange.enter_async_context(running_sandbox(system=system)))

    def close(self) -> None:
        """End both."""
        self._call(self._end(self._exchange))
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_ANSWER_S)

    def reset(self) -> None:
        """Make exchange and time as new."""
        self._call(self._advance(-self._ahead_s))
        self.control("reset", "POST")

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError where it would run backwards, or too far ahead."""
        if not 0 <= seconds <= _MOST_AHEAD_S - self._ahead_s:
            cause = "time only moves forward, and at most 1e9 seconds (31 years) in a test"
            raise ValueError(f"advance({seconds!r}): {cause}; give seconds from 0 upwards")
        self._call(self._settle())  # a reply that was sent before is received before
        self._call(self._advance(seconds))

    def control(
        self, name: str, method: str, values: Mapping[str, Any] | None = None, query: str = ""
    ) -> dict[str, Any]:
        """Make a call under /_sandbox. Raises ValueError, with what the exchange says."""
        reply = self._call(self._control(name, method, values or {}, query))
        document: dict[str, Any] = json.loads(reply.body)
        if reply.status != HTTPStatus.OK:
            raise ValueError(f"sealgate_sandbox.{name}: {_cause(document['detail'])}")
        return document

    def start_gateway(self, settings: Mapping[str, Any]) -> tuple[str, str]:
        """Start a gateway with these settings; return its addresses when it is ready. Raises SetupError."""
        try:
            return self._call(self._start_gateway(settings))
        except BaseException:
            self.stop_gateway()  # or it would run beside those of the next tests
            raise

    def stop_gateway(self) -> None:
        """End it at once: what it still waits for is over."""
        self._running = None
        self._call(self._end(self._gateway))

    def report(self) -> None:
        """Let the gateway log now what has ended, which it does a moment later."""
        if self._running is not None:
            self._call(self._report(self._running))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stop.wait())

    async def _advance(self, seconds: float) -> None:
        self._ahead_s += seconds
        self._loop.ahead_s += max(seconds, 0.0)  # its timers are relative, so it may stay ahead
        await self._settle()

    async def _report(self, gateway: Gateway) -> None:
        await self._settle()
        gateway.reporter.flush()

    async def _settle(self) -> None:
        """Let arrive what is on its way between exchange and gateway, and let them act on it."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)  # noqa: TID251 - takes no time

    async def _control(self, name: str, method: str, values: Mapping[str, Any], query: str) -> Reply:
        target = f"/_sandbox/{name}?{query}"
        body = json.dumps(values, default=str).encode()  # decimals are text
        request = Request(method, target, CIMultiDictProxy(CIMultiDict[str]()), body, "127.0.0.1")
        exchange = self.sandbox.exchange
        return exchange.answer(request, exchange.conditions.now())

    async def _start_gateway(self, settings: Mapping[str, Any]) -> tuple[str, str]:
        if not isinstance(settings, Mapping):
            raise SetupError(f"sealgate_settings returns {settings!r}; return a dict of settings")
        defaults = {
            "base_url": self.sandbox.base_url,
            "upstream": {"streams": self.sandbox.streams_url},
            "listen": {"tcp": "127.0.0.1:0", "drain": 0},
            "admin": {"tcp": "127.0.0.1:0", "unix": "off"},
            "keys": {"main": {"api_key": self.sandbox.api_key, "secret": f"env:{_SECRET}"}},
        }
        environ, system = (
            {**os.environ, _SECRET: self.sandbox.api_secret},
            _GatewayHost(lambda: self._ahead_s),
        )
        try:
            config = config_of(_merged(defaults, settings))
            running = running_with_admin(config, (log_requests,), environ=environ, system=system)
            gateway, admin = await self._gateway.enter_async_context(running)
            self._running = gateway
            gateway.services.untried.clear()  # the exchange gets the test's requests only
            if any(exchange.clock.required for exchange in config.served.values()):
                await gateway.wait_until_ready(_READY_S)
        except (ConfigError, SecretError, JournalError, StartError) as error:
            raise SetupError(str(error)) from None
        except Refusal as refusal:
            fix = "correct sealgate_settings, or undo what the test did to the exchange"
            raise SetupError(f"{refusal.detail.removesuffix('.')}; {fix}") from None
        return gateway.listeners.urls[0] if gateway.listeners.urls else "", f"http://{admin}" if admin else ""

    async def _end(self, running: contextlib.AsyncExitStack) -> None:
        """End what runs. Time flies until it has ended, so that nothing in it has to be waited for."""
        hurry = asyncio.create_task(self._hurry())
        try:
            await running.aclose()
        finally:
            hurry.cancel()

    async def _hurry(self) -> None:
        while True:
            await self._advance(_STEP_S)


@contextlib.contextmanager
def running_world() -> Iterator[World]:
    """Run the thread as long as the block lasts."""
    world = World()
    with _log_apart():
        world.start()
        try:
            yield world
        finally:
            world.close()


@contextlib.contextmanager
def _log_apart() -> Iterator[None]:
    """Send the gateway's log to `logging`, where pytest collects it: stdout and stderr are the bot's."""
    before = structlog.get_config()["logger_factory"]

    def factory(*names: Any) -> Any:
        is_ours = bool(names) and str(names[0]).startswith("sealgate.")
        return logging.getLogger(names[0]) if is_ours else before(*names)

    structlog.configure(logger_factory=factory)
    try:
        yield
    finally:
        if structlog.get_config()["logger_factory"] is factory:
            structlog.configure(logger_factory=before)


def _merged(defaults: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings over the defaults, table by table."""
    merged = dict(defaults)
    for name, value in settings.items():
        default = merged.get(name)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            value = _merged(default, value)  # noqa: PLW2901 - the same setting, whole
        merged[name] = value
    return merged


def _cause(detail: Any) -> str:
    """Return what is wrong in one line: the exchange's words, or one part for each field."""
    if isinstance(detail, str):
        return detail
    return "; ".join(f"{'.'.join(map(str, one['loc'][1:])) or 'it'}: {one['msg']}" for one in detail)
