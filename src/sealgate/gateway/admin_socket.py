"""The admin socket, on which a running gateway takes orders: mode 0600, in a folder that is ours alone."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import structlog

from sealgate.config.admin_socket import OFF, default_places, why_not_private
from sealgate.gateway.listening import StartError
from sealgate.gateway.unix_socket import UnixSocket, bind_unix

log = structlog.get_logger("sealgate.admin")


def bind_admin(setting: Path | str | None, environ: Mapping[str, str]) -> UnixSocket | None:
    """Listen where the setting says, or at the default place. None where it is turned off.

    Raises StartError where a place that was named cannot be had. The default one is for convenience: a second
    gateway of this user, say, goes on without, and its log says so.
    """
    if setting == OFF:
        return None
    if setting is not None:
        return bind_unix(Path(setting), "admin.unix")
    try:
        return _bind_default(environ)
    except StartError as error:
        log.warning("admin_socket_off", cause=str(error), missing="halt, resume and reload by command")
        return None


def _bind_default(environ: Mapping[str, str]) -> UnixSocket:
    path = next(path for path in default_places(environ) if path.parent.parent.is_dir())
    with contextlib.suppress(OSError):  # what is wrong with it is told below
        path.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        trouble = why_not_private(path.parent)
    except OSError as error:
        trouble = f"cannot be made: {(error.strerror or str(error)).lower()}"
    if trouble is not None:
        raise StartError(
            f"cannot listen on {path}: its folder {trouble}; or set admin.unix to a path of its own"
        )
    return bind_unix(path, "admin.unix")
