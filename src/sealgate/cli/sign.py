"""`sealgate sign`: show the text that the gateway would sign, and the headers it would add; send nothing."""

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sealgate.cli.frame import config_option, exchange_option, json_option
from sealgate.config import Config, ExchangeConfig, load_config
from sealgate.config.settings import Upstream
from sealgate.config.venues import DEFAULT_VENUE
from sealgate.diagnose.arguments import checked_target, chosen_alias, chosen_exchange
from sealgate.exchange.stamps import Nonces
from sealgate.http.target import Target
from sealgate.keys.key import headers_in
from sealgate.keys.parts import build_key
from sealgate.keys.wrong_secrets import in_words
from sealgate.machine.system import System
from sealgate.machine.terminal import leave_with_error
from sealgate.orders.journal.nonces import nonce_of_command
from sealgate.server.memory import nonces_place
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import METHODS
from sealgate.venues.scheme import Scheme
from sealgate.venues.templates import names_in
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Venue

HIDDEN = "(hidden)"
_FORM = "application/x-www-form-urlencoded"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Request:
    """The request to sign, as the user gave it; `alias` None is the only key, `timestamp_ms` None is now."""

    method: str
    target: str
    body_file: Path | None
    alias: str | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request: the headers to add, and the exact bytes that were signed.

    `venue` is adapted to keys of this kind. `url` and `body` are as sent, with what the venue's file adds.
    `fingerprint` is that of the secret as the scheme uses it, or of a private key's public key. `nonce_words`
    name the source of the nonce if that is not the journal. Values that contain the key's secret or
    passphrase are HIDDEN.
    """

    exchange: ExchangeConfig
    venue: Venue
    alias: str
    method: str
    url: str
    target: Target
    body: bytes
    headers: dict[str, str]
    message: bytes
    fingerprint: str
    has_other_target: bool
    has_other_body: bool
    nonce_words: str

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts of the target that are sent but not signed, in order; none is empty."""
        query = f"?{self.target.query}" if self.target.query and not self.venue.signs_query else ""
        return tuple(part for part in (self.venue.prefix, query) if part)


def _signed(config: Config, exchange: ExchangeConfig, asked: Request) -> Signed:
    """Sign a request. Raises SecretError; exits with code 2 if the gateway would not send the request."""
    target = checked_target(asked.target, exchange.upstream.prefix)
    alias = chosen_alias(exchange, asked.alias)
    body = asked.body_file.read_bytes() if asked.body_file else b""
    sealer = build_key(config, exchange, alias, os.environ).sealer
    venue, method = exchange.venue.of_kind(sealer.scheme.kind), asked.method
    timestamp_ms = int(System().wall() * 1000) if asked.timestamp_ms is None else asked.timestamp_ms
    nonces = Nonces(venue.signing.nonce, System().unique, nonces_place(exchange, alias))
    nonce, nonce_words = nonce_of_command(config.journal.file, nonces, timestamp_ms)
    try:
        signed = sealer.sign(timestamp_ms, nonce, method, target, body)
    except UnsignableError as error:
        leave_with_error(f"bad_request: the request cannot be signed: {error}")
    secrets = venue.signing.names_with("secret", "passphrase")
    hidden = {name for name, text in venue.signing.headers if secrets & names_in(text)}
    message = sealer.message(timestamp_ms, nonce, method, target, body)
    if any(secrets & names_in(text) for text in venue.signing.message.values()):
        message = HIDDEN.encode()
    return Signed(
        exchange=exchange,
        venue=venue,
        alias=alias,
        method=method,
        url=f"{exchange.base_url}{signed[1]}",
        target=target,
        body=signed[2],
        headers={name: HIDDEN if name in hidden else value for name, value in headers_in(signed).items()},
        message=message,
        fingerprint=sealer.fingerprint(),
        has_other_target=signed[1] != target.raw,
        has_other_body=signed[2] != body,
        nonce_words=nonce_words,
    )


@click.command("sign")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False), metavar="METHOD")
@click.argument("target")
@config_option
@exchange_option("An exchange of the configuration.  [default: the only one, or the key's only one]")
@click.option(
    "--body",
    "body_file",
    type=_FILE,
    metavar="FILE",
    help="A file with the body, which is signed byte for byte.",
)
@click.option("--key", "alias", metavar="ALIAS", help="A key of the configuration.  [default: the only one]")
@click.option(
    "--timestamp",
    "timestamp_ms",
    type=click.IntRange(min=0),
    metavar="MS",
    help="Milliseconds since 1970.  [default: now, from this machine's clock]",
)
@click.option("--curl", "as_curl", is_flag=True, help="Print a curl command that sends the request.")
@json_option
def command(
    config_file: Path | None, exchange_name: str | None, *, as_curl: bool, as_json: bool, **request: Any
) -> None:
    """Print the headers that sign a request, and the exact string that is signed. Nothing is sent.

    The output includes the parameters that the venue's file adds to query or form.

    TARGET is the path and query as sent to the exchange: with the prefix, without the exchange's name, for
    example /v1/trade/symbols/list. The timestamp comes from this machine's clock; a running gateway uses the
    exchange's time.
    """
    if as_curl and as_json:
        raise click.UsageError("--curl and --json cannot be combined.")
    config, asked = load_config(config_file), Request(**request)
    exchange = chosen_exchange(config, exchange_name, asked.alias)
    signed = _signed(config, exchange, asked)
    if as_curl and HIDDEN in signed.headers.values():
        leave_with_error(
            "--curl: the command would show the key's secret or passphrase; send it through the gateway"
        )
    if as_curl:
        click.echo(shlex.join(_curl_words(signed, asked.body_file, exchange.upstream)))
    else:
        click.echo(_json(signed) if as_json else _text(signed))
    clock = "this machine's clock" if asked.timestamp_ms is None else "--timestamp"
    validity = _validity(signed, exchange.keys[signed.alias].recv_window_ms, clock)
    click.echo(f"sealgate: {'; '.join(('nothing was sent', *validity))}", err=True)
    if exchange.at and signed.target.path.startswith(f"/{exchange.name}/"):
        note = "begins with the exchange's name, which bots write but the gateway does not send"
        click.echo(
            f"sealgate: TARGET {note}; leave it out unless it is part of the exchange's own path", err=True
        )


