"""Signs the messages and the handshake of one stream with one key, by what the venue's file says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from sealgate.venues.encodings import ENCODERS, STAMPS
from sealgate.venues.filters import FILTERS
from sealgate.venues.json_edit import drop, put, text_at
from sealgate.venues.json_texts import JsonText
from sealgate.venues.order_terms import Path, steps
from sealgate.venues.scheme import ANY, SIGNATURE
from sealgate.venues.sealer import Sealer, bind_part
from sealgate.venues.streams import MessageSigning
from sealgate.venues.templates import Render, Template, bind, names_in
from sealgate.venues.unsignable import UnsignableError


class Moment(NamedTuple):
    """What differs from one signature to the next: the exchange's time, a nonce, what the exchange asked."""

    timestamp_ms: int
    nonce: bytes
    challenge: str = ""


@dataclass(frozen=True, slots=True)
class SignedHandshake:
    """What the gateway puts into an upgrade: headers, parameters, and the path, "" for the bot's.

    What stands in the path is escaped; values of headers and parameters are as they are.
    """

    headers: Mapping[str, str]
    query: Mapping[str, str]
    path: str


class StreamSealer:
    """Signs on one stream. `host` is the stream's own, `path` the one that is asked for."""

    def __init__(self, sealer: Sealer, host: str, path: str) -> None:
        self._sealer = sealer
        known = {name: text for name, text in sealer.constants.items() if name not in ("secret", "root")}
        self._constants = {**known, "host": host.encode("ascii"), "path": path.encode("ascii")}

    def sign(self, text: str, signing: MessageSigning | None, drops: Sequence[Path], moment: Moment) -> str:
        """Return a message as it is sent. Raises UnsignableError."""
        for place in drops:
            text = drop(text, place)
        if signing is None:
            return text
        maker = _Maker(self._sealer, self._constants, signing, moment)
        early: list[tuple[Path, JsonText]] = []
        late: list[tuple[Path, JsonText]] = []
        for place, template in signing.puts:
            (late if names_in(template.text) & signing.late else early).append((place, template))
        # 1. What is put in before the signature may be signed.
        text = maker.put_in(text, early)
        # 2. The signature, and what is made of it.
        maker.sign(text)
        return maker.put_in(text, late)

    def handshake(self, signing: MessageSigning, moment: Moment) -> SignedHandshake:
        """Return what the upgrade has of the gateway's. Raises UnsignableError."""
        maker = _Maker(self._sealer, self._constants, signing, moment)
        maker.sign("")
        headers = {name: maker.text(template, "") for name, template in signing.headers}
        query = {name: maker.text(template, "") for name, template in signing.query}
        needs_uid = "uid" in names_in(signing.path) and not self._constants["uid"]
        path = "" if needs_uid else quote(maker.text(signing.path, ""), safe="/:=,")
        return SignedHandshake(headers, query, path)


class _Maker:
    """Makes the texts of one message."""

    def __init__(
        self, sealer: Sealer, constants: Mapping[str, bytes], signing: MessageSigning, moment: Moment
    ) -> None:
        scheme = sealer.scheme
        stamp = STAMPS[signing.timestamp or scheme.timestamp]
        later_ms = 1000 * (scheme.expires_s if signing.expires_s is None else signing.expires_s)
        first, *filters = (signing.encoding or scheme.encoding.partition("|")[0]).split("|")
        self._encode = (ENCODERS[first], *(FILTERS[name] for name in filters))
        self._raw = sealer.signer.sign
        self._signing = signing
        self._values = {
            **constants,
            "timestamp": stamp(moment.timestamp_ms),
            "expires": stamp(moment.timestamp_ms + later_ms),
            "nonce": moment.nonce,
            "challenge": moment.challenge.encode(
                "utf-8", "replace"
            ),  # half of a letter is never signed as it is
        }

    def sign(self, text: str) -> None:
        """Sign, and keep the signature as a value of the texts that follow."""
        if self._signing.signs:
            signature = self._raw(self._bytes(self._signing.signs, text))
            for encode in self._encode:
                signature = encode(signature)
            self._values[SIGNATURE] = signature

    def put_in(self, message: str, puts: Iterable[tuple[Path, JsonText]]) -> str:
        """Put texts into a message; one that is empty is not put."""
        for place, template in puts:
            if value := self.text(template.text, message):
                message = put(message, place, value, is_bare=template.is_bare)
        return message

    def text(self, template: Template, message: str) -> str:
        """Return a text in which pointers mean what stands in the message now."""
        try:
            return self._bytes(template, message).decode("utf-8")
        except UnicodeDecodeError:
            raise UnsignableError("what this venue puts into a message must be in UTF-8") from None

    def _bytes(self, template: Template, message: str) -> bytes:
        known = dict(self._values)

        def bound(text: Template) -> Render:
            for name in names_in(text):
                if name.startswith("/"):
                    known[name] = text_at(message, steps(name)).encode("utf-8")
            return bind(text, known, {}, self._raw)

        for part in self._signing.parts:
            if part.name not in self._signing.late or SIGNATURE in known:
                known[part.name] = bind_part(
                    part, lambda choice: bound(choice[ANY]) if choice else None, bound
                )([])
        return bound(template)([])
