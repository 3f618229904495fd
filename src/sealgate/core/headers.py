"""Headers on their way through: which the gateway keeps for itself, which it drops, which it passes on.

Hop-by-hop fields end here (RFC 9110 section 7.6.1), and so does everything that could speak in the gateway's
name or redirect the request at the upstream. Names are compared without case and with
`_` read as `-`, because some servers do the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from sealgate.errors import Refusal

MOST_BYTES = 64 * 1024  # of all names and values together


class Treatment(Enum):
    """What becomes of a header field of a bot's request."""

    FORWARD = "forward"
    DROP = "drop"
    KEEP = "keep"  # the gateway reads it and does not pass it on


_KEPT = frozenset(
    {
        b"authorization",
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"idempotency-key",
        b"origin",
        b"referer",
        b"sec-fetch-site",
        b"transfer-encoding",
        b"upgrade",
        b"x-gateway-deadline-ms",
        b"x-gateway-key",
        b"x-gateway-request-id",
    }
)
_LISTS = frozenset({b"connection", b"upgrade"})  # RFC 9110 section 5.3: several lines are one list
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_DROPPED = _HOP_BY_HOP | {
    b"cookie",
    b"forwarded",
    b"http2-settings",
    b"x-http-method",
    b"x-http-method-override",
    b"x-method-override",
    b"x-original-host",
    b"x-original-url",
    b"x-real-ip",
    b"x-rewrite-url",
}
_DROPPED_PREFIXES = (b"x-service-", b"x-gateway-", b"x-forwarded-", b"proxy-")
_REPLY_DROPPED = _HOP_BY_HOP | {b"content-length"}
# No reply may tell a browser that another site may read it, and none may speak as the gateway.
_REPLY_DROPPED_PREFIXES = (b"x-gateway-", b"access-control-")


@dataclass(frozen=True, slots=True)
class Head:
    """A request's fields, sorted: `kept` by lower-case name, `passed` in their order and spelling."""

    kept: dict[bytes, bytes]
    passed: list[tuple[bytes, bytes]]

    def text(self, name: bytes) -> str | None:
        """Return a kept field's value as text, None if absent."""
        value = self.kept.get(name)
        return None if value is None else value.decode("latin-1")


class HeaderRules:
    """The table for requests, with the configured prefix of the signing headers."""

    def __init__(self, signing_prefix: str) -> None:
        prefixes = (*_DROPPED_PREFIXES, _canonical(signing_prefix.encode("ascii")))

        @lru_cache(maxsize=1024)
        def treatment(name: bytes) -> tuple[Treatment, bytes]:
            canonical = _canonical(name)
            if canonical in _KEPT:
                return Treatment.KEEP, canonical
            dropped = canonical in _DROPPED or canonical.startswith(prefixes)
            return (Treatment.DROP if dropped else Treatment.FORWARD), canonical

        self._treatment = treatment

    def sort(self, fields: Iterable[tuple[bytes, bytes]]) -> Head:
        """Sort a request's raw fields.

        Raises Refusal `bad_request` where a kept field comes twice, `headers_too_large` where they are too
        large together.
        """
        kept: dict[bytes, bytes] = {}
        passed: list[tuple[bytes, bytes]] = []
        size = 0
        for name, value in fields:
            size += len(name) + len(value)
            treatment, canonical = self._treatment(name)
            if treatment is Treatment.FORWARD:
                passed.append((name, value))
            elif treatment is Treatment.KEEP:
                kept[canonical] = _merged(canonical, kept.get(canonical), value)
        if size > MOST_BYTES:
            raise Refusal("headers_too_large", f"The header fields have more than {MOST_BYTES} bytes.")
        named = kept.get(b"connection")
        return Head(kept, _without(passed, named) if named and passed else passed)


@lru_cache(maxsize=1024)
def _passes_back(name: bytes) -> bool:
    canonical = _canonical(name)
    return canonical not in _REPLY_DROPPED and not canonical.startswith(_REPLY_DROPPED_PREFIXES)


def sort_reply(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the fields of an upstream's reply that pass back, in their order and spelling."""
    all_fields = list(fields)
    passed = [(name, value) for name, value in all_fields if _passes_back(name)]
    named = [value for name, value in all_fields if name.lower() == b"connection"]
    return _without(passed, b",".join(named)) if named else passed


def _merged(name: bytes, earlier: bytes | None, value: bytes) -> bytes:
    if earlier is None:
        return value
    if name in _LISTS:
        return earlier + b", " + value
    raise Refusal("bad_request", f"The header {name.decode('latin-1')} comes twice.")


def _without(fields: list[tuple[bytes, bytes]], connection: bytes) -> list[tuple[bytes, bytes]]:
    """Leave out the fields that a Connection header names (RFC 9110 section 7.6.1)."""
    named = {option.strip().lower() for option in connection.split(b",")}
    return [(name, value) for name, value in fields if name.lower() not in named]


def _canonical(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")
