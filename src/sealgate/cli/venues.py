"""`sealgate venues`: the supported exchanges, what one of them requires, and the exchanges not served.

A venue's file states everything. The summary above it spells out what follows from the file: what a key
needs, what the gateway keeps of its secret, and how a request is changed.
"""

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import click

from sealgate.cli.frame import found_venue, json_option, unused_config_option
from sealgate.cli.tables import drawn, plain_table
from sealgate.config.venue_names import NotServed, not_served, why_not
from sealgate.config.venues import DEFAULT_VENUE, built_in_venue, is_file, venue_names, venue_source
from sealgate.exchange.stamps import Nonces
from sealgate.http.target import parse_target
from sealgate.venues.environments import Environment
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.limit_rules import PoolRule
from sealgate.venues.routes import Permission
from sealgate.venues.scheme import Scheme
from sealgate.venues.sealer import KeyTexts
from sealgate.venues.stream_grammar import ANY_PATH
from sealgate.venues.streams import Stream
from sealgate.venues.templates import names_in
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Venue

_WIDTH, _LABEL = 78, 12  # two columns less than 80, for the "# " before the summary
_NOW_MS = 1_790_000_000_000
_UUID = "6f1c2f6e-0000-4000-8000-00000000cafe"
ANY_WORDS = "any path"
_QUERY, _JSON, _FORM = "symbol=BTC&limit=5", b'{"symbol":"BTC"}', b"symbol=BTC&side=buy"


