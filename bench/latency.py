"""What the gateway costs, beside HAProxy and mitmproxy that sign, and Caddy and aiohttp that do not.

The gateway runs with everything on: bots' tokens, policy, signature, clock, pacing, metrics, and one line
for each request in a log file; once more with compiled modules where `scripts/compiled` was run. Each row
(rows.py) has processes of its own. Before anything is measured, one request of each way that signs is looked
at as it arrives.

The ways take turns within each round, and each round begins with another way, so that a machine that gets
slower or faster meanwhile does so for all of them. The figures are the medians of the rounds; the ratios are
the medians of each round's own. CPU is what the process in the middle (direct: the upstream) spends on a
request; of all figures it depends least on what else the machine does.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.latency_plot import plot
from bench.latency_report import CONNECTIONS, Report, figures_table, ratios_table
from bench.pages import INTERNALS, machine, write_part
from bench.process import allow_many_connections
from bench.programs import BARE, CADDY, DIRECT, LOW_LEVEL, MITMPROXY, STARTS, measure, running_ways
from bench.rows import PLAIN, ROWS, Row
from bench.seal_check import check_seal

WITHOUT = dict(
    zip(("haproxy", "caddy", "bare", "server", "mitmproxy", "gateway", "compiled"), STARTS, strict=True)
)
UNSIGNED = {BARE, CADDY, LOW_LEVEL}
_WARM_UP_S = 0.5


def measure_row(row: Row, names: Sequence[str], rounds: int, seconds: float) -> Report:
    with (
        TemporaryDirectory() as name,
        row.running(folder := Path(name)) as (direct, setting),
        running_ways(folder, setting, names) as others,
    ):
        ways = {DIRECT: direct, **others}
        options = dict.fromkeys(ways, row.load)
        if setting.ca_file:
            options[DIRECT] = (*row.load, "--ca-file", str(setting.ca_file))
        for way in others.keys() - UNSIGNED if row == PLAIN else ():
            check_seal(way, ways[way], direct)
        for way in others:
            measure(ways[way], CONNECTIONS[-1], _WARM_UP_S, *options[way])
        return Report(
            [
                {
                    (way, connections): measure(ways[way], connections, seconds, *options[way])
                    for connections in CONNECTIONS
                    for way in _turned([*ways], number)
                }
                for number in range(rounds)
            ]
        )


def _turned(ways: list[str], number: int) -> list[str]:
    turn = number % len(ways)
    return ways[turn:] + ways[:turn]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Latency, requests/s and CPU, row by row and way by way.")
    parser.add_argument("--only", action="append", choices=tuple(ROWS), help="this row; may be repeated")
    parser.add_argument("--rounds", type=int, default=10, help="of each row (10, about two minutes a row)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement (0.5)")
    parser.add_argument(
        "--without", action="append", choices=tuple(WITHOUT), default=[], help="leave out a way"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the figures into docs/internals/performance.md and its plot",
    )
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write needs every row: leave out --only")
    return options


def main() -> None:
    options = parse()
    allow_many_connections()
    names = [name for short, name in WITHOUT.items() if short not in options.without]
    reports = {}
    for row in (ROWS[name] for name in options.only or ROWS):
        # mitmproxy is so far behind in the plain row that the others would add nothing.
        own = [name for name in names if row == PLAIN or name != MITMPROXY]
        reports[row.name] = measure_row(row, own, options.rounds, options.seconds)
    if options.json:
        rows = {name: report.plain_data() for name, report in reports.items()}
        print(json.dumps({"machine": machine(), "rounds": options.rounds, "rows": rows}, indent=1))
    first, report = next(iter(reports.items()))
    text = f"{machine()}\n\nThe row `{first}`:\n\n{figures_table(report)}\n\n{ratios_table(reports)}"
    if not options.json:
        print(text)
    if options.write:
        write_part("latency", f"{text}\n\n![Added latency and throughput](performance.svg)")
        (INTERNALS / "performance.svg").write_text(plot(report))


if __name__ == "__main__":
    main()
