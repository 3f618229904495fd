"""Admission: which bot sends a request, and whether the rules allow it, before the body is read.

`Admission.admit` is the entrance. Each rule is one function that returns or raises a Refusal, in this order:
`authenticate` (`check_head`, then `identify`) and `authorise`. All decisions use the raw target and headers
as they arrived, which are also signed and sent. Whether an admitted request may be sent at this moment is
decided in standing.py.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sealgate.errors import Refusal
from sealgate.http.head_memory import HeadMemory
from sealgate.http.headers import Head, HeaderRules
from sealgate.http.parser import RequestHead
from sealgate.http.target import Target, host_name, parse_target, reached_by_proxy
from sealgate.keys.bot import Bot
from sealgate.limits.claims import LONGEST_DEADLINE_MS
from sealgate.orders.idempotency import parse_key
from sealgate.orders.outcome import Outcome
from sealgate.orders.policy import Checks, Guard, PolicyMemory, is_judged
from sealgate.orders.prices import Prices
from sealgate.orders.validity import parse_valid_ms
from sealgate.venues.order_terms import OrderShape, UnreadableError, read_orders
from sealgate.venues.routes import METHODS, Auth, Permission, Route, RouteTable
from sealgate.venues.streams import plain_host

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Version, trace, span, flags, and additions of later versions. All zeros are not an id.
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_EXCHANGE = re.compile("[a-z0-9][a-z0-9_-]{0,31}", re.IGNORECASE)
_DEADLINE = re.compile(r"[0-9]{1,9}")
_LENGTH = re.compile(r"[0-9]{1,15}")
_LONGEST_NAME = 253  # characters; the maximum of DNS
_LONGEST_PART = 15  # of a name that is repeated: a longer one may be a token in the wrong field
_HTTP_1 = ((1, 0), (1, 1))
_MOST_REMEMBERED_BYTES = 4 * 1024  # of a head
_MOST_REMEMBERED = 256  # tickets
_NEVER_AGAIN = frozenset({b"idempotency-key", b"traceparent"})  # a head with such a field does not recur
_NO_UPGRADE = "This is the path of a stream; the request lacks the headers of an upgrade to a WebSocket."
# They do not affect admission.
_OF_ONE_REQUEST = (b"idempotency-key", b"traceparent", b"x-gateway-request-id")
_TOKEN = b"x-gateway-token"  # for clients that set Authorization themselves
PROOFS = frozenset({b"authorization", _TOKEN})  # the headers that can carry a bot's token


class Peer(NamedTuple):
    """The identity of a connection's client: a Unix socket's user, or the name in a verified certificate.

    Both are None for TCP without client certificates; the name is "" if the certificate has none. `own` is
    the bot whose own address was reached, and that address as the settings write it.
    """

    uid: int | None = None
    name: str | None = None
    own: tuple[str, str] | None = None


_ANYBODY = Peer()


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules of admission, made once from the configuration.

    `hosts` are lower-case. `bots` maps the SHA-256 of a token to its bot, `users` a uid, `named` a name,
    `own` a name and this bot's own address. Without bots every client is `local`; on the Unix socket only
    `local_users` are (None: everybody admitted by its mode). `guards` are the policies by bot; `prices` learn
    from replies for them, None: not needed. `stream_hosts` begin the paths of streams.
    """

    prefix: str
    hosts: frozenset[str]
    bots: Mapping[bytes, Bot]
    local: Bot | None
    routes: RouteTable
    headers: HeaderRules
    max_body: int
    body_timeout_s: float = 10.0
    users: Mapping[int, Bot] = field(default_factory=dict)
    named: Mapping[str, Bot] = field(default_factory=dict)
    own: Mapping[tuple[str, str], Bot] = field(default_factory=dict)
    local_users: frozenset[int] | None = None
    policies: PolicyMemory = field(default_factory=PolicyMemory)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    prices: Prices | None = None
    stream_hosts: frozenset[str] = frozenset()

    def bot_named(self, name: str) -> Bot | None:
        """Return the bot with this name, or None."""
        is_local = self.local is not None and self.local.name == name
        return self.local if is_local else self.named.get(name)


@dataclass(slots=True, eq=False)
class Ticket:
    """An admitted request: everything that the rest of the pipeline needs, except the body. Never changed.

    `is_read`: sending it twice does no harm. `checks` are None for most requests.
    """

    bot: Bot
    key: str
    route: Route
    method: str
    target: Target
    head: Head
    deadline_s: float | None
    checks: Checks | None = None
    is_read: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_read = self.route.is_read


