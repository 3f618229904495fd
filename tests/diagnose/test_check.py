"""`sealgate check` as its users meet it: a whole set-up, the forms of the report, what is sent."""

import json
import os
import socket
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs

import aiohttp
import pytest
from click.testing import CliRunner, Result

from rig.kept_limit import kept
from rig.program import Program, running_program
from rig.redis import running_redis
from rig.setups import JSON, Setup, a_setup, detail, lines_of, raw_setup, sandbox_setup, to_signed
from rig.upstream import Act, Received, say
from rig.wire import reply
from sealgate.cli import main
from sealgate.config.load import config_of
from sealgate.diagnose.local import found_wrong, look_at_addresses, look_at_reach
from sealgate.keys.key_health import MANY_MISMATCHES
from sealgate.machine.findings import fail, ok, warn
from sealgate.machine.system import System
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.learned import write_limits
from sealgate.orders.journal.lock import Lock
from sealgate.orders.journal.marks import Marks
from sealgate.orders.journal.nonces import raise_mark
from sealgate.server.memory import subject_of
from sealgate.server.opening import OPEN_WIRE, OPEN_WIRE_FIX

SIGNED_READ = b"/v1/trade/symbols/list"
BLOCKED = "The Amazon CloudFront distribution is configured to block access from your country"
LEGAL_REASONS = b"451 Unavailable For Legal Reasons"
CLOUDFRONT = f"<HTML><TITLE>ERROR</TITLE><H1>403 ERROR</H1><HR>{BLOCKED}. <BR></HTML>".encode()


def place_of(base_url: str, api_key: str) -> str:
    return f"{subject_of(base_url, api_key)} | all"


async def test_a_whole_set_up(tmp_path: Path) -> None:
    async with sandbox_setup(tmp_path) as setup:
        token = setup.write("grid.token", "a-token-as-long-as-those-of-this-program-are")
        setup.has(BOTS__GRID__TOKEN=f"file:{token}", JOURNAL__FILE=str(tmp_path / "journal.db"))
        result = await setup.check()
    assert result.exit_code == 0
    assert {line.split()[0] for line in result.stdout.splitlines()[:-1]} == {"ok"}
    assert "a signed read is accepted (GET /v1/trade/symbols/list" in result.stdout


@pytest.mark.parametrize("has_file", [True, False])
async def test_what_every_set_up_should_have_is_told_with_the_lines_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_file: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    if has_file:
        setup.configure("")
    result = await setup.check("--offline")
    assert result.exit_code == 0
    [bots], [journal] = (lines_of(result.stdout, f"warn  {area}") for area in ("bots", "journal"))
    assert "every program on this machine may read and trade" in bots
    assert "after a crash, no record shows which orders were in flight" in journal
    # They mend it as they stand.
    pasted = [line.strip() for line in result.stdout.splitlines() if line.startswith("      ")]
    make, *settings = pasted
    assert make.startswith("(umask 077; sealgate token new > ")
    setup.write(
        Path(make.rpartition(" ")[2].rstrip(")")).name, "a-token-as-long-as-those-of-this-program-are"
    )
    if has_file:
        setup.configure("\n".join(settings))
    else:
        setup.environ.update({line.partition("=")[0]: line.partition("=")[2] for line in settings})
    result = await setup.check("--offline")
    assert lines_of(result.stdout, "ok  bots")
    assert lines_of(result.stdout, "ok  journal")
    findings = json.loads((await setup.check("--offline", "--json")).stdout)["findings"]
    assert {tuple(finding["paste"]) for finding in findings} == {()}


