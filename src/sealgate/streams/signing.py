"""Signing on a stream: at what moment of the exchange, with which nonce, and in which thread."""

from functools import partial

from sealgate.errors import Refusal
from sealgate.exchange.exchange import LiveKey
from sealgate.machine.aside import run_aside
from sealgate.machine.system import System
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.pipeline import Pipeline
from sealgate.venues.encodings import PER_S
from sealgate.venues.stream_sealer import Moment, SignedHandshake, StreamSealer
from sealgate.venues.streams import MessageRule, MessageSigning
from sealgate.venues.unsignable import UnsignableError


class StreamSigner:
    """Signs on one stream with one key. A reload may put another `pipeline` there, never another key."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it signs with, and where
        self, pipeline: Pipeline, live_key: LiveKey, host: str, path: str, books: Bookkeeping, system: System
    ) -> None:
        self.pipeline = pipeline
        self.live_key = live_key
        self._content = host, path  # of a handshake
        self._sealer = StreamSealer(live_key.key.sealer, host, path)
        self._books = books
        self._system = system

    async def moment(
        self, signing: MessageSigning, content: int, challenge: str, give_up_at: float
    ) -> Moment:
        """Wait until there is a time to sign with, and take it. Raises Refusal `clock_unsynced`."""
        names = signing.names()
        if "challenge" in names and not challenge:
            raise Refusal("bad_request", "The exchange has not sent the challenge that this message signs.")
        live_key, clock = self.live_key, self.pipeline.backend.exchange.clock
        takes_nonce = "nonce" in names
        if signing.is_dated or (takes_nonce and live_key.nonces.kind in PER_S):
            await clock.wait_until_good(give_up_at, live_key.key.recv_window_ms)
        now_ms = clock.timestamp_ms(self._system.now())
        if takes_nonce and self._books.must_reserve(live_key.nonces, now_ms):
            await self._books.reserve(live_key.nonces, (clock.exchange, live_key.key.alias), now_ms)
        stamp_ms = live_key.stamps.take(clock.timestamp_ms(self._system.now()), content)
        return Moment(stamp_ms, live_key.nonces.take(stamp_ms) if takes_nonce else b"", challenge)

    async def sign(self, text: str, rule: MessageRule, moment: Moment) -> str:
        """Return a message as it is sent. Raises Refusal `bad_request` where it cannot be signed."""
        make = partial(self._sealer.sign, text, rule.signing, rule.drops, moment)
        try:
            if rule.signing is not None and self.live_key.key.sealer.signer.is_slow:
                return await run_aside(make)
            return make()
        except UnsignableError as error:
            raise Refusal(
                "bad_request", f"The message cannot be signed, so it was not sent: {error}."
            ) from None

    async def handshake(self, signing: MessageSigning, give_up_at: float) -> SignedHandshake:
        """Return what a signed upgrade has of the gateway's. Raises Refusal `clock_unsynced`."""
        moment = await self.moment(signing, hash(signing.signs), "", give_up_at)
        make = partial(self._sealer.handshake, signing, moment)
        try:
            return await run_aside(make) if self.live_key.key.sealer.signer.is_slow else make()
        except UnsignableError as error:
            raise Refusal("bad_request", f"The upgrade cannot be signed: {error}.") from None
