"""What `sealgate --help` costs beside importing click alone, each as a program of its own, in turn.

People type it often, and a shell calls the same program for each completion. Run it on a quiet machine.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

PROGRAMS = {
    "import click": ("-c", "import click"),
    "sealgate --help": ("-c", "from sealgate.cli import main; main(['--help'])"),
    "python alone": ("-c", "pass"),
}
ALLOWED = 1.5


def run_ms(arguments: Sequence[str]) -> float:
    """Return how long a program takes, in milliseconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure and print; exit code 1 where it costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds + 1):
        for name, arguments in PROGRAMS.items():
            times[name].append(run_ms(arguments))
    medians = {name: statistics.median(measured[1:]) for name, measured in times.items()}
    for name, measured in times.items():
        print(f"{name:<16} median {medians[name]:6.1f} ms, least {min(measured[1:]):6.1f} ms")
    ratio = medians["sealgate --help"] / medians["import click"]
    print(f"sealgate --help takes {ratio:.2f} times as long as importing click; it may take {ALLOWED}")
    sys.exit(ratio > ALLOWED)


if __name__ == "__main__":
    main()