# Everything that admission depends on besides the rules: method, target, version, peer, relevant headers.
Asked = tuple[str, str, tuple[int, int], Peer, tuple[tuple[bytes, bytes], ...]]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """The result for a head: the admission, the peer, and the ticket."""

    by: "Admission"
    peer: Peer
    request_id: str | None
    ticket: Ticket


class Admission:
    """Admits requests by one set of rules, and remembers their tickets; refusals are never remembered.

    1. A head that recurs byte for byte, from the same peer, has its ticket in its `memo`: `heads` are those
       that the parser remembers. At an exchange's own listener, its target differs.
    2. A head that differs from an earlier one only in its Idempotency-Key, its id, or headers that are only
       passed on, gets the earlier ticket, with its own head.
    3. All others are judged by the rules.

    Both memories contain tokens.
    """

    def __init__(self, rules: Rules, heads: HeadMemory[RequestHead] | None = None) -> None:
        self.rules = rules
        self.heads = HeadMemory[RequestHead]() if heads is None else heads
        self._tickets: dict[Asked, Ticket] = {}  # the oldest first

    def admit(
        self, head: RequestHead, target: str, peer: Peer, own_url: Callable[[], str], record: Outcome
    ) -> Ticket:
        """Return the ticket of a request, and note its bot in the record. Raises Refusal.

        `target` is the exchange's: that of the head, without the exchange's name. `own_url` returns the
        gateway's own address as the client reached it.
        """
        memo = head.memo
        if (
            isinstance(memo, _Admitted)
            and memo.by is self
            and memo.peer == peer
            and memo.ticket.target.raw == target
        ):
            record.request_id = memo.request_id or record.request_id
            record.bot = memo.ticket.bot.name
            return memo.ticket
        fields = self.rules.headers.sort(head.fields)
        own_id = request_id(fields)
        record.request_id = own_id or record.request_id
        record.trace_id = trace_id(fields)
        asked = asked_by(fields, head.method, target, head.version, peer)
        ticket = self._recall(asked, fields)
        if ticket is None:
            bot = self._bot_of(head, fields, peer, own_url, record)
            ticket = authorise(bot, head.method, target, fields, self.rules)
            self._keep(asked, ticket)
        record.bot = ticket.bot.name
        if fields.kept.keys().isdisjoint(_NEVER_AGAIN):
            head.memo = _Admitted(self, peer, own_id, ticket)
            self.heads.put(head)
        return ticket

    def identify(
        self, head: RequestHead, peer: Peer, own_url: Callable[[], str], record: Outcome
    ) -> tuple[Bot, Head]:
        """Return bot and headers of something other than a plain request; note the bot as `admit` does."""
        fields = self.rules.headers.sort(head.fields)
        record.request_id = request_id(fields) or record.request_id
        record.trace_id = trace_id(fields)
        return self._bot_of(head, fields, peer, own_url, record), fields

    def _bot_of(
        self, head: RequestHead, fields: Head, peer: Peer, own_url: Callable[[], str], record: Outcome
    ) -> Bot:
        if (exchange := reached_by_proxy(head.method, head.target)) is not None:
            raise not_a_proxy(head.method, exchange, own_url())
        bot = authenticate(fields, head.method, head.version, self.rules, peer)
        record.bot = bot.name
        return bot

    def _recall(self, asked: Asked, head: Head) -> Ticket | None:
        """Return the ticket of an earlier, similar request, with this request's own head.

        Raises Refusal `bad_request` for an invalid Idempotency-Key.
        """
        known = self._tickets.get(asked)
        if known is None:
            return None
        if (key := head.text(b"idempotency-key")) is not None:
            parse_key(key)
        return Ticket(
            known.bot,
            known.key,
            known.route,
            known.method,
            known.target,
            head,
            known.deadline_s,
            known.checks,
        )

    def _keep(self, asked: Asked, ticket: Ticket) -> None:
        """Remember a ticket, unless its head is large: large heads are rare, and would cost memory."""
        if ticket.head.size > _MOST_REMEMBERED_BYTES:
            return
        self._tickets[asked] = ticket
        if len(self._tickets) > _MOST_REMEMBERED:
            del self._tickets[next(iter(self._tickets))]

    def forget(self) -> None:
        """Forget all tickets: a reload has replaced these rules."""
        self._tickets.clear()


