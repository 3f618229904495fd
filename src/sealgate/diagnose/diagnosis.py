"""Why the exchange refused a signed read: the causes of a 401 or 403, ranked by what was measured.

The venue's rules name a kind (venues/replies.py), and a kind has several causes. What tells them apart
is known only here: how far apart the clocks are, what the other keys met, what the stored secret looks like,
what the exchange's own list says of the key. A cause with a measurement behind it comes before one without;
one that a measurement speaks against comes last.

Source: spec.md, Authentication and Errors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sealgate.exchange.refused_reads import ASK_WHETHER_SERVED
from sealgate.keys.key_records import KeyRecord, KeyState
from sealgate.keys.secret_forms import oddity
from sealgate.machine.findings import RENEW, Cause, Weight
from sealgate.venues.replies import Means, Verdict, doc_link
from sealgate.venues.server_time import stated_time

_OTHER_SECRET = "the secret belongs to another key, or was replaced"  # noqa: S105 - words
_NOT_SERVED_EITHER = "the exchange does not serve this address or this account (country?)"
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_LARGER_UNITS = {"ms": ("us", "ns"), "us": ("ns",)}
_SERVED = "a read without a key was answered"
_OTHER_SCHEME = "[signing] is not what the exchange takes"


@dataclass(frozen=True, slots=True)
class Shape:
    """`oddity` is what no secret has, as a clause, "" without any. `is_shorter`: than its API key."""

    oddity: str = ""
    is_shorter: bool = False


def shape_of(secret: bytearray, api_key: str) -> Shape:
    """Return the shape of a secret, which must not be empty."""
    return Shape(oddity(secret), len(secret) < len(api_key))


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A whole reply, and none that ends the asking (a refusal for the limit)."""

    status: int
    body: bytes
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Others:
    """What the same read met with the other keys."""

    accepted: tuple[str, ...] = ()
    signature_refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known when a read was refused.

    `server_now_s` is epoch seconds. `clock_error_ms` is the bound that `/time` gave, None where it could not
    be read and this host's clock was signed with. `record` is what the exchange's list says of the key, None
    where it has no session; `is_listed` False where it was read and lacks the key. `is_to_trade`: bots may
    trade with it. `scheme_is_default`: nobody has set `[signing]`. `path` is what was read, by `method`.
    `venue` names the file that says how requests are signed, "" where that is for the user to find out;
    `wants` are the settings that a key there must have besides its secret. `is_served`: a read that needs no
    key was answered. `accepted_read` is another read that was accepted with this key, "" without one. `nonce`
    is the unit of its nonces, "" if they are no numbers.
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
    others: Others = field(default_factory=Others)
    venue: str = ""
    wants: tuple[str, ...] = ()
    is_served: bool = False
    accepted_read: str = ""
    nonce: str = ""


Causes = Iterator[Cause]


def causes_of(reply: WholeReply, facts: Facts) -> list[Cause]:
    """Return the causes of an error reply to a signed read, at least one."""
    verdict = reply.verdict
    if verdict.others:
        return list(_several(reply, facts))
    explain = _BY_KIND.get(verdict.kind) or _BY_MEANS.get(verdict.means)
    if explain is None and verdict.kind == "other_4xx":
        explain = _BY_STATUS.get(reply.status, _unlisted)
    return list(explain(reply, facts)) if explain else [_row(verdict)]


def _several(reply: WholeReply, facts: Facts) -> Causes:
    """Yield the causes of a reply that means one of several things.

    Nothing of it is certain, and nothing likelier than the rest, unless it was measured. If only one meaning
    is not excluded, its causes are likely: exchanges give one reply for more than their documents say.
    """
    meanings = (reply.verdict.means, *reply.verdict.others)
    excluded = {means: seen for means in meanings if (seen := _excluded(means, facts))}
    is_one = len(excluded) == len(meanings) - 1
    for means in meanings:
        for cause in _BY_MEANS[means](reply, facts):
            if means in excluded:
                yield replace(cause, weight=Weight.UNLIKELY, evidence=excluded[means])
            elif is_one:
                seen = cause.evidence or "the other meanings are excluded"
                yield replace(cause, weight=max(cause.weight, Weight.LIKELY), evidence=seen)
            elif cause.evidence:
                yield cause
            else:
                yield replace(cause, weight=min(cause.weight, Weight.POSSIBLE))
    if Means.ADDRESS in meanings and facts.is_served:
        yield Cause(Weight.UNLIKELY, "the exchange shuts this address out, whatever the key", "", _SERVED)


