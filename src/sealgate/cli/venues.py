"""`sealgate venues`: the exchanges that the gateway knows, and what one of them wants."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from urllib.parse import quote

import click

from sealgate.cli.frame import Suggesting, found_venue, json_option, unused_config_option
from sealgate.cli.tables import drawn, plain_table
from sealgate.config.venues import DEFAULT_VENUE, built_in_venue, venue_names, venue_source
from sealgate.http.target import parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.replies import Rule
from sealgate.venues.routes import Auth, Permission
from sealgate.venues.templates import UnsignableError
from sealgate.venues.venue import Venue

_MANY = 8
_WIDTH, _LABEL = 78, 12  # two columns less than 80: the summary may stand behind "# "
# What the examples are signed with. As a secret it is good for every venue: text, hex and base64 at once.
_SECRET = b"00112233445566778899aabbccddeeff"
_NOW_MS = 1_790_000_000_000
_NONCES = {  # of an example, and what they are
    "none": (b"", ""),
    "ms": (b"%d" % _NOW_MS, "milliseconds; each is higher than the last one of its key"),
    "us": (b"%d" % (_NOW_MS * 1000), "microseconds; each is higher than the last one of its key"),
    "ns": (b"%d" % (_NOW_MS * 1_000_000), "nanoseconds; each is higher than the last one of its key"),
    "uuid": (b"6f1c2f6e-0000-4000-8000-00000000cafe", "a random UUID for each request"),
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
_SCOPES = {
    "key": "each key alone",
    "account": "all keys of one account together",
    "address": "everything that comes from one IP address together",
}


@click.group("venues", cls=Suggesting, invoke_without_command=True)
@unused_config_option
@json_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the built-in venues (exchanges), or show what one of them wants.

    Without a command it lists them.
    """
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@command.command("list", short_help="List the built-in venues.")
@unused_config_option
@json_option
def list_(*, as_json: bool) -> None:
    """List the built-in venues: how each is signed, and what its file was verified with."""
    _list(as_json=as_json)


@command.command(short_help="Show what a venue wants, and its file.")
@unused_config_option
@click.argument("name")
@click.option("--summary", "is_short", is_flag=True, help="Leave out the file itself.")
@json_option
def show(name: str, *, is_short: bool, as_json: bool) -> None:
    """Show what a venue wants: address, key, signed text, clock, limits, replies; then its file.

    NAME is a built-in venue, or the path of a file of yours, which is checked. The summary is written as
    comments, so what is printed can be saved, changed and used: venue = "./mine.toml".
    """
    venue = found_venue(name)
    if as_json:
        click.echo(json.dumps(_document(venue) | {"file": venue_source(venue)}))
        return
    summary = [f"{venue.name}: {venue.title}", "", *_summary(venue)]
    if is_short:
        click.echo("\n".join(summary))
    else:
        comments = "\n".join(f"# {line}".rstrip() for line in summary)
        click.echo(f"{comments}\n\n{venue_source(venue).rstrip()}")


def _list(*, as_json: bool) -> None:
    names = sorted(venue_names(), key=lambda name: name != DEFAULT_VENUE)
    venues = [built_in_venue(name) for name in names]
    if as_json:
        click.echo(json.dumps({"venues": [_row(venue) for venue in venues]}))
        return
    table = plain_table("name", "exchange", "tier", "signature", "verified with")
    for column in table.columns:
        column.no_wrap = column.header in ("name", "tier", "signature")
    for venue in venues:
        checked = venue.checked.partition(",")[0] or "nothing"
        table.add_row(venue.name, venue.title, venue.tier, _signature(venue), checked)
    click.echo(
        f"{drawn(table)}\n\n"
        "Details: sealgate venues show NAME\n"
        "To start with one: sealgate config init --venue NAME"
    )


def _signature(venue: Venue) -> str:
    return f"{venue.signing.digest} {venue.signing.encoding}"


def _row(venue: Venue) -> dict[str, object]:
    return {
        "name": venue.name,
        "title": venue.title,
        "tier": venue.tier,
        "signature": _signature(venue),
        "key_needs": _key_needs(venue),
        "verified_against": venue.checked,
        "reply_rules": len(venue.replies.rules),
        "docs": venue.docs,
    }


def _key_needs(venue: Venue) -> list[str]:
    """Return the settings that each key must have."""
    return ["api_key", "secret", *venue.further_settings]


def _document(venue: Venue) -> dict[str, object]:
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
        "examples": [asdict(example) for example in _examples(venue)],
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


