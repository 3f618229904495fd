"""`sealgate check` with several exchanges: each is asked, and none waits or fails for another."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from rig.setups import JSON, SECRET, Setup, detail, raw_setup, to_signed
from rig.upstream import Act, Received, Upstream, hold_until, running_upstream
from rig.wire import reply

FINE = reply(b"200 OK", b'{"symbols": []}', JSON)
SIGNED_READ = b"/v1/trade/symbols/list"
TABLES = """
listen.tcp = "127.0.0.1:0"
admin = {{ tcp = "", unix = "{folder}/admin.sock" }}
[exchanges.spot]
base_url = "{spot}"
[exchanges.perp]
base_url = "{perp}"
[keys.both]
api_key = "ak-of-both"
secret = "file:both.secret"
exchanges = ["spot", "perp"]
[keys.alt]
api_key = "ak-of-perp"
secret = "file:alt.secret"
exchange = "perp"
[bots.grid]
token = "file:grid.token"
keys = ["both", "alt"]
"""


@dataclass
class Two:
    """A set-up with two exchanges that answer from scripts."""

    setup: Setup
    spot: Upstream
    perp: Upstream

    async def lines(self, *arguments: str, code: int = 0) -> list[str]:
        """Run the check, and return its lines with single spaces."""
        result = await self.setup.check(*arguments)
        assert result.exit_code == code, result.output
        return [" ".join(line.split()) for line in result.stdout.splitlines()]


@contextlib.asynccontextmanager
async def two_exchanges(folder: Path) -> AsyncIterator[Two]:
    async with running_upstream() as spot, running_upstream() as perp:
        setup = Setup(folder, hidden=[SECRET])
        setup.write("both.secret", SECRET)
        setup.write("alt.secret", SECRET[::-1])
        setup.write("grid.token", "a-token-as-long-as-those-of-this-program-are")
        setup.configure(TABLES.format(folder=folder, spot=spot.base_url, perp=perp.base_url))
        for upstream in (spot, perp):
            upstream.script = to_signed(FINE)
        yield Two(setup, spot, perp)


def keys_sent(upstream: Upstream) -> list[bytes]:
    """Return the API keys of the signed reads that came, in order."""
    keys = (one.head.value(b"X-SERVICE-APIKEY") for one in upstream.received)
    return [key for key in keys if key is not None]


async def test_each_is_asked_and_a_key_at_each_where_it_is_valid(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        lines = await two.lines()
        assert (keys_sent(two.spot), keys_sent(two.perp)) == ([b"ak-of-both"], [b"ak-of-both", b"ak-of-perp"])
    areas = [line.partition(" ")[2] for line in lines]
    for area in ("spot: clock", "spot: keys.both", "perp: clock", "perp: keys.both", "perp: keys.alt"):
        assert len([one for one in areas if one.startswith(f"{area} ")]) == 1, area
    # Secrets are read once, and belong to no exchange.
    assert len([one for one in areas if one.startswith("keys.both the secret is readable")]) == 1


async def test_one_of_them_alone(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        lines = await two.lines("--exchange", "perp")
        assert (two.spot.connections, keys_sent(two.perp)) == (0, [b"ak-of-both", b"ak-of-perp"])
    assert not any("spot" in line for line in lines)
    assert any(line.startswith("ok perp: keys.alt a signed read is accepted") for line in lines)


async def test_what_is_wrong_at_one_ends_nothing_at_another(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        two.spot.script = to_signed(detail("Invalid HMAC signature"))
        lines = await two.lines(code=1)
        assert [line[:19] for line in lines if line.startswith("fail")] == ["fail spot: keys.bot"]
        assert len([line for line in lines if line.startswith("ok perp: keys.")]) == 2
        two.spot.script = to_signed(detail("Rate limit exceeded", b"429 Too Many Requests"))
        lines = await two.lines()
    assert any(line.startswith("warn spot: exchange the rate limit is exceeded") for line in lines)
    assert len([line for line in lines if line.startswith("ok perp: keys.")]) == 2


async def test_an_exchange_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        two.setup.has(EXCHANGES__SPOT__BASE_URL="http://127.0.0.1:9")
        lines = await two.lines(code=1)
        assert len(keys_sent(two.perp)) == 2
    assert any(line.startswith("fail spot: exchange cannot be reached: ") for line in lines)


async def test_they_are_asked_at_the_same_time(tmp_path: Path) -> None:
    """The first to be told waits for the second to have been asked."""
    asked = asyncio.Event()

    def perp(request: Received) -> Act:
        asked.set()
        return to_signed(FINE)(request)

    async with two_exchanges(tmp_path) as two:
        two.spot.script = lambda request: hold_until(asked, to_signed(FINE)(request))
        two.perp.script = perp
        lines = await two.lines()
    found = [line for line in lines if "a signed read is accepted" in line]
    assert [line.split()[1] for line in found] == ["spot:", "perp:", "perp:"]


async def test_a_path_is_of_one_exchange(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        result = await two.setup.check("--path", "/v1/trade/orders")
        assert (result.exit_code, result.stdout, two.spot.connections) == (2, "", 0)
        assert "there are several exchanges; choose one with --exchange: spot, perp" in result.stderr
        await two.lines("--path", "/v1/trade/orders", "--exchange", "spot")
        assert [one.target for one in two.spot.received] == [b"/v1/trade/orders"] * 2


async def test_an_exchange_that_is_not_configured(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        result = await two.setup.check("--exchange", "prep")
    assert result.exit_code == 2
    assert result.stderr == "sealgate: error: --exchange: there is no exchange 'prep'; did you mean perp?\n"


async def test_an_example_that_is_left_keeps_nobody_else_from_being_asked(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        two.setup.has(KEYS__ALT__API_KEY="PASTE_THE_API_KEY")
        lines = await two.lines(code=1)
        assert (keys_sent(two.spot), two.perp.connections) == ([b"ak-of-both"], 0)
    assert any(line.startswith("warn perp: exchange not contacted") for line in lines)


async def test_a_command_that_is_recommended_names_the_exchange(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        two.spot.script = to_signed(detail("Invalid HMAC signature"))
        lines = await two.lines("--exchange", "spot", code=1)
    assert any("sealgate discover --exchange spot --key both --path /v1/trade" in line for line in lines)


async def test_json_says_the_exchange_of_each_finding(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        document = json.loads((await two.setup.check("--json")).stdout)
    found = [(one["exchange"], one["area"]) for one in document["findings"]]
    assert [one for one in found if one[1].startswith("keys.")] == [
        *(("", "keys.both"), ("", "keys.alt")),
        *(("spot", "keys.both"), ("perp", "keys.both"), ("perp", "keys.alt")),
    ]
    assert ("", "configuration") in found
    assert ("perp", "clock") in found


async def test_where_there_is_one_its_name_is_the_venue_s_and_no_line_needs_it(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        document = json.loads((await setup.check("--json")).stdout)
        lines = (await setup.check()).stdout
    assert {one["exchange"] for one in document["findings"]} == {"", "service"}
    assert "service" not in lines


async def test_the_settings_of_each_are_explained(tmp_path: Path) -> None:
    async with two_exchanges(tmp_path) as two:
        two.setup.has(LIMITS__QUEUE="7")
        lines = await two.lines("--offline", "--explain")
    assert "limits.queue 7 SEALGATE_LIMITS__QUEUE" in lines
    assert "exchanges.perp.limits.queue 7 common table" in lines
    [line] = [line for line in lines if line.startswith("ok configuration")]
    assert "13 settings from " in line
    assert "and 1 from the environment" in line