async def test_only_reads_are_sent_and_few(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        await setup.check()
        upstream = setup.upstream
        assert upstream is not None
        assert len(upstream.asked_time) == 3
        assert [(one.method, one.target) for one in upstream.received] == [(b"GET", SIGNED_READ)] * 2


async def test_an_exchange_that_closes_idle_connections_earlier_than_the_gateway(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        assert lines_of((await setup.check()).stdout, "warn  upstream.keep_alive") == []
        setup.answers(to_signed(reply(b"200 OK", b"{}", b"Keep-Alive: timeout=5, max=100")))
        result = await setup.check()
    assert result.exit_code == 0
    [line] = lines_of(result.stdout, "warn  upstream.keep_alive")
    assert "the exchange closes idle connections after 5 s, but this is 15 s" in line


async def test_a_venue_whose_file_names_neither_time_nor_read(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        file = tmp_path / "mine.toml"
        file.write_text(
            'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{target}{body}"\n'
            '[signing.headers]\nSIGN = "{signature}"\n'
        )
        setup.has(VENUE=str(file))
        dated = formatdate(usegmt=True).encode()
        setup.answers(lambda _: say(reply(b"404 Not Found", b"{}", b"Date: " + dated)))
        result = await setup.check()
        assert setup.upstream is not None
        assert [one.target for one in setup.upstream.received] == [b"/"]
        assert result.exit_code == 0, result.stdout
        [clock] = [line for line in result.stdout.splitlines() if line[6:].startswith("clock ")]
        assert "by the Date header: the venue's file names no path for the time" in clock
        [key] = lines_of(result.stdout, "warn  keys.main")
        assert "names no signed read; name a GET that needs a key: --path /" in key
        assert "clock.path" in lines_of((await dateless(setup)).stdout, "fail  clock")[0]
        asked = await setup.check("--path", "/accounts")
        assert [one.target for one in setup.upstream.received][-1] == b"/accounts"
        assert "names no signed read" not in asked.stdout


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        (
            b"401 Unauthorized",
            "compare venue and base_url with the exchange's documents (Bybit v5 is at https:",
        ),
        (b"503 Service Unavailable", "run the check again; if it persists, look at"),
    ],
)
async def test_a_time_that_cannot_be_read_where_the_venue_says_how(
    tmp_path: Path, status: bytes, fix: str
) -> None:
    """Its path and field are right then, and nothing that the user could correct."""
    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE="bybit")
        setup.answers(lambda _: say(reply(status, b"{}")))
        [line] = lines_of((await setup.check()).stdout, "fail  clock")
    assert fix in line
    assert "clock.path" not in line


@pytest.mark.parametrize(
    ("venue", "status", "body", "words"),
    [
        ("bybit", b"403 Forbidden", CLOUDFRONT, f"403 {BLOCKED}; the check stopped here"),
        ("htx", LEGAL_REASONS, b"", "451; the check stopped here"),
        # No path for the time: its own lines begin with any path at all.
        ("bitfinex", b"403 Forbidden", CLOUDFRONT, f"403 {BLOCKED}; the check stopped here"),
    ],
)
async def test_a_country_that_is_not_served_is_named_and_nothing_else_is_blamed(
    tmp_path: Path, venue: str, status: bytes, body: bytes, words: str
) -> None:
    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE=venue)
        setup.answers(lambda _: say(reply(status, body)))
        result = await setup.check()
        assert setup.upstream is not None
        assert len(setup.upstream.received) == 1
    assert result.exit_code == 1
    [line] = [line for line in result.stdout.splitlines() if line.startswith("fail")]
    assert line.split()[1] == "exchange"
    assert f"the exchange does not serve this IP address (because of its country?): {words}" in line
    assert line.endswith("; ask the exchange whether it serves your country and network")


async def test_a_wait_that_stands_in_the_venues_own_header_is_told(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE="hitbtc")
        setup.answers(lambda _: say(reply(b"429 Too Many Requests", b"{}")))
        assert "wait a while, and run the check again" in (await setup.check()).stdout
        setup.has(VENUE="kucoin", KEYS__MAIN__PASSPHRASE=f"file:{setup.write('phrase', 'a phrase')}")
        refusal = reply(b"429 Too Many Requests", b'{"code": "429000"}', b"gw-ratelimit-reset: 7000")
        setup.answers(lambda _: say(refusal))
        assert "wait 7 s, and run the check again" in (await setup.check()).stdout


