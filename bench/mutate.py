"""Mutation testing of the core: some test must fail when a line is broken.

Prints every mutant that no test noticed, as file:line: scope: before -> after, and a line per module. It is a
report: some mutants change nothing that anybody could notice, so the exit code is 0 all the same.
"""

import argparse
import ast
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.mutant_runs import CORE, ROOT, Survey, Verdict, run_all, survey
from bench.mutants import Mutant, enums_of, mutants_of

Enums = Mapping[str, Sequence[str]]
Verdicts = Counter[Verdict]


def modules(names: Sequence[str]) -> list[Path]:
    """Return the modules of the core that are named ("target", "limits/gate"), or all. Raises SystemExit."""
    files = sorted(file for file in CORE.rglob("*.py") if file.name != "__init__.py")
    by_name = {_name(file): file for file in files}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        sys.exit(f"scripts/mutate: there is no module {unknown[0]} in src/sealgate/core")
    return [by_name[name] for name in names] or files


def broken(file: Path, enums: Enums) -> tuple[ast.Module, list[Mutant]]:
    """Return a module's tree and all mutants of it; of enums of one name its own goes before."""
    source = file.read_text()
    tree = ast.parse(source)
    return tree, mutants_of(tree, {**enums, **enums_of([source])})


def judge_module(file: Path, numbers: Sequence[int], enums: Enums, tests: Survey) -> Verdicts:
    """Judge some mutants of a module, and print each survivor."""
    tree, every = broken(file, enums)
    mutants = [every[number] for number in numbers]
    verdicts: Verdicts = Counter()
    for mutant, verdict in zip(mutants, run_all(file, tree, mutants, tests), strict=True):
        verdicts[verdict] += 1
        if verdict is Verdict.SURVIVED:
            at = f"{file.relative_to(ROOT)}:{mutant.lines[0]}"
            print(f"{at}: {mutant.scope or 'module'}: {mutant.change}", flush=True)
    print(_row(_name(file), verdicts), file=sys.stderr)
    return verdicts


def chosen(files: Sequence[Path], enums: Enums, sample: int | None, seed: int) -> dict[Path, list[int]]:
    """Return the numbers of the mutants to judge by module: all, or a sample of all modules together."""
    every = [(file, number) for file in files for number in range(len(broken(file, enums)[1]))]
    if sample is not None and sample < len(every):
        every = sorted(random.Random(seed).sample(every, sample))
    return {file: [number for one, number in every if one == file] for file in files}


def report(verdicts: Mapping[Path, Verdicts], took_s: float) -> None:
    """Print the table."""
    print(f"\n{'module':<24}{'mutants':>9}{'killed':>9}{'timed out':>11}{'survived':>10}")
    for file, counts in verdicts.items():
        print(_row(_name(file), counts))
    print(f"{_row('all', sum(verdicts.values(), Verdicts()))}\n\n{took_s / 60:.1f} minutes")


def _name(file: Path) -> str:
    return file.relative_to(CORE).with_suffix("").as_posix()


def _row(name: str, counts: Verdicts) -> str:
    killed, timed_out, survived = (
        counts[one] for one in (Verdict.KILLED, Verdict.TIMED_OUT, Verdict.SURVIVED)
    )
    return f"{name:<24}{counts.total():>9}{killed:>9}{timed_out:>11}{survived:>10}"


def main() -> None:
    """Break the core in many places, one at a time, and print what no test noticed."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help='such as "target" or "limits/gate"; all')
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
    judged = {file: judge_module(file, numbers, enums, tests) for file, numbers in plan.items() if numbers}
    report(judged, time.monotonic() - began)


if __name__ == "__main__":
    main()
