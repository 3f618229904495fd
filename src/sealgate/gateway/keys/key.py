"""What is known of one API key while the gateway runs, and the headers that prove it to the exchange."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from sealgate.core.signing import Signer
from sealgate.core.target import Target

_NAMES = ("APIKEY", "TIMESTAMP", "SIGNATURE")


class Secret:
    """A value that must be sent as it is: the session token. Hides everywhere but at its one door."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, to be sent and for nothing else."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"


def by_session(sessions: Mapping[str, Secret]) -> dict[Secret, list[str]]:
    """Return the aliases of each session token, so that each is used once. `sessions` is alias -> token."""
    aliases: dict[Secret, list[str]] = {}
    for alias, session in sessions.items():
        aliases.setdefault(session, []).append(alias)
    return aliases


@dataclass
class SigningKey:
    """An API key that can sign. Nothing of it is changed later.

    `header_prefix` is such as "X-SERVICE-"; `recv_window_ms` is what the exchange grants its timestamps.
    """

    alias: str
    api_key: str
    header_prefix: str
    recv_window_ms: int
    signer: Signer
    session: Secret | None = None
    _lines: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the signing header lines, with places for timestamp and signature."""
        names = (f"{self.header_prefix}{name}" for name in _NAMES)
        key, timestamp, signature = (name.encode("ascii").replace(b"%", b"%%") for name in names)
        api_key = self.api_key.encode("ascii").replace(b"%", b"%%")
        self._lines = b"%b: %b\r\n%b: %%d\r\n%b: %%b\r\n" % (key, api_key, timestamp, signature)

    def signing_lines(self, timestamp_ms: int, method: str, target: Target, body: bytes) -> bytes:
        """Return `signing_headers` as they go out, each line with its CRLF."""
        signature = self.signer.sign(timestamp_ms, method, target, body)
        return self._lines % (timestamp_ms, signature.encode("ascii"))

    def signing_headers(self, timestamp_ms: int, method: str, target: Target, body: bytes) -> dict[str, str]:
        """Return the three headers of spec.md, API-key request signing."""
        values = (self.api_key, str(timestamp_ms), self.signer.sign(timestamp_ms, method, target, body))
        return {f"{self.header_prefix}{name}": value for name, value in zip(_NAMES, values, strict=True)}
