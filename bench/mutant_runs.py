"""Runs of the core's tests in forked processes: one learns which test runs which line, then one per mutant.

Most mutants change the code of one function: they are forked from a process that has collected the tests,
and given the other code there. For any other, such as that of a table, and for what no test noticed though it
runs before them, a process imports the core anew, so that the mutant is in force from the first import. What
does not belong to us is imported once, before the fork.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import _lru_cache_wrapper, partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import coverage
import pytest
from hypothesis import Phase, settings

from bench.mutant_swap import Swap, module_name
from bench.mutants import Mutant

ROOT = Path(__file__).parents[1]
CORE = ROOT / "src/sealgate/core"
TESTS = ROOT / "tests/core"
# Of the plugins only the one that pyproject.toml sets up, and no conftest.py outside the core's tests, which
# would import the whole gateway: what is left out takes time, and nobody reads it.
_PLUGIN = "pytest_asyncio.plugin"
_OPTIONS = (
    *("-p", _PLUGIN, "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("--assert=plain", "--tb=no", f"--confcutdir={TESTS}"),
)
# Simulations: minutes for one mutant, and a break that only they notice is one that a named case should tell.
_WORLDS = ("*clock_truth.py", "*differential.py")
_EXAMPLES = 30  # of a property; for the same reason
_WARM = (_PLUGIN, "hypothesis", "hypothesis.stateful")  # imported once, before the fork
_SLACK_S = 5.0
_TIMES = 5.0  # as long as the same tests took with the code as it is, under coverage
_BROKEN = 99  # no code of pytest's
_ANEW = 98  # nor this: the mutant cannot be put into a core that is imported
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
        here = self._contexts(file, lines)
        named = (here if here and "" not in here else self._of_module(file)) or set(self.durations)
        return sorted(named, key=lambda name: (not _is_own(file, name), self.durations.get(name, 0.0)))

    def parts(self, file: Path, lines: range) -> list[list[str]]:
        """Return the tests of a place in parts: those of the module's own file, and the others."""
        names = self.tests(file, lines)
        own = [name for name in names if _is_own(file, name)]
        return [part for part in (own, names[len(own) :]) if part]

    def files(self, file: Path) -> list[str]:
        """Return the files of all tests that run any line of a module."""
        return _files_of(self._of_module(file) or self.durations)

    def is_imported(self, file: Path, lines: range) -> bool:
        """Ask whether a place runs before any test does."""
        return "" in self._contexts(file, lines)

    def _contexts(self, file: Path, lines: range) -> set[str]:
        by_line = self.tests_of.get(file, {})
        return set().union(*(by_line.get(line, set()) for line in lines))

    def _of_module(self, file: Path) -> set[str]:
        return set().union(*self.tests_of.get(file, {}).values(), self._own(file)) - {""}

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
        self._names = names

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        _choose(items, self._names)


class _Stage(_Fewer):
    """A plugin: with the tests collected, forks the processes that run some of them against a mutant."""

    def __init__(
        self, file: Path, tree: ast.Module, mutants: Sequence[Mutant], tests: Survey, notes: Path
    ) -> None:
        self._swap = Swap(file, tree)
        self._file, self._tree, self._tests, self._notes = file, tree, tests, notes
        self._mutants = mutants

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Return only in a fork, to run what is left of the items; the process itself ends here."""
        statuses = []
        for mutant in self._mutants:
            for names in self._tests.parts(self._file, mutant.lines):
                pid = os.fork()
                if not pid:
                    self._begin(mutant, names, items)
                    return
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if status != 0:
                    break
            statuses.append(status)
        self._notes.write_bytes(pickle.dumps(statuses))
        os._exit(0)

    def _begin(self, mutant: Mutant, names: Sequence[str], items: list[pytest.Item]) -> None:
        mutant.apply()
        if not self._swap.changed_to(self._tree):
            os._exit(_ANEW)
        _limit(self._tests, names)
        _choose(items, names)


class _Surveyor(_Fewer):
    """A plugin: notes which test runs which line, and how long it takes."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self._watch = watch
        self._caches: list[_lru_cache_wrapper[object]] = []
        self.durations: dict[str, float] = {}

    def pytest_collection_finish(self) -> None:
        self._caches = [
            one
            for one in gc.get_objects()
            if isinstance(one, _lru_cache_wrapper) and one.__module__.startswith("sealgate.")
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for cache in self._caches:  # or a line would be reached by the first only of the tests that need it
            cache.cache_clear()
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


def run_all(file: Path, tree: ast.Module, mutants: Sequence[Mutant], tests: Survey) -> Iterator[Verdict]:
    """Run the tests of each mutant of a module, whose tree they change."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        stage = _Stage(file, tree, mutants, tests, notes)
        _run_apart(lambda: int(pytest.main([*_OPTIONS, "-x", *tests.files(file)], plugins=[stage])))
        statuses: list[int] = pickle.loads(notes.read_bytes())  # noqa: S301 - our own, a moment ago
    for mutant, status in zip(mutants, statuses, strict=True):
        if status == _ANEW or (status == 0 and tests.is_imported(file, mutant.lines)):
            status = _run_anew(file, tree, mutant, tests)  # noqa: PLW2901 - the other run decides
        yield _verdict(file, status)


def _run_anew(file: Path, tree: ast.Module, mutant: Mutant, tests: Survey) -> int:
    """Run the tests of a mutant in processes that import the core with it."""
    status = 0
    for names in tests.parts(file, mutant.lines):
        status = status or _run_apart(partial(_run_some, file, tree, mutant, tests, names))
    return status


def _run_some(file: Path, tree: ast.Module, mutant: Mutant, tests: Survey, names: Sequence[str]) -> int:
    _limit(tests, names)
    mutant.apply()
    sys.meta_path.insert(0, _Finder(file, compile(tree, str(file), "exec")))
    return int(pytest.main([*_OPTIONS, "-x", *_files_of(names)], plugins=[_Chosen(names)]))


def _verdict(file: Path, status: int) -> Verdict:
    if status not in _VERDICTS and status >= 0:
        raise RuntimeError(f"the tests of {file.name} could not be run: pytest ended with {status}")
    return _VERDICTS.get(status, Verdict.TIMED_OUT)


def _limit(tests: Survey, names: Sequence[str]) -> None:
    """Have this process end when the tests take too long, or too much memory."""
    most_s = int(_SLACK_S + _TIMES * sum(tests.durations[name] for name in names))
    resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def _choose(items: list[pytest.Item], names: Sequence[str]) -> None:
    """Keep the named tests only, in the order of the names."""
    rank = {name: at for at, name in enumerate(names)}
    items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])


def _files_of(names: Iterable[str]) -> list[str]:
    return sorted({str(ROOT / name.partition("::")[0]) for name in names})


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
