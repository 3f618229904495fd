"""What a venue's reply means: its rules make one verdict of the status and of one value of a short body."""

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from sealgate.errors import REASONS
from sealgate.http.headers import CODINGS
from sealgate.machine.nearest import did_you_mean
from sealgate.venues.document import FIELD_NAME, POINTER, Table, pick_each

# Each look-up of a member of http.HTTPStatus takes Python 3.11 some 130 ns, and these are compared often.
OK = 200
MULTIPLE_CHOICES = 300
BAD_REQUEST = 400
FORBIDDEN = 403
TOO_MANY_REQUESTS = 429
UNAVAILABLE_FOR_LEGAL_REASONS = 451  # RFC 7725
INTERNAL_SERVER_ERROR = 500
BODILESS = frozenset({204, 304})  # whose head is the whole reply

# Bytes: what an error may take. A reply that says "done" by its status is looked into only where it is as
# short as errors are, since what is longer is data.
LONGEST_ERROR, LONGEST_DONE = 65_536, 4_096
_MOST_WORDS = 500  # letters of the exchange's words that are kept for people

# What an exchange says of an order that it lost sight of, whatever code it gives that.
_TIMED_OUT = re.compile(
    r"timed out|time-?out (waiting|from)|(backend|connection|creation|engine|gateway|network) time-?out\b"
    r"|(order|request|response|server|service|system) time-?out\b",
    re.IGNORECASE,
)
# What a 403 says if the exchange, or the network in front of it, does not serve the sender's country. Seen in
# replies of Amazon CloudFront, Cloudflare (its error 1009), Binance and KuCoin (2026-11).
_COUNTRY = re.compile(
    r"access from your country|banned the country or region|error code: 1009\b"
    r"|restricted (country|jurisdiction|location|region)"
    r"|(un)?(available|served|supported)\b[^.<>]{0,40}\b(your|this) (country|jurisdiction|location|region)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r'<[^<>]*>|[\n"]|(?<=[.!])\s')
_SLUG = re.compile(r"[a-z][a-z0-9_]{0,47}")
_TESTS = ("is", "not", "begins", "contains")
_HTML = (b"<!doctype html", b"<html", b"<head", b"<body")
_WAITS = ("wait_s", "wait", "scope", "pool")
REPLY_KEYS = ("status", "body", "at", *_TESTS, "finds", *_WAITS, "means", "or", "kind", "whose", "advice")
_FINDABLE = ("server_time", "recv_window", "address", "permission", "until")
_NOTHING: Mapping[str, str] = MappingProxyType({})
# How a header states a moment: as a time of the epoch, or as how far away it is.
MOMENTS = ("epoch_s", "epoch_ms", "in_s", "in_ms")
_WAIT = re.compile(rf"header ({FIELD_NAME.pattern}) as ({'|'.join(MOMENTS)})")


class Scope(StrEnum):
    """What an exchange counts together under one limit, or shuts out together."""

    KEY = "key"
    ACCOUNT = "account"
    ADDRESS = "address"


class Means(StrEnum):
    """What the gateway may conclude of a reply."""

    DONE = "done"
    REFUSED = "refused"
    LIMITED = "limited"
    BANNED = "banned"
    TIMESTAMP = "timestamp"
    NONCE = "nonce"
    SIGNATURE = "signature"
    KEY = "key"
    ADDRESS = "address"
    PERMISSION = "permission"
    COUNTRY = "country"
    FIREWALL = "firewall"
    UNKNOWN = "unknown"


class Whose(StrEnum):
    """Where to look first."""

    BOT = "bot"  # what it asked for
    SETUP = "setup"  # key, secret, clock, signing settings
    UPSTREAM = "upstream"  # the exchange, and the way to it


