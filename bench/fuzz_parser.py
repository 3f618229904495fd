"""Coverage-guided fuzzing of the target parser: whatever is accepted must have one reading.

    pip install atheris yarl
    PYTHONPATH=src:.:tests python bench/fuzz_parser.py -max_total_time=300

The arguments are libFuzzer's. It ends with the number of executions, or with the input that has two readings.
"""

import sys
from contextlib import suppress

import atheris  # type: ignore[import-untyped]

atheris.enabled_hooks.add("RegEx")
with atheris.instrument_imports(include=["sealgate.http.target", "rig.readings"]):
    from rig.readings import check_one_reading
    from sealgate.errors import Refusal
    from sealgate.http.target import parse_target

PREFIX = "/v1/trade"
STARTS = (f"{PREFIX}/", f"{PREFIX}/", PREFIX, "/", "")
parse = parse_target.__wrapped__
accepted = 0


def run(data: bytes) -> None:
    """Read one input: the first byte chooses how the target begins."""
    global accepted  # noqa: PLW0603 - atheris calls a plain function
    raw = STARTS[data[0] % len(STARTS)] + data[1:].decode("latin-1") if data else ""
    with suppress(Refusal):
        target = parse(raw, PREFIX)
        check_one_reading(raw, PREFIX, target)
        accepted += 1


if __name__ == "__main__":
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()
