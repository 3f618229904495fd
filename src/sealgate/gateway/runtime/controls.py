"""What a person may tell a running gateway, and the answers: an HTTP status and a JSON document.

A name that is not known is refused rather than taken: who halts a bot must not be left with a typing error
that halted nobody.
"""

from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from sealgate.core.halts import UNKNOWN, Origin, Scope
from sealgate.core.status import halt_status
from sealgate.gateway.request.halting import Halted
from sealgate.gateway.runtime.gateway import Gateway
from sealgate.gateway.runtime.reload import ReloadError

Said = tuple[int, dict[str, Any]]

_LOCAL = "local"  # the bot of a configuration without any


class Controls:
    """The three commands of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def reload(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Take the configuration as it is now into use."""
        if scope != Scope():
            return HTTPStatus.BAD_REQUEST, {"error": "a reload takes neither bot nor key"}
        try:
            warnings = await self._gateway.reloader.reload(f"{origin.who}, by the admin socket")
        except ReloadError as error:
            return HTTPStatus.CONFLICT, {"error": str(error)}
        return HTTPStatus.OK, {"warnings": list(warnings), "base_url": str(self._gateway.config.base_url)}

    async def halt(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Stop the orders of a scope."""
        return self._unknown(scope) or self._told(await self._gateway.halt(scope, origin))

    async def resume(self, scope: Scope, origin: Origin = UNKNOWN) -> Said:
        """Let them go again; a halt may name what the configuration has no more."""
        is_halted = self._gateway.services.halting.halts.within(scope)
        unknown = None if is_halted else self._unknown(scope)
        return unknown or self._told(await self._gateway.resume(scope, origin))

    def _unknown(self, scope: Scope) -> Said | None:
        config = self._gateway.config
        error = _unknown("bot", scope.bot, config.bots or (_LOCAL,)) or _unknown(
            "key", scope.key, config.keys
        )
        return None if error is None else (HTTPStatus.NOT_FOUND, {"error": error})

    def _told(self, halted: Halted) -> Said:
        return HTTPStatus.OK, {
            "halts": [asdict(halt) for halt in halt_status(halted.halts)],
            "refused": halted.refused,
            "had_been": halted.had_been,
            "lifted": [asdict(halt) for halt in halt_status(halted.lifted)],
            "keys": list(halted.keys),
            "survives_restart": halted.forgotten_because is None,
            "forgotten_because": halted.forgotten_because,
            "base_url": str(self._gateway.config.base_url),
        }


def _unknown(kind: str, name: str | None, known: Iterable[str]) -> str | None:
    names = list(known)
    if name is None or name in names:
        return None
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    return f"there is no {kind} {name}; {hint}"
