"""Who may call: spec.md, "Authentication". Checks raise `ApiError`; what they return is the caller's address.

The order for a signed request is fixed: the three headers are there; the key exists, is not revoked and not
expired (rule 5); the timestamp is inside the key's recv_window (rule 4); the signature is genuine (rules 1
to 3); the client's IP is in the whitelist (rule 6); the key holds the permission (rule 7); the address in
the path is the key's (rule 8; for bodies see `exchange`, which reads them later). With `check_first =
"signature"` rules 1 to 3 come before rule 4.

A login on the stream is signed as a GET request for the stream, and needs no permission (rule 7) yet. What is
sent after it is not signed: rules 5, 6 and 7 hold for each message.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.message import Request
from sealgate.sandbox.registry import LiveKey, Registry
from sealgate.sandbox.sessions import PasskeyDesk
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.signature import is_genuine, signed_message
from sealgate.sandbox.stream import STREAM_PATH

KEY_HEADER = "X-SERVICE-APIKEY"
TIMESTAMP_HEADER = "X-SERVICE-TIMESTAMP"
SIGNATURE_HEADER = "X-SERVICE-SIGNATURE"
PASSKEY_HEADER = "X-PASSKEY-TOKEN"

# Path parameters that name the user, as spec.md writes them.
ADDRESS_PARAMS = ("addr", "address")

LONGEST_TIMESTAMP = 16  # digits


class Access(Enum):
    """What a route asks of its caller."""

    PUBLIC = "public"
    SESSION = "session"
    PASSKEY = "session and passkey"
    READ = "read"
    TRADE = "trade"
    LOGIN = "login"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that wants in, with all that the checks look at."""

    request: Request
    params: Mapping[str, str]
    now: Moment


@dataclass(frozen=True, slots=True)
class Signed:
    """An attempt whose key is good, and whose three headers are there; on a stream the login stands for them.

    `permission` is empty where none is needed.
    """

    attempt: Attempt
    live: LiveKey
    timestamp: str
    signature: str
    permission: str


class Doorman:
    """Checks attempts against the registry."""

    def __init__(self, registry: Registry, passkeys: PasskeyDesk, settings: SandboxSettings) -> None:
        self._registry = registry
        self._passkeys = passkeys
        self._settings = settings
        early = (self._check_timestamp, self._check_signature)
        self._late_checks = (self._check_ip, self._check_permission, self._check_address)
        self._checks: tuple[Callable[[Signed], None], ...] = (
            *(early if settings.check_first == "timestamp" else early[::-1]),
            *self._late_checks,
        )
        self._entrances: Mapping[Access, Callable[[Attempt], str]] = {
            Access.PUBLIC: lambda _: "",
            Access.SESSION: self._session,
            Access.PASSKEY: self._passkey,
            Access.READ: lambda attempt: self._signed(attempt, "read"),
            Access.TRADE: lambda attempt: self._signed(attempt, "trade"),
            Access.LOGIN: self._login,
        }

    def admit(self, access: Access, attempt: Attempt) -> str:
        """Give the caller's address, empty on public routes; raise `ApiError`."""
        return self._entrances[access](attempt)

    def _session(self, attempt: Attempt) -> str:
        token = bearer_token(attempt.request)
        address = self._registry.session_address(token, attempt.now.server_ms)
        if address is None:
            raise ApiError("session_invalid")
        return address

    def _passkey(self, attempt: Attempt) -> str:
        address = self._session(attempt)
        if not self._passkeys.redeem(attempt.request.header(PASSKEY_HEADER), address, attempt.now):
            raise ApiError("passkey_failed")
        return address

    def _signed(self, attempt: Attempt, permission: str) -> str:
        stream = attempt.request.stream
        if stream is None:
            return self._checked(attempt, _signing_headers(attempt.request), permission, self._checks)
        if not stream.api_key:
            raise ApiError("headers_missing")
        return self._checked(attempt, (stream.api_key, "", ""), permission, self._late_checks)

    def _login(self, attempt: Attempt) -> str:
        asked = replace(attempt.request, method="GET", target=STREAM_PATH, body=b"")
        return self._checked(
            replace(attempt, request=asked), _signing_headers(asked), permission="", checks=self._checks
        )

    def _checked(
        self,
        attempt: Attempt,
        proof: tuple[str, str, str],
        permission: str,
        checks: tuple[Callable[[Signed], None], ...],
    ) -> str:
        api_key, timestamp, signature = proof
        live = self._registry.live_key(api_key, attempt.now.server_ms)
        if live is None:
            raise ApiError("key_invalid")
        signed = Signed(attempt, live, timestamp, signature, permission)
        for check in checks:
            check(signed)
        self._registry.touch(live, attempt.now.server_ms, attempt.now.steady_s)
        return live.record.address

    def _check_timestamp(self, signed: Signed) -> None:
        window_ms = signed.live.record.recv_window_ms
        server_ms = signed.attempt.now.server_ms
        off_ms = _off_ms(signed.timestamp, server_ms)
        if off_ms is None or off_ms > window_ms:
            raise ApiError("timestamp_outside", recv_window=window_ms, server_ms=server_ms)
        if self._settings.clock_limit_ms and off_ms > self._settings.clock_limit_ms:
            raise ApiError("timestamp_invalid")

    def _check_signature(self, signed: Signed) -> None:
        request = signed.attempt.request
        message = signed_message(
            signed.timestamp, request.method, request.target, request.body, self._settings.signed_target
        )
        encoding = self._settings.signature_encoding
        if not is_genuine(signed.live.state, message, signed.signature, encoding):
            raise ApiError("signature_invalid")

    def _check_ip(self, signed: Signed) -> None:
        client_ip = signed.attempt.request.client_ip
        networks = signed.live.networks
        if not networks:
            return
        address = parse_ip(client_ip)
        if address is None or not any(address in network for network in networks):
            raise ApiError("ip_refused", client_ip=client_ip)

    def _check_permission(self, signed: Signed) -> None:
        if signed.permission and signed.permission not in signed.live.record.permissions:
            raise ApiError("permission_missing", permission=signed.permission)

    def _check_address(self, signed: Signed) -> None:
        for name in ADDRESS_PARAMS:
            if name in signed.attempt.params:
                check_same_address(signed.attempt.params[name], signed.live.record.address)


def bearer_token(request: Request) -> str:
    """Give the session token of a request; raise `ApiError` where there is none."""
    scheme, _, token = (request.header("Authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ApiError("headers_missing")
    return token.strip()


def check_same_address(named: str, own: str) -> None:
    """Rule 8. Addresses are hexadecimal, so their case says nothing."""
    if named.lower() != own.lower():
        raise ApiError("address_mismatch")


def parse_ip(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address; an IPv4 client on an IPv6 socket is the IPv4 client."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _signing_headers(request: Request) -> tuple[str, str, str]:
    api_key, timestamp, signature = (
        request.header(name) for name in (KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    if not (api_key and timestamp and signature):
        raise ApiError("headers_missing")
    return api_key, timestamp, signature


def _off_ms(timestamp: str, server_ms: int) -> int | None:
    """Give the distance from server time; None for anything but plain digits."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= LONGEST_TIMESTAMP):
        return None
    return abs(int(timestamp) - server_ms)