SEVERAL = b'{"code": -2015, "msg": "Invalid API-key, IP, or permissions for action, request ip: 203.0.113.5"}'
SAW = "203.0.113.5, which is not on the key's whitelist"


async def test_a_venue_that_has_its_signed_read_by_post_alone(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE="kraken", CLOCK__PATH="/v1/trade/time", CLOCK__FIELD="")
        setup.has_key("main", "ak-public-1", "c2VjcmV0IG9mIGEga2V5")
        setup.answers(kraken)
        result = await setup.check()
        assert setup.upstream is not None
        [public, signed] = setup.upstream.received
    assert (public.method, public.target, public.body) == (b"POST", b"/0/private/Balance", b"")
    assert (signed.method, signed.target) == (b"POST", b"/0/private/Balance")
    assert signed.body.startswith(b"nonce=")
    assert signed.head.value(b"Content-Type") == b"application/x-www-form-urlencoded"
    line = lines_of(result.stdout, "ok  keys.main")[-1]
    assert "a signed read is accepted (POST /0/private/Balance" in line


async def test_nonces_that_a_wrong_clock_reserved_far_ahead(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has(VENUE="kraken", JOURNAL__FILE=str(file))
    setup.has_key("main", "ak-public-1", "c2VjcmV0IG9mIGEga2V5")
    assert lines_of((await setup.check("--offline")).stdout, "warn  journal") == []
    ahead = int((System().wall() + 7200) * 1000)
    with closing(connect(file)) as database:
        raise_mark(database, "https://exchange.example ak-public-1 ms", ahead)
    [line] = lines_of((await setup.check("--offline")).stdout, "warn  journal")
    assert "the nonces of main are reserved up to 7" in line


async def test_a_journal_that_was_used_and_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has(JOURNAL__FILE=str(file))
    setup.has_key("main", "ak-public-1", "c2VjcmV0IG9mIGEga2V5")
    assert lines_of((await setup.check("--offline")).stdout, "warn  journal") == []
    Marks(file, ()).leave()
    [line] = lines_of((await setup.check("--offline")).stdout, "warn  journal")
    assert f"{file}, which a gateway last opened on 2" in line
    assert "is missing: the next start forgets halts, orders in doubt and used Idempotency-Keys" in line


async def test_the_nonce_of_a_check_is_above_those_of_the_gateway_before_it(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    ahead = int((System().wall() + 5) * 1000)
    sent: list[int] = []
    async with raw_setup(tmp_path) as setup:
        assert setup.upstream is not None
        setup.has(VENUE="kraken", CLOCK__PATH="/v1/trade/time", CLOCK__FIELD="", JOURNAL__FILE=str(file))
        setup.has_key("main", "ak-public-1", "c2VjcmV0IG9mIGEga2V5")
        place = f"{setup.upstream.base_url} ak-public-1 ms"
        with closing(connect(file)) as database:
            raise_mark(database, place, ahead)
        setup.answers(kraken)
        for _ in range(2):
            result = await setup.check()
            assert lines_of(result.stdout, "ok  nonces") == []
        lock = Lock(file)
        [line] = lines_of((await setup.check()).stdout, "ok  nonces")
        lock.release()
        sent = [int(one.body.partition(b"=")[2]) for one in setup.upstream.received if one.body]
        with closing(connect(file)) as database:
            assert raise_mark(database, place, 0) == sent[1] == ahead + 2
    assert sent[0] == ahead + 1
    assert sent[2] < ahead
    assert "a gateway is using the journal, so this nonce is the time" in line


async def test_the_usual_read_of_a_venue_excludes_what_a_refusal_can_mean(tmp_path: Path) -> None:
    def act(request: Received) -> Act:
        if request.target.startswith(b"/api/v3/time"):
            return say(reply(b"200 OK", b'{"serverTime": %d}' % int(System().wall() * 1000)))
        if not request.head.value(b"X-MBX-APIKEY"):
            return say(reply(b"400 Bad Request", b'{"code": -2014, "msg": "API-key format invalid."}'))
        is_usual = request.target.startswith(b"/api/v3/account")
        return say(reply(b"200 OK", b"{}") if is_usual else reply(b"401 Unauthorized", SEVERAL))

    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE="binance")
        setup.answers(act)
        result = await setup.check("--path", "/api/v3/openOrders")
    assert result.exit_code == 1
    [line] = lines_of(result.stdout, "fail  keys.main")
    assert "most likely the key lacks the permission for this request" in line
    told = [one for one in result.stdout.splitlines() if ". unlikely: " in one]
    excluded = f"the exchange saw this machine as {SAW} (GET /api/v3/account is accepted with this key)"
    assert any(excluded in one for one in told)
    assert any("the exchange has blocked this IP address" in one for one in told)


def kraken(request: Received) -> Act:
    is_signed = request.method == b"POST" and request.head.value(b"API-Sign")
    body = b'{"error": [], "result": {}}' if is_signed else b'{"error": ["EAPI:Invalid key"]}'
    return say(reply(b"200 OK", body, JSON))


async def test_a_key_whose_nonces_ran_in_another_unit(tmp_path: Path) -> None:
    """The copy that the advice asks for is then accepted, with nonces in that unit."""
    low = b'{"error": ["EAPI:Invalid nonce"]}'

    def act(request: Received) -> Act:
        nonce = int(parse_qs(request.body.decode()).get("nonce", ["0"])[0])
        return say(reply(b"200 OK", low, JSON)) if 0 < nonce < 10**15 else kraken(request)

    async with raw_setup(tmp_path) as setup:
        setup.has(VENUE="kraken", CLOCK__PATH="/v1/trade/time", CLOCK__FIELD="")
        setup.has_key("main", "ak-public-1", "c2VjcmV0IG9mIGEga2V5")
        setup.answers(act)
        [line] = lines_of((await setup.check()).stdout, "fail  keys.main")
        assert "most likely an earlier program used larger nonces with this key" in line
        assert "sealgate venues show kraken > mine.toml" in line
        shown = CliRunner().invoke(main, ["venues", "show", "kraken"]).stdout
        assert 'nonce = "ms"' in shown
        copy = setup.write("mine.toml", shown.replace('nonce = "ms"', 'nonce = "us"'))
        setup.has(VENUE=str(copy))
        assert "a signed read is accepted" in (await setup.check()).stdout


async def dateless(setup: Setup) -> Result:
    setup.answers(lambda _: say(reply(b"404 Not Found", b"{}")))
    return await setup.check()


async def test_offline_sends_nothing(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        result = await setup.check("--offline")
        assert (result.exit_code, setup.upstream and setup.upstream.connections) == (0, 0)


async def test_without_any_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = await Setup(tmp_path).check()
    told = f"not found: no sealgate.toml in {tmp_path}, and no variable that begins with SEALGATE_"
    fix = "run this where the gateway's variables are set, or create a file with `sealgate config init`"
    assert result.exit_code == 2
    assert lines_of(result.stdout, "fail  configuration") == [f"fail  configuration      {told}; {fix}"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["GRID"], "1 bot configured; its credentials are readable"),
        (["GRID", "MAKER"], "2 bots configured; their credentials are readable"),
    ],
)
async def test_how_many_bots_are_named(tmp_path: Path, names: list[str], told: str) -> None:
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    for name in names:
        setup.has(**{f"BOTS__{name}__TOKEN": f"file:{setup.write(name, name * 20)}"})
    assert told in (await setup.check("--offline")).stdout


