"""`sealgate keys`, against the sandbox and against lists that a sandbox would take a year to have."""

import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rig.command import ended_command, environ_of
from rig.upstream import Upstream, running_upstream, say
from rig.wire import reply
from sealgate.sandbox.models.control import NewUser
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings

NOW = datetime.now(UTC)  # noqa: TID251 - the command goes by this machine's clock
LIST = b"/v1/trade/api-keys"


def at(days: float) -> str:
    return (NOW + timedelta(days=days)).isoformat()


def listed(api_key: str, **changes: Any) -> dict[str, Any]:
    return {
        "api_key": api_key,
        "label": "grid on the small machine",
        "permissions": ["read", "trade"],
        "ip_whitelist": ["203.0.113.7"],
        "created_at": at(-30),
        "expires_at": at(60),
        "last_used_at": at(-1 / 24),
        "is_active": True,
        **changes,
    }


OURS = "4804c014e35ba6d2184d691359ef00d2"
MANY = [
    listed(OURS),
    listed("1111aaaa22223333", expires_at=at(3), ip_whitelist=["2001:db8::/32", "198.51.100.0/24"]),
    listed("2222aaaa22223333", expires_at=at(-3), is_active=False),
    listed("3333aaaa22223333", label="[bold]x[/nothing]", expires_at=None, ip_whitelist=[]),
    listed("4444aaaa22223333", permissions=[], created_at=at(-500), last_used_at=None, is_active=False),
    listed("short", label="", created_at="?", expires_at="9999-12-31T23:59:59Z"),
]


@contextlib.asynccontextmanager
async def exchange(keys: Any = MANY, log: Any = ()) -> AsyncIterator[tuple[Upstream, dict[str, str]]]:
    """Run an exchange that lists these keys, and yield it with the configuration of the first."""
    async with running_upstream() as upstream:

        def answer(request: Any) -> Any:
            document = {"keys": keys} if request.target == LIST else {"audit": list(log)}
            return say(reply(b"200 OK", json.dumps(document).encode()))

        upstream.script = answer
        yield (
            upstream,
            {
                "SEALGATE_BASE_URL": upstream.base_url,
                "SEALGATE_KEYS__MAIN__API_KEY": OURS,
                "SEALGATE_KEYS__MAIN__SECRET": "env:NOT_NEEDED",
                "SEALGATE_KEYS__MAIN__SESSION": "env:EXCHANGE_SESSION",
                "EXCHANGE_SESSION": "session-token-of-mine",
            },
        )


async def keys(*arguments: str, environ: dict[str, str], width: int = 80) -> Any:
    return await ended_command("keys", *arguments, environ=environ, width=width)


async def test_the_list_of_the_sandbox() -> None:
    async with running_sandbox() as sandbox:
        result = await keys("list", environ=environ_of(sandbox))
        document = json.loads((await keys("list", "--json", environ=environ_of(sandbox))).stdout)
        journal = sandbox.exchange.journal._receipts
        assert {(one.request.method, one.request.target) for one in journal} == {("GET", LIST.decode())}
    assert result.exit_code == 0
    short = f"{sandbox.api_key[:4]}…{sandbox.api_key[-4:]}"
    row = result.stdout.splitlines()[-1].split()
    assert row[:7] == ["main", short, "ready-made", "read", "trade", "anywhere", "never"]
    (key,) = document["keys"]
    assert (key["alias"], key["api_key"], key["expires_at"]) == ("main", sandbox.api_key, None)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["list", "audit"])
async def test_tables_fit_the_terminal(command: str, width: int) -> None:
    async with exchange() as (_, environ):
        result = await keys(command, environ=environ, width=width)
    lines = result.stdout.splitlines()
    assert len(lines) > len(MANY)
    assert max(map(len, lines)) <= width
    assert "3333…3333" in result.stdout


async def test_what_the_list_shows_of_each() -> None:
    async with exchange() as (_, environ):
        result = await keys("list", environ=environ, width=160)
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()[2:]]
    assert rows == [
        "main 4804…00d2 grid on the small machine read trade 203.0.113.7 in 60 d 30 d 1 h ago",
        "- 1111…3333 grid on the small machine read trade 2001:db8::/32 in 3 d 30 d 1 h ago",
        "198.51.100.0/24",
        "- 2222…3333 grid on the small machine read trade 203.0.113.7 3 d ago 30 d 1 h ago",
        "- 3333…3333 [bold]x[/nothing] read trade anywhere never 30 d 1 h ago",
        "- 4444…3333 grid on the small machine - 203.0.113.7 revoked 500 d never",
        "- short read trade 203.0.113.7 never - 1 h ago",
    ]


