"""Holds back the answers to wrong tokens (core/wrong_tokens.py says which)."""

from sealgate.core.wrong_tokens import WrongTokens
from sealgate.errors import Refusal
from sealgate.gateway.bots.peer import origin_of
from sealgate.gateway.host.host import Host
from sealgate.gateway.http.server import Incoming


class Tarpit:
    """Says how long a refusal is held back on its way to the bot."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._wrong = WrongTokens()

    def delay_s(self, request: Incoming, refusal: Refusal) -> float:
        """Return for how long to hold a refusal back: only that of a wrong token, not of none at all."""
        if refusal.slug != "bot_unauthenticated" or not _has_token(request):
            return 0.0
        bot = request.connection
        return self._wrong.note(origin_of(bot.transport, bot.peer), self._host.now())


def _has_token(request: Incoming) -> bool:
    return any(name.lower() == b"authorization" for name, _ in request.head.fields)
