"""One API key while the gateway runs."""

import hmac
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from sealgate.http.target import Target
from sealgate.venues.encodings import PER_S
from sealgate.venues.routes import Auth
from sealgate.venues.sealer import Sealer, Signed

_WHOLE_SECONDS = frozenset({"s", "iso_s"})

# Target, whole header lines, body.
SignedRead = tuple[str, bytes, bytes]
_SESSION, _SIGNED, _KEY = Auth.SESSION, Auth.SIGNED, Auth.KEY
# RFC 9110 section 8.6: a request of these methods states its length even when it is 0.
STATES_LENGTH = frozenset({"POST", "PUT", "PATCH"})


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


NO_SECRET = Secret("")


def by_session(sessions: Mapping[str, Secret]) -> dict[Secret, list[str]]:
    """Return the aliases of each session token, so that each is used once. `sessions` is alias -> token."""
    aliases: dict[Secret, list[str]] = {}
    for alias, session in sessions.items():
        aliases.setdefault(session, []).append(alias)
    return aliases


@dataclass
class SigningKey:
    """An API key that can sign. Nothing of it is changed later.

    `recv_window_ms` is what the exchange grants its timestamps; `has_fence` says that this is known, and not
    taken for granted: a later request is refused for certain. The sealer has the passphrase in it, too.
    """

    alias: str
    api_key: str
    recv_window_ms: int
    sealer: Sealer = field(repr=False)
    session: Secret | None = None
    has_fence: bool = True

    @property
    def dates_back(self) -> bool:
        """Whether a timestamp can limit to the millisecond how long a request is accepted."""
        return self.has_fence and self.sealer.scheme.timestamp not in _WHOLE_SECONDS

    @property
    def needs_clock(self) -> bool:
        """Whether a request carries a time, or a nonce that follows it."""
        return self.sealer.scheme.is_dated or self.sealer.scheme.nonce in PER_S

    @property
    def proof(self) -> Hashable:
        """What tells one key and secret from another, however they are stored."""
        return self.sealer.proof

    def sign_read(self, timestamp_ms: int, nonce: bytes, method: str, target: Target) -> SignedRead:
        """Return a signed read as it is sent: the bot's part of it has no body."""
        lines, raw, body, type_line = self.sealer.sign(timestamp_ms, nonce, method, target, b"")
        return raw, lines + type_line, body


def headers_in(signed: Signed) -> dict[str, str]:
    """Return the headers of a signed request, for people and for other programs."""
    lines = signed[0].decode("utf-8").split("\r\n")[:-1]
    return dict(line.split(": ", 1) for line in lines)


def bearer_line(session: Secret) -> bytes:
    """Return the header line that proves a session."""
    return f"Authorization: Bearer {session.reveal()}\r\n".encode("ascii")
