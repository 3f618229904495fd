"""A request as the gateway would sign it, for `sealgate sign`. Nothing here sends."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from sealgate.cli.choosing import checked_target, chosen_alias
from sealgate.config import Config
from sealgate.core.signing import Scheme
from sealgate.core.target import Target
from sealgate.gateway.host.host import Host
from sealgate.gateway.keys.parts import build_key


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be signed, as the user gave it; `alias` None is the only key, `timestamp_ms` None is now."""

    method: str
    target: str
    body_file: Path | None
    alias: str | None
    timestamp_ms: int | None

    def at(self, timestamp_ms: int | None) -> "Request":
        """Return it with a timestamp, unless the user gave one."""
        return self if self.timestamp_ms is not None else replace(self, timestamp_ms=timestamp_ms)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request: the headers to add, and the exact bytes that the signature is over.

    `fingerprint` is the secret's, as the scheme uses it.
    """

    alias: str
    method: str
    url: str
    target: Target
    body: bytes
    headers: dict[str, str]
    message: bytes
    scheme: Scheme
    fingerprint: str


def sign_request(config: Config, asked: Request) -> Signed:
    """Sign it. Raises SecretError; leaves with exit code 2 where the gateway would not send it."""
    target = checked_target(asked.target, config.upstream.prefix)
    alias = chosen_alias(config, asked.alias)
    body = asked.body_file.read_bytes() if asked.body_file else b""
    timestamp_ms = int(Host().wall() * 1000) if asked.timestamp_ms is None else asked.timestamp_ms
    key = build_key(config, alias, os.environ)
    return Signed(
        alias=alias,
        method=asked.method,
        url=f"{config.base_url}{target.raw}",
        target=target,
        body=body,
        headers=key.signing_headers(timestamp_ms, asked.method, target, body),
        message=key.signer.scheme.message(str(timestamp_ms), asked.method, target, body),
        scheme=key.signer.scheme,
        fingerprint=key.signer.fingerprint(),
    )