async def test_what_the_venue_sets_is_not_said_to_be_from_the_environment(tmp_path: Path) -> None:
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    setup.has(VENUE="bybit")
    [line] = lines_of((await setup.check("--offline")).stdout, "ok    configuration")
    assert line.endswith("valid: 7 settings from the environment, the others are the venue's or defaults")


async def test_what_is_left_of_the_example_is_not_called_valid(tmp_path: Path) -> None:
    setup = a_setup(tmp_path, "https://api.example.com")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    result = await setup.check("--offline")
    assert len(lines_of(result.stdout, "fail  configuration")) == 1
    assert lines_of(result.stdout, "ok  configuration") == []


async def test_another_gateway_of_this_user_has_the_admin_socket(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir(mode=0o700)
    place = tmp_path / "control" / "admin.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place))
        other.listen()
        async with raw_setup(tmp_path) as setup:
            setup.environ["SEALGATE_ADMIN__UNIX"] = str(place)
            result = await setup.check("--offline")
    assert result.exit_code == 1
    [line] = [line for line in result.stdout.splitlines() if "admin.unix" in line]
    assert line.split()[:2] == ["fail", "admin.unix"]
    assert f"cannot listen on {place}: another program (process {os.getpid()}) listens there" in line


async def test_json(tmp_path: Path) -> None:
    async with sandbox_setup(tmp_path) as setup:
        setup.write("main.secret", "another-secret-another-secret-another")
        result = await setup.check("--json", "--explain")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["result"]) == (1, "fail")
    failed = [one for one in document["findings"] if one["level"] == "fail"]
    assert [one["area"] for one in failed] == ["keys.main"]
    assert [cause["weight"] for cause in failed[0]["causes"]] == ["likely", "possible", "possible"]
    sources = {one["name"]: one["source"] for one in document["settings"]}
    assert (sources["base_url"], sources["limits.queue"]) == ("SEALGATE_BASE_URL", "default")


