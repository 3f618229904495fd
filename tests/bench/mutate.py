"""Mutation testing of the core: some test must fail when a line is broken.

Prints a line per module and every mutant that no test noticed, as file:line: before -> after. Those that are
listed with a reason in tests/core/survivors.toml are counted as known. Exit code 1 where one is not, or where
an entry of that list no longer survives.
"""

import argparse
import ast
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.mutant_runs import CORE, ROOT, TESTS, Survey, Verdict, run_all, survey
from bench.mutants import Mutant, enums_of, mutants_of

KNOWN = TESTS / "survivors.toml"

Enums = Mapping[str, Sequence[str]]


@dataclass(slots=True)
class Tally:
    """What became of a module's mutants; `stale` are known survivors that were killed, or are none at all."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    known: int = 0
    stale: list[str] = field(default_factory=list)
    survivors: list[str] = field(default_factory=list)

    def row(self) -> tuple[int, ...]:
        """Return the figures of the table, in the order of its columns."""
        counts = self.verdicts
        killed, timed_out = counts[Verdict.KILLED], counts[Verdict.TIMED_OUT]
        return counts.total(), killed, timed_out, self.known, len(self.survivors)


def modules(names: Sequence[str]) -> list[Path]:
    """Return the modules of the core that are named ("target", "pacing/gate"), or all. Raises SystemExit."""
    files = sorted(file for file in CORE.rglob("*.py") if file.name != "__init__.py")
    by_name = {_name(file): file for file in files}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        sys.exit(f"scripts/mutate: there is no module {unknown[0]} in src/sealgate/core")
    return [by_name[name] for name in names] or files


def known_survivors() -> dict[str, set[str]]:
    """Return, by module, the changes that are known to survive, each as "scope: before -> after"."""
    listed = tomllib.loads(KNOWN.read_text())
    return {name: {entry["change"] for entry in entries} for name, entries in listed.items()}


def told(mutant: Mutant) -> str:
    """Return how the list of the known names a mutant."""
    return f"{mutant.scope or 'module'}: {mutant.change}"


def broken(file: Path, enums: Enums) -> tuple[ast.Module, list[Mutant]]:
    """Return a module's tree and all mutants of it; of enums of one name its own goes before."""
    source = file.read_text()
    tree = ast.parse(source)
    return tree, mutants_of(tree, {**enums, **enums_of([source])})


def judge_module(file: Path, numbers: Sequence[int], enums: Enums, tests: Survey) -> Tally:
    """Judge some mutants of a module, and print each unknown survivor."""
    known = known_survivors().get(_name(file), set())
    tree, every = broken(file, enums)
    tally = Tally(stale=sorted(known - {told(one) for one in every}))
    mutants = [every[number] for number in numbers]
    for mutant, verdict in zip(mutants, run_all(file, tree, mutants, tests), strict=True):
        tally.verdicts[verdict] += 1
        is_known = told(mutant) in known
        if verdict is not Verdict.SURVIVED:
            tally.stale += [told(mutant)] if is_known else []
        elif is_known:
            tally.known += 1
        else:
            tally.survivors.append(told(mutant))
            print(f"{file.relative_to(ROOT)}:{mutant.lines[0]}: {told(mutant)}", flush=True)
    print(_row(_name(file), tally.row()), file=sys.stderr)
    return tally


def chosen(files: Sequence[Path], enums: Enums, sample: int | None, seed: int) -> dict[Path, list[int]]:
    """Return the numbers of the mutants to judge by module: all, or a sample of all modules together."""
    every = [(file, number) for file in files for number in range(len(broken(file, enums)[1]))]
    if sample is not None and sample < len(every):
        every = sorted(random.Random(seed).sample(every, sample))
    return {file: [number for one, number in every if one == file] for file in files}


def report(tallies: Mapping[Path, Tally], took_s: float) -> None:
    """Print the table."""
    print(f"\n{'module':<24}{'mutants':>9}{'killed':>9}{'timed out':>11}{'known':>7}{'survived':>10}")
    for file, tally in tallies.items():
        print(_row(_name(file), tally.row()))
    sums = [sum(column) for column in zip(*(tally.row() for tally in tallies.values()), strict=True)]
    print(f"{_row('all', sums)}\n\n{took_s / 60:.1f} minutes")
    for file, tally in tallies.items():
        for change in tally.stale:
            print(f"{KNOWN.relative_to(ROOT)}: {_name(file)}: no longer survives: {change}")


def _name(file: Path) -> str:
    return file.relative_to(CORE).with_suffix("").as_posix()


def _row(name: str, counts: Sequence[int]) -> str:
    mutants, killed, timed_out, known, survived = counts
    return f"{name:<24}{mutants:>9}{killed:>9}{timed_out:>11}{known:>7}{survived:>10}"


def main() -> None:
    """Break the core in many places, one at a time, and print what no test noticed."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help='such as "target" or "pacing/gate"; all')
    parser.add_argument("--sample", type=int, metavar="N", help="judge N mutants, chosen by chance")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the choice (1)")
    options = parser.parse_args()
    began = time.monotonic()
    files = modules(options.modules)
    enums = enums_of([file.read_text() for file in sorted(CORE.rglob("*.py"))])
    plan = chosen(files, enums, options.sample, options.seed)
    if not any(plan.values()):
        parser.exit(0, "There is nothing in it to break.\n")
    tests = survey()
    tallies = {file: judge_module(file, numbers, enums, tests) for file, numbers in plan.items() if numbers}
    report(tallies, time.monotonic() - began)
    sys.exit(any(tally.survivors or tally.stale for tally in tallies.values()))


if __name__ == "__main__":
    main()
