"""Notices that a secret file has changed, by looking at it again and again.

There is no event for the way in which Kubernetes changes a secret: `..data` is a link to a folder and is
swapped for one to another folder, while a watch would stay on the old one. So paths are looked up each time.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping

from sealgate.config import Config
from sealgate.machine.system import System

_LOOK_S = 1.0


class Debounce:
    """Tells each change once. `baseline` is what was there at the start; states are compared by equality.

    A secret may be written in several steps (truncated, filled, renamed, its link swapped), and nobody says
    which was the last. So a change counts once two looks in a row saw the same.
    """

    def __init__(self, baseline: object) -> None:
        self._known = self._last = baseline

    def is_settled(self, seen: object) -> bool:
        """Take in what is seen now; say whether it is new and has come to rest."""
        is_new = seen != self._known and seen == self._last
        self._last = seen
        if is_new:
            self._known = seen
        return is_new

    def accept(self, seen: object) -> None:
        """Take what is seen now for known: somebody has just acted on it."""
        self._known = self._last = seen


State = tuple[tuple[str, str, tuple[int, ...] | None], ...]


class SecretWatch:
    """Watches the files that a configuration names; `config` returns the one in use."""

    def __init__(self, config: Callable[[], Config], environ: Mapping[str, str], system: System) -> None:
        self._config = config
        self._environ = environ
        self._system = system
        self._debounce = Debounce(self.snapshot(config()))

    def note(self, seen: State) -> None:
        """Take the files as they were seen for read."""
        self._debounce.accept(seen)

    async def run(self, on_change: Callable[[], Awaitable[None]]) -> None:
        """Call once for each change, when it has come to rest."""
        while True:
            await self._system.sleep(_LOOK_S)
            if self._debounce.is_settled(await asyncio.to_thread(self.snapshot, self._config())):
                await on_change()

    def snapshot(self, config: Config) -> State:
        """Return how the files that a configuration names are now."""
        return tuple(map(_file_state, sorted(set(secret_paths(config, self._environ)))))


def secret_paths(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Return the files that hold a configuration's secrets."""
    for reference in config.secret_references():
        scheme, _, text = reference.partition(":")
        if scheme == "file":
            yield text
        elif scheme == "systemd" and (folder := environ.get("CREDENTIALS_DIRECTORY")):
            yield os.path.join(folder, text)  # noqa: PTH118 - text is wanted


def _file_state(path: str) -> tuple[str, str, tuple[int, ...] | None]:
    """Return what tells one state of a file from another: where its links lead, which file, when written."""
    try:
        found = os.stat(path)  # noqa: PTH116 - text is what there is
    except OSError:
        return path, "", None
    identity = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
    return path, os.path.realpath(path), identity