def _excluded(means: Means, facts: Facts) -> str:
    """Return what was seen that excludes a meaning, "" without it."""
    if means is not Means.PERMISSION and facts.accepted_read:
        return f"{facts.accepted_read} is accepted with this key"
    return ""


def _said(reply: WholeReply) -> tuple[Weight, str]:
    """Return the weight and evidence of what the exchange itself says, unless it says several things."""
    return (Weight.POSSIBLE, "") if reply.verdict.others else (Weight.PROVEN, "the exchange says so")


def _row(verdict: Verdict) -> Cause:
    if verdict.means is Means.UNKNOWN:
        fix = "look at the exchange's status page, and run it again"
        return Cause(Weight.POSSIBLE, "the exchange has a fault of its own", fix)
    return Cause(Weight.PROVEN, "its reply says why", verdict.advice, doc_link(verdict))


def _headers(_reply: WholeReply, facts: Facts) -> Causes:
    sent = f"they were sent as {facts.header_prefix}APIKEY and so on"
    fix = "set signing.header_prefix as the exchange documents it"
    if not facts.venue:
        yield Cause(Weight.LIKELY, "the headers have another name at this exchange", fix, sent)
    yield Cause(Weight.POSSIBLE, "a proxy in front of the exchange drops them", "connect without it")


def _key_unknown(_reply: WholeReply, facts: Facts) -> Causes:
    alias, record = facts.alias, facts.record
    compare = f"compare keys.{alias}.api_key with the app"
    state = None if record is None else record.state(facts.server_now_s)
    if state is KeyState.ENDED:
        yield Cause(Weight.PROVEN, "the key has expired", RENEW, "the exchange's list says so")
    elif state is KeyState.INACTIVE:
        seen = "the exchange's list says that it is inactive"
        yield Cause(Weight.PROVEN, "the key was revoked", RENEW, seen)
    if facts.shape.is_shorter:
        seen = "the secret is not longer than the API key"
        fix = f"swap keys.{alias}.api_key with what its secret points to"
        yield Cause(Weight.LIKELY, "API key and secret are swapped", fix, seen)
    if facts.is_listed is False:
        seen = "it is not in the list that its session token can read"
        yield Cause(Weight.LIKELY, "the API key is mistyped, or another user's", compare, seen)
    yield Cause(Weight.POSSIBLE, "the API key is mistyped, revoked or expired", compare)
    if facts.venue:
        where = "the key is from another environment: a test network, demo trading or a regional site"
        yield Cause(Weight.POSSIBLE, where, "compare base_url with the site where the key was made")


def _signature(reply: WholeReply, facts: Facts) -> Causes:
    yield from _stored_wrongly(facts)
    others, alias = facts.others, facts.alias
    fix = f"store the secret of this API key where keys.{alias}.secret points"
    seen = f"other keys are signed the same way and accepted: {', '.join(others.accepted)}"
    if others.signature_refused and others.accepted:
        names = ", ".join((alias, *others.signature_refused))
        yield Cause(Weight.LIKELY, f"the secrets of {names} are swapped", fix, seen)
    if others.accepted:
        yield Cause(Weight.LIKELY, _OTHER_SECRET, fix, seen)
    if facts.venue:
        yield from _known_scheme(facts, fix, reply.verdict.words.lower())
    elif others.accepted:
        yield Cause(Weight.UNLIKELY, _OTHER_SCHEME, _discover(facts), seen)
    else:
        yield from _open_scheme(facts, fix)