@click.group("venues", invoke_without_command=True)
@unused_config_option
@json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the built-in venues (exchanges), or show what one of them requires.

    Without a command it lists them.
    """
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@command.command("list", short_help="List the built-in venues, or the exchanges that are not served.")
@unused_config_option
@click.option(
    "--not-served", "is_rest", is_flag=True, help="List the exchanges that are known but not served, and why."
)
@json_option
def list_(*, is_rest: bool, as_json: bool) -> None:
    """List the built-in venues, with their hosts and what each file was verified with."""
    if is_rest and not as_json:
        click.echo("\n\n".join(_reasons()))
    else:
        _list(as_json=as_json)


def _reasons() -> Iterator[str]:
    """Yield each reason, below the exchanges to which it applies."""
    by_reason: dict[NotServed, list[str]] = {}
    for name, reason in not_served().items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        parts = ((", ".join(sorted(names)), ""), (str(reason), "  "))
        yield "\n".join(
            textwrap.fill(
                text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            for text, indent in parts
        )


def _list(*, as_json: bool) -> None:
    names = sorted(venue_names(), key=lambda name: name != DEFAULT_VENUE)
    rows = [_row(built_in_venue(name)) for name in names]
    if as_json:
        rest = [{"name": name, **asdict(reason)} for name, reason in not_served().items()]
        click.echo(json.dumps({"venues": rows, "not_served": rest}))
        return
    table = plain_table("name", "exchange and host", "keys", "environments", "verified with")
    for column in table.columns:
        column.no_wrap = column.header in ("name", "keys", "verified with")
    for row in rows:
        verified = row["verified_against"].partition(",")[0] or "nothing"
        exchange = "\n".join(filter(None, (row["title"], urlsplit(row["base_url"]).netloc)))
        kinds = "\n".join(row["kinds"])
        table.add_row(row["name"], exchange, kinds, ", ".join(row["environments"]), verified)
    asides = {row["verified_against"] for row in rows if ";" in row["verified_against"]}
    aside = "".join(f"{text.partition(',')[0]}:{text.partition(';')[2]}\n" for text in sorted(asides))
    click.echo(
        f"{drawn(table)}\n\n{aside}"
        "Details: sealgate venues show NAME\n"
        "Not served, and why: sealgate venues list --not-served\n"
        "To start with one: sealgate config init --venue NAME"
    )


def _row(venue: Venue) -> dict[str, Any]:
    needed = ["api_key"] if venue.signing.needs("api_key") else []
    counters: dict[str, list[str]] = {}
    for counter in venue.limits.counters:
        counters.setdefault(counter.pool, []).append(counter.header)
    return {
        "name": venue.name,
        "title": venue.title,
        "like": venue.like,
        "base_url": venue.base_url,
        "environments": {name: asdict(one) for name, one in venue.environments.items()},
        "tier": venue.tier,
        "signature": venue.signing.signature,
        "kinds": {
            scheme.name: {"signature": scheme.signature, "advice": scheme.advice}
            for scheme in venue.schemes.values()
        },
        "key_needs": [*needed, "secret", *venue.further_settings],
        "verified_against": venue.checked,
        "limits": {
            pool.name: {"scope": pool.scope, "known": pool.known, "counters": counters.get(pool.name, [])}
            for pool in venue.limits.pools
        },
        "reply_rules": len(venue.replies.rules),
        "streams": [_stream_row(stream) for stream in venue.streams],
        "docs": venue.docs,
    }


def _stream_row(stream: Stream) -> dict[str, Any]:
    """Return a stream as JSON data."""
    return {
        "name": stream.label,
        "hosts": stream.hosts,
        "paths": stream.templates,
        "needs": stream.needs,
        "is_read": stream.is_read,
        "has_login": stream.has_login,
        "has_orders": stream.has_orders,
    }


@command.command(short_help="Show what a venue requires, and its file.")
@unused_config_option
@click.argument("name")
@click.option("--summary", "is_short", is_flag=True, help="Leave out the file itself.")
@json_option
def show(name: str, *, is_short: bool, as_json: bool) -> None:
    """Show what a venue's keys need, what is signed and what is sent; then its file.

    NAME is a built-in venue, or the path of your own venue file, which is then checked. The summary is
    written as comments, so you can save the output, change it and use it: venue = "./mine.toml".
    """
    reason = None if is_file(name) else why_not(name)
    if reason is not None:
        _show_reason(name, reason, as_json=as_json)
        sys.exit(1)
    venue = found_venue(name)
    if as_json:
        examples = [asdict(example) for example in _examples(venue)]
        click.echo(json.dumps(_row(venue) | {"examples": examples, "file": venue_source(venue)}))
        return
    summary = [f"{venue.name}: {venue.title}", "", *_lines(_summary(venue))]
    if is_short:
        click.echo("\n".join(summary))
    else:
        comments = "\n".join(f"# {line}".rstrip() for line in summary)
        click.echo(f"{comments}\n\n{venue_source(venue).rstrip()}")


def _show_reason(name: str, reason: NotServed, *, as_json: bool) -> None:
    """Print why an exchange is not served, and the other exchanges to which that applies."""
    if as_json:
        click.echo(json.dumps({"name": name, "is_served": False, **asdict(reason)}))
        return
    alike = ", ".join(
        sorted(other for other, their in not_served().items() if their == reason and other != name.lower())
    )
    texts = (("why", [reason.why]), ("instead", [reason.fix]), ("also for", [alike]))
    click.echo("\n".join((f"{name}: not served", "", *_lines(texts))))


def _lines(parts: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield labels with their texts beside them, wrapped."""
    for label, texts in parts:
        head = label.ljust(_LABEL)
        for text in texts:
            # A line of an example begins with blanks; its continuation lines are indented further.
            inner = " " * (len(text) - len(text.lstrip()))
            wrapped = textwrap.wrap(
                text.strip(),
                _WIDTH - _LABEL,
                initial_indent=inner,
                subsequent_indent=inner * 2,
                break_on_hyphens=False,
            )
            for line in wrapped or [""]:
                yield f"{head}{line}".rstrip()
                head = " " * _LABEL


