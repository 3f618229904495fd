"""Hosts that are venues: `check` and a running gateway before exchanges that are as their documents say.

What each host says, and where, is written here a second time, from the same pages as the venues' files and
never read from those.
"""

import json
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rig.setups import JSON, lines_of, raw_setup
from rig.station import running_station
from rig.upstream import Act, Received, Script, running_upstream, say
from rig.wire import reply
from sealgate.config.venues import built_in_venue, venue_names
from sealgate.machine.system import System
from sealgate.venues.key_kinds import Kind
from venues.private_keys import FORMS, key_of
from venues.test_requests_at_venues import get

NOW = "NOW_MS"


class Host(NamedTuple):
    """Where it says its time ("" if nowhere) and in what; a read that wants a key, and what it answers."""

    time_path: str
    time: object
    read: str
    done: object = {}


def _okx(read: str) -> Host:
    return Host("/api/v5/public/time", {"code": "0", "data": [{"ts": NOW}]}, read, {"code": "0", "data": []})


_BYBIT = Host(
    "/v5/market/time", {"retCode": 0, "time": NOW}, "/v5/user/query-api", {"retCode": 0, "result": {}}
)
_HITBTC = Host("", None, "/api/3/spot/balance", [])
HOSTS = {
    "binanceusdm": Host("/fapi/v1/time", {"serverTime": NOW}, "/fapi/v2/account"),
    "binancecoinm": Host("/dapi/v1/time", {"serverTime": NOW}, "/dapi/v1/account"),
    "binance-papi": Host("", None, "/papi/v1/account"),
    "binance-options": Host("/eapi/v1/time", {"serverTime": NOW}, "/eapi/v1/account"),
    "binanceus": Host("/api/v3/time", {"serverTime": NOW}, "/api/v3/account"),
    "kucoinfutures": Host(
        "/api/v1/timestamp", {"code": "200000", "data": NOW}, "/api/v1/account-overview", {"code": "200000"}
    ),
    "htx-swap": Host(
        "/api/v1/timestamp",
        {"status": "ok", "ts": NOW},
        "/swap-api/v1/swap_api_trading_status",
        {"status": "ok"},
    ),
    "bittrade": Host(
        "/v1/common/timestamp", {"status": "ok", "data": NOW}, "/v1/account/accounts", {"status": "ok"}
    ),
    "bitmart-futures": Host("", None, "/contract/private/assets-detail", {"code": 1000}),
    "bybiteu": _BYBIT,
    "bybitid": _BYBIT,
    "myokx": _okx("/api/v5/account/config"),
    "okxus": _okx("/api/v5/account/config"),
    "gateeu": Host("/api/v4/spot/time", {"server_time": NOW}, "/api/v4/spot/accounts", []),
    "fmfwio": _HITBTC,
    "bequant": _HITBTC,
    "coinbaseinternational": Host(
        "/api/v2/public/get_time", {"result": NOW}, "/api/v2/private/get_subaccounts", {"result": []}
    ),
    "modetrade": Host(
        "/v1/public/system_info",
        {"success": True, "timestamp": NOW},
        "/v1/client/holding",
        {"success": True, "data": {"holding": []}},
    ),
    "alpaca-data": Host("", None, "/v2/stocks/meta/exchanges"),
    "weex-contract": Host("/capi/v3/market/time", {"serverTime": NOW}, "/capi/v3/account/balance", []),
    "zebpay-swap": Host("/api/v1/system/time", {"data": {"timestamp": NOW}}, "/api/v1/wallet/balance"),
}
# Requests or weights that one address may have in a minute, and what replies say of it.
PER_MINUTE = {
    "binanceusdm": 2400,
    "binancecoinm": 2400,
    "binance-papi": 6000,
    "binance-options": 400,
    "binanceus": 1200,
}
USED = b"X-MBX-USED-WEIGHT-1M: %d"


def test_each_file_that_is_like_another_is_here() -> None:
    assert {name for name in venue_names() if built_in_venue(name).like} == set(HOSTS)


def answering(host: Host, *fields: bytes) -> Script:
    """Answer as the host does: its time at one path, a read to whoever has a key, and nothing elsewhere."""

    def act(request: Received) -> Act:
        path = request.target.partition(b"?")[0].decode()
        date = b"Date: " + formatdate(usegmt=True).encode()
        now_ms = str(int(System().wall() * 1000))
        if path == host.time_path:
            return say(
                reply(b"200 OK", json.dumps(host.time).replace(f'"{NOW}"', now_ms).encode(), JSON, date)
            )
        has_key = b"ak-public-1" in request.raw or b"authorization:" in request.raw.lower()
        if path == host.read:
            status = b"200 OK" if has_key else b"401 Unauthorized"
            return say(reply(status, json.dumps(host.done).encode(), JSON, date, *fields))
        return say(reply(b"404 Not Found", b"", date))

    return act


@pytest.mark.parametrize("name", HOSTS)
async def test_check_finds_nothing_wrong_with_a_host_that_is_as_documented(tmp_path: Path, name: str) -> None:
    host, venue = HOSTS[name], built_in_venue(name)
    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE=name)
        for setting in venue.further_settings:
            value = (
                f"file:{setup.write('phrase', 'phrase-of-the-key')}" if setting == "passphrase" else "memo"
            )
            setup.has(**{f"KEYS__MAIN__{setting.upper()}": value})
        if venue.signing.kind is Kind.ED25519:
            setup.has(
                KEYS__MAIN__SECRET=f"file:{setup.write('main.pem', FORMS['pem'](key_of('ed25519', 'real')))}"
            )
        setup.answers(answering(host))
        result = await setup.check()
    assert result.exit_code == 0, result.stdout
    assert lines_of(result.stdout, "ok  clock"), result.stdout
    assert f"a signed read is accepted (GET {host.read}" in result.stdout


@pytest.mark.parametrize("name", PER_MINUTE)
async def test_the_limit_of_a_host_is_used_up_and_not_run_into(name: str) -> None:
    most, host = PER_MINUTE[name], HOSTS[name]
    assert {pool.name: pool.known for pool in built_in_venue(name).limits.pools}["weight"] == (f"{most}/60s",)
    settings: dict[str, Any] = {
        "venue": name,
        "clock": {"path": "/v1/trade/time", "field": ""},
        "keys": {"main": {"api_key": "ak-public-1", "secret": "env:EXCHANGE_SECRET"}},
    }
    asked = get(host.read, "X-Gateway-Deadline-Ms: 50")
    for used, is_full in ((most - 10, False), (most - 1, True)):
        async with running_upstream() as upstream, running_station(upstream, **settings) as station:
            upstream.answers.append(say(reply(b"200 OK", b"{}", USED % used)))
            first, *others = [await station.ask(asked) for _ in range(4)]
            assert first.status == 200
            assert any(other.outcome == "not_sent" for other in others) is is_full
