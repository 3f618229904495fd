"""`sealgate venues`: the exchanges that the gateway knows, and what one of them wants."""

import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from urllib.parse import quote

import click

from sealgate.cli.frame import Suggesting, found_venue, unused_config_option
from sealgate.cli.tables import drawn, plain_table
from sealgate.config.venues import DEFAULT_VENUE, built_in_venue, venue_names, venue_source
from sealgate.http.target import Target, parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.replies import Rule
from sealgate.venues.routes import Auth, Permission
from sealgate.venues.scheme import Sealer
from sealgate.venues.templates import UnsignableError
from sealgate.venues.venue import Counter, Venue

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_MANY = 8
_WIDTH, _LABEL = 78, 12  # two columns less than 80: the summary may stand behind "# "
# What the examples are signed with. As a secret it is good for every venue: text, hex and base64 at once.
_SECRET = b"00112233445566778899aabbccddeeff"
_NOW_MS = 1_790_000_000_000
_NONCES = {
    "none": b"",
    "ms": b"%d" % _NOW_MS,
    "us": b"%d" % (_NOW_MS * 1000),
    "ns": b"%d" % (_NOW_MS * 1_000_000),
    "uuid": b"6f1c2f6e-0000-4000-8000-00000000cafe",
}
_QUERY, _JSON, _FORM = "symbol=BTC&limit=5", b'{"symbol":"BTC"}', b"symbol=BTC&side=buy"
_SECRETS = {
    "utf8": "the secret's text as it is",
    "hex": "the secret, decoded from hex",
    "base64": "the secret, decoded from base64",
    "as_base64": "the base64 of the secret's text",
    "sha256hex": "the hex SHA-256 of the secret's text",
    "md5hex": "the hex MD5 of the secret's text",
}
_IN_MEMORY = {
    False: "The state of the HMAC, which signs for this key alone; not the secret.",
    True: "The secret itself: it is hashed last, so that no state can be prepared.",
}
_SCOPES = {
    "key": "each key alone",
    "account": "all keys of one account together",
    "address": "everything that comes from one IP address together",
}
_NONCES_SAID = {
    "ms": "milliseconds; each is higher than the last one of its key",
    "us": "microseconds; each is higher than the last one of its key",
    "ns": "nanoseconds; each is higher than the last one of its key",
    "uuid": "a random UUID for each request",
}


