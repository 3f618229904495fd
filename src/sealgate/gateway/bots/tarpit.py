"""Holds back the answers to wrong tokens (core/wrong_tokens.py says which)."""

from sealgate.core.wrong_tokens import WrongTokens
from sealgate.errors import Refusal
from sealgate.gateway.bots.incoming import Incoming
from sealgate.gateway.bots.peer import origin_of
from sealgate.gateway.host.host import Host


class Tarpit:
    """What a refusal passes through on its way to the bot."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._wrong = WrongTokens()

    async def serve(self, request: Incoming, refusal: Refusal) -> None:
        """Return when the refusal may be told. Who waits to be asked for a token is not held back."""
        if refusal.slug != "bot_unauthenticated" or not _has_token(request):
            return
        bot = request.connection
        held_back_s = self._wrong.note(origin_of(bot.transport, bot.peer), self._host.now())
        if held_back_s:
            await self._host.sleep(held_back_s)


def _has_token(request: Incoming) -> bool:
    return any(name.lower() == b"authorization" for name, _ in request.fields)
