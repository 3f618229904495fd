"""The benchmark of pacing under an unknown limit: scripts/bench limits.

Everything runs in virtual time: bots that ask for three times what the limiter grants, a network of 40 ms
with jitter, and a server whose limiter was written without a look at the core. The gateway's core runs beside
what bots do without it. See limits_matrix for the cells and limits_figures for what is measured.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from bench import limits_cost as cost
from bench import limits_pool_zoo as pool_zoo
from bench import limits_sockets as sockets
from bench import limits_zoo as zoo
from bench.limits_report import Row, plot, table
from bench.limits_rivals import Aimd, Botocore, OnlyRetryAfter
from rig import limits_matrix as matrix
from rig.limits_figures import Figures, figures
from rig.limits_gateway import Gateway
from rig.limits_world import Client, Scenario, World

CLIENTS: dict[str, Callable[[Scenario, int], Client]] = {
    "gateway": lambda scenario, seed: Gateway(seed, is_exact=scenario.retry_after in ("exact", "wrong")),
    "only Retry-After": lambda _, seed: OnlyRetryAfter(seed),
    "AIMD": lambda _, seed: Aimd(seed),
    "botocore adaptive": lambda _, seed: Botocore(seed),
}
ZOO_CELLS = 150
BOTH = ("gateway", "only Retry-After")
Section = tuple[str, list[Scenario], tuple[str, ...]]  # title, scenarios, clients
INTRO = """\
# Pacing under an unknown limit, measured

