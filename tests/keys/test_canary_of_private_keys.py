"""A private key appears nowhere; in memory are the numbers that OpenSSL signs with, and no other form.

Of a key that a passphrase opens, `cryptography` also leaves the DER that it decrypts.
"""

import base64
import json
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

from rig.canary import core_of
from rig.canary_gateway import FORGETFUL, contents, elsewhere, environ, serving
from rig.private_keys import (
    PRIVATE,
    VENUE,
    found_in,
    new_key,
    numbers,
    private,
    raw_forms,
    text_forms,
)
from rig.program import ended_program
from sealgate.venues.key_kinds import Kind

DER, PEM, TRADITIONAL = Encoding.DER, Encoding.PEM, PrivateFormat.TraditionalOpenSSL
PASSPHRASE = b"correct horse battery"
VENUES = {"pem": VENUE, "base64": VENUE.replace("ed25519 = {}", 'ed25519 = { key_text = "base64" }')}
has_memory = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="cores are taken as Linux does")


def pair(key: Any) -> bytes:
    return base64.b64encode(key.private_bytes_raw() + key.public_key().public_bytes_raw())


# How a key of a kind is stored.
STORED: dict[str, tuple[Kind, Callable[[Any], bytes]]] = {
    "Ed25519 in PEM": (Kind.ED25519, private),
    "Ed25519 in PEM, encrypted": (Kind.ED25519, lambda key: private(key, passphrase=PASSPHRASE)),
    "Ed25519 in base64": (Kind.ED25519, pair),
    "RSA in PEM on one line": (Kind.RSA, lambda key: private(key).replace(b"\n", b"\\n")),
    "RSA in DER": (Kind.RSA, lambda key: private(key, DER)),
    "RSA in PKCS1, encrypted": (Kind.RSA, lambda key: private(key, PEM, TRADITIONAL, PASSPHRASE)),
    "ES256 in JSON": (
        Kind.ES256,
        lambda key: json.dumps({"privateKey": private(key, PEM, TRADITIONAL).decode()}).encode(),
    ),
    "ES256 in DER, encrypted": (Kind.ES256, lambda key: private(key, DER, passphrase=PASSPHRASE)),
    "ES256 in base64": (Kind.ES256, lambda key: base64.b64encode(private(key, DER))),
}


def store(folder: Path, name: str, content: bytes) -> None:
    (folder / name).touch(mode=0o600)
    (folder / name).write_bytes(content)


def settings(folder: Path, name: str, key: Any, write: Callable[[Any], bytes]) -> dict[str, str]:
    """Store a key and its passphrase; return the settings of a gateway that signs with it."""
    key_text = "base64" if write is pair else "pem"
    (folder / "mine.toml").write_text(VENUES[key_text])
    store(folder, "main.secret", write(key))
    store(folder, "main.passphrase", PASSPHRASE)
    more = {"SEALGATE_KEYS__MAIN__SECRET_PASSPHRASE": "file:main.passphrase"} if "encrypted" in name else {}
    return elsewhere(str(folder / "mine.toml"), **more)


@pytest.mark.parametrize("kind", PRIVATE)
def test_every_form_of_a_private_key_is_found(kind: Kind) -> None:
    """The search itself can fail: each way in which a key is stored comes out, and another key does not."""
    key, other = new_key(kind), new_key(kind)
    for name, (of, write) in STORED.items():
        if of is kind and "encrypted" not in name:
            content = write(key).replace(b"\\n", b"\n")
            assert found_in(content, text_forms(key)), name
            assert not found_in(content, text_forms(other))
    for number in numbers(key).values():
        assert found_in(number, raw_forms(key))
        assert found_in(number[::-1], raw_forms(key))
        assert found_in(b"x" + number.hex().encode(), text_forms(key))
        assert found_in(str(int.from_bytes(number, "big")).encode(), text_forms(key))
        for at in range(3):
            assert found_in(base64.b64encode(b"x" * at + number), text_forms(key))


@has_memory
@pytest.mark.parametrize(("name", "kind", "write"), [(name, *stored) for name, stored in STORED.items()])
async def test_nothing_that_leaves_a_gateway_has_its_private_key_and_its_memory_no_text_of_it(
    tmp_path: Path, name: str, kind: Kind, write: Callable[[Any], bytes]
) -> None:
    """Neither the key that it signs with, nor the one before a reload."""
    key, successor = new_key(kind), new_key(kind)
    async with serving(tmp_path, settings=settings(tmp_path, name, key, write)) as gateway:
        store(tmp_path, "main.secret", write(successor))
        gateway.program.tell(signal.SIGHUP)
        await gateway.program.line('"reloaded"')
        core = core_of(gateway.process)
        place = Path(f"/proc/{gateway.process}")
        seen = {one: (place / one).read_bytes() for one in ("cmdline", "environ")}
        gateway.program.tell(signal.SIGTERM)
        assert await gateway.program.end() == 0
    assert b"ak-public-1" in core, "the core is not of the gateway's memory"
    for one in (key, successor):
        found = found_in(core, text_forms(one))
        assert {form for form in found if not ("encrypted" in name and " in DER" in form)} == set()
    assert PASSPHRASE not in core
    assert found_in(core, raw_forms(successor)), "it does not sign with it"
    left = contents(tmp_path)
    assert "journal.db" in left
    said = {"replies and pages": gateway.said, "output": gateway.program.output.encode()}
    for where, content in (said | seen | left).items():
        for one in (key, successor):
            assert found_in(content, {**raw_forms(one), **text_forms(one)}) == Counter(), where
        assert PASSPHRASE not in content, where


@has_memory
@pytest.mark.parametrize("kind", PRIVATE)
async def test_a_gateway_that_keeps_a_private_key_is_found_out(tmp_path: Path, kind: Kind) -> None:
    key = new_key(kind)
    changes = settings(tmp_path, "PEM", key, private)
    async with serving(tmp_path, ("-c", FORGETFUL), changes) as gateway:
        core = core_of(gateway.process)
    assert found_in(core, text_forms(key))


TROUBLES: dict[str, Mapping[str, str]] = {
    "a passphrase that does not open it": {"SEALGATE_KEYS__MAIN__SECRET_PASSPHRASE": "env:WRONG"},
    "another kind": {"SEALGATE_KEYS__MAIN__KIND": "hmac"},
    "an exchange that takes HMAC secrets": {"SEALGATE_VENUE": "kraken"},
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
@pytest.mark.parametrize("kind", PRIVATE)
async def test_no_refusal_to_start_has_a_private_key(
    tmp_path: Path, kind: Kind, trouble: Mapping[str, str]
) -> None:
    key = new_key(kind)
    changes = settings(tmp_path, "PEM", key, private)
    code, program = await ended_program(
        "serve", environ={**environ("http://127.0.0.1:9", WRONG="x"), **changes, **trouble}, folder=tmp_path
    )
    assert code == 2, program.output
    assert "sealgate: error: " in program.output
    forms = {**raw_forms(key), **text_forms(key)}
    assert found_in(program.output.encode(), forms) == Counter()


async def test_a_damaged_private_key_is_not_told(tmp_path: Path) -> None:
    key = new_key(Kind.RSA)
    changes = settings(tmp_path, "PEM", key, lambda key: private(key)[:-60])
    code, program = await ended_program(
        "serve", environ={**environ("http://127.0.0.1:9"), **changes}, folder=tmp_path
    )
    assert (code, "truncated or damaged" in program.output) == (2, True)
    assert found_in(program.output.encode(), {**raw_forms(key), **text_forms(key)}) == Counter()
