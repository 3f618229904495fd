"""Pages of a headless Chromium, driven through its DevTools protocol over a web socket."""

import asyncio
import base64
import contextlib
import itertools
import json
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp

from rig.programs import path_of
from rig.wire import PATIENCE_S, let_pass

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--remote-debugging-port=0"),
)


class Page:
    """One page. `said` are console messages and exceptions, `requested` all addresses that it asked for."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self.said: list[str] = []
        self.requested: list[str] = []
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def listen(self) -> None:
        """Take in what Chromium tells, until the socket ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            else:
                self._note(told["method"], told["params"])

    def _note(self, method: str, values: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requested.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(values["args"]))
        elif method == "Log.entryAdded":
            self.said.append(values["entry"]["text"])

    async def call(self, method: str, **values: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._ids)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": values})
        async with asyncio.timeout(PATIENCE_S):
            told = await self._answers[number]
        assert "error" not in told, told
        result: dict[str, Any] = told["result"]
        return result

    async def open(self, url: str) -> None:
        """Go to an address."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)

    async def show(self, width: int, scheme: str = "light") -> None:
        """Take on a width, phone manners below 600, and a colour scheme."""
        phone = width < 600
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844 if phone else 900,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        await self.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    async def read(self, expression: str) -> Any:
        """Evaluate JavaScript and return its value."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.read(expression):
                await let_pass(0.05)

    async def picture(self) -> bytes:
        """Return the whole page as PNG."""
        result = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(result["data"])


@contextlib.contextmanager
def running_chromium() -> Iterator[int]:
    """Run it as long as the block lasts, with a profile of its own; yield the port of its DevTools."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            path_of("chromium"),
            *FLAGS,
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                told = (re.match(r"DevTools listening on ws://[^:]+:(\d+)/", line) for line in process.stderr)
                yield int(next(filter(None, told))[1])
            finally:
                process.kill()


@contextlib.asynccontextmanager
async def new_page(port: int) -> AsyncIterator[Page]:
    """Open a page of the Chromium whose DevTools are at a port, and close it when the block ends."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.put("/json/new?about:blank") as reply:
            target = await reply.json()
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            listening = asyncio.create_task(page.listen())
            yield page
            listening.cancel()
        async with session.get(f"/json/close/{target['id']}") as reply:
            await reply.read()
