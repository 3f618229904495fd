"""`sealgate keys new`: make a private key, and print the public key to register at the exchange."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import unused_config_option
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.key_kinds import Kind

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_KINDS = [kind.value for kind in Kind if kind is not Kind.HMAC]
_BITS = ("2048", "3072", "4096")


@click.command("new")
@unused_config_option
@click.option("--kind", type=click.Choice(_KINDS), required=True, help="A kind that the exchange accepts.")
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write it.  [default: KIND.pem]",
)
@click.option("--bits", type=click.Choice(_BITS), help="The length of an RSA key, in bits.  [default: 2048]")
def command(kind: str, file: Path | None, bits: str | None) -> None:
    """Make a private key, and print the public key to register at the exchange.

    The private key goes to a new file that you alone can read; no file is ever replaced. `sealgate venues
    show NAME` says which kinds an exchange accepts. The exit code is 1 if the file exists already.
    """
    if bits is not None and kind != Kind.RSA:
        raise click.UsageError(f"--bits applies only to RSA; all {kind} keys have the same length.")

    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    from sealgate.machine.new_files import write_files
    from sealgate.machine.paths import way_fault
    from sealgate.machine.process import forbid_core_dumps

    file = file or Path(f"{kind}.pem")
    if (fault := way_fault(file)) is not None and not os.path.lexists(file):
        leave_with_error(f"{file}: {fault[0]}; {fault[1]}")
    forbid_core_dumps()
    key = _new_key(Kind(kind), int(bits or _BITS[0]))
    try:
        write_files({file: key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())})
    except FileExistsError:
        leave_with_error(f"{file} exists already and was not changed; pass another --out FILE", code=1)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    click.echo(f"wrote the private key to {file}; keep a copy where nobody else can read it. Next:", err=True)
    click.echo("- register this public key at the exchange, which then shows its API key", err=True)
    click.echo(f'- set api_key, and secret = "file:{file}", in [keys.NAME]', err=True)
    click.echo("- prove that it works: sealgate check", err=True)
    click.echo(public.decode("ascii"), nl=False)


def _new_key(kind: Kind, bits: int) -> "PrivateKeyTypes":
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if kind is Kind.RSA:
        return rsa.generate_private_key(65537, bits)
    return (
        ed25519.Ed25519PrivateKey.generate()
        if kind is Kind.ED25519
        else ec.generate_private_key(ec.SECP256R1())
    )
