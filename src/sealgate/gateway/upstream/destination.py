"""The exchange's address, and how connections to it are made, from the configuration."""

from dataclasses import dataclass
from pathlib import Path

from sealgate.config import Config
from sealgate.core.venues.replies import Judge


@dataclass(frozen=True, slots=True)
class Destination:
    """Where all requests go. `base_url` has no trailing slash; durations are seconds.

    `keep_alive_s` is less than the server's, so that it is not the first to close an idle connection.
    `ca_digest` is of what `ca_file` holds: with other certificates in it, it is another destination.
    `replies` says what a reply means.
    """

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = 15.0
    ca_digest: bytes = b""
    replies: Judge = Judge()  # noqa: RUF009 - frozen


def destination_of(config: Config, ca_digest: bytes = b"") -> Destination:
    """Return the destination that a configuration names."""
    upstream = config.upstream
    return Destination(
        base_url=str(config.base_url),
        connect_timeout_s=upstream.connect_timeout,
        total_timeout_s=upstream.total_timeout,
        max_connections=upstream.max_connections,
        ca_file=upstream.ca_file,
        keep_alive_s=upstream.keep_alive,
        ca_digest=ca_digest,
        replies=config.venue.replies,
    )