def asked_by(head: Head, method: str, target: str, version: tuple[int, int], peer: Peer) -> Asked:
    """Return the parts of a request on which its admission depends."""
    fields = head.kept.copy()
    for name in _OF_ONE_REQUEST:
        fields.pop(name, None)
    if _TOKEN in fields:  # then Authorization is for the exchange, and often differs each time
        fields.pop(b"authorization", None)
    return method, target, version, peer, tuple(fields.items())


def request_id(head: Head) -> str | None:
    """Return the bot's own id for the request, None if it sent none that is usable."""
    text = head.text(b"x-gateway-request-id")
    return text if text is not None and _REQUEST_ID.fullmatch(text) else None


def trace_id(head: Head) -> str | None:
    """Return the id of the request's trace (W3C Trace Context), or None."""
    named = _TRACE.fullmatch(head.text(b"traceparent") or "")
    return named[1] if named else None


def not_a_proxy(method: str, exchange: str, gateway: str) -> Refusal:
    """Return the refusal for a client that uses the gateway as its proxy, regardless of Host and token.

    `exchange` is the address that it requests (`reached_by_proxy`), `gateway` the one that it reached.
    """
    is_named = bool(exchange) and _may_be_named(host_name(exchange.partition("://")[2]))
    instead = f" instead of {exchange}" if is_named and exchange != gateway else ""
    return Refusal(
        "method_refused" if method == "CONNECT" else "ambiguous_target",
        "The client uses the gateway as a proxy. Remove its proxy setting (proxyUrl, httpProxy, httpsProxy, "
        f"HTTP_PROXY or HTTPS_PROXY), and set its base URL to {gateway}{instead}.",
        advice="The gateway can only sign requests that are sent to itself.",
        phrase=f"Not a proxy: set the base URL to {gateway}",
    )


def authenticate(
    head: Head, method: str, version: tuple[int, int], rules: Rules, peer: Peer = _ANYBODY
) -> Bot:
    """Return the bot that sent a head. Raises Refusal if no bot may send it, or no bot has its token."""
    check_head(head, method, version, rules)
    return identify(head, rules, peer)


def check_head(head: Head, method: str, version: tuple[int, int], rules: Rules) -> None:
    """Refuse a head that no bot may send."""
    if b"host" not in head.kept:
        raise Refusal("bad_request", "The Host header is missing.")
    for name, check in _CHECKS.items():
        value = head.kept.get(name)
        if value is not None and not (name == b"origin" and _is_own_address(value, head)):
            check(value.decode("latin-1"), rules)
    if version not in _HTTP_1:
        raise Refusal("bad_request", "This gateway speaks only HTTP/1.1 and HTTP/1.0.")
    if method not in METHODS:
        raise Refusal("method_refused", "This method is not forwarded.")


def _check_host(value: str, rules: Rules) -> None:
    """Refuse a rebinding web page, which sends its own name in Host (RFC 9110 section 7.4).

    The name is repeated as parsed by `host_name`: letters, digits, and marks that are harmless in logs and
    terminals.
    """
    name = host_name(value)
    if name not in rules.hosts:
        told = f": {name}" if _may_be_named(name) else ""
        raise Refusal("host_refused", f"The Host header has a name that is not in listen.hosts{told}.")


def _may_be_named(name: str) -> bool:
    parts = name.replace(":", ".").split(".")
    return 0 < len(name) <= _LONGEST_NAME and max(map(len, parts)) <= _LONGEST_PART


def _refuse_browser(_: str, __: Rules) -> None:
    """Refuse a web page: programs do not send these headers, and pages cannot avoid them."""
    raise Refusal("browser_refused", "The request comes from a web page (Origin, Referer or Sec-Fetch-Site).")


def _is_own_address(origin: bytes, head: Head) -> bool:
    """Whether an Origin is the address of the WebSocket, as in Host: some programs send that.

    No page can have this origin, because these addresses serve no pages.
    """
    if head.kept.get(b"upgrade", b"").lower() != b"websocket":
        return False
    return origin in (b"http://" + head.kept[b"host"], b"https://" + head.kept[b"host"])


def _check_referer(value: str, rules: Rules) -> None:
    """Refuse a URL, which web pages send; some programs send their name instead (`CCXT`)."""
    if not value or ":" in value or "/" in value:
        _refuse_browser(value, rules)


def _check_expectation(value: str, _: Rules) -> None:
    if value.lower() != "100-continue":
        raise Refusal("expectation_refused", "The Expect header has an unsupported value.")