_WHOSE = {
    Means.DONE: Whose.UPSTREAM,
    Means.REFUSED: Whose.BOT,
    Means.LIMITED: Whose.UPSTREAM,
    Means.BANNED: Whose.UPSTREAM,
    Means.COUNTRY: Whose.UPSTREAM,
    Means.FIREWALL: Whose.UPSTREAM,
    Means.UNKNOWN: Whose.UPSTREAM,
}
_ADVICE = {
    Means.DONE: "",
    Means.REFUSED: "Read the reply: it says what the exchange refuses.",
    Means.LIMITED: "Nothing to do: requests pause, then continue below the learned limit.",
    Means.BANNED: "The exchange has blocked this IP address or key for a while. The gateway waits.",
    Means.TIMESTAMP: "The gateway corrects its clock and resends it. If it persists, check `recv_window_ms`.",
    Means.NONCE: "The gateway resends it with a higher nonce. If it persists, another program uses the key.",
    Means.SIGNATURE: "Check that the secret, and the passphrase if there is one, belong to this key.",
    Means.KEY: "Compare `api_key` with the exchange's list: it may be mistyped, revoked or expired.",
    Means.ADDRESS: "Add this machine's public IP address to the key's whitelist at the exchange.",
    Means.PERMISSION: "Give the key this permission at the exchange, or use another key.",
    Means.FIREWALL: "A firewall refused this request or this IP address. This bot pauses on this path.",
    Means.COUNTRY: "Ask the exchange whether it serves your country and network; waiting does not help.",
    Means.UNKNOWN: "Look an order up before you send it again: it may have executed.",
}


# The meanings that one reply may leave open, and what each of them would be.
_OPEN = {
    Means.SIGNATURE: "the secret or passphrase does not belong to the key",
    Means.KEY: "the API key is mistyped, revoked, expired or from another environment",
    Means.ADDRESS: "this machine's IP address is not on the key's whitelist",
    Means.PERMISSION: "the key lacks a permission",
    Means.COUNTRY: "the exchange does not serve this IP address",
}


@dataclass(frozen=True, slots=True)
class WaitRule:
    """How long to wait after a refusal for the limit, where it is not said in the usual way.

    `header` (in lower case, "" for none) states the end as `moment` says, one of MOMENTS. `documented_s` is
    the wait that the exchange's documents ask for; it counts if the reply states none. `scope` is what is
    refused with the request, None for whatever the limit counts together. `pools` are those that may have
    refused; those that the request did not pass are not meant, and if none is left, each one is.
    """

    header: str = ""
    moment: str = ""
    documented_s: float | None = None
    scope: Scope | None = None
    pools: tuple[str, ...] = ()


NO_WAIT_RULE = WaitRule()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reply means, for all who ask. `kind` is "" where nothing is wrong.

    `found`: see `finds`. `words` are the exchange's own, "" where it has none; they are for people.
    `topic` is the anchor in docs/errors.md. `others` are what else such a reply can mean: the gateway goes by
    `means`, but people must look at all of them.
    `is_limited`: the exchange refused it for its limit, and nothing is sent for a while.
    """

    means: Means
    kind: str
    whose: Whose
    advice: str
    found: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    words: str = ""
    topic: str = ""
    wait: WaitRule = NO_WAIT_RULE
    others: tuple[Means, ...] = ()
    is_limited: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_limited", self.means in {Means.LIMITED, Means.BANNED})

    def shuts_out(self, scope: Scope) -> Scope | None:
        """Return of whom everything is refused with the request, None where it is only what its pools count.

        A ban that names neither a pool nor whom it is for is for all of that `scope`.
        """
        if self.wait.scope is not None:
            return self.wait.scope
        return scope if self.means is Means.BANNED and not self.wait.pools else None


# By names of their own: Python 3.11 takes 130 ns longer for the member of an enumeration.
_MEANS_DONE, _MEANS_UNKNOWN, _MEANS_COUNTRY = Means.DONE, Means.UNKNOWN, Means.COUNTRY


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: statuses (none: any), the field that it looks at ("": none), and what that must be."""

    statuses: tuple[int, ...]
    at: str
    exact: frozenset[str]
    begins: tuple[str, ...]
    contains: tuple[str, ...]
    others: frozenset[str]  # anything but these
    finds: tuple[tuple[str, "re.Pattern[str]"], ...]
    means: Means
    verdict: Verdict
    is_html: bool = False  # only of a page for people

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.verdict.kind or self.means

    def is_for(self, status: int) -> bool:
        """Ask whether a reply with this status is looked at.

        A rule without statuses takes nothing back that a status says: what failed on the way there (5xx) was
        not refused, and what is an error was not done.
        """
        if self.statuses:
            return status in self.statuses
        if self.means is _MEANS_DONE:
            return status < MULTIPLE_CHOICES
        return self.means is _MEANS_UNKNOWN or status < INTERNAL_SERVER_ERROR

    def match(self, texts: Sequence[str]) -> str | None:
        """Return the first of the field's texts that is what the rule wants, None without one.

        Of several orders in one reply, one in doubt is enough; all else must hold for each of them.
        """
        if not self.at:
            return ""
        wanted = [text for text in texts if self.is_wanted(text)]
        if len(wanted) < len(texts) and self.means is not _MEANS_UNKNOWN:
            return None
        return wanted[0] if wanted else None

    def is_wanted(self, text: str) -> bool:
        """Ask whether a text is what the rule wants."""
        if self.others:
            return text not in self.others
        if text in self.exact:
            return True
        low = text.lower()
        return low.startswith(self.begins) or any(word in low for word in self.contains)


