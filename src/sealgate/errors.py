"""The reasons for the gateway's own replies, in one table.

A reason belongs to one of three families, by fault: the bot's, the upstream's or the gateway's. The slug is
the contract: bots match on it, metrics are labelled with it. The advice is the fix that a person can apply.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Fault(Enum):
    """The party at fault."""

    BOT = "bot"
    UPSTREAM = "upstream"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the table: the HTTP status, a title for people, and the advice."""

    status: int
    fault: Fault
    title: str
    advice: str


_BOT, _UPSTREAM, _GATEWAY = Fault.BOT, Fault.UPSTREAM, Fault.GATEWAY

REASONS: dict[str, Reason] = {
    "bad_request": Reason(400, _BOT, "Bad request", "Correct the request, then send it again."),
    "ambiguous_target": Reason(
        400, _BOT, "Ambiguous target", "Send a plain path; escape only what must be escaped, and only once."
    ),
    "bot_unauthenticated": Reason(
        401,
        _BOT,
        "Bot not authenticated",
        "Send the bot's token: Authorization: Bearer TOKEN, or X-Gateway-Token: TOKEN from a client that "
        "signs with Authorization itself.",
    ),
    "bot_forbidden": Reason(
        403,
        _BOT,
        "Not allowed for this bot",
        "Send what this bot may do, or extend `may` in `[bots.NAME]` as docs/permissions.md explains.",
    ),
    "policy_refused": Reason(
        403,
        _BOT,
        "Against the bot's policy",
        "Send what the bot's policy allows; the gateway's operator can change `[bots.NAME.policy]`.",
    ),
    "app_only": Reason(403, _BOT, "Only in the app", "The exchange allows this only in its mobile app."),
    "browser_refused": Reason(
        403, _BOT, "Browsers are refused", "Call from a program; web pages must not reach this address."
    ),
    "outside_prefix": Reason(
        404, _BOT, "Outside the prefix", "Use the exchange's own path, prefix included."
    ),
    "unknown_exchange": Reason(
        404,
        _BOT,
        "Unknown exchange",
        "Begin the path with the name of an exchange that the bot has a key for.",
    ),
    "unknown_stream": Reason(
        404,
        _BOT,
        "Unknown stream",
        "Write the host and the path of one of the exchange's streams, as `sealgate venues show` lists them.",
    ),
    "method_refused": Reason(405, _BOT, "Method refused", "Use GET, HEAD, POST, PUT, PATCH or DELETE."),
    "body_timeout": Reason(
        408,
        _BOT,
        "Too slow",
        "Send the request without pauses; see `listen.head_timeout` and `listen.body_timeout`.",
    ),
    "in_flight": Reason(
        409,
        _BOT,
        "First request still in progress",
        "Repeat it with the same Idempotency-Key once the first request has finished.",
    ),
    "body_too_large": Reason(413, _BOT, "Body too large", "Send less, or raise `listen.max_body`."),
    "expectation_refused": Reason(
        417, _BOT, "Expectation refused", "Only `Expect: 100-continue` is supported."
    ),
    "host_refused": Reason(421, _BOT, "Host refused", "Use a host name from `listen.hosts` in the URL."),
    "key_reused": Reason(
        422, _BOT, "Idempotency-Key reused", "Use a new Idempotency-Key for each new request."
    ),
    "headers_too_large": Reason(431, _BOT, "Headers too large", "Send fewer or shorter headers."),
    "coding_refused": Reason(
        501, _BOT, "Transfer coding refused", "Send the body plain, or with `Transfer-Encoding: chunked`."
    ),
    "upgrade_refused": Reason(501, _BOT, "Upgrade refused", "Upgrade to a WebSocket with GET and HTTP/1.1."),
    "rate_limited": Reason(
        429,
        _UPSTREAM,
        "Rate limited",
        "Wait for the time in `Retry-After`; the gateway sends no such request before then.",
    ),
    "upstream_unreachable": Reason(
        502,
        _UPSTREAM,
        "Exchange unreachable",
        "Check `base_url`, the network and the exchange's status page.",
    ),
    "upstream_broken": Reason(
        502, _UPSTREAM, "Exchange closed the connection", "Look up the order before you send it again."
    ),
    "upstream_timeout": Reason(
        504,
        _UPSTREAM,
        "Exchange too slow",
        "If `X-Gateway-Outcome` is `unknown`, look the order up before you send it again.",
    ),
    "internal_error": Reason(
        500, _GATEWAY, "Fault in the gateway", "Report it with the request id and its line of the log."
    ),
    "clock_unsynced": Reason(503, _GATEWAY, "Clock not synchronized", "Wait until /-/ready answers 200."),
    "draining": Reason(
        503,
        _GATEWAY,
        "Shutting down",
        "Send the request to another instance, or again once the gateway has restarted.",
    ),
    "halted": Reason(
        503,
        _GATEWAY,
        "Orders are halted",
        "Orders pass again after `sealgate resume`, or once the journal is writable; reads and cancels "
        "still pass.",
    ),
    "key_disabled": Reason(
        503,
        _GATEWAY,
        "API key disabled",
        "Check the API key at the exchange; the gateway tests it again automatically, and immediately after "
        "`sealgate resume`.",
    ),
    "queue_full": Reason(
        503,
        _GATEWAY,
        "Queue full",
        "Send fewer requests at a time, or raise the setting named here.",
    ),
    "deadline_exceeded": Reason(
        504,
        _GATEWAY,
        "Deadline exceeded",
        "Allow more time with X-Gateway-Deadline-Ms, or send fewer requests.",
    ),
}


_NO_MEMBERS: Mapping[str, object] = MappingProxyType({})


class Refusal(Exception):  # noqa: N818 - it is an answer, not an error of the program
    """The gateway's own reply in place of the exchange's.

    Three neighbours: the pacer's Rejection (limits/claims.py) becomes a Refusal; a 429 of the exchange is
    part of a ThrottleEvent; every other error of the exchange is an UpstreamError (orders/outcome.py). `slug`
    is a key of REASONS: an unknown slug raises KeyError here, where it is a bug, and never reaches a bot.
    `detail` is one sentence for people, without secrets. `retry_after_s` is for the Retry-After header.
    `advice` and `phrase` (ASCII, for the status line) replace those of the reason and the status. `members`
    are added to the problem document.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        slug: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
        advice: str = "",
        phrase: str = "",
        members: Mapping[str, object] = _NO_MEMBERS,
    ) -> None:
        super().__init__(f"{slug}: {detail}")
        self.slug = slug
        self.reason = REASONS[slug]
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.advice = advice or self.reason.advice
        self.phrase = phrase
        self.members = members