async def test_what_the_audit_finds() -> None:
    async with exchange() as (upstream, environ):
        result = await keys("audit", "--json", environ=environ)
        assert [request.target for request in upstream.received] == [LIST]
        assert upstream.received[0].head.value(b"Authorization") == b"Bearer session-token-of-mine"
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(one["level"], one["api_key"][:4], one["kind"]) for one in document["findings"]] == [
        ("fail", "3333", "no_whitelist"),
        ("warn", "1111", "expires_soon"),
        ("warn", "1111", "not_here"),
        ("warn", "3333", "not_here"),
        ("warn", "shor", "not_here"),
    ]
    assert document["log"] is None


async def test_nothing_wrong_is_a_success() -> None:
    async with exchange([listed(OURS)]) as (_, environ):
        result = await keys("audit", environ=environ)
        assert (result.exit_code, result.stdout) == (0, "nothing is wrong with the keys\n")
        result = await keys("audit", "main", environ=environ)
    assert result.exit_code == 0
    assert result.stdout.endswith("the log has no entries\n")


async def test_no_keys_at_all() -> None:
    async with exchange([]) as (_, environ):
        assert (await keys("list", environ=environ)).stdout == "the account has no keys\n"
        result = await keys("audit", "main", environ=environ)
    assert result.exit_code == 1
    assert "is not in the exchange's list" in result.stdout
    assert "log" not in result.stdout


@pytest.mark.parametrize("named", ["main", OURS, "4804…00d2"])
async def test_the_log_of_one_key(named: str) -> None:
    entry = {"action": "key_created", "ip_address": "203.0.113.7", "created_at": at(0), "details": "[b]"}
    async with exchange(log=[entry, {"action": "?"}]) as (upstream, environ):
        result = await keys("audit", named, "--limit", "7", environ=environ)
        assert upstream.received[-1].target == LIST + b"/" + OURS.encode() + b"/audit?limit=7"
    assert result.exit_code == 0
    *_, first, second = result.stdout.splitlines()
    when = NOW.strftime("%Y-%m-%d %H:%M:%S")
    assert " ".join(first.split()) == f"{when} key_created 203.0.113.7 [b]"
    assert second.split() == ["-", "?"]


async def test_what_bots_may_decides_what_is_too_wide() -> None:
    async with exchange([listed(OURS)]) as (_, environ):
        bots = {"SEALGATE_BOTS__A__UID": "1001", "SEALGATE_BOTS__A__MAY": "read"}
        unix = {"SEALGATE_LISTEN__UNIX": "/run/sealgate/bots.sock"}
        result = await keys("audit", environ=environ | bots | unix, width=160)
    assert result.exit_code == 0, result.output
    assert "no bot here may trade" in result.stdout


async def test_keys_of_several_users() -> None:
    """Each session lists its own user's; one that is used twice is asked once."""
    async with running_sandbox() as sandbox:
        desks = sandbox.exchange._desks
        other = desks.sessions.grant(desks.users.add(NewUser()), sandbox.exchange.conditions.now())
        environ = environ_of(
            sandbox,
            KEYS__ALT__API_KEY="of-nobody",
            KEYS__ALT__SECRET="env:EXCHANGE_SECRET",
            KEYS__ALT__SESSION="env:OTHER_SESSION",
            KEYS__AGAIN__API_KEY="of-nobody-too",
            KEYS__AGAIN__SECRET="env:EXCHANGE_SECRET",
            KEYS__AGAIN__SESSION="env:EXCHANGE_SESSION",
            BOTS__A__TOKEN="env:NOWHERE",
            BOTS__A__KEY="main",
        )
        environ["OTHER_SESSION"] = other.session_token
        result = await keys("audit", "--json", environ=environ)
        assert result.exit_code == 1, result.stderr
        document = json.loads(result.stdout)
        assert sandbox.exchange.journal._last == 2
        alone = json.loads((await keys("audit", "--key", "main", "--json", environ=environ)).stdout)
    missing = [one["alias"] for one in document["findings"] if one["kind"] == "not_listed"]
    assert missing == ["alt", "again"]
    assert [one["kind"] for one in alone["findings"]] == ["no_whitelist"]