def _check_coding(value: str, _: Rules) -> None:
    """RFC 9112 section 6.1: an unknown coding before a final chunked is 501; section 6.3: all else, 400."""
    *before, last = (coding.strip().lower() for coding in value.split(","))
    if last != "chunked" or "chunked" in before or "" in before:
        raise Refusal("bad_request", "Transfer-Encoding does not define the end of the body.")
    if before:
        raise Refusal("coding_refused", "The only transfer coding supported is chunked.")


def _check_length(value: str, rules: Rules) -> None:
    if not _LENGTH.fullmatch(value):
        raise Refusal("bad_request", "Content-Length is not a number.")
    if int(value) > rules.max_body:
        raise Refusal("body_too_large", f"The body is larger than listen.max_body ({rules.max_body} bytes).")


# By header, in the order in which they are checked.
_CHECKS: dict[bytes, Callable[[str, Rules], object]] = {
    b"host": _check_host,
    b"origin": _refuse_browser,
    b"referer": _check_referer,
    b"sec-fetch-site": _refuse_browser,
    b"expect": _check_expectation,
    b"transfer-encoding": _check_coding,
    b"content-length": _check_length,
    b"idempotency-key": lambda value, _: parse_key(value),
}


def identify(head: Head, rules: Rules, peer: Peer = _ANYBODY) -> Bot:
    """Return the bot that sent a head. Raises Refusal `bot_unauthenticated`.

    A token that is sent must be valid, even if the peer's user, certificate or address would be enough; and
    it must belong to the bot of the certificate, or of the address.
    """
    owner = None if peer.own is None else rules.own.get(peer.own)
    if peer.own is not None and owner is None:  # a reload removed the bot's address
        raise Refusal("bot_unauthenticated", f"This address no longer belongs to the bot {peer.own[0]}.")
    if rules.local is not None:
        may_be_local = peer.uid is None or rules.local_users is None or peer.uid in rules.local_users
        bot = rules.local if may_be_local else None
        missing = "Only the gateway's own user and root may use this socket."
    elif (sent := credentials(head)) is not None:
        return _by_token(*sent, rules, peer)
    elif peer.name is not None:
        bot, missing = rules.named.get(peer.name), "No bot has the name in the client certificate."
    elif owner is not None:
        return owner
    else:
        bot = None if peer.uid is None else rules.users.get(peer.uid)
        missing = "No token was sent, and nothing else identifies the bot."
    if bot is None:
        raise Refusal("bot_unauthenticated", missing)
    return bot


def _by_token(name: str | None, token: bytes, rules: Rules, peer: Peer) -> Bot:
    """Return the bot with this token, found by its digest, so that the time reveals nothing about tokens.

    No refusal helps in guessing: it mentions a name only if the token is valid, and says that a token is
    valid only to a peer that could use it. With a certificate, or at a bot's own address, it must be that
    bot's.
    """
    bot = rules.bots.get(hashlib.sha256(token).digest())
    if peer.name is not None and (bot is None or bot.name != peer.name):
        raise Refusal(
            "bot_unauthenticated", "The token does not belong to the bot in the client certificate."
        )
    if peer.own is not None and (bot is None or bot.name != peer.own[0]):
        raise Refusal(
            "bot_unauthenticated", "The token does not belong to the bot of this address; remove it."
        )
    if bot is None:
        raise Refusal("bot_unauthenticated", "No bot has this token.")
    if name not in (None, bot.name):
        raise Refusal(
            "bot_unauthenticated",
            "The token is valid, but the name before it is another bot's: correct it, or send Bearer TOKEN.",
        )
    return bot


def credentials(head: Head) -> tuple[str | None, bytes] | None:
    """Return (name or None, token), or None without either header. Raises Refusal for a header without token.

    X-Gateway-Token beats Authorization: a client that sends both signs with Authorization itself.
    """
    name: str | None = None
    if (own := head.kept.get(_TOKEN)) is not None:
        token, told = own.strip(), "The X-Gateway-Token header is empty."
    elif (authorization := head.text(b"authorization")) is not None:
        name, token = _bearer_or_basic(authorization)
        told = "The Authorization header has no token: send Bearer TOKEN, or Basic with NAME:TOKEN."
    else:
        return None
    if not token:
        raise Refusal("bot_unauthenticated", told)
    return name, token


def _bearer_or_basic(authorization: str) -> tuple[str | None, bytes]:
    """Return (name or None, token) of a Bearer or Basic header (RFC 6750, RFC 7617)."""
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return None, value.encode("latin-1")
    if scheme.lower() != "basic":
        return None, b""
    try:
        name, _, token = base64.b64decode(value, validate=True).partition(b":")
    except ValueError:
        return None, b""
    return name.decode("latin-1"), token


