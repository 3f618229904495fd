"""A random secret appears nowhere: not in what the gateway prints, answers or writes, nor in its memory."""

import base64
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rig.canary import core_of, forms, found_in, new_canary
from rig.canary_gateway import FORGETFUL, contents, elsewhere, environ, serving
from rig.command import ended_command
from rig.program import ended_program
from sealgate.venues.encodings import SECRETS


@pytest.fixture
def canary() -> bytes:
    return new_canary()


@pytest.fixture
def folder(tmp_path: Path, canary: bytes) -> Path:
    file = tmp_path / "main.secret"
    file.touch(mode=0o600)
    file.write_bytes(canary + b"\n")
    return tmp_path


def test_every_form_is_found(canary: bytes) -> None:
    """The search itself can fail: what is hidden in each way comes out, and nothing else does."""
    for name, form in forms(canary).items():
        assert found_in(b"..." + form + b"...", canary)[name], name
    for pad in range(3):
        assert any("base64" in name for name in found_in(base64.b64encode(b"x" * pad + canary), canary))
    assert not found_in(new_canary(), canary)


async def test_nothing_that_leaves_the_process_has_it(folder: Path, canary: bytes) -> None:
    async with serving(folder) as gateway:
        place = Path(f"/proc/{gateway.process}")
        seen = {name: (place / name).read_bytes() for name in ("cmdline", "environ")}
        gateway.program.tell(signal.SIGTERM)
        assert await gateway.program.end() == 0
    files = contents(folder)
    assert "journal.db" in files
    said = {"replies and pages": gateway.said, "output": gateway.program.output.encode()}
    for name, content in (said | seen | files).items():
        assert found_in(content, canary) == Counter(), name


TROUBLES = {
    "a secret of another kind": {"SEALGATE_SIGNING__SECRET_IS": "hex"},
    "an address that cannot be had": {
        "SEALGATE_LISTEN__TCP": "192.0.2.1:1",
        "SEALGATE_BOTS__A__TOKEN": "env:T",
    },
    "a folder in place of a socket": {"SEALGATE_LISTEN__UNIX": "."},
    "the secret as a program": {"SEALGATE_KEYS__MAIN__SECRET": "cmd:/nowhere CANARY"},
}
# Told before anything is started.
MISTAKEN = {
    "the secret as a bot's token": {"SEALGATE_BOTS__A__TOKEN": "CANARY"},
    "the secret as a base URL": {"SEALGATE_BASE_URL": "https://CANARY@exchange.example"},
    "the secret as a path": {"SEALGATE_LISTEN__TLS_KEY": "CANARY"},
}


def troubled(canary: bytes, trouble: dict[str, str]) -> dict[str, str]:
    given = {name: value.replace("CANARY", canary.decode()) for name, value in trouble.items()}
    return environ("http://127.0.0.1:9", T="bot-token") | given


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
async def test_no_refusal_to_start_has_it(folder: Path, canary: bytes, trouble: dict[str, str]) -> None:
    code, program = await ended_program("serve", environ=troubled(canary, trouble), folder=folder)
    assert code == 2, program.output
    assert "sealgate: error: " in program.output
    assert found_in(program.output.encode(), canary) == Counter()


@pytest.mark.parametrize("mistake", MISTAKEN.values(), ids=MISTAKEN)
async def test_no_refusal_of_a_configuration_has_it(
    folder: Path, canary: bytes, monkeypatch: pytest.MonkeyPatch, mistake: dict[str, str]
) -> None:
    monkeypatch.chdir(folder)
    result = await ended_command("serve", environ=troubled(canary, mistake))
    assert result.exit_code == 2, result.output
    assert "sealgate: error: " in result.stderr
    assert found_in(result.output.encode(), canary) == Counter()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="cores are taken as Linux does")
async def test_a_core_of_the_running_gateway_has_no_copy(folder: Path, canary: bytes) -> None:
    """Neither of the secret that it signs with, nor of the one before a reload."""
    successor = new_canary()
    async with serving(folder) as gateway:
        (folder / "main.secret").write_bytes(successor)
        gateway.program.tell(signal.SIGHUP)
        await gateway.program.line('"reloaded"')
        core = core_of(gateway.process)
    assert b"ak-public-1" in core, "the core is not of the gateway's memory"
    assert found_in(core, canary) == found_in(core, successor) == Counter()
    assert found_in(gateway.program.output.encode(), successor) == Counter()


SECRET_IS = "SEALGATE_SIGNING__SECRET_IS"
PASSPHRASE = {"SEALGATE_KEYS__MAIN__PASSPHRASE": "file:main.passphrase"}
# A venue for each way to key an HMAC, and how its secret is stored.
KEYED: dict[str, tuple[dict[str, str], Callable[[bytes], bytes]]] = {
    "hex": ({SECRET_IS: "hex"}, lambda raw: raw.hex().encode()),
    "base64": (elsewhere("kraken"), base64.b64encode),
    "as_base64": (elsewhere("apex", **PASSPHRASE), bytes),
    "sha256hex": ({SECRET_IS: "sha256hex"}, bytes),
    "md5hex": (elsewhere("btcbox"), bytes),
    "with a passphrase that is signed": (elsewhere("kucoin", **PASSPHRASE), bytes),
}


def test_each_way_to_key_an_hmac_has_its_canary() -> None:
    assert {*SECRETS} - {"utf8", "appended"} <= {*KEYED}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="cores are taken as Linux does")
@pytest.mark.parametrize(("settings", "store"), KEYED.values(), ids=KEYED)
async def test_no_way_to_key_an_hmac_leaves_a_copy_in_memory(
    folder: Path, canary: bytes, settings: dict[str, str], store: Callable[[bytes], bytes]
) -> None:
    """Neither as it was stored nor decoded. A passphrase stays, because each request needs it."""
    successor, passphrase = new_canary(), new_canary()
    (folder / "main.passphrase").touch(mode=0o600)
    (folder / "main.passphrase").write_bytes(passphrase)
    (folder / "main.secret").write_bytes(store(canary))
    async with serving(folder, settings=settings) as gateway:
        (folder / "main.secret").write_bytes(store(successor))
        gateway.program.tell(signal.SIGHUP)
        await gateway.program.line('"reloaded"')
        core = core_of(gateway.process)
    assert b"ak-public-1" in core, "the core is not of the gateway's memory"
    for form in {canary, successor, store(canary), store(successor)}:
        assert found_in(core, form) == Counter()
    for secret in (canary, successor, passphrase):
        assert found_in(gateway.program.output.encode() + gateway.said, secret) == Counter()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="cores are taken as Linux does")
@pytest.mark.parametrize("venue", ["coinex", "mudrex", "luno"])
async def test_a_secret_that_is_hashed_last_or_sent_stays_in_memory_and_goes_nowhere_else(
    folder: Path, canary: bytes, venue: str
) -> None:
    """So SECURITY.md says: no state of a hash can be prepared for it, or requests carry it."""
    async with serving(folder, settings=elsewhere(venue)) as gateway:
        core = core_of(gateway.process)
    assert found_in(core, canary)["plain"] >= 1
    assert found_in(gateway.program.output.encode() + gateway.said, canary) == Counter()


async def test_a_gateway_that_keeps_the_secret_is_found_out(folder: Path, canary: bytes) -> None:
    start = ("-c", FORGETFUL)
    async with serving(folder, start) as gateway:
        core = core_of(gateway.process)
    assert found_in(core, canary)
