"""A container of the image without Docker: its root is a folder, its ports are free ones of this machine."""

import contextlib
import re
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.image import Image, mapped
from rig.ports import free_port
from rig.program import Program, running_program

_PORT = re.compile(r":(\d{4,5})\b")


def free_ports(*ports: int) -> dict[int, int]:
    """Return a free port for each."""
    return {port: free_port() for port in ports}


@dataclass(frozen=True)
class Container:
    """What runs in a folder that stands for `/`. `words` are changes to texts, such as an example's name."""

    folder: Path
    image: Image
    ports: Mapping[int, int]
    words: Mapping[str, str]

    def inside(self, text: str) -> str:
        """Return a text as it has to be here."""
        for word, other in self.words.items():
            text = text.replace(word, other)
        text = _PORT.sub(lambda found: f":{self.ports.get(int(found[1]), int(found[1]))}", text)
        return mapped(text, self.folder)

    def path(self, name: str) -> Path:
        """Return where an absolute path is here."""
        return self.folder / name.lstrip("/")

    def make(self, name: str, mode: int = 0o755) -> Path:
        """Make a folder as something else would before the program starts."""
        folder = self.path(name)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
        return folder

    def mount(self, file: Path, name: str, mode: int = 0o444) -> None:
        """Put a file there, as it has to be here."""
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.inside(file.read_text()))
        target.chmod(mode)

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of its programs; the admin socket's default place is this machine's /tmp."""
        return {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(self.path("/tmp")), **(more or {})}  # noqa: S108 - mapped

    @contextlib.asynccontextmanager
    async def running(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> AsyncIterator[Program]:
        """Run a command as long as the block lasts."""
        program, *arguments = map(self.inside, command)
        folder = self.path(self.image.workdir)
        async with running_program(
            *arguments, program=program, start=(), environ=self.environ(environ), folder=folder
        ) as running:
            yield running

    def ended(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [self.inside(word) for word in command],
            cwd=self.path(self.image.workdir),
            env=self.environ(environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def container(
    folder: Path, image: Image, ports: Mapping[int, int], words: Mapping[str, str] | None = None
) -> Container:
    """Return a container of an image; the programs are the image's own, all else is new."""
    made = Container(folder, image, ports, words or {})
    made.make(image.workdir)
    made.path("/opt").symlink_to(image.path("/opt"))
    return made
