"""Why the exchange refused a signed read: one table of causes, by what its reply means.

The venue's rules say what a reply means (venues/replies.py), and a meaning has several causes. Only what
was measured tells these apart: how far apart the clocks are, what the other keys met, what the stored secret
looks like, what the exchange's own list says of the key. A cause with a measurement behind it comes before
one without; one that a measurement speaks against comes last.

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

# Kinds of the default venue that say more than their meaning.
HEADERS_MISSING, SESSION_INVALID, OTHER_USER = "headers_missing", "session_invalid", "address_mismatch"

RUN_AGAIN = "look at the exchange's status page, and run it again"
_LARGER_UNITS = {"ms": '"us" or "ns"', "us": '"ns"'}
_UNITS = {"ms": "milliseconds", "us": "microseconds"}
_SERVED = "a read without a key was answered"


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A whole reply other than a refusal for the limit."""

    status: int
    body: bytes
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known when a read was refused.

    `server_now_s` is epoch seconds. `clock_error_ms` is the bound that `/time` gave, None if it could not be
    read, so that this host's clock was signed with; `is_own_clock`: the user has set where the time is read.
    `record` is what the exchange's list says of the key, None without a session; `is_listed` is False if the
    list was read and lacks the key. `is_to_trade`: bots may trade with it. `scheme_is_default`: nobody has
    set `[signing]`. `path` was read, by `method`. `venue` names the file that states how requests are signed,
    "" if that is for the user to find out; `wants` are the settings that a key there must have besides its
    secret. `is_served`: a read that needs no key was answered. `accepted_read` is another read that was
    accepted with this key, "" without one; `is_read_refused`: none was accepted. `nonce` is the unit of
    its nonces, "" if they are no numbers.
    `accepted` and `signature_refused` are the other keys that met this with the same read. `exchange` is the
    name that commands must be given, "" where there is one exchange.
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
    """A refused read, as the table asks about it; `texts` has what stands for `{name}` in its texts."""

    def __init__(self, reply: WholeReply, facts: Facts) -> None:
        verdict, found = reply.verdict, reply.verdict.found
        self.facts = facts
        self.verdict = verdict
        self.is_json = reply.body.lstrip().startswith(b"{")
        self.key_state = facts.record and facts.record.state(facts.server_now_s)
        self.has_clock = facts.clock_error_ms is not None
        self.oddity = facts.shape.oddity  # what no secret has
        # The scheme may be wrong: this is the only key, or all others were refused, too.
        is_open = not facts.venue and not facts.accepted
        self.is_alone = is_open and not facts.signature_refused
        self.are_all_refused = is_open and bool(facts.signature_refused)
        # If the exchange's words name a setting, the secret is hardly to blame.
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
            # A venue's file says where the right time is.
            "clock_fix": own_clock_fix if facts.is_own_clock else f"its clocks disagree: {RUN_AGAIN}",
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
    """A cause, and how much speaks for it when `when` holds. `{name}` is of the case's texts."""

    weight: Weight
    text: str
    fix: str
    evidence: str = ""
    when: Callable[[Case], object] = lambda _: True

    def cause(self, case: Case) -> Cause:
        """Return the cause in words."""
        text, fix, evidence = (words.format_map(case.texts) for words in (self.text, self.fix, self.evidence))
        return Cause(self.weight, text, fix, evidence)


UNLIKELY, POSSIBLE, LIKELY, PROVEN = Weight
_SAYS_SO = "the exchange says so"
_SECRET = "the secret belongs to another key, or was replaced"  # noqa: S105 - words
_STORE = "store the secret of this API key where keys.{alias}.secret points"
_SCHEME = "[signing] is not what the exchange takes"
_COMMAND = "sealgate discover{at} --key {alias} --path {path}"
_DISCOVER = f"find it with: {_COMMAND}"
_EITHER = f"{_STORE}; if it is the right one, find [signing] with: {_COMMAND}"
_ACCEPTED = "other keys are signed the same way and accepted: {accepted}"
_COMPARE = "compare keys.{alias}.api_key with the app"
_CLOCK = "this machine's clock is wrong, and /time could not be read"
_SET_CLOCK = "make clock.path answer, or set this machine's clock (NTP)"
_OTHER_CLOCK = "/time is not the clock that the exchange checks by"
_APART = "the timestamp was {skew}"
_BOUND = "/time was read to ±{clock_error_ms} ms"
_OTHER_KEY = "or configure another key as keys.{alias}"
_FIREWALL = "a firewall in front of the exchange refuses this machine"
_LOOK = f"look at the reply; {ASK_WHETHER_SERVED}"
_NO_JSON = "the reply is not JSON, so it is not from the exchange itself"