async def test_explain_shows_sources_and_all_causes(tmp_path: Path) -> None:
    async with sandbox_setup(tmp_path) as setup:
        setup.write("main.secret", "another-secret-another-secret-another")
        result = await setup.check("--explain")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["base_url", f'"{setup.environ["SEALGATE_BASE_URL"]}"', "SEALGATE_BASE_URL"] in lines
    assert "1. likely: the secret belongs to another key" in result.stdout
    assert "2. possible: [signing] does not match what the exchange expects" in result.stdout
    assert result.stdout.index("1. likely") < result.stdout.index("SEALGATE_BASE_URL")
    assert "1 fail" in result.stdout.splitlines()[-1]


async def test_a_path_outside_the_prefix_is_a_wrong_call(tmp_path: Path) -> None:
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    result = await setup.check("--path", "/elsewhere")
    assert result.exit_code == 2
    assert "sealgate: error: outside_prefix: " in result.output


async def test_limits_from_the_journal_in_words(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    with closing(connect(file)) as database:
        learned = {place_of("https://exchange.example", "ak-public-1"): kept(20.0, 1.0)}
        write_limits(database, learned, System().wall())
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    setup.has(JOURNAL__FILE=str(file))
    before = file.read_bytes()
    result = await setup.check("--offline")
    words = "keys.main: 20 per 1 s, from 14 refusals; last 3 min ago (from the journal)"
    assert words in result.stdout
    assert file.read_bytes() == before


async def test_limits_in_the_journal_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    ours = "https://exchange.example"
    setup = a_setup(tmp_path, ours)
    for alias in ("main", "alt", "new"):
        setup.has_key(alias, f"ak-{alias}", "correct-horse-battery-staple")
    setup.has(BOTS__GRID__UID="7", BOTS__GRID__KEYS='["main", "alt", "new"]')
    with closing(connect(file)) as database, database:
        for exchange, key in ((ours, "ak-main"), (ours, "ak-alt"), ("https://elsewhere.example", "ak-main")):
            row = place_of(exchange, key), System().wall()
            database.execute("INSERT INTO learned VALUES (?, '[{}]', ?)", row)
    setup.has(JOURNAL__FILE=str(file), LISTEN__UNIX=str(tmp_path / "bots.sock"))
    result = await setup.check("--offline")
    (told,) = lines_of(result.stdout, "warn  journal")
    assert "the learned limits of 2 of 2 pools cannot be read; after an update, nothing" in told


async def test_a_gateway_that_runs(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        environ = dict(setup.environ)
        async with running_program("serve", environ=environ, folder=tmp_path) as program:
            await program.line('"ready"')
            result = await setup.check("--offline")
            assert result.exit_code == 0
            assert "running and ready" in lines_of(result.stdout, "ok  gateway")[0]
            assert "is in use by the running gateway" in lines_of(result.stdout, "ok  listen.tcp")[0]
            assert "keys.main: no rate limit known yet" in lines_of(result.stdout, "ok  limits")[0]
            setup.has(BASE_URL="https://other.example")
            other = await setup.check("--offline")
            assert lines_of(other.stdout, "ok  gateway") == []
            (told,) = lines_of(other.stdout, "warn  gateway")
            assert f"another Sealgate gateway is running here, for {environ['SEALGATE_BASE_URL']}" in told
            listening = json.loads(await program.line('"listening"'))["bots"].removeprefix("http://")
            setup.has(LISTEN__TCP=listening)
            (told,) = lines_of((await setup.check("--offline")).stdout, "fail  listen.tcp")
            assert "a Sealgate gateway runs there already; stop it" in told


async def test_a_secret_that_was_repaired_has_to_be_reloaded(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        setup.answers(lambda _: say(detail("Invalid HMAC signature")))
        async with running_program("serve", environ=dict(setup.environ), folder=tmp_path) as program:
            bots = json.loads(await program.line('"listening"'))["bots"]
            async with aiohttp.ClientSession() as session:
                for _ in range(MANY_MISMATCHES):
                    async with session.get(f"{bots}{SIGNED_READ.decode()}") as answer:
                        assert answer.status == 401
            setup.answers(to_signed(reply(b"200 OK", b'{"symbols": []}', JSON)))
            lines = lines_of((await setup.check()).stdout, "warn  keys.main")
    assert len(lines) == 1
    assert lines[0].endswith("load it with `sealgate reload`")


async def meet_a_limit(setup: Setup, program: Program, retry_after: bytes) -> None:
    """Have a read of a running gateway refused for the limit, as all that follow."""
    await program.line('"ready"')
    limited = say(detail("Rate limit exceeded", b"429 Too Many Requests", retry_after))
    setup.answers(lambda _: limited)
    bots = json.loads(await program.line('"listening"'))["bots"]
    async with (
        aiohttp.ClientSession(headers={"X-Gateway-Deadline-Ms": "2000"}) as session,
        session.get(f"{bots}{SIGNED_READ.decode()}") as answer,
    ):
        assert answer.status == 429


async def test_a_pause_of_the_running_gateway_is_kept(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        upstream = setup.upstream
        assert upstream is not None
        async with running_program("serve", environ=dict(setup.environ), folder=tmp_path) as program:
            await meet_a_limit(setup, program, b"Retry-After: 60")
            sent = upstream.receipts(SIGNED_READ)
            result = await setup.check()
            assert "is pausing after a 429; run this again in" in lines_of(result.stdout, "warn  exchange")[0]
            assert upstream.receipts(SIGNED_READ) == sent


async def test_a_pause_that_the_journal_remembers_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    async with raw_setup(tmp_path) as setup:
        assert setup.upstream is not None
        setup.has(JOURNAL__FILE=str(file))
        with closing(connect(file)) as database:
            paused = {place_of(setup.upstream.base_url, "ak-public-1"): [{"pause": 600.0}]}
            write_limits(database, paused, System().wall())
        result = await setup.check()
        assert (
            "the exchange has blocked this IP address or an API key; run this again in"
            in lines_of(result.stdout, "warn  exchange")[0]
        )
        async with running_program("serve", environ=dict(setup.environ), folder=tmp_path) as program:
            await program.line('"pause_remembered"')
        assert setup.upstream.received == []


async def test_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.cluster.redis_group.TIMEOUT_S", 5.0)
    async with raw_setup(tmp_path) as setup, running_redis() as redis:
        setup.environ["SEALGATE_LIMITS__REDIS"] = redis.url
        found = await setup.check()
        assert found.exit_code == 0
        assert "limits.redis" in found.stdout
        assert "Redis answers" in found.stdout
        await redis.kill()
        result = await setup.check()
        assert result.exit_code == 1
        assert "Redis cannot be used: ConnectionError" in result.stdout


async def test_a_redis_whose_address_cannot_be_read(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        setup.environ["SEALGATE_LIMITS__REDIS"] = "env:NO_SUCH_URL"
        result = await setup.check()
        assert result.exit_code == 1
        assert "NO_SUCH_URL" in result.stdout


@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        pytest.param("a; b", "a", "b", id="cause and fix"),
        pytest.param(
            "file:/a; b: no such file; make it", "file:/a; b: no such file", "make it", id="its own"
        ),
        pytest.param("permission denied", "permission denied", "", id="a cause alone"),
    ],
)
def test_an_error_is_a_cause_and_its_fix(text: str, cause: str, fix: str) -> None:
    assert found_wrong("keys.main", text) == fail("keys.main", cause, fix)


def test_who_a_bot_is_at_its_own_address() -> None:
    tree: dict[str, object] = {
        "base_url": "https://exchange.example",
        "listen": {"tcp": ""},
        "admin": {"tcp": ""},
        "keys": {"main": {"api_key": "ak-public-1", "secret": "env:NOWHERE"}},
        "bots": {"grid": {"listen": "127.0.0.1:0"}},
    }
    assert list(look_at_addresses(config_of(tree), {}, is_running=True)) == [
        ok("bots.grid.listen", "127.0.0.1:0 is in use by the running gateway"),
        ok("bots.grid.listen", "every program on this machine counts as grid there, without a token"),
    ]


def test_a_bots_own_address_that_listen_hosts_does_not_name() -> None:
    tree: dict[str, object] = {
        "base_url": "https://exchange.example",
        "keys": {"main": {"api_key": "ak-public-1", "secret": "env:NOWHERE"}},
        "bots": {"grid": {"listen": "[::1]:8802"}, "watch": {"listen": "127.0.0.1:8803"}},
    }
    text = "lacks ::1: a bot that connects to [::1]:8802 under this name gets 421"
    assert list(look_at_reach(config_of(tree))) == [warn("listen.hosts", text, 'add "::1" to it')]


UNENCRYPTED = warn("listen.tcp", OPEN_WIRE, OPEN_WIRE_FIX)
UNNAMED = warn(
    "listen.hosts",
    "listen.tcp is open to other machines, but listen.hosts names only this one: bots there get 421",
    "add the host name that those bots use to listen.hosts",
)
EVERYWHERE = "0.0.0.0:8787"
CASES = {
    "this machine alone": ("127.0.0.1:8787", "localhost", False, []),
    "no address": ("", "localhost", False, []),
    "neither": (EVERYWHERE, "127.0.0.1, localhost, ::1", False, [UNENCRYPTED, UNNAMED]),
    "a name, but no TLS": (EVERYWHERE, "localhost, gate.example", False, [UNENCRYPTED]),
    "TLS, but no name": ("[::]:8787", "localhost", True, [UNNAMED]),
    "both": ("192.0.2.1:8787", "192.0.2.1", True, []),
}


@pytest.mark.parametrize(("address", "hosts", "has_tls", "told"), CASES.values(), ids=CASES)
def test_what_an_address_for_other_machines_lacks(
    address: str, hosts: str, has_tls: bool, told: list[object], tmp_path: Path
) -> None:
    pem = tmp_path / "any.pem"
    pem.touch()
    listen: dict[str, object] = {
        "tcp": address,
        "unix": str(tmp_path / "bots.sock"),
        "hosts": hosts.split(", "),
    }
    if has_tls:
        listen |= {"tls_cert": str(pem), "tls_key": str(pem)}
    key = {"api_key": "ak-public-1", "secret": "env:NOWHERE"}
    bots = {"grid": {"token": "env:NOWHERE"}}
    tree: dict[str, object] = {
        "base_url": "https://exchange.example",
        "listen": listen,
        "keys": {"main": key},
        "bots": bots,
    }
    assert list(look_at_reach(config_of(tree))) == told
