"""`sealgate sign`: what the gateway would sign, and the headers that it would add. Sends nothing."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.frame import config_option, leave_with_error
from sealgate.config.venues import DEFAULT_VENUE
from sealgate.core.routes import METHODS

if TYPE_CHECKING:
    from sealgate.cli.signing import Request, Signed
    from sealgate.config import Config

_FORM = "application/x-www-form-urlencoded"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("sign")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False), metavar="METHOD")
@click.argument("target")
@config_option
@click.option("--body", "body_file", type=_FILE, metavar="FILE", help="The body, signed byte for byte.")
@click.option("--key", "alias", metavar="ALIAS", help="A key of the configuration.  [default: the only one]")
@click.option(
    "--timestamp",
    "timestamp_ms",
    type=click.IntRange(min=0),
    metavar="MS",
    help="Milliseconds since 1970.  [default: now, by this host's clock]",
)
@click.option("--curl", "as_curl", is_flag=True, help="Print a curl command that sends it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, *, as_curl: bool, as_json: bool, **request: Any) -> None:
    """Print the headers that sign a request, and the exact string that is signed. Nothing is sent.

    Where the venue's file adds to query or form, these are shown as they are sent.

    TARGET is path and query as they go on the wire, prefix included, as in /v1/trade/symbols/list. The
    timestamp is by this host's clock; the gateway itself goes by the exchange's.
    """
    if as_curl and as_json:
        raise click.UsageError("--curl excludes --json.")
    from sealgate.cli.signing import Request
    from sealgate.config import load_config

    _print(load_config(config_file), Request(**request), as_curl=as_curl, as_json=as_json)


def _print(config: "Config", asked: "Request", *, as_curl: bool, as_json: bool) -> None:
    from sealgate.cli.signing import HIDDEN, sign_request

    signed = sign_request(config, asked)
    if as_curl and HIDDEN in signed.headers.values():
        leave_with_error("--curl: the command would show the key's passphrase; send it through the gateway")
    if as_curl:
        click.echo(_curl(signed, asked.body_file, config.upstream.ca_file))
    else:
        click.echo(_json(signed) if as_json else _text(signed))
    clock = "this host's clock" if asked.timestamp_ms is None else "--timestamp"
    click.echo(f"sealgate: nothing was sent; {'; '.join(_age(config, signed, clock))}", err=True)


def _age(config: "Config", signed: "Signed", clock: str) -> Iterator[str]:
    """Yield where timestamp and nonce are from, and how long the exchange accepts them."""
    venue, window_ms = signed.venue, config.keys[signed.alias].recv_window_ms
    if venue.signing.needs("timestamp"):
        if venue.states_window or window_ms != venue.recv_window_ms:
            yield f"the timestamp is from {clock} and valid for {window_ms / 1000:g} s"
        else:
            yield f"the timestamp is from {clock}"
            yield "the venue's file does not say how long it is valid"
    if signed.nonce_words:
        yield signed.nonce_words
    elif not venue.signing.needs("timestamp"):
        yield f"the nonce is from {clock}"


def _text(signed: "Signed") -> str:
    """Return the headers, and the message as a Python bytes literal, in which every byte can be told.

    Target and body are shown where the venue's file adds to them.
    """
    signing = signed.venue.signing
    is_default = signed.venue.name == DEFAULT_VENUE
    added = [
        ("sent to", signed.url) if signed.has_other_target else None,
        ("sent body", repr(signed.body)) if signed.has_other_body else None,
        ("sent, but not signed", " ".join(signed.left_out) or "nothing") if is_default else None,
    ]
    rows = (
        (f"signed, {len(signed.message)} bytes", repr(signed.message)),
        *filter(None, added),
        ("secret", f"{signed.alias}, fingerprint {signed.fingerprint}, used as {signing.secret}"),
        ("signature", f"{_kind(signed)} in {signing.encoding}"),
    )
    headers = [f"{name}: {value}" for name, value in signed.headers.items()]
    return "\n".join([*headers, "", *(f"{name + ':':<22}{value}" for name, value in rows)])


def _kind(signed: "Signed") -> str:
    digest = signed.venue.signing.digest.upper()
    is_hmac = signed.venue.signing.secret != "appended"  # noqa: S105 - a name of a form
    return f"HMAC-{digest}" if is_hmac else digest


def _json(signed: "Signed") -> str:
    signing = signed.venue.signing
    document = {
        "method": signed.method,
        "url": signed.url,
        "headers": signed.headers,
        "string_to_sign": signed.message.decode("utf-8", "backslashreplace"),
        "string_to_sign_hex": signed.message.hex(),
        "body": signed.body.decode("utf-8", "backslashreplace"),
        "not_signed": signed.left_out,
        "key": signed.alias,
        "secret_fingerprint": signed.fingerprint,
        "venue": signed.venue.name,
        "signing": {
            "encoding": signing.encoding,
            "secret_is": signing.secret,
            "target": "path_and_query" if signed.venue.signs_query else "path",
        },
    }
    return json.dumps(document)


def _curl(signed: "Signed", body_file: Path | None, ca_file: Path | None) -> str:
    """Return a command for a shell. The URL is sent as it stands: no globs, no dot segments removed."""
    return shlex.join(_curl_words(signed, body_file, ca_file))


def _curl_words(signed: "Signed", body_file: Path | None, ca_file: Path | None) -> Iterator[str]:
    yield from ("curl", "--globoff", "--path-as-is")
    yield from ("--head",) if signed.method == "HEAD" else ("--request", signed.method)
    if ca_file:
        yield from ("--cacert", str(ca_file))
    for name, value in signed.headers.items():
        yield from ("--header", f"{name}: {value}")
    if signed.has_other_body:
        yield from ("--header", f"Content-Type: {_FORM}", "--data-raw", signed.body.decode("utf-8"))
    elif body_file:
        kind = "application/json" if signed.venue.name == DEFAULT_VENUE or signed.is_json else _FORM
        yield from ("--header", f"Content-Type: {kind}", "--data-binary", f"@{body_file}")
    yield signed.url
