"""What many tests begin with: a raw upstream, and a gateway before it. Also skips what lacks a program."""

import os
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from rig.fork_server import forking
from rig.programs import ALL_PROGRAMS, PROGRAMS, MissingProgramError, lacking_in, lines_about, path_of
from rig.purity import pure_tests
from rig.station import Station, running_station
from rig.tls import Authority
from rig.upstream import Upstream, running_upstream

# macOS has its temporary files so deep that sockets in a test's folder would have too long a path.
if sys.platform == "darwin":
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/tmp")  # noqa: S108 - pytest makes a folder of its own there

# Properties have no deadline, as other programs may be running.
settings.register_profile("sealgate", deadline=None, max_examples=50)
settings.register_profile("fast", deadline=None, max_examples=5)  # for scripts/test --fast
settings.load_profile("sealgate")

# A traceback with all variables takes a second or two, and pytest has its own.
structlog.configure(
    [
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


@cache
def _decisions() -> frozenset[Path]:
    """Return the files of the tests of decisions; scripts/test names them, as all of its streams ask."""
    named = os.environ.get("DECISIONS", "").split()
    return frozenset((Path(__file__).parents[1] / name for name in named) if named else pure_tests())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--decisions",
        choices=("only", "not"),
        help="Only the tests that need no sockets, tasks or programs (rig/purity.py), or only the others.",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    wanted = config.getoption("decisions")
    if wanted is None or not collection_path.name.startswith("test_"):
        return None
    return (collection_path in _decisions()) is (wanted == "not") or None


# What the tests with these fixtures need.
NEEDED_FOR = {"image": "cc", "page": "chromium"}


def pytest_itemcollected(item: pytest.Item) -> None:
    for fixture in NEEDED_FOR.keys() & getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.needs(NEEDED_FOR[fixture]))


@contextmanager
def _skipping_where_a_program_is_missing() -> Iterator[None]:
    try:
        yield
    except MissingProgramError as error:
        if os.environ.get(ALL_PROGRAMS) and PROGRAMS[error.program]:
            pytest.fail(f"{error}, and {ALL_PROGRAMS} is set", pytrace=False)
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with _skipping_where_a_program_is_missing():
        for mark in item.iter_markers("needs"):
            for program in mark.args:
                path_of(program)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with _skipping_where_a_program_is_missing():
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    reasons = (report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    for line in lines_about(lacking_in(reasons)):
        terminalreporter.write_line(line)


# These start programs by the hundred; elsewhere a start is itself what is looked at.
FORKED = {"cli", "demo", "diagnose", "faults", "keys", "sandbox"}


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
