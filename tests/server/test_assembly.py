"""A tree after another: what stays, what starts anew, and what cannot be made."""

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rig.admitted import answer, remainder
from rig.backends import only, the_exchange
from rig.generation import Scripted, generation_of
from rig.hand_host import HandHost
from rig.station import ENVIRON, KEY, make_config
from sealgate.config import Config
from sealgate.exchange.answer import Answer
from sealgate.keys.parts import read_parts, read_roster
from sealgate.keys.sources import SecretError
from sealgate.machine import process as machine
from sealgate.machine.process import StartError
from sealgate.request.admission import Ticket
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.generation import Generation
from sealgate.request.own_reads import ask
from sealgate.request.rules import build_rules
from sealgate.server.memory import nonces_place, subjects
from sealgate.server.services import build_generation, build_services
from sealgate.venues.routes import Auth, Lane, Permission

URL = "http://127.0.0.1:9"
PARTS = ("upstream", "clock", "clock_keeper", "scheduler", "stamps", "breaker")


@contextlib.asynccontextmanager
async def one_after_the_other(url: str, **tables: Any) -> AsyncIterator[tuple[Generation, Generation]]:
    """Make a tree of the usual settings, and one of others that follows it."""
    host = HandHost()
    async with generation_of(make_config(URL), host) as old, contextlib.AsyncExitStack() as ends:
        config = make_config(url, **tables)
        new = build_generation(config, read_parts(config, ENVIRON), host, InFlightRequests(), old)
        ends.push_async_callback(only(new).exchange.upstream.close)
        ends.push_async_callback(only(new).exchange.clock_keeper._upstream.close)
        yield old, new


def part(generation: Generation, name: str) -> object:
    exchange = only(generation).exchange
    return getattr(
        exchange.live_keys["main"] if name in {"scheduler", "stamps", "breaker"} else exchange, name
    )


CHANGED: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "nothing": (URL, {}, set()),
    "what bots may": (URL, {"bots": {"grid": {"uid": 1001}}}, set()),
    "how it is paced": (URL, {"limits": {"queue": 7, "known": ["20/s"]}}, set()),
    "another key": (URL, {"keys": {"main": {**KEY, "api_key": "ak-2"}}}, {"stamps", "breaker"}),
    "how long is waited": (
        URL,
        {"upstream": {"connect_timeout": 1.0}},
        {"upstream", "clock", "clock_keeper"},
    ),
    "how the time is asked for": (URL, {"clock": {"interval": 5.0}}, {"clock", "clock_keeper"}),
    "the way there": (
        URL,
        {"upstream": {"proxy": "http://127.0.0.1:3128"}},
        {"upstream", "clock", "clock_keeper"},
    ),
    "what is sent along": (
        URL,
        {"upstream": {"headers": {"x-simulated-trading": "1"}}},
        {"upstream", "clock", "clock_keeper"},
    ),
    "another exchange": ("http://localhost:9", {}, set(PARTS)),
}


@pytest.mark.parametrize(("url", "tables", "anew"), CHANGED.values(), ids=CHANGED)
async def test_what_starts_anew(url: str, tables: dict[str, Any], anew: set[str]) -> None:
    async with one_after_the_other(url, **tables) as (old, new):
        assert {name for name in PARTS if part(new, name) is not part(old, name)} == anew


def keys_of(*accounts: str | None) -> dict[str, Any]:
    """Return a key for each account; of a bybit key that has none nobody knows whose it is."""
    keys = {f"k{at}": {**KEY, "api_key": f"ak-{at}"} for at in range(len(accounts))}
    return {
        name: {**key, "account": account} if account else key
        for (name, key), account in zip(keys.items(), accounts, strict=True)
    }


VENUE = 'name = "plain"\nlike = "service"\n[limits]\nscope = "%s"\n'


