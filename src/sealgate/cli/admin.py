"""Reads from the admin address of a running gateway, for `healthcheck` and `top`."""

import os
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING

from sealgate.machine.terminal import leave_with_error, plain_cause
from sealgate.observe.running import tcp_connection

if TYPE_CHECKING:
    from sealgate.config import Address


class GoneError(Exception):
    """No gateway answers, or what answers is not a gateway. `str()` is one line: cause and fix."""


def admin_address(config_file: Path | None, other_way: str = "") -> tuple["Address", str]:
    """Return `admin.tcp` of the configuration, and a host name that it accepts.

    Without a configuration, return the default: the gateway's configuration may exist only in the environment
    of another terminal. Exits with code 2 if admin.tcp is off or has port 0; `other_way` then names an
    alternative to giving it a fixed port.
    """
    from sealgate.config.load import load_admin

    admin = load_admin(config_file, os.environ)
    if admin.tcp is None:
        leave_with_error("admin.tcp is off, so there is no address to ask; set one")
    if admin.tcp.port == 0:
        leave_with_error(
            f"admin.tcp has port 0, which means a new port at each start; give it a fixed one{other_way}"
        )
    return admin.tcp, admin.hosts[0]


@contextmanager
def asking(
    place: tuple["Address", str], path: str, patience_s: float, usual: Collection[int] = (HTTPStatus.OK,)
) -> Iterator[HTTPResponse]:
    """Request a path, and yield the reply if its status is one of `usual`.

    `place` is an address and a host name. Raises GoneError, also for an error of the connection in the block.
    """
    address, host_name = place
    with closing(tcp_connection(address, patience_s)) as connection:
        try:
            connection.request("GET", path, headers={"Host": host_name})
            reply = connection.getresponse()
            if reply.status not in usual:
                raise GoneError(f"{address} answers {reply.status} to {path}; is it the gateway's admin.tcp?")
            yield reply
        except TimeoutError:
            cause = f"no reply within {patience_s:g} s; see its log, or restart it"
        except OSError as error:
            cause = f"{plain_cause(error)}; start it with `sealgate serve`"
        except HTTPException:
            cause = "the program listening there does not speak HTTP; is it the gateway's admin.tcp?"
        else:
            return
        raise GoneError(f"no gateway answers at {address}: {cause}")
