"""What a build adds: the README as an index shows it, and, if a wheel is to have them, compiled modules.

The hook that compiles takes the modules that every request goes through, where it is switched on.

mypyc makes C of the same source that runs without it, from the types that mypy checks. What inherits from a
class of aiohttp or prometheus-client stays as it is. The build needs a C compiler and Python's headers, and
mypy, setuptools and all that sealgate imports in its environment.
"""

import contextlib
import re
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Globs below src/sealgate; a class that inherits from a compiled one has to be compiled with it.
COMPILED = (
    "errors.py",
    "request/admission.py",
    "orders/resends.py",
    "exchange/clock.py",
    "orders/outcome.py",
    "orders/halts.py",
    "exchange/idle_connections.py",
    "limits/limit_reply.py",
    "orders/idempotency.py",
    "request/sender.py",
    "request/checks.py",
    "request/standing.py",
    "request/strangers.py",
    "http/frames.py",
    "venues/routes.py",
    "venues/own_parameters.py",
    "venues/encodings.py",
    "venues/filters.py",
    "venues/json_texts.py",
    "venues/key_kinds.py",
    "venues/scheme.py",
    "venues/sealer.py",
    "venues/templates.py",
    "orders/validity.py",
    "exchange/stamps.py",
    "exchange/exchange.py",
    "limits/claims.py",
    "limits/counts.py",
    "limits/estimator.py",
    "limits/firewall.py",
    "limits/fit.py",
    "limits/gate.py",
    "limits/in_flight.py",
    "limits/lane_queues.py",
    "limits/limit.py",
    "limits/line_sizes.py",
    "limits/membership.py",
    "limits/observations.py",
    "limits/pacer.py",
    "limits/pool.py",
    "limits/pools.py",
    "limits/round_trips.py",
    "limits/sent_log.py",
    "limits/throttle.py",
    "limits/turns.py",
    "limits/wait_queue.py",
    "cluster/relay.py",
    "request/bots.py",
    "exchange/kept_clock.py",
    "machine/alarm.py",
    "http/*.py",
    "keys/key.py",
    "keys/signer.py",
    "limits/scheduler.py",
    "request/bookkeeping.py",
    "request/context.py",
    "request/halting.py",
    "request/handler.py",
    "keys/key_breaker.py",
    "request/learning.py",
    "request/pipeline.py",
    "request/replies.py",
    "request/shared_reads.py",
    "request/generation.py",
    "request/router.py",
    "exchange/answer.py",
    "exchange/connection.py",
    "exchange/pool.py",
    "observe/recent.py",
    "observe/log.py",
    "observe/request_line.py",
    "observe/traffic.py",
    "streams/life.py",
)


# A picture, or a link, to a file of this project.
_OURS = re.compile(r"(!?)(\[[^\[\]]*\])\((?!\w+:|#)([^()\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Makes the README's links absolute: an index has the text, but no files beside it.

    Without a Source in [project.urls] the links stay as they are.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if source := metadata.get("urls", {}).get("Source"):
            text = absolute_links(text, source)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(text: str, project: str) -> str:
    """Return a Markdown text whose links to files lead to the project's address."""
    return _OURS.sub(
        lambda found: f"{found[1]}{found[2]}({project}/{'raw' if found[1] else 'blob'}/main/{found[3]})", text
    )


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


def compiled_modules(root: Path) -> list[str]:
    """Return what to compile, relative to the checkout; $SEALGATE_COMPILED has globs instead of these."""
    globs = environ.get("SEALGATE_COMPILED", "").split() or COMPILED
    found = {path for glob in globs for path in (root / "src/sealgate").glob(glob)}
    return sorted(str(path.relative_to(root)) for path in found if path.name != "__init__.py")


def _compiled(target: Path) -> dict[str, str]:
    """Return where each compiled module lies, and its place in the wheel."""
    from mypyc.build import mypycify  # noqa: PLC0415 - a pure wheel is built without it
    from setuptools import Distribution  # noqa: PLC0415 - the same
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415 - the same

    sources = compiled_modules(Path())
    level = environ.get("MYPYC_OPT_LEVEL", "2")
    extensions = mypycify(
        ["--config-file=pyproject.toml", *sources],
        opt_level=level,
        debug_level="0",  # half of the time and of the wheel would be for a debugger
        target_dir=str(target),
    )
    # Warning of it, gcc reads the source from its start for each branch: minutes, with one file of 40 MB.
    for extension in extensions:
        extension.extra_compile_args.append("-Wno-misleading-indentation")
    build = build_ext(Distribution({"name": "sealgate", "ext_modules": extensions}))
    build.build_lib, build.build_temp = str(target / "lib"), str(target / "temp")
    build.ensure_finalized()
    build.run()
    lib = target / "lib"
    return {str(path): str(path.relative_to(lib)) for path in lib.rglob("*.so")}