def read_rules(tables: Iterable[Table], pools: Sequence[str]) -> tuple[Rule, ...]:
    """Read `[[replies]]`, whose rules may name one of `pools`. Raises VenueError."""
    rules: list[Rule] = []
    of_file: dict[str, list[Rule]] = {}  # a file may well decide otherwise than the one that it is like
    for table in tables:
        rule = _rule(table, pools)
        own = of_file.setdefault(table.file, [])
        _check_reached(rule, own, table)
        own.append(rule)
        rules.append(rule)
    return tuple(rules)


def _check_reached(rule: Rule, earlier: list[Rule], table: Table) -> None:
    """Refuse what an earlier rule leaves nothing for: most likely a code that was mistyped, or moved."""
    for before in earlier:
        if before.statuses and (not rule.statuses or set(rule.statuses) - set(before.statuses)):
            continue
        if not before.at and (rule.is_html or not before.is_html):
            raise table.error(
                "status", f"never matches: the rule {before.name} before it takes all these replies"
            )
        taken = sorted(filter(before.is_wanted, rule.exact)) if before.at == rule.at else []
        if taken:
            raise table.error(
                "is", f"{taken[0]!r} never matches: the rule {before.name} before it has it already"
            )


def _rule(table: Table, pools: Sequence[str]) -> Rule:
    is_html = table.text("body", "", ("", "html")) == "html"
    at = table.checked("at", POINTER, "a JSON pointer such as /code", "")
    exact, others = table.texts("is"), table.texts("not")
    begins, contains = table.texts("begins"), table.texts("contains")
    tests = [key for key in _TESTS if table.data.get(key)]
    if bool(at) != bool(tests):
        raise table.error(
            tests[0] if tests else "at", "at needs is, not, begins or contains, and these need at"
        )
    if others and len(tests) > 1:
        raise table.error(
            "not", "not cannot be combined with is, begins or contains; use an earlier rule for those"
        )
    means = Means(table.text("means", Means.REFUSED, list(Means)))
    finds = table.table("finds", _FINDABLE)
    statuses = table.integers("status")
    if not statuses and not at:
        raise table.error(None, "a rule needs status, or at")
    kind = table.checked("kind", _SLUG, "a slug such as rate_limited", "" if means is Means.DONE else None)
    if kind in _OWN_KINDS:
        raise table.error("kind", f"kind = {kind!r} is one of the gateway's own kinds; choose another name")
    whose = Whose(table.text("whose", _WHOSE.get(means, Whose.SETUP), list(Whose)))
    also = _also(table, means)
    advice = table.text("advice", _one_of(means, *also) if also else _ADVICE[means])
    return Rule(
        statuses,
        at,
        frozenset(exact),
        tuple(word.lower() for word in begins),
        tuple(word.lower() for word in contains),
        frozenset(others),
        tuple((name, finds.pattern(name)) for name in finds.data),
        means,
        # docs/errors.md has each kind of the built-in files; a user's file may have kinds of its own.
        Verdict(
            means,
            kind,
            whose,
            advice,
            topic=kind if table.is_built_in else means,
            wait=_wait_rule(table, means, pools),
            others=also,
        ),
        is_html,
    )


def _also(table: Table, means: Means) -> tuple[Means, ...]:
    texts = table.texts("or")
    if texts and not (set(texts) <= _OPEN.keys() - {means} and means in _OPEN):
        raise table.error("or", f"means and or must be different ones of {', '.join(_OPEN)}")
    return tuple(map(Means, texts))


def _one_of(*meanings: Means) -> str:
    return f"One of: {'; '.join(map(_OPEN.__getitem__, meanings))}. `sealgate check` excludes what it can."


