"""A test whose program is missing: pytest in a process of its own, with nothing on its PATH."""

import os
import re
import subprocess
import sys
from pathlib import Path

from rig.fences import ROOT
from rig.programs import ALL_PROGRAMS

NEEDS_ONE = "tests/cli/test_sign.py::test_the_sandbox_takes_the_curl_command"
SAYS_SO = "needs curl (Debian: curl)"
LISTED = "Skipped for want of curl (Debian: curl): {} tests"


def run(folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", NEEDS_ONE]
    usual = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    environ = {**usual, "PATH": str(folder), **environ}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def test_it_is_skipped_and_the_end_lists_the_program(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SAYS_SO in done.stdout
    skipped = re.search(r"\b(\d+) skipped", done.stdout)
    assert skipped is not None
    assert LISTED.format(skipped[1]) in done.stdout.splitlines()


def test_what_the_streams_skipped_is_added_up(tmp_path: Path) -> None:
    outputs = [tmp_path / "one", tmp_path / "two"]
    for output in outputs:
        output.write_text(f"....\n{LISTED.format(4)}\n4 skipped\n")
    command = [sys.executable, "-m", "rig.programs", *map(str, outputs)]
    environ = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == LISTED.format(8)


def test_where_all_programs_are_demanded_it_fails(tmp_path: Path) -> None:
    done = run(tmp_path, **{ALL_PROGRAMS: "yes"})
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{SAYS_SO}, and {ALL_PROGRAMS} is set" in done.stdout
