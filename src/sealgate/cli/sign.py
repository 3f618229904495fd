"""`sealgate sign`: what the gateway would sign, and the headers that it would add. Sends nothing."""

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.frame import config_option, fail
from sealgate.core.routes import METHODS
from sealgate.core.target import Target, parse_target
from sealgate.errors import Refusal

if TYPE_CHECKING:
    from sealgate.config import Config


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be signed, as the user gave it; `alias` None is the only key, `timestamp_ms` None is now."""

    method: str
    target: str
    body_file: Path | None
    alias: str | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request: its URL, the headers to add, and the exact bytes that the signature is over."""

    method: str
    url: str
    headers: dict[str, str]
    message: bytes


@click.command("sign")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False), metavar="METHOD")
@click.argument("target")
@config_option
@click.option(
    "--body",
    "body_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The body, signed byte for byte.",
)
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

    TARGET is path and query as they go on the wire, prefix included, as in /v1/trade/symbols/list. The
    timestamp is by this host's clock; the gateway itself goes by the exchange's.
    """
    if as_curl and as_json:
        raise click.UsageError("--curl and --json exclude each other.")
    from sealgate.config import load_config  # noqa: PLC0415 - `sealgate --help` must stay light

    config, asked = load_config(config_file), Request(**request)
    signed = _sign(config, asked)
    if as_curl:
        click.echo(_curl(signed, asked.body_file, config.upstream.ca_file))
    else:
        click.echo(_json(signed) if as_json else _text(signed))
    clock = "this host's clock" if asked.timestamp_ms is None else "--timestamp"
    click.echo(f"sealgate: nothing was sent; the timestamp is by {clock}", err=True)


def _sign(config: "Config", asked: Request) -> Signed:
    from sealgate.gateway.build import build_key  # noqa: PLC0415 - heavy, and only needed now
    from sealgate.gateway.host import Host  # noqa: PLC0415

    target = _target(asked.target, config.upstream.prefix)
    body = asked.body_file.read_bytes() if asked.body_file else b""
    timestamp_ms = int(Host().wall() * 1000) if asked.timestamp_ms is None else asked.timestamp_ms
    key = build_key(config, _alias(config, asked.alias), os.environ)
    return Signed(
        method=asked.method,
        url=f"{config.base_url}{target.raw}",
        headers=key.signing_headers(timestamp_ms, asked.method, target, body),
        message=key.signer.scheme.message(timestamp_ms, asked.method, target, body),
    )


def _target(raw: str, prefix: str) -> Target:
    try:
        return parse_target(raw, prefix)
    except Refusal as refusal:
        fail(f"{refusal.slug}: {refusal.detail} {refusal.reason.advice}")


def _alias(config: "Config", alias: str | None) -> str:
    aliases = ", ".join(config.keys)
    if alias is not None and alias not in config.keys:
        fail(f"--key: there is no key {alias!r}; choose one of {aliases}")
    if alias is None and len(config.keys) > 1:
        fail(f"there are several keys; choose one with --key: {aliases}")
    return alias or next(iter(config.keys))


def _text(signed: Signed) -> str:
    """Return the headers, and the message as a Python bytes literal: one line, and every byte told apart."""
    headers = [f"{name}: {value}" for name, value in signed.headers.items()]
    return "\n".join([*headers, "", f"signed, {len(signed.message)} bytes: {signed.message!r}"])


def _json(signed: Signed) -> str:
    document = {
        "method": signed.method,
        "url": signed.url,
        "headers": signed.headers,
        "string_to_sign": signed.message.decode("utf-8", "backslashreplace"),
        "string_to_sign_hex": signed.message.hex(),
    }
    return json.dumps(document)


def _curl(signed: Signed, body_file: Path | None, ca_file: Path | None) -> str:
    """Return a command for a shell. The URL is sent as it stands: no globs, no dot segments removed."""
    return shlex.join(_curl_words(signed, body_file, ca_file))


def _curl_words(signed: Signed, body_file: Path | None, ca_file: Path | None) -> Iterator[str]:
    yield from ("curl", "--globoff", "--path-as-is")
    yield from ("--head",) if signed.method == "HEAD" else ("--request", signed.method)
    if ca_file:
        yield from ("--cacert", str(ca_file))
    for name, value in signed.headers.items():
        yield from ("--header", f"{name}: {value}")
    if body_file:
        yield from ("--header", "Content-Type: application/json", "--data-binary", f"@{body_file}")
    yield signed.url
