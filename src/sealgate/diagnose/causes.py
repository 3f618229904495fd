"""Why the exchange refused a signed read: one table of causes, by the meaning of its reply.

The venue's rules give the meaning of a reply (venues/replies.py), and a meaning has several possible causes.
Only measurements tell these apart: the difference of the clocks, the results of the other keys, the shape of
the stored secret, the key's record in the exchange's own list. A cause supported by a measurement comes
first, one contradicted by a measurement last.

Source: spec.md, Authentication and Errors.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from sealgate.exchange.refused_reads import ASK_WHETHER_SERVED
from sealgate.keys.key_records import KeyRecord, KeyState
from sealgate.keys.wrong_secrets import Shape
from sealgate.machine.findings import RENEW, Cause, Weight, clause
from sealgate.observe.evidence import LARGER_NONCES
from sealgate.venues.replies import Means, Verdict, doc_link
from sealgate.venues.server_time import stated_time

# Error kinds of the default venue that are more specific than their meaning.
HEADERS_MISSING, SESSION_INVALID, OTHER_USER = "headers_missing", "session_invalid", "address_mismatch"

RUN_AGAIN = "look at the exchange's status page, and run the check again"
_LARGER_UNITS = {"ms": '"us" or "ns"', "us": '"ns"'}
_UNITS = {"ms": "milliseconds", "us": "microseconds"}
_SERVED = "the exchange answered a read without a key"


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A complete reply, except a refusal because of the rate limit."""

    status: int
    body: bytes
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts known about a refused read.

    `server_now_s` is epoch seconds. `clock_error_ms` is the clock error after reading `/time`; it is None if
    that failed and this machine's clock was used. `is_own_clock`: the user has set `clock.path` or
    `clock.field`. `record` is the key's record in the exchange's list, None without a session; `is_listed` is
    False if the list was read and lacks the key. `is_to_trade`: bots may trade with the key.
    `scheme_is_default`: `[signing]` is not set. `path` was read, by `method`. `venue` names the file that
    states how requests are signed, "" if the user has to find that out; `wants` are the settings that a key
    there must have besides its secret. `is_served`: a read without a key was answered. `accepted_read` is
    another read that was accepted with this key, "" if there is none; `is_read_refused`: none was accepted.
    `nonce` is the unit of its nonces, "" if they are not numbers. `accepted` and `signature_refused` are the
    other keys with this result for the same read. `exchange` is the name to pass to commands, "" if there is
    only one exchange.
    """

    alias: str
    timestamp_ms: int
    round_trip_ms: int
    clock_error_ms: int | None
    recv_window_ms: int
    server_now_s: float
    is_to_trade: bool
    shape: Shape
    record: KeyRecord | None
    is_listed: bool | None
    scheme_is_default: bool
    header_prefix: str
    path: str
    method: str = "GET"
    accepted: tuple[str, ...] = ()
    signature_refused: tuple[str, ...] = ()
    venue: str = ""
    wants: tuple[str, ...] = ()
    is_served: bool = False
    accepted_read: str = ""
    is_read_refused: bool = False
    nonce: str = ""
    is_own_clock: bool = True
    exchange: str = ""


class Case:
    """A refused read, as the table's conditions see it; `texts` has the values for `{name}` in its texts."""

    def __init__(self, reply: WholeReply, facts: Facts) -> None:
        verdict, found = reply.verdict, reply.verdict.found
        self.facts = facts
        self.verdict = verdict
        self.is_json = reply.body.lstrip().startswith(b"{")
        self.key_state = facts.record and facts.record.state(facts.server_now_s)
        self.has_clock = facts.clock_error_ms is not None
        self.oddity = facts.shape.oddity  # a feature that no secret has
        # The scheme may be wrong: this is the only key, or all others were also refused.
        is_open = not facts.venue and not facts.accepted
        self.is_alone = is_open and not facts.signature_refused
        self.are_all_refused = is_open and bool(facts.signature_refused)
        # If the exchange's text names a setting, the secret is probably not the cause.
        self.named = [name for name in facts.wants if name in verdict.words.lower()]

        server_s = stated_time(found.get("server_time", ""))
        skew_ms = 0 if server_s is None else facts.timestamp_ms - round(server_s * 1000)
        self.granted_ms = int(found.get("recv_window", facts.recv_window_ms))
        self.is_stated = server_s is not None
        self.is_outside = abs(skew_ms) > self.granted_ms
        self.permission = found.get("permission", "")
        self.address = found.get("address", "")

        side = "ahead of" if skew_ms > 0 else "behind"
        own_clock_fix = "correct clock.path and clock.field: they lead to a different time"
        self.texts = {
            **{name: getattr(facts, name) for name in Facts.__slots__},
            "accepted": ", ".join(facts.accepted),
            "address": self.address,
            "at": f" --exchange {facts.exchange}" if facts.exchange else "",
            "advice": clause(verdict.advice),
            # A venue's file names the path of the right time.
            "clock_fix": own_clock_fix
            if facts.is_own_clock
            else f"the exchange's clocks disagree: {RUN_AGAIN}",
            "doc": doc_link(verdict),
            "granted_ms": self.granted_ms,
            "larger_units": _LARGER_UNITS.get(facts.nonce),
            "oddity": self.oddity,
            "permission": self.permission,
            "scheme_is": "it is at its defaults" if facts.scheme_is_default else "it was set by hand",
            "skew": f"{abs(skew_ms) / 1000:.1f} s {side} the exchange's time",
            "swapped": ", ".join((facts.alias, *facts.signature_refused)),
            "unit": _UNITS.get(facts.nonce),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A cause, and its likelihood if `when` holds. `{name}` refers to the case's texts."""

    weight: Weight
    text: str
    fix: str
    evidence: str = ""
    when: Callable[[Case], object] = lambda _: True

    def cause(self, case: Case) -> Cause:
        """Return the cause as text."""
        text, fix, evidence = (words.format_map(case.texts) for words in (self.text, self.fix, self.evidence))
        return Cause(self.weight, text, fix, evidence)


UNLIKELY, POSSIBLE, LIKELY, PROVEN = Weight
_SAYS_SO = "the exchange says so"
_SECRET = "the secret belongs to another key, or was replaced"  # noqa: S105 - words
_STORE = "store the secret of this API key where keys.{alias}.secret points"
_SCHEME = "[signing] does not match what the exchange expects"
_COMMAND = "sealgate discover{at} --key {alias} --path {path}"
_DISCOVER = f"detect the scheme with: {_COMMAND}"
_EITHER = f"{_STORE}; if it is the right one, detect [signing] with: {_COMMAND}"
_ACCEPTED = "other keys are signed the same way and accepted: {accepted}"
_COMPARE = "compare keys.{alias}.api_key with the API key shown by the exchange"
_CLOCK = "this machine's clock is wrong, and /time could not be read"
_SET_CLOCK = "correct clock.path so that it returns the exchange's time, or set this machine's clock (NTP)"
_OTHER_CLOCK = "the exchange checks timestamps against another clock than /time shows"
_APART = "the timestamp was {skew}"
_BOUND = "the exchange's time is accurate to ±{clock_error_ms} ms"
_OTHER_KEY = "or configure another key as keys.{alias}"
_FIREWALL = "a firewall in front of the exchange refuses this machine"
_LOOK = f"read the reply; {ASK_WHETHER_SERVED}"
_NO_JSON = "the reply is not JSON, so it is not from the exchange itself"


def _setting(name: str) -> tuple[Row, Row]:
    """Return the causes concerning a setting that a key must have besides its secret."""
    text, fix = (
        f"the {name} belongs to another key",
        (f"compare keys.{{alias}}.{name} with the {name} of the API key"),
    )

    def is_wanted(case: Case) -> bool:
        return name in case.facts.wants and name not in case.named

    return (
        Row(LIKELY, text, fix, "the exchange names it", lambda case: name in case.named),
        Row(POSSIBLE, text, fix, "", is_wanted),
    )


# fmt: off
TABLE: Mapping[Means, tuple[Row, ...]] = {
    Means.TIMESTAMP: (
        Row(PROVEN, _CLOCK, _SET_CLOCK, _APART, lambda c: not c.has_clock and c.is_outside),
        Row(LIKELY, _CLOCK, _SET_CLOCK, "", lambda c: not c.has_clock and not c.is_stated),
        Row(LIKELY, _OTHER_CLOCK, "{clock_fix}", f"{_APART}; {_BOUND}",
            lambda c: c.has_clock and c.is_outside),
        Row(LIKELY, _OTHER_CLOCK, "{clock_fix}", _BOUND, lambda c: c.has_clock and not c.is_stated),
        Row(LIKELY, "the exchange applies a shorter receive window than it states", "run it again",
            f"{_APART}, the window is {{granted_ms}} ms", lambda c: c.is_stated and not c.is_outside),
        Row(LIKELY, "recv_window_ms differs from the window that the exchange grants",
            "set keys.{alias}.recv_window_ms = {granted_ms}",
            "the exchange states {granted_ms} ms, the configuration {recv_window_ms} ms",
            lambda c: c.granted_ms != c.facts.recv_window_ms),
        Row(LIKELY, "the connection to the exchange is too slow", "use a machine closer to the exchange",
            "the round trip took {round_trip_ms} ms", lambda c: c.facts.round_trip_ms > c.granted_ms),
    ),
    Means.NONCE: (
        Row(LIKELY, LARGER_NONCES,
            "make a new key, or set nonce = {larger_units} in a copy of the venue's file "
            "(sealgate venues show {venue} > mine.toml)",
            "the present time in {unit} is too low", lambda c: c.facts.nonce in _LARGER_UNITS),
        Row(POSSIBLE, "another program uses the API key, or once used it with a clock that was ahead",
            "give each program its own API key"),
    ),
    Means.SIGNATURE: (
        Row(LIKELY, "the secret was stored with other text around it",
            "store the secret alone where keys.{alias}.secret points", "it {oddity}", lambda c: c.oddity),
        Row(LIKELY, "the secrets of {swapped} are swapped", _STORE, _ACCEPTED,
            lambda c: c.facts.accepted and c.facts.signature_refused),
        Row(LIKELY, _SECRET, _STORE, _ACCEPTED, lambda c: c.facts.accepted),
        # If the venue's file states the scheme, only the key's own settings can be wrong.
        Row(LIKELY, _SECRET, _STORE, "", lambda c: c.facts.venue and not c.facts.accepted and not c.named),
        Row(POSSIBLE, _SECRET, _STORE, "", lambda c: c.facts.venue and not c.facts.accepted and c.named),
        *_setting("passphrase"),
        *_setting("uid"),
        Row(POSSIBLE, "the [signing] settings override the venue's file",
            "remove [signing]: the file of {venue} states how requests are signed", "",
            lambda c: c.facts.venue and not c.facts.scheme_is_default),
        # Otherwise the scheme can also be wrong. The defaults suit most exchanges, and a secret is copied by
        # hand: so the secret is more likely to be wrong, unless every key is refused.
        Row(UNLIKELY, _SCHEME, _DISCOVER, _ACCEPTED, lambda c: not c.facts.venue and c.facts.accepted),
        Row(LIKELY, _SECRET, _EITHER, "", lambda c: c.is_alone),
        Row(POSSIBLE, _SECRET, _EITHER, "", lambda c: c.are_all_refused),
        Row(POSSIBLE, _SCHEME, _DISCOVER, "{scheme_is}", lambda c: c.is_alone),
        Row(LIKELY, _SCHEME, _DISCOVER, "no key is accepted", lambda c: c.are_all_refused),
        Row(POSSIBLE, "upstream.prefix is not the part of the path that the exchange leaves out of the "
        "signature",
            "compare it with the exchange's documents", "", lambda c: c.is_alone or c.are_all_refused),
    ),
    Means.KEY: (
        Row(PROVEN, "the key has expired", RENEW, "it has expired in the exchange's list",
            lambda c: c.key_state is KeyState.ENDED),
        Row(PROVEN, "the key was revoked", RENEW, "it is inactive in the exchange's list",
            lambda c: c.key_state is KeyState.INACTIVE),
        Row(LIKELY, "API key and secret are swapped",
            "swap keys.{alias}.api_key with what its secret points to",
            "the secret is not longer than the API key", lambda c: c.facts.shape.is_shorter),
        Row(LIKELY, "the API key is mistyped, or belongs to another user", _COMPARE,
            "it is not in the list that its session token can read", lambda c: c.facts.is_listed is False),
        Row(POSSIBLE, "the API key is mistyped, revoked or expired", _COMPARE),
        Row(POSSIBLE, "the key is from another environment: a test network, demo trading or a regional site",
            "compare base_url with the site where the key was made", "", lambda c: c.facts.venue),
    ),
    Means.ADDRESS: (
        Row(PROVEN, "the exchange saw this machine as {address}, which is not on the key's whitelist",
            "add {address} to the key's whitelist at the exchange", _SAYS_SO, lambda c: c.address),
        Row(PROVEN, "this machine's public IP address is not on the key's whitelist",
            "add this machine's public IP address to the key's whitelist at the exchange", _SAYS_SO,
            lambda c: not c.address),
        Row(POSSIBLE, "the whitelist has only IPv4 addresses",
            "add it, or let this machine connect to the exchange only by IPv4", "{address} is IPv6",
            lambda c: ":" in c.address),
    ),
    Means.PERMISSION: (
        Row(PROVEN, "the key has no {permission} permission",
            f"give the key the {{permission}} permission at the exchange, {_OTHER_KEY}", _SAYS_SO,
            lambda c: c.permission),
        Row(PROVEN, "the key lacks the permission for this request",
            f"give the key the permission for {{method}} {{path}}, {_OTHER_KEY}", _SAYS_SO,
            lambda c: not c.permission),
    ),
    Means.COUNTRY: (
        Row(LIKELY, "the exchange does not serve this IP address or this account (because of its country?)",
            ASK_WHETHER_SERVED),
    ),
    Means.FIREWALL: (
        Row(LIKELY, _FIREWALL, _LOOK, "", lambda c: c.is_json),
        Row(LIKELY, _FIREWALL, _LOOK, _NO_JSON, lambda c: not c.is_json),
    ),
    Means.UNKNOWN: (
        Row(POSSIBLE, "the exchange itself has a fault", RUN_AGAIN),
    ),
}
KINDS: Mapping[str, tuple[Row, ...]] = {
    HEADERS_MISSING: (
        Row(LIKELY, "this exchange names the headers differently",
            "set signing.header_prefix as the exchange documents it",
            "they were sent as {header_prefix}APIKEY and so on", lambda c: not c.facts.venue),
        Row(POSSIBLE, "a proxy in front of the exchange drops them", "connect without the proxy"),
    ),
    OTHER_USER: (
        Row(PROVEN, "the path names another user's address",
            "put the user address of the key's owner into --path", _SAYS_SO),
    ),
}
WITHOUT_RULE: Mapping[int, tuple[Row, ...]] = {
    HTTPStatus.FORBIDDEN: TABLE[Means.FIREWALL],
    HTTPStatus.NOT_FOUND: (
        Row(LIKELY, "the path does not exist: the prefix is wrong",
            "correct upstream.prefix and base_url, or name a path that exists with --path"),
    ),
}
UNLISTED = (
    Row(POSSIBLE, "the venue's file has no rule for this error, or base_url is the address of another server",
        "compare base_url with the exchange's documents"),
)
LOGIN = (
    Row(LIKELY, "the key or its secret is wrong", "fix the key's signed read first (keys.{alias} above)",
        "its signed read was also refused", lambda c: c.facts.is_read_refused),
    Row(POSSIBLE, "the key lacks what this stream needs: a permission, or a product such as futures",
        "check the key's permissions and the account's products at the exchange"),
    Row(POSSIBLE, "the stream and the key belong to different environments or regions",
        "compare venue, environment and upstream.streams with the site where the key was made"),
)
SAYS_WHY = (Row(PROVEN, "the exchange's reply gives the reason", "{advice}", "{doc}"),)
# fmt: on


def causes_of(reply: WholeReply, facts: Facts) -> list[Cause]:
    """Return the causes of an error reply to a signed read, at least one."""
    case, verdict = Case(reply, facts), reply.verdict
    if verdict.others:
        return list(_several(case))
    if verdict.means is Means.REFUSED and not verdict.topic:
        rows = WITHOUT_RULE.get(reply.status, UNLISTED)
    else:
        rows = KINDS.get(verdict.kind) or TABLE.get(verdict.means, SAYS_WHY)
    return list(_caused_by(rows, case))


def causes_of_login(reply: WholeReply, facts: Facts) -> list[Cause]:
    """Return the causes of a login on a stream that failed, at least one.

    If a read with the same key was accepted, neither key nor secret can be wrong.
    """
    verdict = reply.verdict
    is_excluded = bool(facts.accepted_read) and verdict.means in (Means.KEY, Means.SIGNATURE)
    is_known = verdict.means is not Means.REFUSED or bool(verdict.topic)
    if is_known and (verdict.others or not is_excluded):
        return causes_of(reply, facts)
    return list(_caused_by(LOGIN, Case(reply, facts)))


def _caused_by(rows: tuple[Row, ...], case: Case) -> Iterator[Cause]:
    yield from (row.cause(case) for row in rows if row.when(case))


def _several(case: Case) -> Iterator[Cause]:
    """Yield the causes of a reply that has several possible meanings.

    The exchange's text is then not evidence, and only a measurement makes one cause likelier than another.
    There are three cases: a read accepted with the same key excludes a meaning; if only one meaning is left,
    its causes are likely (not certain, because exchanges use replies for more than they document); otherwise
    causes without a measurement are possible.
    """
    verdict, facts = case.verdict, case.facts
    meanings = (verdict.means, *verdict.others)
    excluded = {means for means in meanings if facts.accepted_read and means is not Means.PERMISSION}
    is_last = len(excluded) == len(meanings) - 1
    for means in meanings:
        for cause in _caused_by(TABLE[means], case):
            evidence = "" if cause.evidence == _SAYS_SO else cause.evidence
            weight = cause.weight if evidence else min(cause.weight, POSSIBLE)
            if means in excluded:
                weight, evidence = UNLIKELY, f"{facts.accepted_read} is accepted with this key"
            elif is_last:
                weight = max(weight, LIKELY)
                evidence = evidence or "the other meanings are excluded"
            yield replace(cause, weight=weight, evidence=evidence)
    if Means.ADDRESS in meanings and facts.is_served:
        yield Cause(UNLIKELY, "the exchange has blocked this IP address, with any key", "", _SERVED)


def fix_of_own_read(verdict: Verdict, alias: str) -> str:
    """Return how to fix a refused read that a command made with the session token of a key.

    The rules' advice is for bots: it is about orders and resends, and does not apply to a command.
    """
    if verdict.kind in (HEADERS_MISSING, SESSION_INVALID):
        return f"the session token is wrong or has expired: store a new one where keys.{alias}.session points"
    if verdict.is_limited:
        return "wait, and run the command again"
    return RUN_AGAIN if verdict.means is Means.UNKNOWN else clause(verdict.advice)
