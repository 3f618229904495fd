"""What client libraries raise for the gateway's own replies, measured.

`PYTHONPATH=tests python -m venues.client_errors` lets all of them place orders that are refused, and writes
what was raised to client_errors.jsonl.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rig.tls import Authority
from venues.client_record import AT_VENUES, BY_HTTPS, KINDS, LIBRARIES, RECORD, Raised
from venues.refusal_gateways import refusing_gateways

_SHOWN = 44  # letters of a text before the reason


async def measured(folder: Path) -> list[Raised]:
    """Let all libraries place orders that are refused, and return what they raise.

    `folder` is an empty one, for certificates.
    """
    authority = Authority()
    environ = {"PATH": os.environ["PATH"], "REQUESTS_CA_BUNDLE": authority.write(folder)}
    by_https = [LIBRARIES[library] for library in BY_HTTPS]
    async with (
        refusing_gateways(AT_VENUES) as http,
        refusing_gateways(by_https, authority.write_server(folder)) as https,
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "venues.refusal_clients"),
            cwd=Path(__file__).parents[1],
            env=environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(180):
            out, err = await process.communicate(json.dumps({"http": http, "https": https}).encode())
    assert process.returncode == 0, err.decode()
    return [_shown(Raised(**json.loads(line))) for line in out.decode().splitlines()]


def _shown(one: Raised) -> Raised:
    text = re.sub(r"127\.0\.0\.1:\d+", "GATEWAY", one.text)
    text = re.sub(r"^(\(-?\d+, )[\"']", r"\1'", text)  # which mark repr takes depends on the words behind
    before, reason, _ = text.partition(KINDS[one.kind][0])
    if not reason:
        return one._replace(text=text[:_SHOWN])
    shown = before if len(before) <= _SHOWN else f"…{before[-_SHOWN:]}"
    return one._replace(text=f"{shown}{reason}…")


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        found = asyncio.run(measured(Path(name)))
    lines = (json.dumps(one._asdict(), ensure_ascii=False) for one in found)
    RECORD.write_text("".join(f"{line}\n" for line in lines), "utf-8")