def _strips(venue: Venue) -> list[str]:
    return sorted(name.decode("ascii") for name in venue.signing.strips)


def _summary(venue: Venue) -> Iterator[str]:
    """Yield lines about what a user must know before using a venue."""
    for label, texts in _rows(venue):
        head = label.ljust(_LABEL)
        for text in texts:
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


def _rows(venue: Venue) -> Iterator[tuple[str, list[str]]]:
    """Yield labels with their texts."""
    signing = venue.signing
    yield "address", [venue.base_url or "none: set base_url"]
    if venue.prefix:
        yield "prefix", [f"{venue.prefix}: requests outside it are refused; it is sent but not signed"]
    yield "key needs", [", ".join(_key_needs(venue))]
    if signing.keeps_secret:
        keyed = "no HMAC: a hash of the text with the secret behind it"
        memory = ["The secret itself: it is hashed last, so that no state can be prepared."]
    else:
        keyed = f"an HMAC; its key is {_SECRETS[signing.secret]}"
        memory = ["The state of the HMAC, which signs for this key alone; not the secret."]
    yield "signature", [_signature(venue), keyed]
    if signing.needs("passphrase"):
        memory.append("The passphrase stays there, as each request needs it.")
    yield "in memory", memory
    if signing.nonce != "none":
        one_at_a_time = "requests of one key go one at a time, each after the reply to the one before"
        yield "nonce", [_NONCES[signing.nonce][1], *([one_at_a_time] if signing.nonces_rise else ())]
    dummy = ["A bot that signs its own requests can use a made-up key."]
    if headers := [name for name, _ in signing.headers]:
        dummy.append(f"These headers of it are replaced: {', '.join(headers)}.")
    if names := _strips(venue):
        dummy.append(f"These parameters of it are removed first: {', '.join(names)}.")
    yield "dummy key", dummy
    for example in _examples(venue):
        method = example.request.partition(" ")[0]
        sent = [f"{method} {example.target}", *example.headers, *([example.body] if example.body else ())]
        signed = [f"a bot sends {example.request}", "the text that is signed", f"  {example.signed}"]
        yield method, [*signed, "the gateway sends", *(f"  {line}" for line in sent), ""]
    if venue.clock_path:
        field = f", field {venue.clock_field}" if venue.clock_field else "; the field is found automatically"
        yield "clock", [f"GET {venue.clock_path}{field}"]
    else:
        date = "the clock follows the Date header of replies, which is accurate to half a second"
        text = "The file has no path for the time. Set clock.path if the exchange has one; otherwise"
        yield "clock", [f"{text} {date}."]
    yield "limits", list(_limits(venue))
    yield "routes", [_routes(venue)]
    yield "replies", list(_replies(venue.replies.rules))
    yield "note", [venue.note] if venue.note else []
    yield "verified", [f"against {venue.checked}" if venue.checked else "no"]
    yield "documents", [venue.docs] if venue.docs else []


@dataclass(frozen=True, slots=True)
class Example:
    """A request of a bot, what is signed of it, and what is sent. The bytes are as text, escaped."""

    request: str
    signed: str
    target: str
    headers: tuple[str, ...]
    body: str


def _examples(venue: Venue) -> Iterator[Example]:
    """Yield a read and an order, with stand-ins for what is the key's own."""
    key = KeyMaterial("API_KEY", bytearray(_SECRET), "PASSPHRASE", "UID")
    sealer = sealer_of(venue, key, venue.base_url or "https://api.example.com")
    nonce, path = _NONCES[sealer.scheme.nonce][0], f"{venue.prefix}/path"

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

    for method, raw, bodies in (("GET", f"{path}?{_QUERY}", (b"",)), ("POST", path, (_JSON, _FORM))):
        for body in bodies:
            try:
                example = signed(method, raw, body)
            except UnsignableError:
                continue
            if method != "GET" or not example.body:
                yield example
            break


def _limits(venue: Venue) -> Iterator[str]:
    limits = venue.limits
    yield f"The exchange counts {_SCOPES[limits.scope]}."
    if limits.known:
        yield f"Published: {', '.join(limits.known)}. Other limits are learned from its refusals."
    else:
        yield "Its limits are learned from its refusals."
    for counter in limits.counters:
        most = counter.most_header or (f"{counter.most:g}" if counter.most else "the limit")
        yield f"{counter.header}: {counter.counts} of {most} per {counter.window_s:g} s"


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
