"""The Dockerfile: linted, held to rules that the linter has not, and carried out without Docker."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sealgate
from rig.image import COMPILED, DOCKERFILE, ROOT, Image, Step, ignored, stages, steps

STEPS = steps(DOCKERFILE.read_text())
BUILD, FINAL = stages(STEPS)
HADOLINT = Path(sys.executable).with_name("hadolint")


def named(name: str, within: list[Step]) -> list[Step]:
    return [step for step in within if step.name == name]


def lint(text: str) -> subprocess.CompletedProcess[str]:
    command = [str(HADOLINT), "--failure-threshold", "style", "--no-color", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing() -> None:
    done = lint(DOCKERFILE.read_text())
    assert done.returncode == 0, done.stdout


def test_both_stages_have_the_same_exact_python_on_the_same_system() -> None:
    build, final = (stage[0].words[0] for stage in (BUILD, FINAL))
    assert (build, final) == (final.replace("-slim", ""), build.replace("-", "-slim-"))
    assert len(build.partition(":")[2].split("-")[0].split(".")) == 3


def test_it_runs_as_a_number_that_is_not_root() -> None:
    [user] = named("USER", FINAL)
    assert user.text == "10001:10001"


def test_programs_are_started_without_a_shell() -> None:
    [entry], [command], [health] = (named(name, FINAL) for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK"))
    assert entry.words == ["/opt/sealgate/bin/sealgate"]
    assert command.words == ["serve"]
    assert health.text == 'CMD ["/opt/sealgate/bin/sealgate", "healthcheck", "--live"]'


def test_the_last_stage_has_only_the_environment_and_an_empty_folder() -> None:
    assert [step.words for step in named("COPY", FINAL)] == [
        ["/opt/sealgate", "/opt/sealgate"],
        ["/state", "/var/lib/sealgate"],
    ]
    assert not named("RUN", FINAL)


def sources() -> list[str]:
    return [source for step in named("COPY", BUILD) for source in step.words[:-1]]


@pytest.mark.parametrize("source", sources())
def test_what_is_copied_is_there_and_in_the_context(source: str) -> None:
    assert (ROOT / source).exists()
    assert not ignored(source, (ROOT / ".dockerignore").read_text())


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        "main.secret",
        "sealgate.toml",
        "journal.db",
        "deploy/compose/secrets/main",
        "deploy/compose/gateway.env",
        "tests/x.py",
        ".venv/bin/python",
        "src/sealgate/__pycache__/x.pyc",
    ],
)
def test_nothing_else_is_in_the_context(name: str) -> None:
    assert ignored(name, (ROOT / ".dockerignore").read_text())


def test_no_secret_goes_in() -> None:
    assert not named("ARG", STEPS)
    words = " ".join(step.text for step in named("ENV", STEPS)).lower()
    assert not any(word in words for word in ("secret", "token", "password", "key"))


def test_the_program_of_the_image_says_its_version(image: Image) -> None:
    done = image.run(*image.entrypoint, "--version")
    assert (done.stdout, done.stderr) == (f"sealgate {sealgate.__version__}\n", "")


def test_the_health_check_says_what_is_missing(image: Image) -> None:
    environ = {
        "SEALGATE_BASE_URL": "https://api.example.com",
        "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
        "SEALGATE_KEYS__MAIN__SECRET": "file:/run/secrets/main",
        "SEALGATE_ADMIN__TCP": "127.0.0.1:9",
    }
    done = image.run(*image.health, environ=environ)
    assert done.returncode == 1
    assert "no gateway answers at 127.0.0.1:9" in done.stderr


def test_it_has_no_sources_and_nothing_to_install_with(image: Image) -> None:
    assert not image.path("/build").exists()
    assert shutil.which("pip", path=str(image.path("/opt/sealgate/bin"))) is None
    [package] = image.path("/opt/sealgate/lib").glob("python3.*/site-packages/sealgate")
    assert {file.name for file in package.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}


def test_its_modules_are_compiled_and_what_compiles_is_left_behind(image: Image) -> None:
    asked = f"import sealgate.{COMPILED.replace('/', '.')} as module; print(module.__file__)"
    python = "/opt/sealgate/bin/python"
    assert image.run(python, "-c", asked).stdout.endswith(".so\n")
    assert image.run(python, "-c", "import mypyc").stderr.endswith("No module named 'mypyc'\n")


def test_a_volume_takes_over_a_folder_that_is_ours_alone(image: Image) -> None:
    assert image.path("/var/lib/sealgate").stat().st_mode & 0o777 == 0o700
    [state] = [step for step in named("COPY", FINAL) if step.words[0] == "/state"]
    assert state.flags["chown"] == named("USER", FINAL)[0].text