def _validity(signed: Signed, window_ms: int, clock: str) -> Iterator[str]:
    """Yield the sources of timestamp and nonce, and how long the exchange accepts them."""
    venue = signed.venue
    if venue.signing.is_dated:
        if venue.states_window or window_ms != venue.recv_window_ms:
            yield f"the timestamp is from {clock} and valid for {window_ms / 1000:g} s"
        else:
            yield f"the timestamp is from {clock}"
            yield "the venue's file does not say how long it is valid"
    if signed.nonce_words:
        yield signed.nonce_words
    elif venue.signing.needs("nonce") and not venue.signing.is_dated:
        yield f"the nonce is from {clock}"


def _text(signed: Signed) -> str:
    """Return the headers, and the message as a Python bytes literal, which shows every byte.

    Target and body appear if the venue's file adds to them.
    """
    rows = {f"signed, {len(signed.message)} bytes": repr(signed.message)}
    if signed.has_other_target:
        rows["sent to"] = signed.url
    if signed.has_other_body:
        rows["sent body"] = repr(signed.body)
    if signed.venue.name == DEFAULT_VENUE:
        rows["sent, but not signed"] = " ".join(signed.left_out) or "nothing"
    signing = signed.venue.signing
    if signing.kind is Kind.HMAC:
        rows["secret"] = f"{signed.alias}, fingerprint {signed.fingerprint}, used as {signing.secret}"
    else:
        rows["secret"] = f"{signed.alias}, {in_words(signing.kind)}"
        rows["public key"] = f"fingerprint {signed.fingerprint}"
    rows["signature"] = _algorithm(signing)
    headers = [f"{name}: {value}" for name, value in signed.headers.items()]
    return "\n".join([*headers, "", *(f"{name + ':':<22}{value}" for name, value in rows.items())])


def _algorithm(signing: Scheme) -> str:
    """Return a description of the signature's algorithm and encoding."""
    digest = signing.digest.upper()
    if signing.kind is Kind.RSA:
        name = f"RSA {'PSS' if signing.padding == 'pss' else 'PKCS #1 v1.5'} with {digest}"
    elif signing.kind is not Kind.HMAC:
        name = {Kind.ED25519: "Ed25519", Kind.ES256: "ES256"}[signing.kind]
    elif not signing.message:
        return "none: the secret itself is sent"
    else:
        name = digest if signing.keeps_secret else f"HMAC-{digest}"
    return f"{name} in {signing.encoding}"


def _json(signed: Signed) -> str:
    signing = signed.venue.signing
    return json.dumps(
        {
            "method": signed.method,
            "url": signed.url,
            "headers": signed.headers,
            "string_to_sign": signed.message.decode("utf-8", "backslashreplace"),
            "string_to_sign_hex": signed.message.hex(),
            "body": signed.body.decode("utf-8", "backslashreplace"),
            "not_signed": signed.left_out,
            "exchange": signed.exchange.name,
            "key": signed.alias,
            "secret_fingerprint": signed.fingerprint,
            "venue": signed.venue.name,
            "signing": {
                "kind": signing.kind,
                "encoding": signing.encoding,
                "secret_is": signing.secret if signing.kind is Kind.HMAC else None,
                "target": signed.venue.signed_target,
            },
        }
    )


def _curl_words(signed: Signed, body_file: Path | None, upstream: Upstream) -> Iterator[str]:
    """Yield a shell command. It sends the URL unchanged: no globbing, no removal of dot segments.

    curl asks for the password of a proxy's user.
    """
    yield from ("curl", "--globoff", "--path-as-is")
    yield from ("--head",) if signed.method == "HEAD" else ("--request", signed.method)
    if upstream.ca_file:
        yield from ("--cacert", str(upstream.ca_file))
    if upstream.source:
        yield from ("--interface", upstream.source)
    if upstream.proxy:  # with socks5h, the proxy looks the name up
        yield from ("--proxy", str(upstream.proxy).replace("socks5:", "socks5h:", 1))
    for name, value in (*upstream.headers.items(), *signed.headers.items()):
        yield from ("--header", f"{name}: {value}")
    is_json = signed.venue.name == DEFAULT_VENUE or signed.body[:1] in (b"{", b"[")
    kind = "application/json" if is_json else _FORM
    if signed.has_other_body:
        yield from ("--header", f"Content-Type: {kind}", "--data-raw", signed.body.decode("utf-8"))
    elif body_file:
        yield from ("--header", f"Content-Type: {kind}", "--data-binary", f"@{body_file}")
    yield signed.url
