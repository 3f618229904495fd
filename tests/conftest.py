"""What many tests begin with: a raw upstream, and a gateway before it, for each test that asks."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from rig.fork_server import forking
from rig.station import Station, running_station
from rig.tls import Authority
from rig.upstream import Upstream, running_upstream

# macOS has its temporary files so deep that sockets in a test's folder would have too long a path.
if sys.platform == "darwin":
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/tmp")  # noqa: S108 - pytest makes a folder of its own there

# Properties have no deadline, as other programs may be running.
settings.register_profile("sealgate", deadline=None, max_examples=100)
settings.register_profile("fast", deadline=None, max_examples=5)  # for scripts/test --fast
settings.load_profile("sealgate")


# These start programs by the hundred; elsewhere a start is itself what is looked at.
FORKED = {"admin", "cli", "faults", "sandbox"}


@pytest.fixture(autouse=True, scope="module")
def _forked_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    folder = request.path.parent
    with forking() if FORKED & {*folder.relative_to(Path(__file__).parent).parts} else nullcontext():
        yield


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def station(upstream: Upstream) -> AsyncIterator[Station]:
    async with running_station(upstream) as running:
        yield running


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