def _wait_rule(table: Table, means: Means, pools: Sequence[str]) -> WaitRule:
    for key in _WAITS:
        if key in table.data and means not in (Means.LIMITED, Means.BANNED, Means.FIREWALL):
            raise table.error(key, f"{key} needs means = 'limited', 'banned' or 'firewall'")
    wait = table.checked("wait", _WAIT, f"header NAME as {' | '.join(MOMENTS)}", "")
    found = _WAIT.fullmatch(wait)
    header, moment = (found[1].lower(), found[2]) if found else ("", "")
    documented_s = table.number("wait_s", 1.0) if "wait_s" in table.data else None
    scope = Scope(table.text("scope", choices=list(Scope))) if "scope" in table.data else None
    named = table.texts("pool")
    if table.file != table.document.file:  # a file that starts from another may have other pools
        named = tuple(pool for pool in named if pool in pools)
    for pool in named:
        if pool not in pools:
            raise table.error("pool", f"pool = {pool!r} is unknown; {did_you_mean(pool, pools)}")
    if named and means is Means.FIREWALL:
        raise table.error("pool", "pool needs means = 'limited' or 'banned': a firewall refuses no pool")
    if named and scope is not None:
        raise table.error("scope", "a rule has pool, whose scope [[limits.pools]] says, or scope")
    return WaitRule(header, moment, documented_s, scope, named)


