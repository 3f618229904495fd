"""What a release is: a version, a section of the changelog, and a wheel that passes the tests."""

import json
import os
import re
import subprocess
from pathlib import Path

from rig.image import ROOT, RUNNER, Image, borrowed


def refused_release(folder: Path, section: str) -> str:
    """Run the script in a copy of the project that was never released; return what it says."""
    (folder / "scripts").mkdir()
    (folder / "scripts/release").write_text((ROOT / "scripts/release").read_text())
    for name, text in (("scripts/venv", ""), (".venv/bin/sealgate", "echo sealgate 9.8.7")):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n\n## [{section}] - 2026-11-21\n")
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    command = ["sh", str(folder / "scripts/release")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not (folder / "dist").exists()
    return done.stderr


def test_no_release_without_its_section(tmp_path: Path) -> None:
    assert refused_release(tmp_path, "9x8.7") == (
        'scripts/release: CHANGELOG.md has no section "## [9.8.7] - YYYY-MM-DD"; '
        "give [Unreleased] that name, or try it out with --rehearse\n"
    )


def test_no_release_as_long_as_the_project_has_no_address(tmp_path: Path) -> None:
    assert refused_release(tmp_path, "9.8.7") == (
        "scripts/release: pyproject.toml has no [project.urls] with a Source; "
        "write there where the project is\n"
    )


def test_the_list_of_parts_has_all_that_the_lock_has_and_the_plots() -> None:
    done = subprocess.run([ROOT / "scripts/sbom", "9.8.7"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/sealgate@9.8.7"
    parts = {part["name"]: part["version"] for part in document["components"]}
    locked = re.findall(
        r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "deploy/requirements.txt").read_text(), re.MULTILINE
    )
    assert dict(locked).items() <= parts.items()
    assert re.fullmatch(r"\d+\.\d+\.\d+", parts["uplot"])


SHORT = [
    "tests/diagnose/test_schemes.py",
    "tests/cli/test_sign.py",
    "tests/observe/test_assets.py",
    "tests/test_readme.py",
]
WITHOUT_RECIPES = "not class_for_ccxt and not function_that_places"  # they need the clients of bots, too


def test_the_wheel_passes_tests_without_the_sources(image: Image) -> None:
    """A short part of the suite; `scripts/release` runs the whole of it so."""
    python = str(image.path("/opt/sealgate/bin/python"))
    where = subprocess.run(
        [python, "-c", "import sealgate; print(sealgate.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(image.path("/opt/sealgate/lib"))
    run = [
        "-c",
        RUNNER,
        borrowed(),
        "-p",
        "no:cacheprovider",
        "-k",
        WITHOUT_RECIPES,
        *SHORT,
    ]
    done = subprocess.run(
        [python, *run],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d{3} passed", done.stdout), done.stdout