def _known_scheme(facts: Facts, fix: str, words: str) -> Causes:
    """Where the venue's file says how it is signed, only the key's own settings can be wrong.

    `words` are the exchange's, in small letters: if they name a setting, the secret is hardly to blame.
    """
    alias = facts.alias
    named = [name for name in facts.wants if name in words]
    if not facts.others.accepted:
        yield Cause(Weight.POSSIBLE if named else Weight.LIKELY, _OTHER_SECRET, fix)
    for name in facts.wants:
        is_named = name in named
        yield Cause(
            Weight.LIKELY if is_named else Weight.POSSIBLE,
            f"the {name} belongs to another key",
            f"compare keys.{alias}.{name} with the key's",
            "the exchange names it" if is_named else "",
        )
    if not facts.scheme_is_default:
        changed = f"remove [signing]: the file of {facts.venue} says how requests are signed"
        yield Cause(Weight.POSSIBLE, "the [signing] settings replace what the venue's file says", changed)


def _open_scheme(facts: Facts, fix: str) -> Causes:
    seen = "no key is accepted" if facts.others.signature_refused else ""
    # The defaults are what most exchanges take; a secret is copied by hand.
    scheme, secret = (Weight.LIKELY, Weight.POSSIBLE) if seen else (Weight.POSSIBLE, Weight.LIKELY)
    default = "it is at its defaults" if facts.scheme_is_default else "it was set by hand"
    either = f"{fix}; if it is the right one, find [signing] with: {_command(facts)}"
    yield Cause(secret, _OTHER_SECRET, either)
    yield Cause(scheme, _OTHER_SCHEME, _discover(facts), seen or default)
    prefix = "upstream.prefix is not what the exchange leaves out of the signature"
    yield Cause(Weight.POSSIBLE, prefix, "compare it with the exchange's documents")


def _stored_wrongly(facts: Facts) -> Causes:
    fix = f"store the secret alone where keys.{facts.alias}.secret points"
    if odd := facts.shape.oddity:
        yield Cause(Weight.LIKELY, "the secret was stored with something around it", fix, f"it {odd}")


def _discover(facts: Facts) -> str:
    return f"find it with: {_command(facts)}"


def _command(facts: Facts) -> str:
    return f"sealgate discover --key {facts.alias} --path {facts.path}"


def _timestamp(reply: WholeReply, facts: Facts) -> Causes:
    found = reply.verdict.found
    server_s = stated_time(found.get("server_time", ""))
    skew_ms = None if server_s is None else facts.timestamp_ms - round(server_s * 1000)
    granted_ms = int(found.get("recv_window", facts.recv_window_ms))
    if skew_ms is None:
        yield from _clock(facts, "")
    elif abs(skew_ms) > granted_ms:
        yield from _clock(facts, f"the timestamp was {_apart(skew_ms)} the exchange's time")
    else:
        seen = f"the timestamp was {_apart(skew_ms)} the exchange's time, the window is {granted_ms} ms"
        yield Cause(
            Weight.LIKELY, "the exchange applies a stricter window than it states", "run it again", seen
        )
    if granted_ms != facts.recv_window_ms:
        fix = f"set keys.{facts.alias}.recv_window_ms = {granted_ms}"
        seen = f"the exchange says {granted_ms} ms, the configuration {facts.recv_window_ms} ms"
        yield Cause(Weight.LIKELY, "recv_window_ms is not what the exchange grants", fix, seen)
    if facts.round_trip_ms > granted_ms:
        seen = f"the round trip took {facts.round_trip_ms} ms"
        yield Cause(
            Weight.LIKELY, "the connection to the exchange is too slow", "use a machine nearer to it", seen
        )


def _clock(facts: Facts, seen: str) -> Causes:
    if facts.clock_error_ms is None:
        fix = "make clock.path answer, or set this machine's clock (NTP)"
        weight = Weight.PROVEN if seen else Weight.LIKELY
        yield Cause(weight, "this machine's clock is wrong, and /time could not be read", fix, seen)
    else:
        fix = "correct clock.path and clock.field: they lead to a different time"
        bound = f"/time was read to ±{facts.clock_error_ms} ms"
        told = "; ".join(filter(None, (seen, bound)))
        yield Cause(Weight.LIKELY, "/time is not the clock that the exchange checks by", fix, told)


