"""Reload on real sockets: what is taken over, what is replaced, and what a bad configuration changes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from structlog.testing import capture_logs

from rig.backends import only, pipeline_of, the_exchange
from rig.bot import request
from rig.kept_limit import kept
from rig.oracle import signature
from rig.private_keys import VENUE, new_key, private
from rig.site import LISTEN, Site, running_site, write
from rig.tls import Authority
from rig.upstream import Received, Upstream, Wire, hold_until, running_upstream, say, say_and_stall
from rig.wire import OK, PATIENCE_S, reply
from sealgate.config import Config, ConfigError
from sealgate.keys.watch import SecretWatch, State
from sealgate.limits.scheduler import RateScheduler
from sealgate.limits.snapshots import Snapshot
from sealgate.orders.halts import Scope
from sealgate.request.key_care import KeyCare
from sealgate.server.memory import subjects
from sealgate.server.reload import ReloadError
from sealgate.venues.key_kinds import Kind

ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
PROBE = b"/v1/trade/symbols/list"
SIGNATURE = reply(b"401 Unauthorized", b'{"detail":"Invalid HMAC signature"}')


def signed_with(received: Received) -> str:
    """Return the secret that a request was signed with."""
    fields = {name.upper(): value for name, value in received.fields}
    found = fields[b"X-SERVICE-SIGNATURE"].decode()
    stamp = fields[b"X-SERVICE-TIMESTAMP"]
    secrets = ("first", "second", "third")
    return next(
        secret
        for secret in secrets
        if signature(secret.encode(), stamp, received.method, received.target, received.body) == found
    )


@pytest.fixture
async def site(upstream: Upstream, tmp_path: Path) -> AsyncIterator[Site]:
    async with running_site(upstream, tmp_path) as running:
        yield running


async def test_a_new_secret_is_tried_and_then_used(site: Site) -> None:
    write(site.secret, "second")
    assert await site.reload() == ()
    assert (await site.station.ask(ORDER)).status == 200
    probe, order = site.upstream.received
    assert (probe.target, signed_with(probe), signed_with(order)) == (PROBE, "second", "second")
    assert site.gateway.status().reloads == {"ok": 1, "unchanged": 0, "failed": 0}


async def test_a_secret_that_the_exchange_refuses_changes_nothing(site: Site) -> None:
    before = pipeline_of(site.gateway)
    site.upstream.answers.append(say(SIGNATURE))
    write(site.secret, "second")
    with pytest.raises(
        ReloadError, match="a signed read was answered 401: the exchange refuses the signature"
    ):
        await site.reload()
    assert pipeline_of(site.gateway) is before
    assert (await site.station.ask(ORDER)).status == 200
    assert signed_with(site.upstream.received[-1]) == "first"
    assert site.gateway.status().reloads == {"ok": 0, "unchanged": 0, "failed": 1}
    assert site.gateway.status().keys[0].is_active


async def test_an_exchange_that_cannot_be_reached_is_a_warning(site: Site) -> None:
    site.upstream.door.shut()
    site.upstream.cut_all()
    write(site.secret, "second")
    (warning,) = await site.reload()
    assert "could not be tested" in warning
    site.upstream.door.reopen()
    assert (await site.station.ask(ORDER)).status == 200
    assert signed_with(site.upstream.received[-1]) == "second"


async def test_other_certificates_in_the_same_file_count(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.server.reload._FIRST_SAMPLE_S", 0.5)
    ca_file = tmp_path / "ca.pem"
    ours, others = authority.pem, Authority().pem
    write(ca_file, ours)
    async with (
        running_upstream(authority.server_context()) as exchange,
        running_site(exchange, tmp_path, upstream={"ca_file": str(ca_file)}) as site,
    ):
        before = only(site.gateway.generation).exchange.upstream
        assert await site.reload() == ()
        assert only(site.gateway.generation).exchange.upstream is before
        write(ca_file, ours + others)
        assert await site.reload() == ()
        after = only(site.gateway.generation)
        assert after.exchange.upstream is not before
        write(ca_file, others)
        with pytest.raises(ReloadError, match=r"its certificate is refused .*; correct base_url, \[clock\]"):
            await site.reload()
        assert only(site.gateway.generation) is after
        assert (await site.station.ask(ORDER)).status == 200


async def test_a_clock_that_cannot_be_read_is_a_warning_where_the_old_one_could_not_either(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.server.reload._FIRST_SAMPLE_S", 0.1)
    monkeypatch.setattr(
        "sealgate.exchange.kept_clock.KeptClock.not_ready", "clock not synchronized: no sample yet"
    )
    site.upstream.time = say(reply(b"404 Not Found", b""))
    site.tables["clock"] = {"interval": 20.0}
    (warning,) = await site.reload()
    assert warning.startswith("The exchange's time is unknown: clock not synchronized: ")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda site: setattr(site, "error", ConfigError(["sealgate.toml: keys: names no key; add one"])),
        lambda site: site.secret.unlink(),
        lambda site: site.tables.update(keys={}),
    ],
    ids=["configuration", "no file", "no key"],
)
async def test_a_bad_configuration_changes_nothing(site: Site, spoil: Callable[[Site], object]) -> None:
    before = pipeline_of(site.gateway)
    spoil(site)
    with pytest.raises(ReloadError, match="; "):
        await site.reload()
    assert pipeline_of(site.gateway) is before
    assert (await site.station.ask(ORDER)).status == 200


async def test_what_is_under_way_ends_on_the_old_connections(site: Site) -> None:
    go = asyncio.Event()
    old = only(site.gateway.generation).exchange.upstream
    site.upstream.answers.append(hold_until(go, say(OK)))
    async with running_upstream() as other, site.station.bot() as bot:
        await bot.send(ORDER)
        await site.upstream.until_received(1)
        site.base_url = other.base_url
        assert await site.reload() == ()
        assert only(site.gateway.generation).exchange.upstream is not old
        assert (await site.station.ask(ORDER)).status == 200
        assert [received.target for received in other.received] == [PROBE, b"/v1/trade/order"]
        go.set()
        assert (await bot.reply(b"POST")).status == 200
        assert (await bot.ask(ORDER)).status == 200  # the same bot's next one goes the new way
        await site.station.until(lambda: old.is_closed)
        assert len(other.received) == 3
        assert len(site.upstream.received) == 1
        site.base_url = site.upstream.base_url
        await site.reload()  # the other one ends before the gateway does


async def test_a_waiting_order_goes_with_the_key_it_came_for(site: Site) -> None:
    site.upstream.answers.append(say(reply(b"429 Too Many Requests", b"", b"Retry-After: 1")))
    async with site.station.bot() as bot:
        await bot.send(ORDER)
        await site.station.until(lambda: site.gateway.status().keys[0].pause_s > 0)
        write(site.secret, "second")
        await site.reload()
        assert (await bot.reply(b"POST")).status == 200
    orders = [received for received in site.upstream.received if received.target != PROBE]
    assert [signed_with(received) for received in orders] == ["first", "first"]


async def test_what_was_learned_of_a_key_stays_with_it_under_another_alias(site: Site) -> None:
    before = only(site.gateway.generation).exchange.live_keys["main"]
    key = {"api_key": "ak-1", "secret": f"file:{site.secret}"}
    site.tables["keys"] = {"renamed": key}
    await site.reload()
    after = only(site.gateway.generation).exchange.live_keys["renamed"]
    assert (after.scheduler, after.stamps) == (before.scheduler, before.stamps)


async def test_an_order_that_came_before_a_reload_is_refused_after_the_shutdown_began(site: Site) -> None:
    async with site.station.bot() as bot:
        head, body = ORDER[:-1], ORDER[-1:]
        await bot.send(head)
        await site.station.until(lambda: site.gateway.handler.inflight == 1)
        await site.reload()
        drained = asyncio.ensure_future(site.gateway.drain())
        await site.station.until(lambda: site.gateway.status().is_draining)
        await bot.send(body)
        answer = await bot.reply(b"POST")
        assert (answer.status, answer.reason) == (503, "draining")
    await drained
    assert site.upstream.received == []


async def test_other_pacing_settings_end_no_pause_and_leave_who_waits_in_line(site: Site) -> None:
    site.upstream.answers.append(say(reply(b"429 Too Many Requests", b"", b"Retry-After: 20")))
    async with site.station.bot() as bot:
        await bot.send(ORDER)
        await site.station.until(lambda: site.gateway.status().keys[0].waiting["order"] == 1)
        site.tables["limits"] = {"queue": 1, "known": ["20/s"]}
        await site.reload()
        (key,) = site.gateway.status().keys
        assert key.pause_s > 0
        assert key.waiting["order"] == 1
        assert [limit.n for limit in key.limits] == [20.0]
        assert (await site.station.ask(ORDER)).reason == "queue_full"


async def test_a_pool_that_is_new_or_has_another_limit_holds_at_once(site: Site) -> None:
    site.upstream.script = lambda _: say(reply(b"200 OK", b"{}"))
    assert (await site.station.ask(ORDER)).status == 200
    orders = {"scope": "key", "lanes": ["order"], "known": ["1/60s"]}
    site.tables["limits"] = {"max_wait": 1, "pools": {"all": {"known": ["50/s"]}, "orders": orders}}
    assert await site.reload() == ()
    assert (await site.station.ask(ORDER)).status == 200
    assert (await site.station.ask(ORDER)).reason == "deadline_exceeded"
    (key,) = site.gateway.status().keys
    assert {pool.pool: [limit.n for limit in pool.limits] for pool in key.pools} == {
        "all": [50.0],
        "orders": [1.0],
    }
    site.tables["limits"]["pools"] = {}
    await site.reload()
    assert (await site.station.ask(ORDER)).status == 200


async def test_what_only_a_restart_changes_is_told_and_kept(site: Site) -> None:
    site.tables.update(listen={**LISTEN, "max_connections": 7, "max_body": 100}, log={"level": "debug"})
    warnings = await site.reload()
    assert warnings == (
        "listen.max_connections takes effect after a restart",
        "log.level takes effect after a restart",
    )
    assert site.gateway.config.listen.max_connections == 1000
    assert site.gateway.config.listen.max_body == 100
    assert len(await site.reload()) == 2  # as long as it is so


async def test_halts_and_answers_that_are_known_stay_also_under_another_key(site: Site) -> None:
    message = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k1", body=b"{}")
    first = await site.station.ask(message)
    await site.gateway.halt(Scope())
    site.tables["keys"] = {"main": {"api_key": "ak-2", "secret": f"file:{site.secret}"}}
    await site.reload()
    assert (await site.station.ask(ORDER)).reason == "halted"
    again = await site.station.ask(message)
    assert (again.status, again.body, again.attempts) == (200, first.body, 0)
    assert site.upstream.receipts(b"/v1/trade/order") == 1


@asynccontextmanager
async def before_another_address(upstream: Upstream, folder: Path) -> AsyncIterator[Site]:
    """Run a gateway with a journal, whose next reload reaches the exchange under another address."""
    async with running_site(upstream, folder, journal={"file": str(folder / "journal.db")}) as site:
        site.base_url = upstream.base_url.replace("127.0.0.1", "localhost")
        yield site


async def test_another_exchange_is_remembered_in_the_journal(upstream: Upstream, tmp_path: Path) -> None:
    async with before_another_address(upstream, tmp_path) as site:
        assert await site.reload() == ()
        keeper = site.gateway.services.keeper
        assert keeper is not None
        assert list(keeper._schedulers) == [site.base_url]


async def test_what_the_journal_has_of_another_exchange_holds_for_its_trial(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read where a slow disk holds nobody up."""
    known: list[Mapping[str, Snapshot]] = []

    def learned(_database: object, exchange: str, wall: float) -> tuple[dict[str, Snapshot], dict[str, str]]:
        assert exchange == upstream.base_url.replace("127.0.0.1", "localhost")
        assert wall > 0
        assert threading.current_thread() is not threading.main_thread()
        place = subjects(the_exchange(site.load()), "main").key + " | all"
        return {place: kept(20.0, 1.0)}, {}

    def restore(scheduler: RateScheduler, kept: Mapping[str, Snapshot]) -> None:
        assert upstream.received == []
        known.append(kept)
        original(scheduler, kept)

    original = RateScheduler.restore
    async with before_another_address(upstream, tmp_path) as site:
        monkeypatch.setattr("sealgate.orders.journal.learned.read_limits", learned)
        monkeypatch.setattr(RateScheduler, "restore", restore)
        assert await site.reload() == ()
        assert len(known) == 1
        assert site.gateway.status().keys[0].limits[0].window_s == 1.0


