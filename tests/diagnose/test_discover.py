"""`sealgate discover` as people use it; diagnose/test_schemes.py sees that it finds every scheme."""

import asyncio
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rig.command import ended_command, environ_of
from rig.upstream import running_upstream, say
from rig.wire import PATIENCE_S, reply
from sealgate.config import Config
from sealgate.diagnose.schemes import make_plan
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget, Way
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings

FAST = ("--yes", "--every", "0.1")


async def discover(*arguments: str, environ: dict[str, str], width: int = 80) -> Any:
    return await ended_command("discover", *FAST, *arguments, environ=environ, width=width)


async def test_the_settings_are_printed_to_paste() -> None:
    settings = SandboxSettings(signature_encoding="base64", signed_target="path_and_query")
    async with running_sandbox(settings) as sandbox:
        environ = environ_of(sandbox)
        result = await discover(environ=environ)
        assert result.exit_code == 0
        table = tomllib.loads(result.stdout)
        config = Config.model_validate({"base_url": sandbox.base_url, **table})
        assert (config.signing.encoding, config.signing.target) == ("base64", "path_and_query")
        assert f"\nto {sandbox.base_url}, with key main (" in result.stderr
        assert "put this into sealgate.toml; it changes encoding, target" in result.stderr
        pasted = {f"SIGNING__{name.upper()}": value for name, value in table["signing"].items()}
        again = await discover(environ=environ_of(sandbox, **pasted))
        assert "the configuration already says so" in again.stderr


async def test_another_venue_leaves_nothing_to_find_out() -> None:
    async with running_upstream() as upstream:
        environ = {
            "SEALGATE_VENUE": "bybit",
            "SEALGATE_BASE_URL": upstream.base_url,
            "SEALGATE_KEYS__MAIN__API_KEY": "k",
            "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
            "EXCHANGE_SECRET": "a secret of some length",
        }
        result = await discover(environ=environ)
        assert upstream.connections == 0
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert "the file of bybit states how requests are signed (sealgate venues show bybit)" in line


async def test_a_read_that_the_configuration_has_by_post_is_sent_by_post(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    async with running_upstream() as upstream:
        upstream.otherwise = say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}'))
        file.write_text(
            f'base_url = "{upstream.base_url}"\n[keys.main]\napi_key = "k"\nsecret = "env:EXCHANGE_SECRET"\n'
            '[[routes]]\nmatch = "POST /v1/trade/orders/query"\nneeds = "read"\n'
        )
        environ = {"SEALGATE_CONFIG": str(file), "EXCHANGE_SECRET": "a secret of some length"}
        result = await discover("--path", "/v1/trade/orders/query", environ=environ)
        sent = {(one.method, one.target) for one in upstream.received}
    assert sent == {(b"POST", b"/v1/trade/orders/query")}
    assert "  POST /v1/trade/orders/query?limit=1, each time signed in another way" in result.stderr


async def test_json_is_one_document() -> None:
    async with running_sandbox(SandboxSettings(skew_ms=90_000)) as sandbox:
        result = await discover("--json", environ=environ_of(sandbox))
    document = json.loads(result.stdout)
    assert document["end"] == "found"
    assert document["signing"]["encoding"] == "hex"
    assert document["signed_reads"] == len(document["tried"]) == 3
    assert document["clock_offset_s"] == pytest.approx(90, abs=5)
    assert "this machine's clock is " in result.stderr
    assert " behind the exchange's" in result.stderr


async def test_no_line_of_the_answers_is_wider_than_a_terminal() -> None:
    async with running_sandbox(SandboxSettings(signature_encoding="base64url")) as sandbox:
        result = await discover(environ=environ_of(sandbox), width=120)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("sealgate: ")]
    assert len(lines) > 10
    assert max(map(len, lines)) <= 80


NOBODY = "http://127.0.0.1:9"
# Settings of the sandbox, changes of the environment, arguments, exit code, what is told.
BROKEN: dict[str, tuple[dict[str, Any], dict[str, str], list[str], int, str]] = {
    "wrong secret": ({}, {"EXCHANGE_SECRET": "of-another-key"}, [], 1, "all signatures were refused (401 "),
    "unknown key": ({}, {"SEALGATE_KEYS__MAIN__API_KEY": "x"}, [], 1, "does not know the key x (401 "),
    "unreachable": ({}, {"SEALGATE_BASE_URL": NOBODY}, [], 1, f"{NOBODY} cannot be reached: "),
    "other headers": ({}, {"SEALGATE_SIGNING__HEADER_PREFIX": "X-A-"}, [], 1, "set signing.header_prefix"),
    "open path": ({"public_symbols": True}, {}, [], 1, "is answered even without a valid signature"),
    "no such path": ({}, {}, ["--path", "/v1/trade/none"], 1, "answered with 404"),
    "limit": ({"limit_requests": 1, "limit_window_s": 900.0}, {}, [], 1, "rate limit is reached (429 "),
    "session path": ({}, {}, ["--path", "/v1/trade/api-keys"], 2, "is a read without a signature"),
}