@dataclass(frozen=True)
class Judge:
    """Classifies replies by rules; the first that matches decides, and where none does the status alone.

    `words_at` are the JSON pointers of where an error says in words what is wrong, `order_ids` those of where
    a reply names orders that it made: an error that names one may have executed.
    """

    rules: tuple[Rule, ...] = ()
    words_at: tuple[str, ...] = ()
    order_ids: tuple[str, ...] = ()

    @cached_property
    def _by_status(self) -> dict[int, tuple[Rule, ...]]:
        return {}

    @cached_property
    def _states_done(self) -> bool:
        return any(rule.at and rule.means is _MEANS_DONE for rule in self.rules)

    @cached_property
    def looks_into_done(self) -> bool:
        """Whether a reply may be an error though its status says that it is none."""
        return any(rule.at and (not rule.statuses or min(rule.statuses) < BAD_REQUEST) for rule in self.rules)

    def _rules_for(self, status: int) -> tuple[Rule, ...]:
        found = self._by_status.get(status)
        if found is None:
            found = self._by_status[status] = tuple(rule for rule in self.rules if rule.is_for(status))
        return found

    def judge(
        self,
        status: int,
        body: bytes,
        coding: bytes | None = None,
        *,
        is_order: bool = False,
        is_head: bool = False,
    ) -> Verdict:
        """Classify a whole reply; `coding` is what its Content-Encoding says. Nothing is read for nothing.

        What is longer than errors are is judged by its status: a read's is data. That of an order is looked
        into as far as any error is long; where its words then cannot be read, it may have executed.
        `is_head`: it answers a HEAD, so that it has no body, as some statuses never do. A read's status is
        then all that is said.
        """
        rules = self._rules_for(status)
        if not rules and status < BAD_REQUEST:
            return _DONE
        reader = _BodyReader(status, body, coding, is_order=is_order)
        for rule in rules:
            if rule.is_html and not reader.is_html:
                continue
            text = rule.match(reader.texts(rule.at) if rule.at else ())
            if text is not None:
                if not rule.at and status == FORBIDDEN and reader.country:  # it says more than its status
                    return self._worded(_COUNTRY_REFUSED, _NOTHING, reader)
                if self._may_have_executed(rule.means, reader, is_order=is_order):
                    return self._worded(_UNKNOWN, _NOTHING, reader)
                return self._worded(rule.verdict, _found(rule, (text, self._words(reader))), reader)
        says_all = not is_order and (is_head or status in BODILESS)
        if OK <= status < BAD_REQUEST and not says_all and self._is_unsaid(reader, is_order=is_order):
            return self._worded(_UNKNOWN, _NOTHING, reader)
        verdict = by_status(status)
        if status == FORBIDDEN and (reader.country or reader.is_html):
            verdict = _COUNTRY_REFUSED if reader.country else _FIREWALL_REFUSED
        if self._may_have_executed(verdict.means, reader, is_order=is_order):
            verdict = _UNKNOWN
        return self._worded(verdict, _NOTHING, reader)

    def judge_words(self, status: int, words: str) -> Verdict:
        """Classify an error's words, as in a verdict, as if they had come with another status."""
        for rule in self._rules_for(status):
            if rule.at in self.words_at and rule.match((words,)) is not None:
                return rule.verdict
        return by_status(status)

    def _may_have_executed(self, means: Means, reader: "_BodyReader", *, is_order: bool) -> bool:
        """Whether an error's body says so: it names an order, or that of an order tells of a timeout."""
        if means is _MEANS_DONE or means is _MEANS_UNKNOWN:
            return False
        if any(reader.texts(at) for at in self.order_ids):
            return True
        return is_order and any(_TIMED_OUT.search(text) for at in self.words_at for text in reader.texts(at))

    def _is_unsaid(self, reader: "_BodyReader", *, is_order: bool) -> bool:
        """Whether a reply's status says "done", and its words, which decide at this venue, do not.

        Where the exchange says "done" in so many words, a page of somebody else's does not mean that.
        """
        if not is_order:
            return self._states_done and not reader.is_long
        return self._states_done or (self.looks_into_done and reader.is_dark)

    def _worded(self, verdict: Verdict, found: Mapping[str, str], reader: "_BodyReader") -> Verdict:
        if verdict.means is _MEANS_DONE:
            return verdict
        words = self._words(reader)
        if not words and verdict.means is _MEANS_COUNTRY:
            words = reader.country
        words = (words or reader.sentence)[:_MOST_WORDS]
        return replace(verdict, found=found, words=words) if found or words else verdict

    def _words(self, reader: "_BodyReader") -> str:
        return next((text for at in self.words_at for text in reader.texts(at)), "")

    def errors(self) -> dict[str, "ErrorRow"]:
        """Return a row for each kind of error that there can be, those without a reply included."""
        rows: dict[str, ErrorRow] = {}
        for rule in self.rules:
            if rule.means is not _MEANS_DONE:
                row = rows.get(rule.verdict.kind) or ErrorRow(rule.verdict, (), ())
                statuses = dict.fromkeys((*row.statuses, *rule.statuses))
                words = dict.fromkeys((*row.words, *sorted(rule.exact), *rule.begins, *rule.contains))
                rows[rule.verdict.kind] = ErrorRow(row.verdict, tuple(statuses), tuple(words))
        for verdict in (LIMITED, _COUNTRY_REFUSED, _FIREWALL_REFUSED, _REFUSED, _UNKNOWN, *NO_REPLY.values()):
            rows.setdefault(verdict.kind, ErrorRow(verdict, (), ()))
        return rows


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A kind of error: the statuses and the words or codes of a reply that is one; empty: see the page."""

    verdict: Verdict
    statuses: tuple[int, ...]
    words: tuple[str, ...]


def _found(rule: Rule, texts: Iterable[str]) -> Mapping[str, str]:
    """Return the values that a rule finds in the first of the texts that has them."""
    found: dict[str, str] = {}
    for name, pattern in rule.finds:
        match = next(filter(None, map(pattern.search, texts)), None)
        if match is not None:
            found[name] = match[1]
    return MappingProxyType(found) if found else _NOTHING


_parse = json.JSONDecoder(strict=False).decode


class _BodyReader:
    """A short body's JSON, parsed once and only where a rule looks at it."""

    def __init__(self, status: int, body: bytes, coding: bytes | None, *, is_order: bool) -> None:
        self._longest = LONGEST_DONE if status < BAD_REQUEST and not is_order else LONGEST_ERROR
        self._body = body
        self._coding = coding
        self._texts: dict[str, tuple[str, ...]] = {}

    @cached_property
    def is_long(self) -> bool:
        """Whether it is longer than errors are, as it came or unpacked."""
        return len(self._body) > self._longest or len(self._plain or b"") > self._longest

    @property
    def is_dark(self) -> bool:
        """Whether something came, and it cannot be read as JSON."""
        return bool(self._body) and self._document is None

    @property
    def is_html(self) -> bool:
        """Whether it is a page for people: no exchange's own software answers a program so."""
        return (self._plain or b"").lstrip(b"\xef\xbb\xbf \t\r\n")[:14].lower().startswith(_HTML)

    @cached_property
    def _plain(self) -> bytes | None:
        return unpacked(self._body, self._coding, self._longest)

    @cached_property
    def _whole(self) -> str:
        """The text, "" where it is long or cannot be unpacked."""
        return "" if self.is_long or self._plain is None else self._plain.decode("utf-8", "replace")

    @cached_property
    def _document(self) -> object:
        """The JSON, None where it is long, or none."""
        if not self._whole:
            return None
        try:
            return _parse(self._whole)
        except (ValueError, RecursionError):
            return None

    @property
    def sentence(self) -> str:
        """What a body says that is plain text: no JSON, no page, and no longer than a sentence."""
        text = "" if self.is_html else self._whole.strip()
        is_text = len(text) <= _MOST_WORDS and text.isprintable() and "\ufffd" not in text
        return text if is_text and not text.startswith(("{", "[", '"')) else ""

    @cached_property
    def country(self) -> str:
        """The sentence that says that the sender's country is not served, "" without one."""
        return next((one.strip() for one in _SENTENCE_END.split(self._whole) if _COUNTRY.search(one)), "")

    def texts(self, at: str) -> tuple[str, ...]:
        """Return the texts of a field; several, where the pointer has a * for each of a list."""
        if at not in self._texts:
            found = map(_text, pick_each(self._document, at))
            self._texts[at] = tuple(text for text in found if text is not None)
        return self._texts[at]


