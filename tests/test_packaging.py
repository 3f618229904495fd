"""What is shipped: the locks, the version, the program and the wheel."""

import ast
import importlib
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from packaging.tags import sys_tags

import sealgate
from sealgate.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
KINDS = ("", "-dev", "-compile", "-bench", "-mutate")
BASE, DEV, COMPILE, *_ = LOCKS = [ROOT / "deploy" / f"requirements{kind}.txt" for kind in KINDS]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOOK = runpy.run_path(str(ROOT / "hatch_build.py"))

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<rest>(?:.*\\\n)*.*)$", re.MULTILINE)
_INDEX = re.compile(r"://|--index-url|--extra-index-url|--find-links|--trusted-host|^-[if] ", re.MULTILINE)


def pins(lock: Path) -> dict[str, str]:
    return {pin["name"]: pin["version"] for pin in _PIN.finditer(lock.read_text())}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_hashes(lock: Path) -> None:
    found = list(_PIN.finditer(lock.read_text()))
    assert len(found) > 5
    assert [pin["name"] for pin in found if "--hash=sha256:" not in pin["rest"]] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_index(lock: Path) -> None:
    assert _INDEX.findall(lock.read_text()) == []


INSTALLING = [
    "scripts/venv",
    "scripts/release",
    "scripts/compiled",
    "scripts/mutate",
    "scripts/wheels",
    ".ci/run",
    "Dockerfile",
    "pyproject.toml",
]


@pytest.mark.parametrize("file", INSTALLING)
def test_no_script_chooses_an_index(file: str) -> None:
    assert not re.search(r"index-url|find-links|trusted-host|/simple", (ROOT / file).read_text())


PIP_FAILS = """\
#!/bin/sh
[ "$2" = pip ] || exit 0
printf '%s\\n' "WARNING: {}" 'ERROR: No matching distribution found for a==1' >&2
exit 1
"""


