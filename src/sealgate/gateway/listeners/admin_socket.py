"""The admin socket, on which a running gateway takes orders: mode 0600, in a folder that is ours alone."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import structlog

from sealgate.config.files import OFF, default_places, why_not_private
from sealgate.gateway.listeners.unix_socket import UnixSocket, bind_unix, check_place

log = structlog.get_logger("sealgate.admin")


def bind_admin(setting: Path | str | None, environ: Mapping[str, str]) -> UnixSocket | None:
    """Listen where the setting says, or at the default place. None where it is turned off.

    Raises StartError where the place cannot be had: with a second gateway of this user, say, `sealgate halt`
    would stop the first one's orders only. Where the default place has no folder that is ours alone, no
    gateway can be there; this one goes on without, and its log says so.
    """
    if setting == OFF:
        return None
    if setting is not None:
        return bind_unix(Path(setting), "admin.unix")
    path = _default_place(environ)
    if (trouble := _trouble_with(path.parent)) is None:
        return bind_unix(path, "admin.unix")
    cause = f"cannot listen on {path}: its folder {trouble}; or set admin.unix to a path of its own"
    log.warning("admin_socket_off", cause=cause, missing="halt, resume and reload by command")
    return None


def check_admin(setting: Path | str | None, environ: Mapping[str, str]) -> None:
    """Look whether `bind_admin` could have its place; change nothing. Raises StartError if not."""
    if setting != OFF:
        check_place(_default_place(environ) if setting is None else Path(setting), "admin.unix")


def _default_place(environ: Mapping[str, str]) -> Path:
    return next(path for path in default_places(environ) if path.parent.parent.is_dir())


def _trouble_with(folder: Path) -> str | None:
    """Make the folder if need be; return why it is not ours alone, None where it is."""
    with contextlib.suppress(OSError):  # what is wrong with it is told below
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        return why_not_private(folder)
    except OSError as error:
        return f"cannot be made: {(error.strerror or str(error)).lower()}"
