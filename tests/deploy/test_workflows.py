"""The workflows: they run what is run here, with the Pythons that the project supports."""

import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.image import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def jobs(workflow: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return found


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_each_step_is_a_script_of_ours_or_an_action_of_a_named_version(workflow: Path) -> None:
    for job in jobs(workflow).values():
        for step in job["steps"]:
            if "run" in step:
                assert os.access(ROOT / shlex.split(step["run"])[0], os.X_OK), step
            else:
                assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]), step


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_no_workflow_may_write_or_knows_a_secret(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
    assert "secrets." not in workflow.read_text()


def test_ci_and_wheels_are_for_the_same_pythons_from_the_oldest_that_the_project_takes() -> None:
    pythons = jobs(ROOT / ".github/workflows/ci.yml")["suite"]["strategy"]["matrix"]["python"]
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert built == [f"cp{python.replace('.', '')}-*" for python in pythons]
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
