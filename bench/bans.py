"""Requests that are sent into a ban: scripts/bench bans [SEEDS], in virtual time.

Exchanges that are scripted after their documents shut a gateway with three bots out at a random moment. The
table says how many requests of bots and of the gateway itself were sent into a stated or documented wait, and
how many arrived beside the first one after it, each summed over the seeds.
"""

import logging
import sys
from secrets import randbelow

import structlog

from rig.banned_gateways import Figures, closures, run_through_ban


def main() -> None:
    """Print a row for each way in which an exchange shuts somebody out."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    first = randbelow(1_000_000)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    print(f"seeds {first} to {first + count - 1}\n")
    print("| exchange | refusal | of bots | of the gateway | beside the first after it | refused |")
    print("|---|---|---|---|---|---|")
    for venue, closure in closures():
        runs = [run_through_ban(venue, closure, seed) for seed in range(first, first + count)]
        into = (
            [_sum(runs, "of_bots"), _sum(runs, "of_gateway")]
            if closure.is_known
            else ["no wait is known"] * 2
        )
        cells = [venue, closure.name, *into, _sum(runs, "beside_the_first"), _sum(runs, "refused")]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _sum(runs: list[Figures], name: str) -> int:
    return sum(getattr(run, name) for run in runs)


if __name__ == "__main__":
    main()
