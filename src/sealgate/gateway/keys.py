"""What is known of one API key while the gateway runs, and the headers that prove it to the exchange."""

from dataclasses import dataclass

from sealgate.core.signing import Signer
from sealgate.core.target import Target


class Secret:
    """A value that must be sent as it is: the session token. Hides everywhere but at its one door."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, to be sent and for nothing else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An API key that can sign.

    `header_prefix` is such as "X-SERVICE-"; `recv_window_ms` is what the exchange grants its timestamps.
    """

    alias: str
    api_key: str
    header_prefix: str
    recv_window_ms: int
    signer: Signer
    session: Secret | None = None

    def signing_headers(self, timestamp_ms: int, method: str, target: Target, body: bytes) -> dict[str, str]:
        """Return the three headers of spec.md, API-key request signing."""
        return {
            f"{self.header_prefix}APIKEY": self.api_key,
            f"{self.header_prefix}TIMESTAMP": str(timestamp_ms),
            f"{self.header_prefix}SIGNATURE": self.signer.sign(timestamp_ms, method, target, body),
        }
