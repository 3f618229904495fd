"""What systemd is told of the gateway, as sd_notify(3) has it: when it listens, how it is, that it is alive.

Nothing is sent where no service manager asks for it by NOTIFY_SOCKET.
"""

import os
import socket
from collections.abc import Callable, Mapping

import structlog

from sealgate.gateway.platform.system import System

_STATUS_EVERY_S = 5.0

log = structlog.get_logger("sealgate.service_manager")


class ServiceManager:
    """The service manager of this process, if there is one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address  # "@": it has no file
        self._status = ""
        is_watched = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        limit_us = environ.get("WATCHDOG_USEC", "") if is_watched else ""
        self._watchdog_s = int(limit_us) / 1e6 if limit_us.isdecimal() else 0.0

    def tell(self, *lines: str) -> None:
        """Send assignments as sd_notify(3) lists them; what cannot be sent is logged."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.warning("service_manager_not_told", what=lines[0], cause=error.strerror)

    def tell_status(self, status: str) -> None:
        """Set the line that `systemctl status` shows, unless it shows it already."""
        if status != self._status:
            self._status = status
            self.tell(f"STATUS={' '.join(status.split())}")

    async def keep_up(self, status: Callable[[], str], system: System) -> None:
        """Keep the status true, and the watchdog quiet as long as the event loop turns."""
        pause_s = min(self._watchdog_s / 2 or _STATUS_EVERY_S, _STATUS_EVERY_S)
        while self._address:
            self.tell_status(status())
            if self._watchdog_s:
                self.tell("WATCHDOG=1")
            await system.sleep(pause_s)
