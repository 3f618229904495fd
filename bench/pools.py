"""What other requests see of a pool that is full, at eight exchanges, in virtual time: scripts/bench pools.

Exchanges that are scripted after their documents (tests/rig/pool_documents.py) fill up one of their pools, or
ban. Which one, when and for how long is drawn from the seed. Three bots, of two accounts, read, order and
cancel beside it, at a rate that no other pool minds. They do so twice, with the closure and without it: what
a request that passes no closed pool took longer is its extra wait. A request that the gateway gave up counts
as 30 s.

"Sent into it" are requests of bots and of the gateway itself that left after a reply had said that the pool
is full, or the address banned, and before the end that the reply stated or the documents give. What was under
way by then does not count, and neither does the one request after the end (the scout); "beside the scout" are
others that left before it was answered. Where no end is known, all that counts is that only one request goes
at a time; "tries" are scouts that were refused.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from multiprocessing import get_context

import structlog

from bench.pages import table
from rig.closed_pools import Extra, Run, run_closure
from rig.pool_documents import DOCUMENTS

_HEAD = (
    "exchange",
    "closed",
    "the end is",
    "runs",
    "sent into it: bots",
    "by the gateway",
    "beside the scout",
)
_LAST = (
    "tries",
    "requests of others",
    "extra p99 ms",
    "cancels",
    "other accounts",
    "longest s",
    "not served",
)
_PER_EXCHANGE = "all of it"
_MUCH_S = 0.05


def row(venue: str, name: str, end: str, runs: Sequence[Run]) -> Sequence[str]:
    """Return the cells of a line."""
    counts = [run.counts for run in runs]
    extras = [extra for run in runs for extra in run.extras]
    sums = [
        sum(one.into_known for one in counts),
        sum(one.into_known_of_gateway for one in counts),
        sum(one.beside_scout for one in counts),
        sum(one.tries for one in counts),
    ]
    return (
        *(venue, name, end, str(len(runs)), *map(str, sums), str(len(extras))),
        p99(extras),
        p99([one for one in extras if one.kind == "cancel"]),
        p99([one for one in extras if one.is_other_account]),
        f"{max(one.extra_s for one in extras):.1f}" if extras else "",
        str(sum(not one.is_served for one in extras)),
    )


def p99(extras: Sequence[Extra]) -> str:
    """Return the 99th percentile of the extra waits in milliseconds, "" without any."""
    waits = sorted(one.extra_s for one in extras)
    return f"{1000 * waits[int(0.99 * len(waits))]:.0f}" if waits else ""


def report(runs: Sequence[Run]) -> str:
    """Return the table: a line for each closure, and one for each exchange."""

    def rows() -> Iterable[Sequence[str]]:
        for venue in dict.fromkeys(run.venue for run in runs):
            its = [run for run in runs if run.venue == venue]
            scripts = [(one.name, one.end) for one in DOCUMENTS[venue].pools]
            scripts += [(one.name, one.end) for one in DOCUMENTS[venue].bans]
            for name, end in scripts:
                some = [run for run in its if run.name == name]
                if some:
                    yield row(venue, name, end, some)
            yield row(venue, _PER_EXCHANGE, "", its)
        yield row("all", _PER_EXCHANGE, "", runs)

    return table((*_HEAD, *_LAST), rows(), words=3)


def strays(runs: Sequence[Run]) -> str:
    """Return what pools refused that nobody filled, what was sent into known closures, and who waited."""
    lines = [
        f"{run.venue}, {run.place}: {run.counts.elsewhere} refused by pools that nobody filled"
        for run in runs
        if run.counts.elsewhere
    ]
    for run in runs:
        lines += [f"{run.venue}, {run.place}: {n} into it x {path}" for path, n in run.paths.items()]
        late = [one for one in run.extras if one.extra_s > _MUCH_S]
        for call in dict.fromkeys(one.call for one in late):
            waits = [one.extra_s for one in late if one.call == call]
            lines.append(f"{run.venue}, {run.place}: {len(waits)} x up to {max(waits):.1f} s: {call}")
    return "\n".join(lines)


def _one(job: tuple[str, str]) -> Run:
    # An error in the gateway is one of ours: it must not pass for a wait.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return run_closure(*job)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Requests beside a pool that is full, and into it.")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--runs", type=int, default=12, help="of each exchange, 1 to 8 s each (12)")
    parser.add_argument("--only", action="append", choices=tuple(DOCUMENTS), help="this exchange; repeatable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--strays", action="store_true", help="also list what was sent where")
    options = parser.parse_args()
    jobs = [
        (venue, f"{options.seed}/{number}")
        for venue in options.only or DOCUMENTS
        for number in range(options.runs)
    ]
    with get_context("fork").Pool(options.processes) as pool:
        runs = []
        for run in pool.imap(_one, jobs):
            runs.append(run)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"seed {options.seed}\n\n{report(runs)}")
    if options.strays:
        print(f"\n{strays(runs)}")


if __name__ == "__main__":
    main()
