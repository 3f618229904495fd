"""A real Prometheus that scrapes one gateway, with the rules of deploy/prometheus."""

import asyncio
import contextlib
import json
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from rig.ports import free_port
from rig.programs import path_of
from rig.wire import PATIENCE_S, let_pass

RULES = Path(__file__).parents[2] / "deploy" / "prometheus"


@dataclass(frozen=True)
class Prometheus:
    """A running one."""

    url: str
    session: aiohttp.ClientSession

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the samples that answer a query at this moment."""
        async with self.session.get(f"{self.url}/api/v1/query", params={"query": query}) as reply:
            document = await reply.json()
        assert document["status"] == "success", (query, document)
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    async def until(self, query: str) -> list[dict[str, Any]]:
        """Wait for a query to have an answer."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await self._ask_early(query)):
                await let_pass(0.1)
        return found

    async def _ask_early(self, query: str) -> list[dict[str, Any]]:
        try:
            return await self.ask(query)
        except (aiohttp.ClientError, AssertionError):  # it is not ready yet
            return []


@contextlib.asynccontextmanager
async def running_prometheus(port: int) -> AsyncIterator[Prometheus]:
    """Scrape a gateway's admin port four times a second as long as the block lasts."""
    own = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            path_of("prometheus"),
            f"--config.file={_config(Path(folder), port)}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{own}",
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        try:
            async with aiohttp.ClientSession() as session:
                yield Prometheus(f"http://127.0.0.1:{own}", session)
        finally:
            process.kill()
            await process.wait()


def _config(folder: Path, port: int) -> Path:
    document = {  # JSON is YAML, too
        "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "500ms"},
        "rule_files": [str(RULES / "recording.yml"), str(RULES / "alerts.yml")],
        "scrape_configs": [{"job_name": "sealgate", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(document))
    return file
