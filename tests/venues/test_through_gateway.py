"""Each venue from end to end: what a running gateway sends, against what ccxt signed with the real key.

Nobody here wrote an expected value. One class of ccxt signs with the real key for the upstream's address;
another signs the same with dummy keys and a clock that is behind, for the gateway's. That is what a bot
sends, and what reaches the upstream must equal the first, byte for byte.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rig.bot import request
from rig.compiled import needs_sources
from rig.station import Settings, running_station
from rig.tls import Authority
from rig.upstream import Received, Upstream, running_upstream
from sealgate.exchange.kept_clock import KeptClock
from sealgate.exchange.stamps import Nonces, Stamps
from venues.calls import OF_EVERY_KIND, VENUES
from venues.through import (
    FILES,
    HERE,
    Case,
    Sent,
    load,
    nonces_of,
    settled,
    signed_by_ccxt,
    target_of,
)

SEED, ROUNDS = "2", "6"
OWN = (b"host", b"content-length")  # of the way from one program to the next
SAFE: Mapping[str, Any] = {"clock": {"required": False, "grace": 0}, "limits": {"known": "5000/1s"}}

# What needs `keys` by the file, and is signed in a way of its own.
OPENED = {
    "coinbase": ("DELETE /v2/accounts/9",),
    "indodax": ("POST /tapi",),
    "mercado": ("POST /tapi/v3",),
    "xt": ("POST /v4/withdraw",),
    "zaif": ("POST /tapi",),
}


def key_of(case: Case) -> tuple[Settings, dict[str, str]]:
    """Return a key of the configuration, and what the environment holds of it."""
    api_key, secret, passphrase, uid = case["key"]
    key = {"api_key": api_key, "secret": "env:SECRET", "passphrase": "env:PASSPHRASE", "uid": uid}
    return {"main": key}, {"SECRET": secret, "PASSPHRASE": passphrase}


def as_a_bot_sends(case: Case) -> bytes:
    came = case["dummy"]
    body = came["body"]
    fields = [f"{name}: {text}".encode() for name, text in came["headers"].items()]
    target = target_of(came["url"]).encode()
    return request(came["method"].encode(), target, *fields, body=None if body is None else body.encode())


def as_it_came(received: Received) -> Sent:
    fields = [(name, value) for name, value in received.fields if name.lower() not in OWN]
    headers = sorted((name.decode(), value.decode()) for name, value in fields)
    return Sent(received.target.decode(), headers, received.body)


def freeze(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Let the gateway sign at the moment, and with the nonce, at which ccxt did."""
    now_ms: int = case["now_ms"]
    nonces = nonces_of(case)
    monkeypatch.setattr(KeptClock, "timestamp_ms", lambda *_: now_ms)
    monkeypatch.setattr(Stamps, "take", lambda *_: now_ms)
    monkeypatch.setattr(Nonces, "take", lambda self, _: nonces[self.kind].encode())


async def signed_at(base_url: str) -> dict[str, list[Case]]:
    """Return what ccxt signs for an address, and of venues that it has no more what it signed once."""
    oracle = ("-m", "venues.oracle", SEED, ROUNDS, f"at={base_url}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *oracle, cwd=HERE.parent, stdout=asyncio.subprocess.PIPE
    )
    signed, _ = await process.communicate()
    assert process.returncode == 0
    return load(signed.decode()) | load((HERE / "recorded.jsonl").read_text("utf-8"))


async def differences(
    name: str, cases: Iterable[Case], upstream: Upstream, ca_file: str
) -> list[tuple[object, ...]]:
    """Send what a bot would; return where what arrives is not what ccxt signed.

    `name` is that of a venue, or of a kind of key there such as binance:rsa.
    """
    cases, venue = list(cases), name.partition(":")[0]
    keys, environ = key_of(cases[0])
    found: list[tuple[object, ...]] = []
    routes = [{"match": match, "needs": "trade"} for match in OPENED.get(venue, ())]
    settings: dict[str, Any] = {**SAFE, "keys": keys, "routes": routes, "upstream": {"ca_file": ca_file}}
    async with (
        running_station(upstream, environ, synced=False, venue=venue, **settings) as station,
        station.bot() as bot,
    ):
        for case in cases:
            upstream.received.clear()
            reply = await bot.ask(as_a_bot_sends(case))
            of_the_clock = (station.gateway.config.clock.path.encode(), b"/")
            arrived = [
                settled(case, as_it_came(one)) for one in upstream.received if one.target not in of_the_clock
            ]
            if arrived != [signed_by_ccxt(case)]:
                found.append((name, reply.status, reply.reason, arrived, signed_by_ccxt(case)))
            assert not any(b"dummy" in received.raw for received in upstream.received)
    return found


@needs_sources
async def test_what_reaches_the_upstream_is_what_ccxt_signs(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_upstream(authority.server_context()) as upstream:
        held = await signed_at(upstream.base_url)
        freeze(monkeypatch, next(iter(held.values()))[0])
        ca_file = authority.write(tmp_path)
        wrong = [one for name in held for one in await differences(name, held[name], upstream, ca_file)]
    assert not wrong, f"{len(wrong)} differ: {Counter(str(one[0]) for one in wrong)}\n{wrong[0]}"
    assert set(held) == set(OF_EVERY_KIND)
    assert set(VENUES) == {file.stem for file in FILES} - {"service"}
    assert min(map(len, held.values())) >= 6
    with capsys.disabled():
        kinds = len(held) - len(VENUES)
        requests = sum(map(len, held.values()))
        print(f"\n{len(VENUES)} venues, {kinds} further kinds of keys, {requests} requests")  # noqa: T201