async def places_of(
    scope: str, folder: Path, keys: dict[str, Any]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the pools that all requests of each key pass, and those that need none."""
    (folder / "plain.toml").write_text(VENUE % scope)
    config = make_config(URL, venue=str(folder / "plain.toml"), keys=keys)
    async with generation_of(config, HandHost()) as generation:
        lines = [only(generation).exchange.live_keys[name].membership.always for name in keys]
        nonces = {id(only(generation).exchange.live_keys[name].nonces) for name in keys}
        assert len(nonces) == len(keys)
        return lines, only(generation).exchange.gates.of_open.always


async def test_where_the_address_is_counted_all_share_one_limit_and_open_reads_too(
    tmp_path: Path,
) -> None:
    (one, two), of_open = await places_of("address", tmp_path, keys_of(None, None))
    assert one == two == of_open


async def test_where_the_account_is_counted_its_keys_share_one_limit(tmp_path: Path) -> None:
    lines, of_open = await places_of("account", tmp_path, keys_of("mine", "mine", "hers", None, None))
    assert lines[0] == lines[1]
    assert len({*lines, of_open}) == 5


async def test_limits_cannot_be_shared_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where it belongs, and names no package of ours, which an index may have from somebody else."""
    monkeypatch.setattr(machine, "has_redis", lambda: False)
    with pytest.raises(StartError, match=r"^limits\.redis: .+; .+, or remove the setting$") as told:
        async with generation_of(make_config(URL, limits={"redis": "redis://localhost/0"}), HandHost()):
            pass
    assert sys.prefix in str(told.value)
    assert "sealgate" not in str(told.value).replace(sys.prefix, "")


def config_of(folder: Path, tables: dict[str, Any]) -> Any:
    journal = {"journal": {"file": str(folder / "journal.db")}} if "journal" in tables else {}
    return make_config(URL, **tables | journal)


async def test_no_traceback_prints_the_environment() -> None:
    async with contextlib.AsyncExitStack() as ends:
        site, pipeline = build_services(make_config(URL), ENVIRON, HandHost(), ends)
        ends.push_async_callback(only(pipeline.generation).exchange.clock_keeper._upstream.close)
        assert ENVIRON["EXCHANGE_SECRET"] not in repr(site)


async def test_a_secret_that_cannot_be_read_comes_before_the_journal_is_made(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as ends:
        with pytest.raises(SecretError, match="env:EXCHANGE_SECRET: the variable is not set"):
            build_services(config_of(tmp_path, {"journal": {}}), {}, HandHost(), ends)
    with pytest.raises(FileNotFoundError):
        (tmp_path / "journal.db").stat()


TOKENS = {**ENVIRON, "T": "token-of-grid"}
PREFIX = {"upstream": {"prefix": "/api"}, "clock": {"path": "/api/time"}}


def rules(**tables: Any) -> Any:
    config = make_config("https://api.example.com", **tables)
    return build_rules(config, the_exchange(config), read_roster(config, TOKENS))


def test_without_bots_everybody_is_local_and_may_not_use_the_keys_own_routes() -> None:
    found = rules(keys={"alt": {"api_key": "ak-2", "secret": "env:EXCHANGE_SECRET"}})
    assert (found.local.name, found.local.keys) == ("local", ("main", "alt"))
    assert found.local.may == {Permission.READ, Permission.TRADE}
    assert rules(bots={"grid": {"token": "env:T"}}).local is None


def test_the_signing_headers_of_another_exchange_are_kept_from_bots() -> None:
    headers = rules(signing={"header_prefix": "X-EX-"}).headers
    assert headers.sort([(b"x_ex_apikey", b"a"), (b"X-Own", b"b")]).passed == b"X-Own: b\r\n"


def test_the_bounds_of_the_listener() -> None:
    found = rules(listen={"hosts": ["Gateway.local"], "max_body": "2 KiB"})
    assert found.hosts == {"gateway.local"}
    assert found.max_body == 2048


def test_a_row_of_the_settings_changes_what_it_names_and_no_more() -> None:
    """Its path has the prefix, which the table of routes does not know."""
    found = rules(
        **PREFIX,
        routes=[
            {"match": "POST /api/orders/query", "needs": "read", "lane": "read", "cost": 3},
            {"match": "POST /api/order", "cost": 2},
        ],
    )
    assert found.prefix == "/api"
    query, order, other = (
        found.routes.find("POST", path) for path in ("/orders/query", "/order", "/order/modify")
    )
    assert (query.needs, query.lane, query.cost) == (Permission.READ, Lane.READ, 3.0)
    assert (order.needs, order.lane, order.cost) == (Permission.TRADE, Lane.ORDER, 2.0)
    assert other.cost == 1.0


class Noting(Scripted):
    """It keeps what it was given."""

    given: tuple[Ticket, RequestContext]

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        self.given = ticket, context
        return await super().deliver(ticket, body, context)


@pytest.mark.parametrize(("max_wait_s", "waits_s"), [(0.0, 10.0), (60.0, 60.0)])
async def test_it_waits_a_while_also_where_bots_may_not(max_wait_s: float, waits_s: float) -> None:
    host = HandHost()
    async with generation_of(make_config(URL, limits={"max_wait": max_wait_s}), host) as tree:
        pipeline = Noting(only(tree), [answer(200)])
        assert (await ask(pipeline, "main", "/v1/trade/symbols/list", Lane.CANCEL, host)).status == 200
    ticket, context = pipeline.given
    assert (ticket.bot.name, ticket.key, ticket.target.raw) == (
        "(gateway)",
        "main",
        "/v1/trade/symbols/list",
    )
    assert (ticket.route.lane, ticket.route.auth, ticket.is_read) == (Lane.CANCEL, Auth.SIGNED, True)
    assert context.give_up_at == host.boot + waits_s
    assert context.ends_at == context.give_up_at + 10.0


async def test_of_a_large_reply_to_the_gateways_own_request_the_rest_is_not_read() -> None:
    ends, host = list[str](), HandHost()
    async with generation_of(make_config(URL), host) as tree:
        pipeline = Scripted(only(tree), [answer(200, b"first part", remainder=remainder(ends))])
        found = await ask(pipeline, "main", "/v1/trade/api-keys", Lane.READ, host)
    assert (found.body, ends) == (b"first part", ["closed"])


async def test_what_the_exchange_counts_together_has_one_line_also_under_two_names() -> None:
    """One address that is configured twice, for its prefix, say, is one exchange to its limits and nonces."""
    config = Config.model_validate(
        {
            "exchanges": {name: {"base_url": URL} for name in ("one", "two")},
            "keys": {"main": {**KEY, "exchanges": ["one", "two"]}},
        }
    )
    async with generation_of(config, HandHost()) as generation:
        one, two = (backend.exchange.live_keys["main"] for backend in generation.backends.values())
        assert one.scheduler is two.scheduler
        assert (one.stamps, one.nonces) == (two.stamps, two.nonces)
        assert one.breaker is not two.breaker


@pytest.mark.parametrize(
    ("upstream", "address"),
    [
        ({}, URL),
        ({"source": "127.0.0.1"}, f"{URL} from 127.0.0.1"),
        ({"proxy": "socks5://grid@127.0.0.1:1080"}, f"{URL} from socks5://grid@127.0.0.1:1080"),
    ],
)
def test_a_limit_by_address_is_one_for_each_address_that_the_exchange_sees(
    upstream: dict[str, str], address: str
) -> None:
    config = make_config(URL, venue="service", upstream=upstream).served["service"]
    key, account, by_address = subjects(config, "main")
    assert by_address == address
    assert key == account
    assert key.startswith(f"{URL} key ")
    assert KEY["api_key"] not in key, "it goes to Redis"
    assert set(subjects(config, None)) == {address}


def test_keys_without_an_api_key_are_told_apart_by_their_names() -> None:
    alone = {"api_key": "", "secret": "env:HEX"}
    config = the_exchange(make_config(URL, keys={"main": alone, "alt": alone}))
    assert subjects(config, "main").key != subjects(config, "alt").key
    assert nonces_place(config, "main") != nonces_place(config, "alt")