def unpacked(body: bytes, coding: bytes | None, longest: int) -> bytes | None:
    """Return a body as it was before a Content-Encoding, None where it cannot be read.

    What is longer than `longest` is cut one byte behind that: no more is unpacked than counts, however much a
    few bytes would make.
    """
    most = longest + 1
    wbits = CODINGS.get((coding or b"").strip().lower() or b"identity")
    if wbits is None:
        return None
    if not wbits:
        return body[:most]
    try:
        unpacker = zlib.decompressobj(wbits)
        plain = unpacker.decompress(body, most)
    except zlib.error:
        return None
    return plain if unpacker.eof or len(plain) == most else None


def _text(value: object) -> str | None:
    """Return a field's text; a list is that of its messages, as field-level errors come."""
    if isinstance(value, list):
        parts = [_plain(one.get("msg") if isinstance(one, dict) else one) for one in value]
        return "; ".join(part for part in parts if part) or None
    return _plain(value)


def _plain(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


_DONE = Verdict(Means.DONE, "", Whose.UPSTREAM, "")
LIMITED = Verdict(Means.LIMITED, "rate_limited", Whose.UPSTREAM, _ADVICE[Means.LIMITED])
_FIREWALL_REFUSED = Verdict(Means.FIREWALL, "firewall", Whose.UPSTREAM, _ADVICE[Means.FIREWALL])
_COUNTRY_REFUSED = Verdict(Means.COUNTRY, "country_refused", Whose.UPSTREAM, _ADVICE[Means.COUNTRY])
_REFUSED = Verdict(
    Means.REFUSED, "other_4xx", Whose.BOT, "Read the reply: the venue's file has no rule for this error."
)
_UNKNOWN = Verdict(Means.UNKNOWN, "other_5xx", Whose.UPSTREAM, _ADVICE[Means.UNKNOWN])


def by_status(status: int) -> Verdict:
    """Return what a status alone says."""
    if status < BAD_REQUEST:
        return _DONE
    if status == TOO_MANY_REQUESTS:
        return LIMITED
    if status == UNAVAILABLE_FOR_LEGAL_REASONS:
        return _COUNTRY_REFUSED
    return _REFUSED if status < INTERNAL_SERVER_ERROR else _UNKNOWN


def _no_reply(kind: str, advice: str) -> Verdict:
    return Verdict(Means.UNKNOWN, kind, Whose.UPSTREAM, advice)


# No whole reply at all; the kinds are those of orders/resends.py, FailureKind.
NO_REPLY = {
    verdict.kind: verdict
    for verdict in (
        _no_reply("unreachable", REASONS["upstream_unreachable"].advice),
        _no_reply("proxy", "Check `upstream.proxy`, and that the proxy may connect to the exchange."),
        _no_reply("connect_timeout", "Check the network, and whether a firewall drops packets."),
        _no_reply("lost", _ADVICE[Means.UNKNOWN]),
        _no_reply(
            "late",
            "Look an order up before you send it again. Raise `upstream.total_timeout` if this is frequent.",
        ),
    )
}

_OWN_KINDS = frozenset((*NO_REPLY, _REFUSED.kind, _UNKNOWN.kind))


def doc_link(verdict: Verdict) -> str:
    """Return where the documents explain a verdict."""
    return f"docs/errors.md#{verdict.topic or verdict.kind}"
