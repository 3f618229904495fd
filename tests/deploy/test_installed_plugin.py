"""The plugin as others get it: installed, in an environment that knows no sources, the image's."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from rig.fences import ROOT, fences
from rig.image import RUNNER, Image, borrowed

EXAMPLES = [block.text for block in fences(ROOT / "docs" / "sandbox.md") if block.label == "test"]

FIFTY = """\
import pytest, requests

@pytest.mark.parametrize("number", range(50))
def test_an_order(sealgate_gateway, sealgate_sandbox, number):
    order = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
    reply = requests.post(f"{sealgate_gateway.url}/v1/trade/order", json=order, timeout=45)
    assert reply.json()["order_id"]
    assert sum(line["method"] == "POST" for line in sealgate_sandbox.journal()) == 1
"""
# Of the packages that it borrows, one has a plugin that takes seconds.
INI = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
addopts = -p no:schemathesis
"""
UNUSED = """\
import sys

def test_nothing_of_it_is_imported():
    ours = {name for name in sys.modules if name.startswith("sealgate")}
    assert ours == {"sealgate", "sealgate.testing"}
    assert not {"aiohttp", "pydantic", "structlog"} & set(sys.modules)
"""
MISTAKEN = """\
import pytest

@pytest.fixture
def sealgate_settings():
    return {"limits": {"max_weight": 3}}

def test_a_mistake(sealgate_gateway):
    pass
"""
FAILS = """\
import requests

def test_a_bot_that_trusts(sealgate_gateway, sealgate_sandbox):
    sealgate_sandbox.faults({"kind": "reset_after", "match": "POST *"})
    order = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
    assert requests.post(f"{sealgate_gateway.url}/v1/trade/order", json=order, timeout=45).ok

def test_that_calls_it_wrong(sealgate_sandbox):
    sealgate_sandbox.faults({"kind": "cut", "match": "POST /v1/trade/ordr"})

def test_that_goes_back(sealgate_sandbox):
    sealgate_sandbox.advance(-1)
"""


class Project:
    """A bot's project: a folder with tests, which the image's Python runs."""

    def __init__(self, folder: Path, image: Image) -> None:
        self.folder = folder
        self._python = image.path("/opt/sealgate/bin/python")
        folder.mkdir()
        (folder / "pytest.ini").write_text(INI)

    def run(self, *tests: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run tests, each a file of its own."""
        for number, text in enumerate(tests):
            (self.folder / f"test_{number}.py").write_text(text)
        environ |= {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        command: list[str | Path] = [self._python, "-c", RUNNER, borrowed(), "-v", "--rootdir", self.folder]
        return subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False
        )


@pytest.fixture
def project(tmp_path: Path, image: Image) -> Project:
    return Project(tmp_path / "bot", image)


def test_its_tests_run_where_it_is_installed(project: Project) -> None:
    """These are the examples of the docs, and fifty that would notice each other."""
    done = project.run(*EXAMPLES, FIFTY)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(" PASSED", done.stdout)) >= len(EXAMPLES) + 50 == 55


def test_a_run_that_does_not_use_it_imports_nothing_of_it(project: Project) -> None:
    (project.folder / "pytest.ini").write_text("[pytest]\naddopts = -p sealgate.testing\n")
    done = project.run(UNUSED, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout


def test_settings_that_are_wrong_fail_in_one_line(project: Project) -> None:
    done = project.run(MISTAKEN)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("sealgate_gateway cannot start")]
    assert line.endswith("limits.max_weight: unknown setting; did you mean limits.max_wait?")
    assert "Traceback" not in done.stdout
    assert done.stdout.count("did you mean") == 1


def test_tests_that_fail_show_the_log_of_the_last_request_and_the_line_of_a_wrong_call(
    project: Project,
) -> None:
    done = project.run(FAILS)
    shown = done.stdout.partition("Captured log call")[2].partition("____")[0]
    assert re.search(r"WARNING .* request .*method=POST .*outcome=unknown .*reason=upstream_broken", shown)
    for call in ("faults", "advance"):
        shown = done.stdout.partition(f">       sealgate_sandbox.{call}(")[2].partition("____")[0]
        assert len([line for line in shown.splitlines() if re.search(r"\.py:\d+", line)]) == 1, done.stdout
    assert "world.py" not in done.stdout


@pytest.mark.parametrize("example", EXAMPLES[:2])
def test_an_example_is_short(example: str) -> None:
    assert len(example.splitlines()) <= 12