@pytest.fixture
def first_reads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.request.key_care._LOOK_S", 0.01)
    monkeypatch.setattr("sealgate.request.key_care._FIRST_READ_S", 0.01)


@pytest.mark.usefixtures("first_reads_at_once")
async def test_what_the_first_read_was_to_tell_of_the_old_secret_is_not_heard(
    upstream: Upstream, tmp_path: Path
) -> None:
    """The trial of the new one has told enough."""
    cut = asyncio.Event()

    async def until_cut(wire: Wire) -> None:
        await wire.peer_gone()
        cut.set()

    upstream.answers.append(until_cut)
    with capture_logs() as logs:
        async with running_site(upstream, tmp_path) as site:
            await upstream.until_received(1)
            write(site.secret, "second")
            assert await site.reload() == ()
            await asyncio.wait_for(cut.wait(), PATIENCE_S)
            await site.station.until(lambda: not site.gateway.services.untried)
    assert [signed_with(received) for received in upstream.received] == ["first", "second"]
    assert [line["event"] for line in logs if line["event"].startswith(("key_", "signatures_"))] == []


@pytest.mark.usefixtures("first_reads_at_once")
async def test_a_first_read_that_a_reload_cuts_short_is_made_up_for(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.answers.extend([say_and_stall(), say(SIGNATURE)])
    async with running_site(upstream, tmp_path) as site:
        await upstream.until_received(1)
        assert await site.reload() == ()
        await site.station.until(lambda: not site.gateway.services.untried)
        assert site.gateway.status().keys[0].trouble == "the exchange refused its last signature"
    assert [received.target for received in upstream.received] == [PROBE] * 2


async def test_keys_that_are_not_in_use_yet_are_not_looked_after(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(care: KeyCare) -> None:
        looked_after.append(care._pipeline)

    looked_after: list[object] = []
    monkeypatch.setattr(KeyCare, "run", run)
    go = asyncio.Event()
    site.upstream.answers.append(hold_until(go, say(OK)))
    write(site.secret, "second")
    reload = asyncio.ensure_future(site.reload())
    await site.upstream.until_received(1)
    assert looked_after == []
    go.set()
    assert await reload == ()
    await site.station.until(lambda: looked_after == [pipeline_of(site.gateway)])


async def test_a_journal_that_fails_changes_nothing(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no JSON")

    async with before_another_address(upstream, tmp_path) as site:
        before = site.gateway.handler.router
        monkeypatch.setattr("sealgate.orders.journal.learned.read_limits", fail)
        with pytest.raises(ReloadError, match="report it"):
            await site.reload()
        assert site.gateway.handler.router is before
        assert set(site.gateway.services.background._tasks) == set(site.gateway.services.work(before))
        assert (await site.station.ask(ORDER)).status == 200


async def test_no_reload_while_it_shuts_down(site: Site) -> None:
    await site.gateway.drain()
    with pytest.raises(ReloadError, match="shutting down"):
        await site.reload()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.keys.watch._LOOK_S", 0.01)


async def test_secret_files_are_looked_at_beside_the_loop(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of another machine may take its time, while requests go on."""
    snapshot, threads = SecretWatch.snapshot, set[str]()

    def noted(self: SecretWatch, config: Config) -> State:
        threads.add(threading.current_thread().name)
        return snapshot(self, config)

    monkeypatch.setattr(SecretWatch, "snapshot", noted)
    await site.reload()
    assert threads
    assert threading.current_thread().name not in threads


async def test_the_same_key_in_another_form_is_no_change(upstream: Upstream, tmp_path: Path) -> None:
    """Nonces and what was learned stay, and nothing is tried at the exchange."""
    key, venue, files = new_key(Kind.ES256), tmp_path / "mine.toml", [tmp_path / "a", tmp_path / "b"]
    venue.write_text(VENUE)
    for file, content in zip(files, (private(key), private(key, passphrase=b"open")), strict=True):
        write(file, content.decode())
    write(tmp_path / "phrase", "open")
    clock, prefix = {"path": "/v1/trade/time"}, {"prefix": "/v1/trade"}
    first = {"api_key": "ak-1", "secret": f"file:{files[0]}"}
    other = {
        "api_key": "ak-1",
        "kind": "es256",
        "secret": f"file:{files[1]}",
        "secret_passphrase": f"file:{tmp_path / 'phrase'}",
    }
    tables = {"venue": str(venue), "clock": clock, "upstream": prefix, "keys": {"main": first}}
    async with running_site(upstream, tmp_path, **tables) as site:
        before = only(site.gateway.generation).exchange.live_keys["main"]
        files[0].write_bytes(private(key, Encoding.DER))
        assert await site.reload() == ()
        site.tables["keys"] = {"main": other}
        assert await site.reload() == ()
        assert site.gateway.status().reloads == {"ok": 0, "unchanged": 2, "failed": 0}
        after = only(site.gateway.generation).exchange.live_keys["main"]
        assert (after.nonces, after.stamps, after.breaker) == (before.nonces, before.stamps, before.breaker)
        assert after.scheduler is before.scheduler
        assert (await site.station.ask(ORDER)).status == 200
        write(files[1], private(new_key(Kind.ES256), passphrase=b"open").decode())
        await site.reload()
        assert site.gateway.status().reloads == {"ok": 1, "unchanged": 2, "failed": 0}


@pytest.mark.usefixtures("quick")
async def test_a_changed_file_reloads(site: Site) -> None:
    write(site.secret, "second")
    await site.station.until(lambda: site.gateway.status().reloads["ok"] == 1)
    assert (await site.station.ask(ORDER)).status == 200
    assert signed_with(site.upstream.received[-1]) == "second"


@pytest.mark.usefixtures("quick")
async def test_a_swapped_link_reloads(upstream: Upstream, tmp_path: Path) -> None:
    """As Kubernetes does it: the file's link leads through `..data`, which is renamed into place."""
    for name, secret in (("1", "first"), ("2", "second")):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "key", secret)
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "key").symlink_to("..data/key")
    keys = {"main": {"api_key": "ak-1", "secret": f"file:{tmp_path / 'key'}"}}
    async with running_site(upstream, tmp_path, keys=keys) as site:
        (tmp_path / "..new").symlink_to("2")
        (tmp_path / "..new").rename(tmp_path / "..data")
        await site.station.until(lambda: site.gateway.status().reloads["ok"] == 1)
        assert (await site.station.ask(ORDER)).status == 200
    assert signed_with(upstream.received[-1]) == "second"


@pytest.mark.usefixtures("quick")
async def test_a_file_that_is_refused_is_tried_once_and_again_when_it_changes(site: Site) -> None:
    site.upstream.answers.append(say(SIGNATURE))
    write(site.secret, "second")
    await site.station.until(lambda: site.gateway.status().reloads["failed"] == 1)
    write(site.secret, "third")
    await site.station.until(lambda: site.gateway.status().reloads["ok"] == 1)
    assert site.gateway.status().reloads == {"ok": 1, "unchanged": 0, "failed": 1}
    assert [signed_with(received) for received in site.upstream.received] == ["second", "third"]


async def test_another_clock_is_there_before_it_is_needed(site: Site) -> None:
    before = only(site.gateway.generation).exchange.clock
    site.tables["clock"] = {"interval": 20.0}
    assert await site.reload() == ()
    assert only(site.gateway.generation).exchange.clock is not before
    assert site.gateway.status().not_ready == ()


async def test_a_fault_of_our_own_changes_nothing(site: Site) -> None:
    before = pipeline_of(site.gateway)
    site.error = ZeroDivisionError()
    with pytest.raises(ReloadError, match="report it"):
        await site.reload()
    assert pipeline_of(site.gateway) is before
    assert site.gateway.status().reloads["failed"] == 1


async def test_two_aliases_of_one_key_share_what_is_learned(site: Site) -> None:
    key = {"api_key": "ak-1", "secret": f"file:{site.secret}"}
    site.tables["keys"] = {"main": key, "again": key, "other": {**key, "api_key": "ak-2"}}
    write(site.secret.with_name("token"), "a token")
    token = f"file:{site.secret.with_name('token')}"
    site.tables["bots"] = {"grid": {"token": token, "keys": ["main", "again", "other"]}}
    await site.reload()
    live_keys = only(site.gateway.generation).exchange.live_keys
    pools = {alias: live_key.membership.always for alias, live_key in live_keys.items()}
    assert pools["main"] == pools["again"]
    assert pools["main"] != pools["other"]
