"""Every choice of the sandbox in one frozen dataclass; the command line is made from it.

spec.md leaves gaps ("not shown"). Each has a setting here with a default; `gap` says which one it fills.
Only the standard library is imported, because `sealgate sandbox --help` reads this file.
"""

from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True, slots=True)
class Option:
    """What the command line says about a setting, the gap of spec.md that it fills, and its bounds."""

    help: str
    gap: str = ""
    least: float = 0
    most: float = 10**9


LimitKind = Literal["fixed", "fixed_from_first", "sliding_log", "token_bucket", "gcra", "concurrency", "none"]
RetryAfter = Literal["exact", "rounded", "absent", "date"]
SignatureEncoding = Literal["hex", "HEX", "base64", "base64url"]
SecretIs = Literal["utf8", "hex", "base64", "sha256hex"]
SignedTarget = Literal["path", "path_and_query"]


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The sandbox's choices. Durations carry their unit in the name; the defaults are those of the docs."""

    # Signing
    signature_encoding: Annotated[
        SignatureEncoding, Option("How the signature is written.", "encoding of the signature")
    ] = "hex"
    secret_is: Annotated[SecretIs, Option("What the secret's text stands for.", "what keys the HMAC")] = (
        "utf8"  # noqa: S105 - no secret
    )
    signed_target: Annotated[
        SignedTarget, Option("Whether the query is signed too.", "whether the path includes the query")
    ] = "path"
    check_first: Annotated[
        Literal["timestamp", "signature"],
        Option("Which check comes first.", "order of the checks"),
    ] = "timestamp"
    recv_window_ms: Annotated[
        int, Option("recv_window of a new key.", "how recv_window is set for a key", least=1)
    ] = 5000
    clock_limit_ms: Annotated[
        int,
        Option(
            "Timestamps further off are refused whatever the key's recv_window; 0: no such limit.",
            "how the 5 second clock rule and a larger recv_window combine",
        ),
    ] = 5000
    client_ip_header: Annotated[
        str, Option("Header that a trusted proxy puts the client's IP in; empty: the peer address counts.")
    ] = ""

    # Keys
    api_key_bytes: Annotated[
        int,
        Option(
            "Random bytes in an api_key, shown in hex.", "length and characters of api_key", least=8, most=64
        ),
    ] = 16
    api_secret_bytes: Annotated[
        int, Option("Random bytes in an api_secret.", "length and characters of api_secret", least=8, most=64)
    ] = 32
    label_max: Annotated[int, Option("Longest label, in characters.", "length of label", least=1)] = 64
    expires_days_max: Annotated[
        int, Option("Largest expires_days.", "bounds of expires_days", least=1, most=36500)
    ] = 3650
    no_expiry: Annotated[
        Literal["null", "empty", "far"],
        Option("expires_at of a key without expiry.", "expires_at without expiry"),
    ] = "null"
    expired_is_active: Annotated[
        bool,
        Option("Whether is_active stays true after expires_at.", "effect of expires_at on is_active"),
    ] = False
    list_revoked: Annotated[
        bool, Option("Whether revoked keys stay in the list.", "whether revoked keys stay in the list")
    ] = True
    revoked_use_slots: Annotated[
        bool,
        Option("Whether revoked keys count among the 10.", "whether the limit counts revoked keys"),
    ] = False
    unknown_key_status: Annotated[
        int,
        Option(
            "Status for an unknown api_key in a path.", "reply for an unknown api_key", least=400, most=499
        ),
    ] = 404
    audit_updated: Annotated[
        str, Option("Audit action of an update.", "audit actions other than key_created")
    ] = "key_updated"
    audit_revoked: Annotated[
        str, Option("Audit action of a revocation.", "audit actions other than key_created")
    ] = "key_revoked"
    audit_over_max: Annotated[
        Literal["reject", "clamp"],
        Option("What a limit above 100 does.", "audit behaviour when limit exceeds 100"),
    ] = "reject"
    audit_order: Annotated[
        Literal["newest", "oldest"], Option("Which audit entry comes first.", "ordering of audit entries")
    ] = "newest"
    unknown_fields: Annotated[
        Literal["forbid", "ignore"],
        Option("What a body's unknown fields do.", "whether unknown body fields are refused"),
    ] = "forbid"

    # Sessions
    session_ttl_s: Annotated[float, Option("Life of a session token.", "when a session expires", least=1)] = (
        86400.0
    )
    passkey_ttl_s: Annotated[
        float, Option("Life of a passkey token.", "when a passkey token expires", least=1)
    ] = 300.0
    handshake_method: Annotated[
        Literal["POST", "PUT"], Option("Method of /user/handshake.", "method and shape of the handshake")
    ] = "POST"
    handshake_requests: Annotated[
        int, Option("Handshakes per address and window.", "numeric handshake limit", least=1)
    ] = 5
    handshake_window_s: Annotated[
        float, Option("Window of the handshake limit.", "numeric handshake limit", least=1)
    ] = 60.0

    # Errors
    error_timestamp: Annotated[
        Literal["iso", "ms"], Option("Form of an error's timestamp.", "form of the errors' timestamp")
    ] = "iso"
    needs_transfer_status: Annotated[
        Literal[409, 449], Option("Status of NEEDS_TRANSFER.", "status of NEEDS_TRANSFER")
    ] = 409
    max_body_bytes: Annotated[int, Option("Largest request body.", "largest request body", least=1)] = 1 << 20

    # Trading
    public_symbols: Annotated[
        bool, Option("Whether the symbol lists need no signature.", "authentication of the symbol lists")
    ] = False
    cross_on_isolated: Annotated[
        Literal["correct", "reject"],
        Option("What cross margin does on an isolated-only symbol.", "when cross margin is refused"),
    ] = "correct"
    usdc: Annotated[int, Option("USDC of a new account.", most=10**15)] = 1_000_000

    # Rate limit
    limit_kind: Annotated[LimitKind, Option("Kind of the rate limit.", "numeric rate limits")] = "fixed"
    limit_requests: Annotated[int, Option("Requests per window.", "numeric rate limits", least=1)] = 20
    limit_window_s: Annotated[
        float, Option("The window.", "numeric rate limits", least=0.001, most=10**6)
    ] = 1.0
    limit_burst: Annotated[
        int, Option("Burst of token_bucket and gcra; 0: as limit-requests.", "numeric rate limits")
    ] = 0
    limit_costs: Annotated[
        tuple[tuple[str, int], ...],
        Option("What a route costs, as 'METHOD /path=N'; others cost 1.", "numeric rate limits"),
    ] = ()
    limit_rejects_count: Annotated[
        bool, Option("Whether refused requests count.", "whether refused requests count")
    ] = False
    limit_by: Annotated[
        Literal["key", "ip", "all"], Option("Who shares one limit.", "what the rate limit is counted by")
    ] = "key"
    retry_after: Annotated[RetryAfter, Option("Form of Retry-After.", "form of Retry-After")] = "rounded"
    ban_after: Annotated[
        int, Option("Refusals in a row that lead to a ban; 0: never.", "whether clients are banned")
    ] = 0
    ban_s: Annotated[
        float,
        Option("The first ban; each further one is twice as long.", "whether clients are banned", most=10**6),
    ] = 60.0

    # Clock
    skew_ms: Annotated[
        int, Option("How far the exchange's clock is ahead of this machine's.", least=-(10**11), most=10**11)
    ] = 0
    drift_ppm: Annotated[
        float,
        Option("How fast the exchange's clock drifts, in parts per million.", least=-(10**6), most=10**6),
    ] = 0.0
