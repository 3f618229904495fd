"""The scripts for those who change the code."""

import os
import subprocess
from pathlib import Path

from rig.image import ROOT


def test_what_a_user_has_set_for_python_does_not_change_what_the_suite_finds(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/test").symlink_to(ROOT / "scripts/test")
    for name, says in (("scripts/venv", ""), (".venv/bin/python", "env")):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
    environ = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": "/elsewhere", "PYTHON": "python3.12"}
    done = subprocess.run(
        [tmp_path / "scripts/test", "tests/core"], capture_output=True, text=True, check=True, env=environ
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("PYTHON")]
    assert found == ["PYTHON=python3.12"]