@click.group("venues", cls=Suggesting, invoke_without_command=True)
@unused_config_option
@_json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the built-in venues (exchanges), or show what one of them wants.

    Without a command it lists them.
    """
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@command.command("list", short_help="List the built-in venues.")
@unused_config_option
@_json_option
def list_(*, as_json: bool) -> None:
    """List the built-in venues: how each is signed, and what its file was verified with."""
    _list(as_json=as_json)


@command.command(short_help="Show what a venue wants, and its file.")
@unused_config_option
@click.argument("name")
@click.option("--summary", "is_short", is_flag=True, help="Leave out the file itself.")
@_json_option
def show(name: str, *, is_short: bool, as_json: bool) -> None:
    """Show what a venue wants: address, key, signed text, clock, limits, replies; then its file.

    NAME is a built-in venue, or the path of a file of yours, which is checked. The summary is written as
    comments, so what is printed can be saved, changed and used: venue = "./mine.toml".
    """
    venue = found_venue(name)
    if as_json:
        click.echo(json.dumps(show_json(venue) | {"file": venue_source(venue)}))
    elif is_short:
        click.echo(show_text(venue))
    else:
        click.echo(f"{_as_comments(show_text(venue))}\n\n{venue_source(venue).rstrip()}")


def _list(*, as_json: bool) -> None:

    names = venue_names()
    venues = [built_in_venue(name) for name in sorted(names, key=lambda name: name != DEFAULT_VENUE)]
    click.echo(json.dumps(list_json(venues)) if as_json else list_text(venues))


def _as_comments(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Example:
    """A request of a bot, what is signed of it, and what is sent. The bytes are as text, escaped."""

    request: str
    signed: str
    target: str
    headers: tuple[str, ...]
    body: str


def list_text(venues: Iterable[Venue]) -> str:
    """Return the table of venues."""
    table = plain_table("name", "exchange", "tier", "signature", "verified with")
    for column in table.columns:
        column.no_wrap = column.header in ("name", "tier", "signature")
    for venue in venues:
        table.add_row(
            venue.name,
            venue.title,
            venue.tier,
            _signature(venue),
            venue.checked.partition(",")[0] or "nothing",
        )
    return (
        f"{drawn(table)}\n\n"
        "Details: sealgate venues show NAME\n"
        "To start with one: sealgate config init --venue NAME"
    )


def list_json(venues: Iterable[Venue]) -> dict[str, object]:
    """Return the list for programs."""
    return {"venues": [_row(venue) for venue in venues]}


def _row(venue: Venue) -> dict[str, object]:
    return {
        "name": venue.name,
        "title": venue.title,
        "tier": venue.tier,
        "signature": _signature(venue),
        "key_needs": key_needs(venue),
        "verified_against": venue.checked,
        "reply_rules": len(venue.replies.rules),
        "docs": venue.docs,
    }


def show_json(venue: Venue) -> dict[str, object]:
    """Return all that `show` says, for programs."""
    return _row(venue) | {
        "base_url": venue.base_url,
        "prefix": venue.prefix,
        "note": venue.note,
        "replaced_headers": [name for name, _ in venue.signing.headers],
        "cut_parameters": _strips(venue),
        "keeps_secret_in_memory": venue.signing.keeps_secret,
        "nonce": venue.signing.nonce,
        "nonces_rise": venue.signing.nonces_rise,
        "examples": [asdict(example) for example in examples(venue)],
        "clock": {"path": venue.clock_path, "field": venue.clock_field},
        "limits": asdict(venue.limits),
        "replies": [
            {
                "status": rule.statuses,
                "at": rule.at,
                "test": _test(rule),
                "means": rule.means,
                "kind": rule.verdict.kind,
            }
            for rule in venue.replies.rules
        ],
    }


def show_text(venue: Venue) -> str:
    """Return the summary of a venue: what a user must know before using it."""
    title = f"{venue.name}: {venue.title}"
    return "\n".join([title, "", *(line for label, texts in _rows(venue) for line in _lines(label, texts))])


def key_needs(venue: Venue) -> list[str]:
    """Return the settings that each key must have."""
    return ["api_key", "secret", *(name for name in ("passphrase", "uid") if venue.signing.needs(name))]


def _rows(venue: Venue) -> Iterator[tuple[str, list[str]]]:
    signing = venue.signing
    yield "address", [venue.base_url or "none: set base_url"]
    if venue.prefix:
        yield "prefix", [f"{venue.prefix}: requests outside it are refused; it is sent but not signed"]
    yield "key needs", [", ".join(key_needs(venue))]
    yield "signature", [_signature(venue), *_keyed(venue)]
    yield "in memory", [_IN_MEMORY[signing.keeps_secret], *_sent_as_it_is(venue)]
    if signing.nonce != "none":
        order = ["requests of one key go one at a time, each after the reply to the one before"]
        yield "nonce", [_NONCES_SAID[signing.nonce], *(order if signing.nonces_rise else ())]
    yield "dummy key", list(_dummies(venue))
    for example in examples(venue):
        yield example.request.split()[0], [*_example(example), ""]
    yield "clock", [_clock(venue)]
    yield "limits", list(_limits(venue))
    yield "routes", [_routes(venue)]
    yield "replies", list(_replies(venue.replies.rules))
    if venue.note:
        yield "note", [venue.note]
    yield "verified", [f"against {venue.checked}" if venue.checked else "no"]
    if venue.docs:
        yield "documents", [venue.docs]


def _lines(label: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        head = (label if number == 0 else "").ljust(_LABEL)
        inner = " " * (len(text) - len(text.lstrip()))
        wrapped = textwrap.wrap(
            text.strip(),
            _WIDTH - _LABEL,
            initial_indent=inner,
            subsequent_indent=inner + ("  " if inner else ""),
            break_on_hyphens=False,
        )
        for line in wrapped or [""]:
            yield f"{head}{line}".rstrip()
            head = " " * _LABEL


def _signature(venue: Venue) -> str:
    return f"{venue.signing.digest} {venue.signing.encoding}"


def _keyed(venue: Venue) -> Iterator[str]:
    if venue.signing.keeps_secret:
        yield "no HMAC: a hash of the text with the secret behind it"
    else:
        yield f"an HMAC; its key is {_SECRETS[venue.signing.secret]}"


def _sent_as_it_is(venue: Venue) -> Iterator[str]:
    if venue.signing.needs("passphrase"):
        yield "The passphrase stays there, as each request needs it."


def _strips(venue: Venue) -> list[str]:
    return sorted(name.decode("ascii") for name in venue.signing.strips)


def _dummies(venue: Venue) -> Iterator[str]:
    yield "A bot that signs its own requests can use a made-up key."
    if headers := [name for name, _ in venue.signing.headers]:
        yield f"These headers of it are replaced: {', '.join(headers)}."
    if names := _strips(venue):
        yield f"These parameters of it are removed first: {', '.join(names)}."


def examples(venue: Venue) -> Iterator[Example]:
    """Yield a read and an order, with stand-ins for what is the key's own."""
    key = KeyMaterial("API_KEY", bytearray(_SECRET), "PASSPHRASE", "UID")
    sealer = sealer_of(venue, key, venue.base_url or "https://api.example.com")
    path = f"{venue.prefix}/path"
    for method, target, bodies in (("GET", f"{path}?{_QUERY}", (b"",)), ("POST", path, (_JSON, _FORM))):
        for body in bodies:
            try:
                example = _signed(sealer, method, parse_target(target, venue.prefix), body)
            except UnsignableError:
                continue
            if method != "GET" or not example.body:
                yield example
            break


