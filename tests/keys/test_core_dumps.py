"""A gateway that crashes leaves no core dump, in which its keys would be."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rig.private_keys import PRIVATE, VENUE, found_in, new_key, private, raw_forms
from rig.program import BASE, running_program
from sealgate.venues.key_kinds import Kind

# Started where core dumps are on. With the second, the gateway does not forbid them.
UNLIMITED = """
import resource
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (ValueError, PermissionError):
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
"""
CARELESS = UNLIMITED + "import sealgate.server.serving as serving; serving.forbid_core_dumps = lambda: None\n"
MAIN = "from sealgate.cli import main; main()"
CRASHES = [signal.SIGSEGV, signal.SIGABRT]

PATTERN = Path("/proc/sys/kernel/core_pattern")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or PATTERN.read_text()[:1] in "|/",
    reason="core dumps do not go to the folder of the process here",
)


def files(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


async def left_by(folder: Path, start: str, crash: signal.Signals, environ: Mapping[str, str]) -> list[Path]:
    """Crash a gateway that serves; return the files that are new in its folder."""
    before = files(folder)
    async with running_program(
        "serve", environ={**BASE, **environ}, folder=folder, start=("-c", start + MAIN)
    ) as program:
        await program.line('"listening"')
        program.tell(crash)
        assert await program.end() == -crash
    return [file for file in files(folder) if file not in before]


@pytest.mark.parametrize("crash", CRASHES)
async def test_a_gateway_that_crashes_leaves_no_core_dump(tmp_path: Path, crash: signal.Signals) -> None:
    assert await left_by(tmp_path, UNLIMITED, crash, {}) == []


@pytest.mark.parametrize("kind", PRIVATE)
async def test_one_that_does_not_forbid_it_leaves_one_with_its_key(tmp_path: Path, kind: Kind) -> None:
    key = new_key(kind)
    (tmp_path / "mine.toml").write_text(VENUE)
    environ = {"SEALGATE_VENUE": str(tmp_path / "mine.toml"), "EXCHANGE_SECRET": private(key).decode()}
    left = await left_by(tmp_path, CARELESS, signal.SIGABRT, environ)
    if not left:
        pytest.skip("nobody leaves a core dump here")
    core = left[0].read_bytes()
    assert b"ak-public-1" in core
    assert found_in(core, raw_forms(key))
