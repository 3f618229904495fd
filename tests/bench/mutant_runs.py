"""Runs of the core's tests in forked processes: one learns which test runs which line, then one per mutant.

Each process imports the core anew, so that a mutant of a table is in force from the first import. What does
not belong to us is imported once, before the fork.
"""

import ast
import gc
import importlib
import os
import pickle
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import coverage
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src/sealgate/core"
TESTS = ROOT / "tests/core"
# Of the plugins only the one that pyproject.toml sets up, and no conftest.py outside the core's tests, which would
# import the whole gateway: what is left out takes time, and nobody reads it.
_PLUGIN = "pytest_asyncio.plugin"
_OPTIONS = (
    *("-p", _PLUGIN, "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("--assert=plain", "--tb=no", f"--confcutdir={TESTS}"),
)
# Simulations: minutes for one mutant, and a break that only they notice is one that a named case should tell.
_WORLDS = ("*worlds.py", "*cold_start.py", "*clock_truth.py", "*differential.py")
_EXAMPLES = 30  # of a property; for the same reason
_WARM = (_PLUGIN, "hypothesis", "hypothesis.stateful")  # imported once, before the fork
_SLACK_S = 5.0
_TIMES = 5.0  # as long as the same tests took with the code as it is, under coverage
_BROKEN = 99  # no code of pytest's
_MOST_BYTES = 2 << 30


class Verdict(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


# A module that cannot be imported ends the collection.
_VERDICTS = {
    int(pytest.ExitCode.OK): Verdict.SURVIVED,
    int(pytest.ExitCode.TESTS_FAILED): Verdict.KILLED,
    int(pytest.ExitCode.INTERRUPTED): Verdict.KILLED,
}


@dataclass(slots=True)
class Survey:
    """Which tests run which line of the core, and how many seconds of the processor they take."""

    durations: dict[str, float] = field(default_factory=dict)
    tests_of: dict[Path, dict[int, set[str]]] = field(default_factory=dict)

    def tests(self, file: Path, lines: range) -> list[str]:
        """Return the tests of a place, those of the module's own file first, then the fast ones.

        What runs at import is tested by whatever runs any line of the module, and by all of its own file;
        where there is neither, by all.
        """
        by_line = self.tests_of.get(file, {})
        here = set().union(*(by_line.get(line, set()) for line in lines))
        found = here if here and "" not in here else set().union(*by_line.values(), self._own(file))
        named = found - {""} or set(self.durations)
        return sorted(named, key=lambda name: (not _is_own(file, name), self.durations.get(name, 0.0)))

    def _own(self, file: Path) -> set[str]:
        return {name for name in self.durations if _is_own(file, name)}


class _Fewer:
    """A plugin: properties with few examples, the same ones each time."""

    def pytest_configure(self) -> None:
        calm = settings(
            max_examples=_EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.register_profile("mutants", calm)
        settings.load_profile("mutants")


class _Chosen(_Fewer):
    """A plugin: runs the named tests only, in the order of their names given."""

    def __init__(self, names: Sequence[str]) -> None:
        self._rank = {name: at for at, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._rank]
        items[:] = sorted(chosen, key=lambda item: self._rank[item.nodeid])


class _Surveyor(_Fewer):
    """A plugin: notes which test runs which line, and how long it takes."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self._watch = watch
        self.durations: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._watch.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        self.durations[item.nodeid] = time.process_time() - began
        return result


class _Loader(Loader):
    def __init__(self, code: CodeType) -> None:
        self._code = code

    def create_module(self, spec: ModuleSpec) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)  # noqa: S102 - the mutant's own code


class _Finder(MetaPathFinder):
    """Gives the mutant out for the module."""

    def __init__(self, file: Path, code: CodeType) -> None:
        self._file, self._code = file, code

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != module_name(self._file):
            return None
        return spec_from_file_location(fullname, self._file, loader=_Loader(self._code))


def mirror(file: Path) -> Path:
    """Return the test file of a module of the core."""
    inside = file.relative_to(CORE)
    return TESTS / inside.parent / f"test_{inside.name}"


def _is_own(file: Path, test: str) -> bool:
    return test.startswith(f"{mirror(file).relative_to(ROOT)}::")


def module_name(file: Path) -> str:
    """Return the dotted name of a module of ours."""
    return ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)


def survey() -> Survey:
    """Run the tests of the core once and learn from it. Raises RuntimeError if one fails."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = False  # else each of the processes compiles everything anew
    for name in _WARM:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        if _run_apart(lambda: _survey_into(notes)) != 0:
            raise RuntimeError("the tests of the core fail as they are: scripts/test tests/core")
        found: Survey = pickle.loads(notes.read_bytes())  # noqa: S301 - our own, a moment ago
    return found


def _survey_into(notes: Path) -> int:
    watch = coverage.Coverage(data_file=None, config_file=False, source=[str(CORE)])
    surveyor = _Surveyor(watch)
    watch.start()
    code = pytest.main(
        [*_OPTIONS, *(f"--ignore-glob={name}" for name in _WORLDS), str(TESTS)], plugins=[surveyor]
    )
    watch.stop()
    data = watch.get_data()
    found = Survey(surveyor.durations)
    for file in data.measured_files():
        lines: dict[int, set[str]] = defaultdict(set)
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[line] = set(contexts)
        found.tests_of[Path(file)] = dict(lines)
    notes.write_bytes(pickle.dumps(found))
    return int(code)


def run(file: Path, tree: ast.Module, tests: Survey, lines: range) -> Verdict:
    """Run the tests of some lines of a module against its changed tree: its own file's, then the others."""
    code = compile(tree, str(file), "exec")
    names = tests.tests(file, lines)
    own = [name for name in names if _is_own(file, name)]
    for part in (own, names[len(own) :]):
        budget_s = sum(tests.durations[name] for name in part)
        verdict = _run_some(file, code, part, budget_s) if part else Verdict.SURVIVED
        if verdict is not Verdict.SURVIVED:
            return verdict
    return Verdict.SURVIVED


def _run_some(file: Path, code: CodeType, names: Sequence[str], budget_s: float) -> Verdict:
    files = sorted({str(ROOT / name.partition("::")[0]) for name in names})

    def work() -> int:
        most_s = int(_SLACK_S + _TIMES * budget_s)
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        sys.meta_path.insert(0, _Finder(file, code))
        return int(pytest.main([*_OPTIONS, "-x", *files], plugins=[_Chosen(names)]))

    status = _run_apart(work)
    if status not in _VERDICTS and status >= 0:
        raise RuntimeError(f"the tests of {file.name} could not be run: pytest ended with {status}")
    return _VERDICTS.get(status, Verdict.TIMED_OUT)


def _run_apart(work: Callable[[], int]) -> int:
    """Return the exit code of some work in a forked process; negative is the signal that ended it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = _BROKEN
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        gc.disable()  # a short life
        code = work()
    finally:
        os._exit(code)
