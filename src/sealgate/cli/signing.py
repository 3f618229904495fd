"""A request as the gateway would sign it, for `sealgate sign`. Nothing here sends."""

import os
from dataclasses import dataclass
from pathlib import Path

from sealgate.cli.choosing import checked_target, chosen_alias
from sealgate.cli.frame import leave_with_error
from sealgate.config import Config
from sealgate.core.target import Target
from sealgate.core.venues.scheme import Nonces
from sealgate.core.venues.templates import UnsignableError, names_in
from sealgate.core.venues.venue import Venue
from sealgate.gateway.journal.nonces import nonce_of_command
from sealgate.gateway.keys.key import headers_in
from sealgate.gateway.keys.parts import build_key
from sealgate.gateway.platform.system import System
from sealgate.gateway.runtime.memory import nonces_place

HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be signed, as the user gave it; `alias` None is the only key, `timestamp_ms` None is now."""

    method: str
    target: str
    body_file: Path | None
    alias: str | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request: the headers to add, and the exact bytes that the signature is over.

    `url` and `body` are as they are sent, with what the venue's file adds. `fingerprint` is the secret's, as
    the scheme uses it. `nonce_words` say what its nonce goes by where that is not the journal. Headers with
    the key's passphrase in them have HIDDEN instead.
    """

    alias: str
    method: str
    url: str
    target: Target
    body: bytes
    headers: dict[str, str]
    message: bytes
    venue: Venue
    fingerprint: str
    has_other_target: bool
    has_other_body: bool
    nonce_words: str

    @property
    def is_json(self) -> bool:
        """Whether the body begins as JSON does."""
        return self.body[:1] in (b"{", b"[")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts of the target that are sent and not signed, in order; none is empty."""
        query = f"?{self.target.query}" if self.target.query and not self.venue.signs_query else ""
        return tuple(part for part in (self.venue.prefix, query) if part)


def _without_passphrase(venue: Venue, headers: dict[str, str]) -> dict[str, str]:
    secret = {name for name, text in venue.signing.headers if "passphrase" in names_in(text)}
    return {name: HIDDEN if name in secret else value for name, value in headers.items()}


def sign_request(config: Config, asked: Request) -> Signed:
    """Sign it. Raises SecretError; leaves with exit code 2 where the gateway would not send it."""
    target = checked_target(asked.target, config.upstream.prefix)
    alias = chosen_alias(config, asked.alias)
    body = asked.body_file.read_bytes() if asked.body_file else b""
    timestamp_ms = int(System().wall() * 1000) if asked.timestamp_ms is None else asked.timestamp_ms
    key, system = build_key(config, alias, os.environ), System()
    nonces = Nonces(config.venue.signing.nonce, system.unique, nonces_place(config, alias))
    nonce, nonce_words = nonce_of_command(config.journal.file, nonces, timestamp_ms)
    stamp = timestamp_ms, nonce
    try:
        signed = key.sealer.sign(*stamp, asked.method, target, body)
    except UnsignableError as error:
        leave_with_error(f"bad_request: it cannot be signed: {error}")
    return Signed(
        alias=alias,
        method=asked.method,
        url=f"{config.base_url}{signed[1]}",
        target=target,
        body=signed[2],
        headers=_without_passphrase(config.venue, headers_in(signed)),
        message=key.sealer.message(*stamp, asked.method, target, body),
        venue=config.venue,
        fingerprint=key.sealer.fingerprint(),
        has_other_target=signed[1] != target.raw,
        has_other_body=signed[2] != body,
        nonce_words=nonce_words,
    )