@pytest.mark.parametrize(
    ("warning", "told"),
    [
        ("Retrying after connection broken by Refused: /a", "the package index cannot be reached; look at"),
        ("something else", "No matching distribution found for a==1; all that pip said is in "),
    ],
)
def test_packages_that_cannot_be_had_are_told_in_one_line(tmp_path: Path, warning: str, told: str) -> None:
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in {
        "scripts/venv": (ROOT / "scripts/venv").read_text(),
        ".venv/bin/python": PIP_FAILS.format(warning),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([tmp_path / "scripts/venv"], capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("scripts/venv: ")]
    assert (done.returncode, line.startswith(f"scripts/venv: {told}")) == (1, True), done.stderr
    assert not (tmp_path / ".venv/.stamp").exists()


# In place of an environment's Python: it notes what pip is asked for, and only runs what comes on stdin.
PIP_NOTES = f"""\
#!/bin/sh
[ "$1" != - ] || exec {sys.executable} "$@"
[ "$2" != pip ] || echo "$@" >>pip.log
"""
FITTING = f"cp{sys.version_info[0]}{sys.version_info[1]}-abi3-{next(sys_tags()).platform}"


class Checkout:
    """A checkout with one source and a wheel in dist/, and an environment in which nothing happens."""

    def __init__(self, folder: Path, tag: str) -> None:
        self.folder = folder
        self.source = folder / "src/sealgate/core.py"
        self.wheel = f"dist/sealgate-1.0-{tag}.whl"
        for name in ("scripts", ".venv/bin", "src/sealgate", "dist"):
            (folder / name).mkdir(parents=True)
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        for name in ("pyproject.toml", "scripts/venv"):
            shutil.copy(ROOT / name, folder / name)
        python = folder / ".venv/bin/python"
        python.write_text(PIP_NOTES)
        python.chmod(0o755)
        self.source.write_text("x = 1\n")
        with zipfile.ZipFile(folder / self.wheel, "w") as archive:
            archive.write(self.source, "sealgate/core.py")
            archive.writestr("sealgate/core.so", "compiled")

    def install(self, *kind: str) -> tuple[str, str]:
        """Return the last thing that pip is asked for, "" if it is not, and what is said."""
        log = self.folder / "pip.log"
        log.unlink(missing_ok=True)
        command = [str(self.folder / "scripts/venv"), *kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return log.read_text().splitlines()[-1].split()[-1] if log.exists() else "", done.stderr


def test_a_compiled_wheel_that_fits_is_installed(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, FITTING)
    assert checkout.install()[0] == checkout.wheel
    assert checkout.install() == ("", ""), "it is there"


def test_a_wheel_for_another_python_is_not_and_how_to_get_one_that_fits_is_said(tmp_path: Path) -> None:
    last, said = Checkout(tmp_path, "cp399-cp399-any").install()
    assert (last, "scripts/compiled" in said.splitlines()[-1]) == (".", True)


def test_a_wheel_of_other_sources_is_not_and_does_not_stay(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, FITTING)
    checkout.install()
    checkout.source.write_text("x = 2\n")
    assert checkout.install()[0] == "."


def test_for_development_the_sources_are_installed(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, FITTING)
    assert checkout.install("dev")[0] == "."
    assert checkout.install() == ("", ""), "that serves everything"


@pytest.mark.parametrize("lock", [BASE, COMPILE], ids=lambda lock: lock.name)
def test_the_development_lock_holds_the_others(lock: Path) -> None:
    assert pins(lock).items() <= pins(DEV).items()


def test_what_the_project_needs_is_locked() -> None:
    needed = [re.split(r"[<>=!~ \[]", text)[0] for text in PROJECT["project"]["dependencies"]]
    assert set(needed) <= set(pins(BASE))


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/sealgate/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", sealgate.__version__)
    files = [*ROOT.glob("src/**/*.py"), ROOT / "pyproject.toml"]
    assert [file.name for file in files if f'"{sealgate.__version__}"' in file.read_text()] == ["__init__.py"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_has_help(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {name}")


def test_the_installed_program_is_the_command_line() -> None:
    [script] = entry_points(group="console_scripts", name="sealgate")
    assert script.load() is main


def test_the_links_of_the_readme_lead_to_the_project_s_address() -> None:
    """So they do on the page that an index shows."""
    project = "https://git.example.com/sealgate"
    metadata: dict[str, Any] = {"urls": {"Source": project}}
    HOOK["ReadmeHook"](str(ROOT), {}).update(metadata)
    text = metadata["readme"]["text"]
    links = [link for link in re.findall(r"\]\(([^()\s]+)\)", text) if not link.startswith("#")]
    ours = [link.removeprefix(project) for link in links if link.startswith(project)]
    assert len(ours) > 15
    assert [link for link in links if "://" not in link] == []
    assert all(re.match(r"/(blob|raw)/main/", link) for link in ours)
    assert {link for link in ours if link.endswith(".png")} == {"/raw/main/docs/live-page-1280-light.png"}
    files = [link.split("/", 3)[3].partition("#")[0] for link in ours]
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_wheel_holds_the_package_and_its_metadata(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.iterdir()
    assert wheel.name == f"sealgate-{sealgate.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"sealgate-{sealgate.__version__}.dist-info"
        assert "sealgate = sealgate.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "License-Expression: MIT" in metadata
    # Ours, and that of the plots of the live page.
    assert {name for name in names if name.startswith(f"{info}/licenses/")} == {
        f"{info}/licenses/LICENSE",
        f"{info}/licenses/src/sealgate/observe/page/vendor/LICENSE",
    }
    addresses = PROJECT["project"].get("urls", {})
    assert metadata.count("Project-URL: ") == len(addresses)
    if not addresses:  # then the README is as it stands
        assert metadata.partition("\n\n")[2] == (ROOT / "README.md").read_text()
    assert f"sealgate-{sealgate.__version__}.data/data/share/man/man1/sealgate.1" in names
    files = (file for file in (ROOT / "src").rglob("*") if file.is_file() and file.suffix != ".pyc")
    assert {str(file.relative_to(ROOT / "src")) for file in files} <= names


@pytest.mark.parametrize("glob", HOOK["COMPILED"])
def test_what_is_to_be_compiled_exists(glob: str) -> None:
    assert list((ROOT / "src/sealgate").glob(glob))


@pytest.mark.parametrize("name", HOOK["compiled_modules"](ROOT))
def test_nothing_that_is_compiled_waits_while_it_handles_an_exception(name: str) -> None:
    """Mypyc leaves the exception to whatever the loop runs meanwhile, whose own exceptions then keep it."""
    waits = ast.Await, ast.Yield, ast.AsyncFor, ast.AsyncWith
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.Try):
            parts = [*node.handlers, *node.finalbody]
            assert not [at.lineno for part in parts for at in ast.walk(part) if isinstance(at, waits)]


@pytest.mark.parametrize("name", HOOK["compiled_modules"](ROOT))
def test_no_field_of_a_class_that_is_compiled_is_annotated_with_a_bare_object(name: str) -> None:
    """Of a dataclass, mypyc looks the name up among the module's own, and the module fails to load."""
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.ClassDef) and node.decorator_list:
            fields = [one.annotation for one in node.body if isinstance(one, ast.AnnAssign)]
            assert not [one.lineno for one in fields if isinstance(one, ast.Name) and one.id == "object"]


@pytest.mark.parametrize("name", HOOK["compiled_modules"](ROOT))
def test_nothing_that_is_compiled_asks_for_the_platform(name: str) -> None:
    """Mypy leaves out what is for another system than its own, and mypyc what mypy left out."""
    assert "sys.platform" not in (ROOT / name).read_text()


def test_no_class_that_is_not_compiled_inherits_from_one_that_is() -> None:
    """Mypyc's classes take no such heirs, unless they say so."""
    files = (Path(name).relative_to("src") for name in HOOK["compiled_modules"](ROOT))
    modules = {".".join(file.with_suffix("").parts) for file in files}
    for module in pkgutil.walk_packages(sealgate.__path__, "sealgate."):
        if module.name in modules or module.name.endswith("__main__"):
            continue
        own = vars(importlib.import_module(module.name)).values()
        for kind in (one for one in own if isinstance(one, type) and one.__module__ == module.name):
            assert {base.__module__ for base in kind.__mro__[1:]}.isdisjoint(modules), kind