def authorise(bot: Bot, method: str, raw_target: str, head: Head, rules: Rules) -> Ticket:
    """Return the ticket of a bot's request. Raises Refusal if it may not use the target, route or key."""
    if not bot.keys:
        raise unknown_exchange(bot)
    # The path of a stream may be secret: it is neither shown nor sent like that of a request.
    is_streams = plain_host(re.split("[/?]", raw_target[1:], maxsplit=1)[0]) in rules.stream_hosts
    if is_streams and rules.prefix:
        raise Refusal("upgrade_refused", _NO_UPGRADE)
    target = parse_target(raw_target, rules.prefix)
    route = rules.routes.find(method, target.path[len(rules.prefix) :])
    if is_streams and not route.is_named:
        raise Refusal("upgrade_refused", _NO_UPGRADE)
    if route.auth is Auth.APP_ONLY:
        raise Refusal("app_only", "The exchange allows this call only in its mobile app.")
    is_missing = route.needs not in bot.may
    trade_if = route.trade_if if is_missing and Permission.TRADE in bot.may else None
    if is_missing and trade_if is None:
        raise Refusal("bot_forbidden", _lacks(bot, method, target, route))
    checks = _checks(bot, route, head, rules, trade_if)
    return Ticket(bot, choose_key(bot, head), route, method, target, head, _deadline_s(head), checks)


def unknown_exchange(bot: Bot, name: str = "") -> Refusal:
    """Return the refusal of a request that does not name an exchange for which its bot has a key.

    `name` is the text in its place; it is repeated if it could be a name.
    """
    names = " or ".join(f"/{one}/" for one in bot.exchanges)
    sent = f", not with /{name}/" if _EXCHANGE.fullmatch(name) else ""
    detail = f"The path of a request of the bot {bot.name} begins with {names}{sent}."
    return Refusal("unknown_exchange", detail, members={"exchanges": list(bot.exchanges)})


def _lacks(bot: Bot, method: str, target: Target, route: Route) -> str:
    may = " and ".join(one.value for one in Permission if one in bot.may)
    detail = f"{method} {target.shown} needs {route.needs.value}, and the bot {bot.name} may only {may}."
    is_doubtful = not route.is_named and route.needs is Permission.TRADE
    return f"{detail} If this call only reads, declare it in [[routes]]." if is_doubtful else detail


def check_body(ticket: Ticket, trade_if: OrderShape, body: bytes) -> None:
    """Refuse a request whose body needs `keys`, or may at some server, from a bot with only `trade`."""
    try:
        read_orders(trade_if, ticket.target.query, body, ticket.head)
    except UnreadableError:
        raise Refusal(
            "bot_forbidden",
            f"{ticket.method} {ticket.target.shown} needs keys, and the bot {ticket.bot.name} may not: it "
            "needs only trade where its body says what the venue's file names in trade_if.",
        ) from None


def _checks(bot: Bot, route: Route, head: Head, rules: Rules, trade_if: OrderShape | None) -> Checks | None:
    """Return the extra checks that this request needs, None if it needs none."""
    guard = rules.guards.get(bot.name) if is_judged(route) else None
    prices = rules.prices if route.prices is not None and route.is_read else None
    valid = head.text(b"x-gateway-valid-ms") if is_judged(route) else None
    if guard is None and prices is None and valid is None and trade_if is None:
        return None
    return Checks(guard, prices, 0 if valid is None else parse_valid_ms(valid), trade_if)


def choose_key(bot: Bot, head: Head) -> str:
    """Return the alias of the API key to use for a request. Raises Refusal `bot_forbidden`."""
    alias = head.text(b"x-gateway-key")
    if alias is None:
        return bot.keys[0]
    if alias not in bot.keys:
        raise Refusal(
            "bot_forbidden",
            f"X-Gateway-Key names none of the keys that the bot {bot.name} has here ({', '.join(bot.keys)}).",
            advice="Name one of these, or remove the header.",
        )
    return alias


def _deadline_s(head: Head) -> float | None:
    text = head.text(b"x-gateway-deadline-ms")
    if text is None:
        return None
    if not _DEADLINE.fullmatch(text):
        raise Refusal("bad_request", "X-Gateway-Deadline-Ms is not a number of milliseconds.")
    return min(int(text), LONGEST_DEADLINE_MS) / 1000