def _setting(name: str) -> tuple[Row, Row]:
    """Return the causes for a setting that a key must have besides its secret."""
    text, fix = f"the {name} belongs to another key", f"compare keys.{{alias}}.{name} with the key's"

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
        Row(LIKELY, "the exchange applies a stricter window than it states", "run it again",
            f"{_APART}, the window is {{granted_ms}} ms", lambda c: c.is_stated and not c.is_outside),
        Row(LIKELY, "recv_window_ms is not what the exchange grants",
            "set keys.{alias}.recv_window_ms = {granted_ms}",
            "the exchange says {granted_ms} ms, the configuration {recv_window_ms} ms",
            lambda c: c.granted_ms != c.facts.recv_window_ms),
        Row(LIKELY, "the connection to the exchange is too slow", "use a machine nearer to it",
            "the round trip took {round_trip_ms} ms", lambda c: c.facts.round_trip_ms > c.granted_ms),
    ),
    Means.NONCE: (
        Row(LIKELY, LARGER_NONCES,
            "make a new key, or set nonce = {larger_units} in a copy of the venue's file "
            "(sealgate venues show {venue} > mine.toml)",
            "the present time in {unit} is too low", lambda c: c.facts.nonce in _LARGER_UNITS),
        Row(POSSIBLE, "another program uses the key, or did so with a clock that was ahead",
            "give each program a key of its own"),
    ),
    Means.SIGNATURE: (
        Row(LIKELY, "the secret was stored with something around it",
            "store the secret alone where keys.{alias}.secret points", "it {oddity}", lambda c: c.oddity),
        Row(LIKELY, "the secrets of {swapped} are swapped", _STORE, _ACCEPTED,
            lambda c: c.facts.accepted and c.facts.signature_refused),
        Row(LIKELY, _SECRET, _STORE, _ACCEPTED, lambda c: c.facts.accepted),
        # Where the venue's file says how it is signed, only the key's own settings can be wrong.
        Row(LIKELY, _SECRET, _STORE, "", lambda c: c.facts.venue and not c.facts.accepted and not c.named),
        Row(POSSIBLE, _SECRET, _STORE, "", lambda c: c.facts.venue and not c.facts.accepted and c.named),
        *_setting("passphrase"),
        *_setting("uid"),
        Row(POSSIBLE, "the [signing] settings replace what the venue's file says",
            "remove [signing]: the file of {venue} says how requests are signed", "",
            lambda c: c.facts.venue and not c.facts.scheme_is_default),
        # Elsewhere the scheme can be wrong, too. The defaults are what most exchanges take, and a secret is
        # copied by hand: so the secret is likelier to be wrong, until every key is refused.
        Row(UNLIKELY, _SCHEME, _DISCOVER, _ACCEPTED, lambda c: not c.facts.venue and c.facts.accepted),
        Row(LIKELY, _SECRET, _EITHER, "", lambda c: c.is_alone),
        Row(POSSIBLE, _SECRET, _EITHER, "", lambda c: c.are_all_refused),
        Row(POSSIBLE, _SCHEME, _DISCOVER, "{scheme_is}", lambda c: c.is_alone),
        Row(LIKELY, _SCHEME, _DISCOVER, "no key is accepted", lambda c: c.are_all_refused),
        Row(POSSIBLE, "upstream.prefix is not what the exchange leaves out of the signature",
            "compare it with the exchange's documents", "", lambda c: c.is_alone or c.are_all_refused),
    ),
    Means.KEY: (
        Row(PROVEN, "the key has expired", RENEW, "the exchange's list says so",
            lambda c: c.key_state is KeyState.ENDED),
        Row(PROVEN, "the key was revoked", RENEW, "the exchange's list says that it is inactive",
            lambda c: c.key_state is KeyState.INACTIVE),
        Row(LIKELY, "API key and secret are swapped",
            "swap keys.{alias}.api_key with what its secret points to",
            "the secret is not longer than the API key", lambda c: c.facts.shape.is_shorter),
        Row(LIKELY, "the API key is mistyped, or another user's", _COMPARE,
            "it is not in the list that its session token can read", lambda c: c.facts.is_listed is False),
        Row(POSSIBLE, "the API key is mistyped, revoked or expired", _COMPARE),
        Row(POSSIBLE, "the key is from another environment: a test network, demo trading or a regional site",
            "compare base_url with the site where the key was made", "", lambda c: c.facts.venue),
    ),
    Means.ADDRESS: (
        Row(PROVEN, "the key's whitelist lacks {address}, which the exchange saw",
            "add {address} to the key's whitelist in the app", _SAYS_SO, lambda c: c.address),
        Row(PROVEN, "the key's whitelist lacks this machine's public address",
            "add this machine's public address to the key's whitelist in the app", _SAYS_SO,
            lambda c: not c.address),
        Row(POSSIBLE, "the whitelist has IPv4 addresses only",
            "add it, or let this machine reach the exchange by IPv4 alone", "{address} is IPv6",
            lambda c: ":" in c.address),
    ),
    Means.PERMISSION: (
        Row(PROVEN, "the key has no {permission} permission",
            f"give the key the {{permission}} permission in the app, {_OTHER_KEY}", _SAYS_SO,
            lambda c: c.permission),
        Row(PROVEN, "the key lacks the permission for this request",
            f"give the key the permission for {{method}} {{path}}, {_OTHER_KEY}", _SAYS_SO,
            lambda c: not c.permission),
    ),
    Means.COUNTRY: (
        Row(LIKELY, "the exchange does not serve this address or this account (country?)",
            ASK_WHETHER_SERVED),
    ),
    Means.FIREWALL: (
        Row(LIKELY, _FIREWALL, _LOOK, "", lambda c: c.is_json),
        Row(LIKELY, _FIREWALL, _LOOK, _NO_JSON, lambda c: not c.is_json),
    ),
    Means.UNKNOWN: (
        Row(POSSIBLE, "the exchange has a fault of its own", RUN_AGAIN),
    ),
}
KINDS: Mapping[str, tuple[Row, ...]] = {
    HEADERS_MISSING: (
        Row(LIKELY, "the headers have another name at this exchange",
            "set signing.header_prefix as the exchange documents it",
            "they were sent as {header_prefix}APIKEY and so on", lambda c: not c.facts.venue),
        Row(POSSIBLE, "a proxy in front of the exchange drops them", "connect without it"),
    ),
    OTHER_USER: (
        Row(PROVEN, "the path names another user's address",
            "name the address of the key's own user in --path", _SAYS_SO),
    ),
}
WITHOUT_RULE: Mapping[int, tuple[Row, ...]] = {
    HTTPStatus.FORBIDDEN: TABLE[Means.FIREWALL],
    HTTPStatus.NOT_FOUND: (
        Row(LIKELY, "there is no such path: the prefix is wrong",
            "correct upstream.prefix and base_url, or name a path that exists with --path"),
    ),
}
UNLISTED = (
    Row(POSSIBLE, "the venue's file has no rule for this error, or base_url is another server's",
        "compare base_url with the exchange's documents"),
)
LOGIN = (
    Row(LIKELY, "the key or its secret is wrong", "see the line above about its signed read",
        "that was refused, too", lambda c: c.facts.is_read_refused),
    Row(POSSIBLE, "the key lacks what this stream needs: a permission, or a product such as futures",
        "look at the key's permissions and the account's products in the app"),
    Row(POSSIBLE, "the stream is of another environment or region than the key",
        "compare venue, environment and upstream.streams with the site where the key was made"),
)
SAYS_WHY = (Row(PROVEN, "its reply says why", "{advice}", "{doc}"),)
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

    Of an accepted read with the same key, neither key nor secret can be wrong.
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
    """Yield the causes of a reply that means one of several things.

    What the exchange says is then no evidence, and nothing is likelier than the rest unless it was measured.
    There are three cases: a read that was accepted with the same key excludes a meaning; if that leaves one
    meaning, its causes are likely (no more, as exchanges give one reply for more than their documents say);
    else the causes without a measurement are possible.
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
        yield Cause(UNLIKELY, "the exchange shuts this address out, whatever the key", "", _SERVED)


def fix_of_own_read(verdict: Verdict, alias: str) -> str:
    """Return what to do about a read of a command that was refused, with the session token of a key.

    The rules advise bots: what they say of orders, and of what the gateway sends again, helps nobody here.
    """
    if verdict.kind in (HEADERS_MISSING, SESSION_INVALID):
        return f"the session token is wrong or has expired: store a new one where keys.{alias}.session points"
    if verdict.is_limited:
        return "wait, and run it again"
    return RUN_AGAIN if verdict.means is Means.UNKNOWN else clause(verdict.advice)