def _apart(skew_ms: int) -> str:
    return f"{abs(skew_ms) / 1000:.1f} s {'ahead of' if skew_ms > 0 else 'behind'}"


def _permission(reply: WholeReply, facts: Facts) -> Causes:
    weight, seen = _said(reply)
    name = reply.verdict.found.get("permission")
    text = f"the key has no {name} permission" if name else "the key lacks the permission for this request"
    which = f"the {name} permission in the app" if name else f"the permission for {facts.method} {facts.path}"
    yield Cause(weight, text, f"give the key {which}, or configure another key as keys.{facts.alias}", seen)


def _address(reply: WholeReply, _facts: Facts) -> Causes:
    weight, seen = _said(reply)
    stated = reply.verdict.found.get("address")
    address = stated or "this machine's public address"
    text = f"the key's whitelist lacks {address}{', which the exchange saw' if stated else ''}"
    yield Cause(weight, text, f"add {address} to the key's whitelist in the app", seen)
    if ":" in address:
        fix = "add it, or let this machine reach the exchange by IPv4 alone"
        yield Cause(Weight.POSSIBLE, "the whitelist has IPv4 addresses only", fix, f"{address} is IPv6")


def _other_user(_reply: WholeReply, _facts: Facts) -> Causes:
    fix = "name the address of the key's own user in --path"
    yield Cause(Weight.PROVEN, "the path names another user's address", fix, "the exchange says so")


def _stranger(reply: WholeReply, _facts: Facts) -> Causes:
    seen = (
        ""
        if reply.body.lstrip().startswith(b"{")
        else "the reply is not JSON, so it is not from the exchange itself"
    )
    fix = f"look at the reply; {ASK_WHETHER_SERVED}"
    yield Cause(Weight.LIKELY, "a firewall in front of the exchange refuses this machine", fix, seen)


def _nowhere(_reply: WholeReply, _facts: Facts) -> Causes:
    fix = "correct upstream.prefix and base_url, or name a path that exists with --path"
    yield Cause(Weight.LIKELY, "there is no such path: the prefix is wrong", fix)


def _unlisted(_reply: WholeReply, _facts: Facts) -> Causes:
    cause = "the venue's file has no rule for this error, or base_url is another server's"
    yield Cause(Weight.POSSIBLE, cause, "compare base_url with the exchange's documents")


def _nonce(_reply: WholeReply, facts: Facts) -> Causes:
    """Explain a nonce that is too low although it is the present time."""
    if larger := _LARGER_UNITS.get(facts.nonce):
        copy = f"a copy of the venue's file (sealgate venues show {facts.venue} > mine.toml)"
        units = " or ".join(f'"{unit}"' for unit in larger)
        names = " or ".join(map(_UNITS.__getitem__, larger))
        yield Cause(
            Weight.LIKELY,
            f"an earlier program used larger nonces with this key: {names}",
            f"make a new key, or set nonce = {units} in {copy}",
            f"the present time in {_UNITS[facts.nonce]} is too low",
        )
    yield Cause(
        Weight.POSSIBLE,
        "another program uses the key, or did so with a clock that was ahead",
        "give each program a key of its own",
    )


def _country(_reply: WholeReply, _facts: Facts) -> Causes:
    yield Cause(Weight.LIKELY, _NOT_SERVED_EITHER, ASK_WHETHER_SERVED)


_BY_MEANS: dict[Means, Callable[[WholeReply, Facts], Causes]] = {
    Means.TIMESTAMP: _timestamp,
    Means.NONCE: _nonce,
    Means.SIGNATURE: _signature,
    Means.KEY: _key_unknown,
    Means.ADDRESS: _address,
    Means.PERMISSION: _permission,
    Means.COUNTRY: _country,
    Means.FIREWALL: _stranger,
}
_BY_KIND: dict[str, Callable[[WholeReply, Facts], Causes]] = {
    "headers_missing": _headers,
    "address_mismatch": _other_user,
}
_BY_STATUS: dict[int, Callable[[WholeReply, Facts], Causes]] = {403: _stranger, 404: _nowhere}