NOBODY = "http://127.0.0.1:9"
BROKEN: dict[str, tuple[dict[str, Any], dict[str, str], list[str], int, str]] = {
    "session wrong or expired": (
        *({}, {"EXCHANGE_SESSION": "ses-4b1d"}, ["list"], 1),
        "401 Invalid or expired session token; the session token is wrong or has expired: store a new one",
    ),
    "no session": (
        *({}, {"SEALGATE_KEYS__MAIN__SESSION": ""}, ["list"], 2),
        "SEALGATE_KEYS__MAIN__SESSION: is not a reference",
    ),
    "unreachable": ({}, {"SEALGATE_BASE_URL": NOBODY}, ["list"], 1, f"{NOBODY} cannot be reached: "),
    "limit": (
        *({"limit_requests": 1, "limit_window_s": 900.0, "limit_by": "all"}, {}, ["audit", "main"], 1),
        "429 Rate limit exceeded; wait, and run the command again",
    ),
    "no such key": ({}, {}, ["audit", "ak-x"], 1, "ak-x: the list has no such key"),
}


@pytest.mark.parametrize(("settings", "changes", "arguments", "code", "told"), BROKEN.values(), ids=BROKEN)
async def test_what_is_wrong_is_told_in_one_line(
    settings: dict[str, Any], changes: dict[str, str], arguments: list[str], code: int, told: str
) -> None:
    async with running_sandbox(SandboxSettings(**settings)) as sandbox:
        result = await keys(*arguments, environ=environ_of(sandbox) | changes)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("sealgate: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


async def test_no_session_is_configured() -> None:
    async with exchange() as (_, environ):
        del environ["SEALGATE_KEYS__MAIN__SESSION"]
        result = await keys("list", environ=environ)
    assert result.exit_code == 2
    assert result.stderr.startswith("sealgate: error: keys.main.session is not set; store a session token")


async def test_only_the_default_venue_lists_keys() -> None:
    """A session token, which another exchange does not have, is not asked for."""
    async with exchange() as (_, environ):
        result = await keys("list", environ=environ | {"SEALGATE_VENUE": "bybit"})
    assert result.exit_code == 2
    assert result.stderr.startswith("sealgate: error: Bybit v5 lists its keys only in its own app")


async def test_the_key_system_is_down() -> None:
    async with running_sandbox() as sandbox:
        sandbox.exchange._desks.keys.is_available = False
        result = await keys("list", environ=environ_of(sandbox))
    assert result.exit_code == 1
    assert "503 API key system not available; look at the exchange's status page" in result.stderr


@pytest.mark.parametrize("arguments", [["list"], ["audit", "main"]])
async def test_an_answer_that_is_no_list(arguments: list[str]) -> None:
    async with running_upstream() as upstream:
        upstream.answers.append(say(reply(b"200 OK", json.dumps({"keys": [listed(OURS)]}).encode())))
        if arguments == ["list"]:
            upstream.answers.clear()
        environ = {
            "SEALGATE_BASE_URL": upstream.base_url,
            "SEALGATE_KEYS__MAIN__API_KEY": OURS,
            "SEALGATE_KEYS__MAIN__SECRET": "env:NOT_NEEDED",
            "SEALGATE_KEYS__MAIN__SESSION": "env:EXCHANGE_SESSION",
            "EXCHANGE_SESSION": "session-token-of-mine",
        }
        result = await keys(*arguments, environ=environ)
    assert result.exit_code == 1
    assert "the reply differs from the exchange's documents" in result.stderr


async def test_an_answer_that_is_too_long() -> None:
    async with exchange([listed(OURS, label="x" * 3_000_000)]) as (_, environ):
        result = await keys("list", environ=environ)
    assert result.exit_code == 1
    assert "the reply differs from the exchange's documents" in result.stderr


async def test_two_that_are_written_alike() -> None:
    async with exchange([listed("1111aaaa22223333"), listed("1111bbbb22223333")]) as (_, environ):
        result = await keys("audit", "1111…3333", environ=environ)
    assert result.exit_code == 1
    assert "1111…3333: several keys match; give an alias, or a whole id" in result.stderr


async def test_limit_is_about_one_key() -> None:
    async with exchange() as (_, environ):
        result = await keys("audit", "--limit", "7", environ=environ)
    assert result.exit_code == 2
    assert "--limit needs API_KEY" in result.stderr
