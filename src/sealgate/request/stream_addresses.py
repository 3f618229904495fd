"""Replace addresses of streams in a reply by the gateway's own: the only edit that a reply gets."""

import re
from functools import partial

import structlog

from sealgate.config import ExchangeConfig
from sealgate.exchange.answer import Answer
from sealgate.request.replies import Reply
from sealgate.venues.json_bytes import check_size
from sealgate.venues.json_edit import change_texts
from sealgate.venues.order_terms import Path
from sealgate.venues.streams import plain_host
from sealgate.venues.unsignable import UnsignableError

log = structlog.get_logger("sealgate.streams")

_SCHEMES = {"http": "ws", "https": "wss"}
_ADDRESS = re.compile(r"(?:wss?://)?([a-z0-9.\-]+(?::[0-9]{1,5})?)([/?][!-~]*)?", re.IGNORECASE)
_UNCODED = b"identity"
_MOST_TOLD = 8  # hosts named in the log
_FIX = "bots that use this address bypass the gateway: add the host to [[streams]] of the venue's file"


def own_address(reached: str, host: str | None, before: str) -> str | None:
    """Return the gateway's address of streams for a bot, such as ws://127.0.0.1:8787/spot, or None.

    `reached` is the address of the bot's connection: a Unix socket has none. `host` is the name that the bot
    uses for it, `before` the part of the path before the exchange's own.
    """
    scheme = _SCHEMES.get(reached.partition("://")[0])
    return f"{scheme}://{host}{before}" if scheme and host else None


class StreamAddresses:
    """Replaces the addresses of one exchange's streams, if the venue's file lists their host."""

    def __init__(self, config: ExchangeConfig) -> None:
        self._exchange = config.name
        self._hosts = config.venue.stream_hosts(config.environment).keys()
        self._told: set[str] = set()

    def replaced(self, reply: Reply, answer: Answer, at: Path, own: str | None) -> Reply:
        """Return a reply with the gateway's addresses at a place; `own` is what `own_address` returns.

        A reply that is not a success, not JSON, compressed, or too large to search is unchanged.
        """
        coding = (answer.head.content_coding or _UNCODED).strip().lower()
        is_whole = answer.remainder is None and coding == _UNCODED
        if own is None or not answer.is_success or not is_whole:
            return reply
        try:
            check_size(answer.body)
            text = change_texts(answer.body.decode("utf-8"), at, partial(self._own, own))
        except (UnicodeDecodeError, UnsignableError):
            return reply
        reply.body = text.encode("utf-8")
        return reply

    def _own(self, own: str, address: str) -> str:
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            return address
        host = parts[1].lower()
        if plain_host(host) in self._hosts:
            return f"{own}/{host}{parts[2] or ''}"
        if host not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(host)
            log.warning("stream_not_listed", exchange=self._exchange, host=host, fix=_FIX)
        return address