def _summary(venue: Venue) -> Iterator[tuple[str, list[str]]]:
    """Yield labels with their texts."""
    signing, row = venue.signing, _row(venue)
    yield "address", [venue.base_url or "none: set base_url"]
    yield "environment", [text for named in venue.environments.items() for text in _changes(*named)]
    yield "like", [f"{venue.like}: settings that are not in this file are in that one"] if venue.like else []
    yield "key needs", [", ".join(row["key_needs"])]
    ways = [(scheme, *_way(scheme)) for scheme in venue.schemes.values()]
    memory = list(dict.fromkeys(kept for *_, kept in ways))
    if signing.needs("passphrase"):
        memory.append("The passphrase, because each request needs it.")
    yield "signature", [made for _, made, _ in ways]
    yield "in memory", memory
    yield "advice", [f"{scheme.name}: {scheme.advice}" for scheme, *_ in ways if scheme.advice]
    if signing.nonces_rise:
        yield (
            "nonce",
            ["requests with one API key are sent one at a time, each after the reply to the previous one"],
        )
    dummy = ["A bot that signs its own requests can use a made-up key."]
    if headers := [name for name, _ in signing.headers]:
        dummy.append(f"The gateway replaces these headers of it: {', '.join(headers)}.")
        if "authorization" in map(str.lower, headers):
            dummy.append("It uses Authorization itself, so it sends the gateway's token as X-Gateway-Token.")
    if names := sorted(name.decode("ascii") for name in signing.strips):
        dummy.append(f"The gateway first removes these parameters: {', '.join(names)}.")
    yield "dummy key", dummy
    for example in _examples(venue):
        method = example.request.partition(" ")[0]
        sent = [f"{method} {example.target}", *example.headers, *([example.body] if example.body else ())]
        text = ["the text that is signed", f"  {example.signed}"] if example.signed else ["nothing is signed"]
        signed = [f"a bot sends {example.request}", *text]
        yield method, [*signed, "the gateway sends", *(f"  {line}" for line in sent), ""]
    if not venue.clock_path:
        yield "clock", ["The file has no path for the time: the gateway uses the Date header of replies."]
    yield "limits", [_limit(pool) for pool in venue.limits.pools]
    yield "streams", list(_streams(venue))
    if not venue.replies.rules:
        yield (
            "replies",
            ["No rules: only the status counts, so an error in an HTTP 200 looks like a success."],
        )
    yield "note", [venue.note] if venue.note else []
    yield "verified", [f"against {venue.checked}" if venue.checked else "no"]
    yield "documents", [venue.docs] if venue.docs else []


_KEY_TEXTS = {"pem": "PEM or DER", "base64": "base64", "base58": "base58"}


def _way(scheme: Scheme) -> tuple[str, str]:
    """Return how keys of a kind sign, and what the gateway keeps of the secret in memory."""
    way = f"{scheme.kind}: {scheme.signature}"
    if scheme.is_static:
        secrets = scheme.names_with("secret")
        carriers = ", ".join(name for name, text in scheme.headers if names_in(text) & secrets)
        made = f"{scheme.signature} with each request, in {carriers}"
        return made, "The secret itself: each request carries it."
    if scheme.kind is not Kind.HMAC:
        made = f"{way}; the secret is the private key, as {_KEY_TEXTS[scheme.key_text]}"
        return made, "The numbers of the private key, which make each signature; not its text."
    if scheme.keeps_secret:
        made = f"{way}; not an HMAC but a hash of the text followed by the secret"
        return made, "The secret itself: it is hashed last, so no state can be prepared."
    made = f"{way}; an HMAC, keyed with the secret as {scheme.secret}"
    return made, "The state of the HMAC, which can sign only for this key; not the secret."


def _changes(name: str, environment: Environment) -> Iterator[str]:
    """Yield an environment, and how it differs."""
    yield f"{name}: {environment.base_url or 'the same address'}"
    for header, value in environment.headers.items():
        yield f"  {header}: {value}"
    for host, other in environment.streams.items():
        yield f"  {other} for {host}"


