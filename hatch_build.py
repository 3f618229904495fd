"""Compiles the modules that every request goes through, where a wheel is built with this hook switched on.

mypyc makes C of the same source that runs without it, from the types that mypy checks. What inherits from a
class of aiohttp or prometheus-client stays as it is. The build needs a C compiler and Python's headers, and
mypy, setuptools and all that sealgate imports in its environment.
"""

import contextlib
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MODULES = {
    "": ["errors"],
    "core": [
        "admission",
        "attempts",
        "clock",
        "endings",
        "halts",
        "headers",
        "limit_reply",
        "outcome",
        "replays",
        "routes",
        "signing",
        "stamps",
        "target",
    ],
    "core/pacing": [
        "claims",
        "envelope",
        "gate",
        "in_flight",
        "limit",
        "line",
        "pace",
        "pacer",
        "patience",
        "round_trips",
        "sent_log",
    ],
    "core/sharing": ["member_pacer"],  # inherits from the pacer
    "gateway/bots": ["connection", "incoming", "line", "lookout", "parser", "seams", "states"],
    "gateway/clock": ["kept"],
    "gateway/host": ["alarm", "flow"],
    "gateway/keys": ["key", "sealing"],
    "gateway/pacing": ["turnstile"],
    "gateway/request": [
        "bookkeeping",
        "context",
        "halting",
        "handler",
        "key_watch",
        "learning",
        "pipeline",
        "replies",
        "reporter",
        "under_way",
    ],
    "gateway/upstream": ["answer", "connection", "parser", "pool", "slots", "states"],
    "admin": ["answering", "log", "recent", "traffic"],
}


class CompileHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel; they go before the sources, which stay in it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the sources are to be edited."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        with contextlib.chdir(self.root):
            build_data["force_include"].update(_compiled(Path(self._folder.name)))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel holds by now."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()


def _compiled(target: Path) -> dict[str, str]:
    """Return where each compiled module lies, and its place in the wheel."""
    from mypyc.build import mypycify  # noqa: PLC0415 - a pure wheel is built without it
    from setuptools import Distribution  # noqa: PLC0415 - the same
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415 - the same

    folders = ((Path("src/sealgate", folder), names) for folder, names in _MODULES.items())
    sources = [str(folder / f"{name}.py") for folder, names in folders for name in names]
    level = environ.get("MYPYC_OPT_LEVEL", "2")
    extensions = mypycify(["--config-file=pyproject.toml", *sources], opt_level=level, target_dir=str(target))
    build = build_ext(Distribution({"name": "sealgate", "ext_modules": extensions}))
    build.build_lib, build.build_temp = str(target / "lib"), str(target / "temp")
    build.ensure_finalized()
    build.run()
    lib = target / "lib"
    return {str(path): str(path.relative_to(lib)) for path in lib.rglob("*.so")}
