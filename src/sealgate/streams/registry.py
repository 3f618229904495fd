"""The streams that are open: how many there may be, and what happens to them in a drain and at a reload."""

import asyncio
import contextlib
from collections.abc import Hashable, Iterator

import structlog

from sealgate.config import ExchangeConfig
from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.keys.bot import Bot
from sealgate.request.admission import Peer, identify
from sealgate.request.pipeline import Pipeline
from sealgate.request.router import Router
from sealgate.streams.life import OpenStream
from sealgate.streams.openings import Openings
from sealgate.streams.orders import Desk
from sealgate.streams.tally import StreamsStatus, StreamStatus, Traffic

_GOING_AWAY = 1001
_RESTART = 1012

log = structlog.get_logger("sealgate.streams")


class Streams:
    """The open streams of a gateway, `most` at a time. It outlives a reload."""

    def __init__(self, desk: Desk, most: int) -> None:
        self.desk = desk
        self.most = most
        self._open: set[OpenStream] = set()
        self._opening = 0
        self._openings: dict[str, Openings] = {}
        self._empty: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Keep a place for a stream while it is being opened. Raises Refusal `queue_full`."""
        held = sum(not stream.has_lost_bot for stream in self._open)
        if held + self._opening >= self.most:
            raise Refusal("queue_full", f"The gateway has listen.max_streams ({self.most}) open already.")
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def openings_of(self, config: ExchangeConfig) -> Openings:
        """Return what counts the openings at an exchange: those of one address are counted together."""
        openings = self._openings.setdefault(str(config.base_url), Openings())
        quota = config.limits.stream_opens
        openings.most, openings.window_s = (0.0, 0.0) if quota is None else (quota.n, quota.window_s)
        return openings

    def begin(self, stream: OpenStream) -> None:
        """Add a stream."""
        self._open.add(stream)
        stream.on_end = self._ended
        log.info("stream_opened", **stream.talk.names, open=len(self._open))

    def _ended(self, stream: OpenStream) -> None:
        """Remove a stream, and keep the counts of what it carried."""
        if stream not in self._open:
            return
        self._open.remove(stream)
        exchange, bot = stream.talk.pipeline.backend.config.name, stream.talk.bot.name
        to_bot, to_exchange = stream.traffic()
        self.desk.tally.carried(exchange, bot, "to_bot", to_bot)
        self.desk.tally.carried(exchange, bot, "to_exchange", to_exchange)
        closed_by, code, reason = stream.end
        log.info(
            "stream_closed",
            **stream.talk.names,
            seconds=round(self.desk.system.now() - stream.began, 3),
            to_bot=to_bot.messages,
            to_exchange=to_exchange.messages,
            closed_by=closed_by,
            code=code,
            reason=reason or None,
        )
        if self._empty is not None and not self._open:
            self._empty.set()

    def status(self) -> StreamsStatus:
        """Return the state of this moment, in values that do not change."""
        tally = self.desk.tally
        return StreamsStatus(
            self.statuses(), dict(tally.opened), dict(tally.logins), dict(tally.orders), self.traffic()
        )

    def statuses(self) -> tuple[StreamStatus, ...]:
        """Return the state of each open stream, the oldest first."""
        return tuple(sorted((stream.status() for stream in self._open), key=lambda one: one.since))

    def traffic(self) -> dict[tuple[str, str, str], Traffic]:
        """Return what was carried since the start, by exchange, bot and direction."""
        found = {
            labels: Traffic(count, self.desk.tally.bytes[labels])
            for labels, count in self.desk.tally.messages.items()
        }
        for stream in self._open:
            exchange, bot = stream.talk.pipeline.backend.config.name, stream.talk.bot.name
            for direction, traffic in zip(("to_bot", "to_exchange"), stream.traffic(), strict=True):
                total = found.setdefault((exchange, bot, direction), Traffic())
                total.messages += traffic.messages
                total.bytes += traffic.bytes
        return found

    async def drain(self, within_s: float) -> None:
        """Close all streams, as the gateway shuts down; return once they are over, or the time is."""
        if not self._open:
            return
        self._empty = asyncio.Event()
        for stream in tuple(self._open):
            stream.close(_GOING_AWAY, Refusal("draining", "the gateway is shutting down"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._empty.wait()
        for stream in tuple(self._open):
            stream.abandon()

    def adopt(self, router: Router) -> None:
        """Put another configuration in force for the open streams.

        A stream keeps the connection and the key that it was opened with. Those whose exchange, bot, token or
        key is gone or replaced are closed.
        """
        self.most = router.generation.config.listen.max_streams
        for stream in tuple(self._open):
            exchange, alias = stream.talk.pipeline.backend.config.name, stream.talk.live_key.key.alias
            pipeline = router.pipelines.get(exchange)
            bot = None if pipeline is None else pipeline.backend.rules.bot_named(stream.talk.bot.name)
            if pipeline is None:
                gone = f"the exchange {exchange} is gone"
            elif bot is None:
                gone = f"the bot {stream.talk.bot.name} is gone"
            elif _place(pipeline) != _place(stream.talk.pipeline):
                gone = f"the exchange {exchange} has another address"
            elif stream.talk.rules not in pipeline.backend.config.venue.streams:
                gone = "the venue's file describes the stream differently"
            elif alias not in bot.keys:
                gone = f"the key {alias} is gone"
            elif stream.talk.rules.uses_key and _proof(pipeline, alias) != stream.talk.live_key.key.proof:
                gone = f"the key {alias} has been replaced"
            elif not _is_still(bot, pipeline, *stream.proof):
                gone = f"the token or the address of the bot {bot.name} is no longer valid"
            elif stream.talk.rules.needs not in bot.may:
                gone = f"the bot {bot.name} may no longer open it"
            else:
                stream.talk.adopt(pipeline, bot)
                continue
            detail = f"{gone} since the configuration was reloaded"
            stream.close(_RESTART, Refusal("bot_forbidden", detail))


def _is_still(bot: Bot, pipeline: Pipeline, head: Head, peer: Peer) -> bool:
    """Whether what proved who the bot is still does: its token, user, certificate or own address."""
    try:
        return identify(head, pipeline.backend.rules, peer).name == bot.name
    except Refusal:
        return False


def _proof(pipeline: Pipeline, alias: str) -> Hashable:
    """Return what tells a key in use from another."""
    return pipeline.backend.exchange.live_keys[alias].key.proof


def _place(pipeline: Pipeline) -> tuple[str, str]:
    """Return where an exchange and its streams are."""
    config = pipeline.backend.config
    return str(config.base_url), pipeline.backend.exchange.stream_hosts.instead