def _limit(pool: PoolRule) -> str:
    """Return a rate limit in words: its pool, its scope, and its figures."""
    known = ", ".join(pool.known) or "not published, so the gateway learns it"
    each = ", per route" if pool.per else ""
    each = f", per {pool.per_parameter.strip('/')}" if pool.per_parameter else each
    return f"{pool.name}, of each {pool.scope}{each}: {known}"


def _streams(venue: Venue) -> Iterator[str]:
    """Yield the streams, grouped by their hosts."""
    if not venue.streams:
        yield "none"
        return
    yield "opened as ws://127.0.0.1:8787/HOST/PATH; with several exchanges ws://127.0.0.1:8787/NAME/HOST/PATH"
    for hosts, streams in streams_by_hosts(venue).items():
        yield f"{', '.join(hosts)}:"
        for stream in streams:
            paths = ", ".join(ANY_WORDS if path == ANY_PATH else path for path in stream.templates)
            yield f"  {paths}: {stream_words(stream)}"
    if opens := venue.limits.stream_opens:
        yield f"new streams from one IP address: at most {opens}"


def streams_by_hosts(venue: Venue) -> dict[tuple[str, ...], list[Stream]]:
    """Return the streams of a venue, grouped by their hosts."""
    found: dict[tuple[str, ...], list[Stream]] = {}
    for stream in venue.streams:
        found.setdefault(stream.hosts, []).append(stream)
    return found


def stream_words(stream: Stream) -> str:
    """Return what a stream carries, and how a bot logs in to it."""
    parts = [] if stream.needs is Permission.READ else [f"needs {stream.needs}"]
    if stream.handshake is not None and stream.handshake.signs:
        parts.append("a signed handshake")
    elif stream.has_login:
        parts.append("a login")
    elif any(rule.signing for rule in stream.messages):
        parts.append("signed messages")
    parts += ["orders"] if stream.has_orders else []
    if not (parts or stream.is_read):
        return "passed on unread"
    return ", ".join(parts) or "no login"


@dataclass(frozen=True, slots=True)
class Example:
    """A bot's request, the text that is signed, and the request as sent; bytes are shown escaped."""

    request: str
    signed: str
    target: str
    headers: tuple[str, ...]
    body: str


def _examples(venue: Venue) -> Iterator[Example]:
    """Yield a read and an order, with placeholders for the key's own values."""
    key = KeyTexts("API_KEY", "PASSPHRASE", "UID", secret="SECRET" if venue.signing.is_static else "")
    stand_in = Signer(venue.signing.kind, lambda text: sha256(text).digest(), b"")
    sealer = venue.sealer(key, stand_in, venue.base_url or "https://api.example.com")
    nonce = Nonces(sealer.scheme.nonce, lambda: _UUID).take(_NOW_MS)
    named = sealer.scheme.by_route

    def signed(method: str, raw: str, body: bytes) -> Example:
        asked = _NOW_MS, nonce, method, parse_target(raw, venue.prefix), body
        lines, target, sent, _ = sealer.sign(*asked)
        message = sealer.message(*asked)
        signature = sealer.signature(message).decode("ascii")

        def plain(text: str) -> str:
            return text.replace(signature, "SIGNATURE").replace(quote(signature, safe=""), "SIGNATURE")

        return Example(
            request=" ".join(filter(None, (method, raw, body.decode("ascii")))),
            signed=repr(message)[2:-1],
            target=plain(target),
            headers=tuple(plain(lines.decode("ascii")).split("\r\n")[:-1]),
            body=plain(sent.decode("ascii")),
        )

    for method, query, bodies in (("GET", f"?{_QUERY}", (b"",)), ("POST", "", (_JSON, _FORM))):
        path = next((path for by, path in named if by == method), "/path")
        for body in bodies:
            try:
                example = signed(method, f"{venue.prefix}{path}{query}", body)
            except UnsignableError:
                continue
            if method != "GET" or not example.body:
                yield example
            break