def _signed(sealer: Sealer, method: str, target: Target, body: bytes) -> Example:
    asked = (_NOW_MS, _NONCES[sealer.scheme.nonce], method, target, body)
    lines, raw, sent, _ = sealer.sign(*asked)
    message = sealer.message(*asked)
    signature = sealer.signature(message).decode("ascii")

    def plain(text: str) -> str:
        return text.replace(signature, "SIGNATURE").replace(quote(signature, safe=""), "SIGNATURE")

    return Example(
        request=" ".join(filter(None, (method, target.raw, body.decode("ascii")))),
        signed=repr(message)[2:-1],
        target=plain(raw),
        headers=tuple(plain(lines.decode("ascii")).split("\r\n")[:-1]),
        body=plain(sent.decode("ascii")),
    )


def _example(example: Example) -> Iterator[str]:
    method, _, rest = example.request.partition(" ")
    yield f"a bot sends {method} {rest}"
    yield "the text that is signed"
    yield f"  {example.signed}"
    yield "the gateway sends"
    yield f"  {method} {example.target}"
    for header in example.headers:
        yield f"  {header}"
    if example.body:
        yield f"  {example.body}"


def _clock(venue: Venue) -> str:
    if not venue.clock_path:
        return (
            "The file has no path for the time. Set clock.path if the exchange has one; otherwise the clock "
            "follows the Date header of replies, which is accurate to half a second."
        )
    field = f", field {venue.clock_field}" if venue.clock_field else "; the field is found automatically"
    return f"GET {venue.clock_path}{field}"


def _limits(venue: Venue) -> Iterator[str]:
    limits = venue.limits
    yield f"The exchange counts {_SCOPES[limits.scope]}."
    if limits.known:
        yield f"Published: {', '.join(limits.known)}. Other limits are learned from its refusals."
    else:
        yield "Its limits are learned from its refusals."
    for counter in limits.counters:
        yield f"{counter.header}: {_counter(counter)}"


def _counter(counter: Counter) -> str:
    most = counter.most_header or (f"{counter.most:g}" if counter.most else "the limit")
    return f"{counter.counts} of {most} per {counter.window_s:g} s"


def _routes(venue: Venue) -> str:
    counts = {
        "unsigned": sum(route.auth is Auth.OPEN for route in venue.routes),
        "cancels": sum(route.lane == "cancel" for route in venue.routes),
        "reads": sum(route.needs is Permission.READ for route in venue.routes),
    }
    said = [f"{count} {name}" for name, count in counts.items() if count]
    text = f"{len(venue.routes)} in the file ({', '.join(said)}). " if said else ""
    return f"{text}Everything else is signed, and classified by its method and the words in its path."


def _replies(rules: tuple[Rule, ...]) -> Iterator[str]:
    if not rules:
        yield "No rules: only the status counts, so an error in an HTTP 200 looks like a success."
        return
    meanings = list(dict.fromkeys(rule.means for rule in rules))
    for means in meanings:
        tests = dict.fromkeys(_test(rule) for rule in rules if rule.means is means)
        many = f"{len(tests)} errors, listed in the file"
        yield f"{means}: {'; '.join(tests) if len(tests) <= _MANY else many}"
    yield "Other replies are judged by their status."


def _test(rule: Rule) -> str:
    """Return what a rule looks for: statuses, and a field with what it may be."""
    statuses = "/".join(map(str, rule.statuses))
    tests = (
        ("", sorted(rule.exact)),
        ("begins ", rule.begins),
        ("contains ", rule.contains),
        ("not ", sorted(rule.others)),
    )
    words = " or ".join(f"{verb}{', '.join(texts)}" for verb, texts in tests if texts)
    return " ".join(filter(None, (statuses, rule.at, words)))