@pytest.mark.parametrize(("settings", "changes", "arguments", "code", "told"), BROKEN.values(), ids=BROKEN)
async def test_what_is_wrong_is_told_in_one_line(
    settings: dict[str, Any], changes: dict[str, str], arguments: list[str], code: int, told: str
) -> None:
    async with running_sandbox(SandboxSettings(**settings)) as sandbox:
        result = await discover(*arguments, environ=environ_of(sandbox) | changes)
    assert (result.exit_code, result.stdout) == (code, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith("sealgate: ")
    assert told in last


async def test_a_read_that_is_refused_is_told_though_the_scheme_is_found() -> None:
    async with running_sandbox() as sandbox:
        path = "/v1/trade/user/0xabc/positions"
        result = await discover("--path", path, environ=environ_of(sandbox))
    assert result.exit_code == 0
    assert (
        "the signature is right, but the exchange refuses the read itself: 403 Address mismatch"
        in result.stderr
    )


ENVIRON = {
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
    "EXCHANGE_SECRET": "correct-horse-battery-staple",
}


async def test_a_clock_that_cannot_be_right() -> None:
    """The exchange refuses its own time; its word for it is tried once."""
    detail = "Timestamp outside recv_window (5000ms). Server time: 1790000000000"
    async with running_upstream() as upstream:
        upstream.otherwise = say(reply(b"401 No", json.dumps({"detail": detail}).encode()))
        result = await discover(environ=ENVIRON | {"SEALGATE_BASE_URL": upstream.base_url})
        _, second = (int(one.head.value(b"X-SERVICE-TIMESTAMP") or 0) for one in upstream.received)
    assert 0 <= second - 1_790_000_000_000 < 60_000
    assert (result.exit_code, result.stdout) == (1, "")
    told = "sealgate: the exchange refuses the timestamp, although it follows the exchange's own time (401 "
    assert result.stderr.splitlines()[-1].startswith(told)


async def test_a_query_that_teaches_nothing_leaves_the_target_open() -> None:
    """Whatever it is signed over, this exchange says 422 to a query."""
    async with running_upstream() as upstream:
        signatures: list[bytes] = []

        def answer(request: Any) -> Any:
            signatures.append(request.head.value(b"X-SERVICE-SIGNATURE"))
            if b"?" in request.target:
                return say(reply(b"422 No", b'{"detail":[{"msg":"unknown parameter"}]}'))
            is_false = len(signatures) == 2
            body = b'{"detail":"Invalid HMAC signature"}'
            return say(reply(b"401 No", body) if is_false else reply(b"200 OK", b"{}"))

        upstream.script = answer
        result = await discover(environ=ENVIRON | {"SEALGATE_BASE_URL": upstream.base_url})
    assert result.exit_code == 1
    assert "target" not in tomllib.loads(result.stdout)["signing"]
    assert "it is still open whether the query is signed: with ?limit=1" in result.stderr
    assert len(set(signatures)) == len(signatures) == 4


async def test_a_time_that_cannot_be_read_is_told() -> None:
    async with running_sandbox() as sandbox:
        result = await discover(environ=environ_of(sandbox, CLOCK__PATH="/v1/trade/none"))
    assert result.exit_code == 0
    assert "/v1/trade/none: the answer was 404" in result.stderr


async def test_the_help_and_the_announcement_promise_what_the_plan_takes_at_most() -> None:
    most = 1 + make_plan(set(SecretIs), Way(Encoding.HEX, SecretIs.UTF8), SignedTarget.PATH).most_reads
    told = (await ended_command("discover", "--help", environ={})).stdout
    assert f"at most {most} reads" in " ".join(told.split())
    async with running_sandbox() as sandbox:
        result = await discover(environ=environ_of(sandbox))
    assert f"at most {most} reads" in result.stderr


async def test_nothing_is_sent_where_nobody_agrees() -> None:
    async with running_sandbox() as sandbox:
        result = await ended_command("discover", environ=environ_of(sandbox))
        assert result.exit_code == 2
        assert "there is no terminal to ask on; pass --yes" in result.stderr
        assert sandbox.exchange.journal._last == 0


@pytest.mark.parametrize(("answer", "code", "sent"), [(b"\n", 1, 0), (b"y\n", 0, 4)])
async def test_on_a_terminal_it_asks(answer: bytes, code: int, sent: int) -> None:
    ours, theirs = os.openpty()
    async with running_sandbox() as sandbox:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sealgate", "discover", "--every", "0.1"),
            stdin=theirs,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], **environ_of(sandbox)},
        )
        os.write(ours, answer)
        async with asyncio.timeout(PATIENCE_S):
            _, told = await process.communicate()
        os.close(ours)
        os.close(theirs)
        assert process.returncode == code
        assert b"Send these reads? [y/N]" in told
        assert sandbox.exchange.journal._last == sent