Virtual time, {seeds} seeds per cell, from {first} on (means; for stall, cancels and
sends in a pause, the worst). The bots ask for three times what the limiter grants, over a network of 40 ms
with jitter.
Goodput, 429s, stall, shares (Jain's index) and the wait of cancels are taken after learning: three windows,
and at least ten seconds. "Sent in a pause" counts the requests of the whole run that were sent before a
`Retry-After` had passed.

`scripts/bench limits --first {first} --seeds {seeds} --write docs/internals` writes this page.

![429s and stalls by limiter](limits.svg)
"""
ZOO = """\
## Random limiters

{cells} limiters, networks, bots and troubles, drawn from seed 1 of the zoo: three in ten are shared with a
stranger, a quarter changes midway, a tenth bans, and a sixth states wrong waits. "Told" is the gateway that
knows each limit and when it changes: what is possible. `scripts/bench limits --zoo` prints these tables.

{tables}
"""
OUTRO = """\
## What is missed, and why

- Sliding counter 20/1s: once a window was full, the limiter itself grants at most 19 per window, 95 % of
  its number.
- Reads and orders apart: the gateway assumes one limit for both until three refusals show that no common
  count fits. Now and then all waiting requests are of one class, and the other's part stays unused.
- Costs of two: one unit in twenty stays unused whenever only an order waits, which does not fit into it.
- A wrong `Retry-After`: the length of the window cannot be learned from it. If it says 67 s and the window
  has 60, the window looks like five minutes; and a stated pause is kept, whatever it costs.
- `Retry-After` rounded, as a date, or absent, with windows of a second: each refusal costs up to a second,
  in which cancels wait.
- Windows of 60 s that double: it takes a window and a half to see that a step holds, and the first steps
  are small, because too high a step would stop the key for long.
- Buckets whose refusals count: requests that are sent while the bucket is empty empty it further.
- GCRA and buckets whose wait is imprecise: after a few refusals within ten seconds, the gateway trusts
  only what was accepted, and each further refusal halves the pace, so that the key is not banned. If a
  burst is refused all at once, only two of its refusals count.
- A stranger on the same limit: what the stranger leaves differs from window to window. Using all of it
  would mean refusals in most windows; with few refusals, the fluctuation stays unused. The gateway finds
  it by probing, which is rare by design, and so it finds a limit that doubles.
- A stranger on a limiter without a burst: each request may be refused at any pace, and the gateway takes
  that for its own pace. In the zoo these are the worst cells.
- Reads and orders apart, in the zoo: with a stranger, a ban or a change on top, three events of one class may
  be long in coming, and until then both go at the pace of the tighter limit.
"""


def run(scenario: Scenario, client: str, seeds: Sequence[int]) -> Figures:
    """Return the figures over all seeds: the mean, or the worst where the worst counts."""
    runs = [figures(scenario, World(scenario, CLIENTS[client](scenario, seed), seed).run()) for seed in seeds]
    worst = {"stall", "inside_pause", "cancel_p99", "windows"}
    values = {field.name: [getattr(one, field.name) for one in runs] for field in fields(Figures)}
    return Figures(
        **{name: max(found) if name in worst else sum(found) / len(found) for name, found in values.items()}
    )


def sections(*, is_quick: bool) -> Iterable[Section]:
    """Yield the parts of the report."""
    kinds = matrix.FEW if is_quick else tuple(matrix.KINDS)
    yield "The kinds of limiter", [matrix.saturated(name) for name in kinds], tuple(CLIENTS)
    yield (
        "Bursts under the limit",
        [matrix.under_limit(name, is_learned=known) for known in (False, True) for name in matrix.FEW],
        BOTH,
    )
    if is_quick:
        yield "Rounded Retry-After", [matrix.stating("fixed 20/1s", "rounded")], BOTH
        return
    styles = [
        matrix.stating(n, style) for style in ("rounded", "date", "absent", "wrong") for n in matrix.SOME
    ]
    yield "What a 429 says", styles, BOTH
    yield "Rejects that count", [matrix.counting(name) for name in matrix.SOME], BOTH
    yield (
        "One bot, and somebody else",
        [f(n) for f in (matrix.alone, matrix.shared) for n in matrix.FEW],
        BOTH,
    )
    changes = [matrix.changing(name, factor) for factor in (0.5, 2.0) for name in matrix.FEW]
    yield "A limit that changes", changes, ("gateway",)


def chosen(parts: Iterable[Section], cells: Sequence[str], clients: Sequence[str]) -> Iterable[Section]:
    """Yield what is left of the parts: cells whose name has one of `cells` in it, and those clients."""
    for title, scenarios, all_clients in parts:
        some = [one for one in scenarios if any(part in one.name for part in cells)]
        if some:
            yield title, some, tuple(client for client in all_clients if client in clients)


def measure(seeds: Sequence[int], parts: Iterable[Section]) -> list[tuple[str, list[Row]]]:
    report = []
    for title, scenarios, clients in parts:
        rows = [(one.name, client, run(one, client, seeds)) for one in scenarios for client in clients]
        print(f"\n## {title}\n\n{table(rows)}", flush=True)
        report.append((title, rows))
    return report


def write(folder: Path, report: list[tuple[str, list[Row]]], seeds: Sequence[int]) -> None:
    kinds: dict[str, dict[str, Figures]] = {}
    for name, client, found in report[0][1]:
        kinds.setdefault(name, {})[client] = found
    parts = [
        INTRO.format(seeds=len(seeds), first=seeds[0]),
        *(f"## {title}\n\n{table(rows)}\n" for title, rows in report),
        ZOO.format(cells=ZOO_CELLS, tables=zoo.report(zoo.run(1, ZOO_CELLS, tuple(zoo.CLIENTS)))),
        OUTRO,
    ]
    (folder / "limits-measured.md").write_text("\n".join(parts))
    (folder / "limits.svg").write_text(plot(kinds))


def main() -> None:
    parser = argparse.ArgumentParser(description="Pacing under an unknown limit, in virtual time.")
    parser.add_argument("--quick", action="store_true", help="a few cells, one seed")
    parser.add_argument("--seeds", type=int, default=2, help="runs per cell")
    parser.add_argument("--first", type=int, default=11, help="the first seed")
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", help="write limits-measured.md and limits.svg there"
    )
    parser.add_argument("--only", action="append", metavar="TEXT", help="cells whose name has TEXT in it")
    parser.add_argument("--client", action="append", choices=tuple(zoo.CLIENTS), help="these clients only")
    parser.add_argument("--zoo", action="store_true", help="random limiters instead of the matrix")
    parser.add_argument("--pools", action="store_true", help="with --zoo: two to four of them at once")
    parser.add_argument("--cost", action="store_true", help="what pacing costs a request, by its pools")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the zoo; those from 100 on are for publishing"
    )
    parser.add_argument("--cells", type=int, default=ZOO_CELLS, help="of the zoo")
    parser.add_argument("--sockets", action="store_true", help="nine limiters on real sockets, 20 ms away")
    parser.add_argument("--runs", type=int, default=1, help="of each of the nine, with numbers of its own")
    parser.add_argument(
        "--json", action="store_true", help="print each cell of the zoo, or the costs, as JSON"
    )
    options = parser.parse_args()
    if options.cost:
        cost.main(as_json=options.json)
        return
    if options.zoo and options.pools:
        pool_zoo.main(options.seed, options.cells, as_json=options.json)
        return
    if options.zoo:
        zoo.main(options.seed, options.cells, options.client or tuple(zoo.CLIENTS), as_json=options.json)
        return
    if options.sockets:
        sockets.main(options.runs, str(options.seed), tuple(options.only or ("",)))
        return
    if options.write and (options.only or options.client):
        parser.error("--write publishes the whole matrix: leave out --only and --client")
    seeds = range(options.first, options.first + (1 if options.quick else options.seeds))
    since = time.monotonic()
    parts = chosen(sections(is_quick=options.quick), options.only or ("",), options.client or tuple(CLIENTS))
    report = measure(seeds, parts)
    print(f"\n{time.monotonic() - since:.0f} s")
    if options.write:
        write(options.write, report, seeds)


if __name__ == "__main__":
    main()
