"""The Dockerfile without Docker: its instructions, and a folder in which its steps were carried out.

A path of the container is the same path below a folder here, in commands as in what they name.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.programs import path_of

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
# Where an absolute path can begin: not within a URL, nor after a name as in ./x or a/b.
_ABSOLUTE = re.compile(r"(?<![\w./])/(?=[a-z])")
# To compile all bytecode and all modules takes a test too long; scripts/compiled does the latter in CI.
COMPILED = "http/target"
# Runs pytest in the image's environment; what it lacks for tests is found last, so that all else is its own.
RUNNER = "import sys; sys.path.append(sys.argv.pop(1)); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
_OURS = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PIP_NO_COMPILE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "SEALGATE_COMPILED": f"{COMPILED}.py",
    "MYPYC_OPT_LEVEL": "0",
}


@dataclass(frozen=True)
class Step:
    """One instruction: `COPY`, its flags such as `{"from": "build"}`, and the rest of its words."""

    name: str
    flags: Mapping[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The arguments, of which those in exec form are given as JSON."""
        return json.loads(self.text) if self.text.startswith("[") else self.text.split()


def steps(text: str) -> list[Step]:
    """Return the instructions of a Dockerfile."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    whole = "\n".join(lines).replace("\\\n", " ")
    return [_step(line) for line in whole.splitlines()]


def _step(line: str) -> Step:
    name, rest = line.split(maxsplit=1)
    flags = {}
    while rest.startswith("--"):
        flag, rest = rest.split(maxsplit=1)
        key, _, value = flag[2:].partition("=")
        flags[key] = value
    return Step(name, flags, rest)


def stages(all_steps: list[Step]) -> list[list[Step]]:
    """Return the steps of each stage, FROM first."""
    starts = [number for number, step in enumerate(all_steps) if step.name == "FROM"]
    return [all_steps[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def mapped(text: str, folder: Path) -> str:
    """Return a text with absolute paths as they are below a folder."""
    return _ABSOLUTE.sub(f"{folder}/", text)


@dataclass
class Image:
    """A stage's folder, with what its instructions set."""

    folder: Path
    workdir: str = "/"
    user: str = "0"
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    health: tuple[str, ...] = ()

    def inside(self, text: str) -> str:
        """Return a text with the container's absolute paths as they are here."""
        return mapped(text, self.folder)

    def path(self, name: str) -> Path:
        """Return where a path of the container, in its working folder if it is relative, is here."""
        return self.folder / os.path.join(self.workdir, name).lstrip("/")  # noqa: PTH118 - the container's path

    def run(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the image with absolute paths mapped."""
        command = [self.inside(argument) for argument in arguments]
        return subprocess.run(
            command,
            cwd=self.path("."),
            env=dict(environ or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def borrowed() -> str:
    """Return the folder of the packages that the image lacks for tests."""
    return str(Path(pytest.__file__).parents[1])


def replayed(folder: Path) -> Image:
    """Carry out the Dockerfile below a folder, and return its last stage. Raises MissingProgramError."""
    path_of("cc")
    built: dict[str, Image] = {}
    image = Image(folder)
    for number, stage in enumerate(stages(steps(DOCKERFILE.read_text()))):
        first, *others = stage
        image = Image(folder / str(number))
        built[first.words[-1]] = image
        for step in others:
            _ACTS[step.name](image, step, built)
    return image


def _run(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    environ = {**os.environ, **_OURS}
    done = subprocess.run(
        ["sh", "-ec", image.inside(step.text)],
        cwd=image.path("."),
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"RUN {step.text}\n{done.stdout}{done.stderr}"


def _copy(image: Image, step: Step, built: Mapping[str, Image]) -> None:
    """Copy; whose the copy is only root could say here."""
    *sources, target = step.words
    source_image = built[step.flags["from"]] if "from" in step.flags else None
    for source in sources:
        origin = source_image.path(source) if source_image else ROOT / source
        goal = image.path(target)
        if target.endswith("/"):
            goal = goal / origin.name
        goal.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, goal, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, goal)
        if "chmod" in step.flags:
            goal.chmod(int(step.flags["chmod"], 8))
        if source_image is not None:
            _move_programs(goal, source_image.folder, image.folder)


def _move_programs(goal: Path, before: Path, now: Path) -> None:
    """Let scripts name the interpreter beside them: in containers a path is the same in each stage."""
    for file in goal.glob("bin/*"):
        if not file.is_symlink() and file.read_bytes().startswith(b"#!"):
            file.write_text(file.read_text().replace(str(before), str(now)))


def _workdir(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    image.workdir = step.text
    image.path(".").mkdir(parents=True, exist_ok=True)


def _user(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    image.user = step.text


def _health(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    image.health = tuple(json.loads(step.text.removeprefix("CMD ")))


def _entrypoint(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    image.entrypoint = tuple(step.words)


def _command(image: Image, step: Step, _: Mapping[str, Image]) -> None:
    image.command = tuple(step.words)


def _nothing(_: Image, __: Step, ___: Mapping[str, Image]) -> None:
    """Leave out what says nothing about files or programs."""


_ACTS = {
    "RUN": _run,
    "COPY": _copy,
    "WORKDIR": _workdir,
    "USER": _user,
    "HEALTHCHECK": _health,
    "ENTRYPOINT": _entrypoint,
    "CMD": _command,
    "ENV": _nothing,
    "EXPOSE": _nothing,
}


def ignored(name: str, patterns: str) -> bool:
    """Whether a .dockerignore leaves a file out: the last line that fits decides."""
    is_out = False
    for line in _lines(patterns):
        pattern = line.removeprefix("!").rstrip("/").replace("**/", "")
        parts = name.split("/")
        heads = ["/".join(parts[: length + 1]) for length in range(len(parts))]
        fits = pattern == "*" or pattern in heads or ("**/" in line and pattern in parts)
        if fits:
            is_out = not line.startswith("!")
    return is_out


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line and not line.startswith("#"))
