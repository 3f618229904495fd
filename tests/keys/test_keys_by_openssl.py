"""Private keys as OpenSSL's own command writes them, and their signatures as it verifies them."""

import itertools
import subprocess
from pathlib import Path

import pytest

from sealgate.keys.private_keys import PrivateKey, read_private_key
from sealgate.venues.key_kinds import Kind

pytestmark = pytest.mark.needs("openssl")
PASS = ("-passout", "pass:pw")
MAKES = {
    Kind.ED25519: "genpkey -algorithm ed25519",
    Kind.RSA: "genpkey -algorithm rsa -pkeyopt rsa_keygen_bits:2048",
    Kind.ES256: "genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256",
}
PLAIN = {
    "PKCS8 PEM": "pkey",
    "PKCS8 DER": "pkey -outform der",
    "PKCS1 or SEC1 PEM": "pkey -traditional",
    "PKCS1 or SEC1 DER": "pkey -traditional -outform der",
}
CIPHERS = ("aes-256-cbc", "aes-192-cbc", "aes-128-cbc", "des3")
OLDER_CIPHERS = ("aes-256-cbc", "aes-128-cbc", "des3")
HASHES = ("hmacWithSHA1", "hmacWithSHA224", "hmacWithSHA256", "hmacWithSHA384", "hmacWithSHA512")
ENCRYPTED = {
    "as it does by itself": "pkcs8 -topk8",
    "in DER": "pkcs8 -topk8 -outform der",
    "with more rounds": "pkcs8 -topk8 -iter 100000",
    **{
        f"by {cipher}, {digest}": f"pkcs8 -topk8 -v2 {cipher} -v2prf {digest}"
        for cipher, digest in itertools.product(CIPHERS, HASHES)
    },
    "by scrypt": "pkcs8 -topk8 -scrypt",
    **{f"in the older form by {cipher}": f"pkey -traditional -{cipher}" for cipher in OLDER_CIPHERS},
}


def openssl(command: str, *arguments: str, data: bytes = b"") -> bytes:
    return subprocess.run(
        ["openssl", *command.split(), *arguments],
        input=data,
        capture_output=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module", params=MAKES)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture(scope="module")
def file(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "key.pem"
    openssl(MAKES[kind], "-out", str(file))
    return file


def read(secret: bytes, passphrase: bytearray | None = None) -> PrivateKey:
    key = read_private_key(bytearray(secret), passphrase=passphrase)
    assert key is not None
    return key


def test_each_form_is_the_same_key(kind: Kind, file: Path) -> None:
    key = read(file.read_bytes())
    assert key.kind is kind
    spki = openssl("pkey -pubout -outform der", "-in", str(file))
    assert key.identity == openssl("dgst -sha256 -binary", data=spki)
    for name, command in PLAIN.items():
        if kind is not Kind.ED25519 or "traditional" not in command:
            assert read(openssl(command, "-in", str(file))).identity == key.identity, name
    for name, command in ENCRYPTED.items():
        if kind is not Kind.ED25519 or "traditional" not in command:
            secret = openssl(command, "-in", str(file), *PASS)
            assert read(secret, bytearray(b"pw")).identity == key.identity, name


def test_parameters_before_a_key_are_skipped() -> None:
    assert read(openssl("ecparam -name prime256v1 -genkey")).kind is Kind.ES256


def test_a_signature_is_verified_by_openssl(kind: Kind, file: Path, tmp_path: Path) -> None:
    signature = read(file.read_bytes()).signer("pkcs1v15", "sha256").sign(b"GET/api/v1/account")
    if kind is Kind.ES256:  # the command wants r and s in DER
        r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
        config = f"asn1=SEQUENCE:x\n[x]\nr=INTEGER:0x{r:x}\ns=INTEGER:0x{s:x}\n"
        (tmp_path / "asn1").write_text(config)
        openssl("asn1parse -noout", "-genconf", str(tmp_path / "asn1"), "-out", str(tmp_path / "signature"))
    else:
        (tmp_path / "signature").write_bytes(signature)
    (tmp_path / "message").write_bytes(b"GET/api/v1/account")
    command = "pkeyutl -verify -rawin" + (" -digest sha256" if kind is not Kind.ED25519 else "")
    said = openssl(
        command,
        *("-inkey", str(file), "-in", str(tmp_path / "message"), "-sigfile", str(tmp_path / "signature")),
    )
    assert b"Signature Verified Successfully" in said
