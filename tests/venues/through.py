"""What a gateway would send for a request of a bot that signs with a dummy key, by a venue's file."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sealgate import venues
from sealgate.config.venues import built_in_venue
from sealgate.http.target import parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.routes import RouteTable
from sealgate.venues.venue import Venue
from venues.private_keys import WRITINGS, verifies

HERE = Path(__file__).parent
FOLDER = Path(venues.__file__).parent / "files"
FILES = sorted(FOLDER.glob("*.toml"))

# What ccxt has at these venues, too, and another file is for: here it needs `keys`, whatever it is.
OF_ANOTHER_FILE = {
    "alpaca": ("/v1/accounts/", "/v1beta1/"),  # for brokers, whose host is another one
    "mexc-contract": ("/api/v3/", "/open/"),
    "bitrue-futures": ("/api/v1/",),
    "digifinex": ("/swap/v2/",),
    "mercado": ("/api/v4/", "/v4/"),
    "tokocrypto": ("/api/v3/",),
    "bithumb": ("/info/", "/trade/"),
    "bithumb-v1": ("/v1/", "/v2/"),
    "cryptocom": ("/v2/", "/v1/"),  # outside its prefix
    "zebpay": ("/api/v1/",),
    "zebpay-swap": ("/api/v2/",),
}

Case = Mapping[str, Any]


class Sent(NamedTuple):
    """What reaches the upstream, as far as it is the bot's or the signer's."""

    target: str
    headers: list[tuple[str, str]]
    body: bytes


class Call(NamedTuple):
    """A method and a path, as a client of the exchange has them."""

    method: str
    path: str
    is_signed: bool = True


def venue_of(file: Path) -> Venue:
    return built_in_venue(file.stem)


def named(name: str) -> Venue:
    return built_in_venue(name)


def family(name: str) -> str:
    """Return the venue in whose name the lists here have what holds for a file that is like it, too."""
    return named(name).like or name


def is_at(name: str, host: str) -> bool:
    """Ask whether what ccxt sends to a host is for a venue; a file with `like` is for its host alone."""
    venue = named(name)
    return not venue.like or host == urlsplit(venue.base_url).netloc


@cache
def table_of(name: str) -> RouteTable:
    return RouteTable(named(name).routes)


def signed_by_ccxt(case: Case) -> Sent:
    signed = case["signed"]
    return Sent(target_of(signed["url"]), sorted(signed["headers"].items()), body_of(signed))


def signed_by_file(venue: Venue, case: Case) -> Sent:
    """Sign what ccxt sent with a dummy key: its own headers are dropped, its parameters cut out."""
    sealer = sealer_of(venue, material(case), origin(case))
    came = case["dummy"]
    target = parse_target(target_of(came["url"]), venue.prefix)
    nonce = nonces_of(case)[sealer.scheme.nonce].encode()
    lines, raw, body, _ = sealer.sign(case["now_ms"], nonce, came["method"], target, body_of(came))
    passed = [(name, text) for name, text in came["headers"].items() if name.lower() not in venue.own_headers]
    own = [tuple(line.split(": ", 1)) for line in lines.decode().split("\r\n")[:-1]]
    return Sent(raw, sorted(passed + own), body)  # type: ignore[operator] # each line has a name and a value


def settled(case: Case, sent: Sent) -> Sent:
    """Put ccxt's signature in the place of a private key's, where that verifies for what ccxt signed.

    It may be another one each time. All else of what was sent stays as it is.
    """
    if "proof" not in case:
        return sent
    proof, expected = case["proof"], signed_by_ccxt(case)
    message, signature = bytes.fromhex(proof["message"]), bytes.fromhex(proof["signature"])

    def replaced(ours: str, theirs: str) -> str:
        for write, read in WRITINGS:
            before, found, after = theirs.partition(write(signature))
            if found and ours.startswith(before) and ours.endswith(after):
                text = ours[len(before) : len(ours) - len(after)]
                with suppress(ValueError):
                    if write(read(text)) == text and verifies(proof["public"], message, read(text)):
                        return theirs
        return ours

    beside = dict(expected.headers)
    headers = [(name, replaced(text, beside.get(name, ""))) for name, text in sent.headers]
    body = replaced(sent.body.decode("latin-1"), expected.body.decode("latin-1")).encode("latin-1")
    return Sent(replaced(sent.target, expected.target), headers, body)


def material(case: Case) -> KeyMaterial:
    """Return the real key."""
    api_key, secret, passphrase, uid = case["key"]
    return KeyMaterial(api_key, bytearray(secret.encode()), passphrase, uid)


def nonces_of(case: Case) -> dict[str, str]:
    """Return what ccxt took for a nonce, by the kinds of a venue's file."""
    now_ms: int = case["now_ms"]
    return {
        "none": "",
        "s": f"{now_ms // 1000}",
        "s8": f"{now_ms // 1000}.{now_ms % 1000:03}00000",
        "ms": f"{now_ms}",
        "us": f"{now_ms}000",
        "ns": f"{now_ms}000000",
        "uuid": case["uuid"],
        "hex": case.get("hex", ""),  # what was recorded has none
    }


def target_of(url: str) -> str:
    parts = urlsplit(url)
    # HTTP clients leave out a bare "?", and so does this: ccxt's own clients never send one.
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def origin(case: Case) -> str:
    """Return where ccxt sends it: some venues have another host for futures, which is a setting."""
    parts = urlsplit(case["signed"]["url"])
    return f"{parts.scheme}://{parts.netloc}"


def body_of(request: Mapping[str, Any]) -> bytes:
    return (request["body"] or "").encode()


def load(lines: str) -> dict[str, list[Case]]:
    """Return the cases of each venue."""
    found: dict[str, list[Case]] = {}
    for line in lines.splitlines():
        case = json.loads(line)
        found.setdefault(case["venue"], []).append(case)
    return found


def printed_by(module: str, *arguments: str) -> str:
    """Return what another module prints, run by itself."""
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout
