"""A sandbox whose limiter is flooded by bots, the gateway's settings before it, and what its journal says.

Sandbox and gateway are processes of their own. See shared.py and limits_sockets.py, which run them.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from rig.herd import WEIGHTS, Address, Entry, bots_table, tokens
from rig.program import running_program


@dataclass(frozen=True)
class Case:
    """A limiter of the sandbox: `requests` per `window_s`."""

    kind: str
    requests: int
    window_s: float
    burst: int = 0
    rejects_count: bool = False

    @property
    def granted_per_s(self) -> float:
        """What it grants in the long run."""
        return self.requests / self.window_s

    def settings(self) -> dict[str, Any]:
        """Return what the sandbox is told."""
        return {
            "kind": self.kind,
            "requests": self.requests,
            "window_s": self.window_s,
            "burst": self.burst,
            "rejects_count": self.rejects_count,
            "retry_after": "exact",
        }


@dataclass(frozen=True)
class Row:
    """The figures of one run. A bucket that was full at the start grants its burst on top: over 100 %."""

    goodput: float
    refused_per_1000: float
    stall_s: float
    jain: float


@asynccontextmanager
async def running_sandbox() -> AsyncIterator[dict[str, Any]]:
    arguments = ("--json", "--listen=127.0.0.1:0", "--limit-kind=none", "--usdc=1000000000")
    async with running_program("sandbox", *arguments) as program:
        yield json.loads(await program.line("base_url"))


def gateway_environ(sandbox: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a gateway before that sandbox, for the bots of the herd."""
    environ = {
        "SEALGATE_BASE_URL": sandbox["base_url"],
        "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__TCP": "",
        "SEALGATE_ADMIN__UNIX": "off",
        "SEALGATE_LOG__FORMAT": "json",
        "SEALGATE_KEYS__MAIN__API_KEY": sandbox["api_key"],
        "SEALGATE_KEYS__MAIN__SECRET": "env:BENCH_SECRET",
        "BENCH_SECRET": sandbox["api_secret"],
        **tokens(),
    }
    for name, bot in bots_table().items():
        environ |= {f"SEALGATE_BOTS__{name}__{key}".upper(): str(value) for key, value in bot.items()}
    return environ


def address_of(url: str) -> Address:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


def figures(granted_per_s: float, since_ms: int, received: Sequence[Entry]) -> Row:
    """Return the figures of what the sandbox received since then."""
    accepted = [entry for entry in received if entry.is_accepted]
    times_s = [since_ms / 1000, *(entry.received_ms / 1000 for entry in accepted)]
    return Row(
        goodput=len(accepted) / (granted_per_s * (times_s[-1] - times_s[0])),
        refused_per_1000=1000 * sum(entry.is_refused for entry in received) / len(accepted),
        stall_s=max(later - earlier for earlier, later in pairwise(times_s)),
        jain=_jain(accepted),
    )


def _jain(accepted: Iterable[Entry]) -> float:
    """Return Jain's index of the shares by weight; cancels cost no share."""
    counts = Counter(entry.bot for entry in accepted if entry.method != "DELETE")
    shares = [counts[name] / weight for name, weight in WEIGHTS.items()]
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
