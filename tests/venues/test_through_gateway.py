"""What ccxt sends with a dummy key, through a running gateway: it arrives as ccxt signs with the real key.

Target, headers and body, byte for byte. The clock stands still, and nonces are ccxt's; nothing else of the
gateway is another one.
"""

from pathlib import Path
from typing import Any

import pytest

from rig.compiled import needs_sources
from rig.station import Station, running_station
from rig.upstream import Received, running_upstream
from venues.test_ccxt import HELD, name_of
from venues.through import Case, body_of, material, nonce_of, origin, signed_by_ccxt, target_of, venue_of

OWN = {"host", "content-length"}
ENVIRON = ("SECRET", "PASSPHRASE")


def raw_of(case: Case) -> bytes:
    """Return what ccxt's HTTP client would send to the gateway."""
    came, body = case["dummy"], body_of(case["dummy"])
    lines = [f"{came['method']} {target_of(came['url'])} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in came["headers"].items()]
    if body or came["method"] != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def fields_of(received: Received) -> list[tuple[str, str]]:
    fields = ((name.decode(), value.decode()) for name, value in received.fields)
    return sorted((name, value) for name, value in fields if name.lower() not in OWN)


def stand_still(station: Station, case: Case) -> None:
    """Sign as at the case's moment, for the host that ccxt knows."""
    tree = station.gateway.tree
    live_key, venue = tree.live_keys["main"], tree.config.venue
    for part, name, double in (
        (tree.clock, "timestamp_ms", lambda _now: case["now_ms"]),
        (live_key.stamps, "take", lambda now_ms, _content: now_ms),
        (live_key.nonces, "take", lambda _now_ms: nonce_of(venue, case)),
    ):
        setattr(part, name, double)
    live_key.key.sealer = venue.sealer(material(case), origin(case))


@needs_sources
@pytest.mark.parametrize("file", HELD, ids=name_of)
async def test_an_unmodified_bot_is_signed_as_ccxt_signs(file: Path, cases: dict[str, list[Case]]) -> None:
    signing = venue_of(file).signing
    api_key, secret, passphrase, uid = cases[file.stem][0]["key"]
    key = {"api_key": api_key, "secret": "env:SECRET"}
    key |= {"passphrase": "env:PASSPHRASE"} if signing.needs("passphrase") else {}
    key |= {"uid": uid} if signing.needs("uid") else {}
    environ = dict(zip(ENVIRON, (secret, passphrase), strict=True))
    async with running_upstream() as upstream:
        config: dict[str, Any] = {
            "venue": file.stem,
            "keys": {"main": key},
            "clock": {"path": "/v1/trade/time", "field": ""},
        }
        async with running_station(upstream, environ, **config) as station:
            for case in cases[file.stem]:
                stand_still(station, case)
                reply = await station.ask(raw_of(case))
                assert reply.status == 200, (case, reply)
                received, signed = upstream.received[-1], signed_by_ccxt(case)
                assert received.method.decode() == case["signed"]["method"]
                assert received.target.decode() == signed.target
                assert received.body == signed.body
                assert fields_of(received) == signed.headers
                assert b"dummy" not in received.raw
