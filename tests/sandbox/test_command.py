"""`sealgate sandbox` as a user meets it: a process, its output, its exit code."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from sandbox.process import PROGRAM, sandbox_process
from sealgate.cli.sandbox import command

FREE = ("--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=["SIGTERM", "SIGINT", "SIGHUP"]
)
def test_a_signal_ends_it_with_0(number: signal.Signals) -> None:
    with sandbox_process() as process:
        assert requests.get(f"{process.base_url}/v1/trade/time", timeout=10).status_code == 200
        process.popen.send_signal(number)
        assert process.popen.wait(10) == 0


def test_a_signal_ends_it_while_a_reply_stalls() -> None:
    with sandbox_process() as process:
        faults: Any = {"faults": [{"kind": "stall", "delay_s": 1000}]}
        requests.put(f"{process.base_url}/_sandbox/faults", json=faults, timeout=10).raise_for_status()
        with requests.get(f"{process.base_url}/v1/trade/time", stream=True, timeout=10) as reply:
            assert reply.status_code == 200
            process.popen.terminate()
            assert process.popen.wait(10) == 0


def test_the_json_line_is_one_line_with_the_five_names() -> None:
    with subprocess.Popen([*PROGRAM, "--json", *FREE], stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        line = json.loads(popen.stdout.readline())
        popen.terminate()
        rest = popen.stdout.read()
    assert set(line) == {"base_url", "api_key", "api_secret", "session_token", "user_address"}
    assert (rest, popen.returncode) == ("", 0)


@contextmanager
def shown_to_people(*options: str) -> Iterator[str]:
    """Run a sandbox, and give what it prints."""
    with subprocess.Popen([*PROGRAM, *FREE, *options], stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(popen.stdout.readline())
        yield "".join(lines)
        popen.terminate()


def test_people_are_told_how_to_get_passkey_tokens() -> None:
    with shown_to_people() as text:
        pass
    shown = dict(line.split() for line in text.splitlines()[:5])
    assert set(shown) == {"base_url", "api_key", "api_secret", "session_token", "user_address"}
    assert f"curl -X POST -H 'Authorization: Bearer {shown['session_token']}'" in text
    assert "X-PASSKEY-TOKEN" in text


PASTES = [
    ("as it comes", (), 3),
    (
        "with other choices",
        ("--signature-encoding", "base64", "--secret-is", "sha256hex", "--recv-window-ms", "3000"),
        4,
    ),
]


@pytest.mark.parametrize(("name", "options", "count"), PASTES, ids=[row[0] for row in PASTES])
def test_what_it_prints_can_be_pasted_for_a_gateway(
    name: str, options: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    """In a shell that knows nothing, `sealgate check` then signs a request that this sandbox accepts."""
    with shown_to_people(*options) as text:
        pasted = [line for line in text.splitlines() if line.startswith("export ")]
        check = shlex.join([sys.executable, "-m", "sealgate", "check"])
        run = subprocess.run(
            ["sh", "-e", "-c", "\n".join([*pasted, check])],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                # Whoever runs this may have a gateway running.
                "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
                "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
                "SEALGATE_ADMIN__UNIX": str(tmp_path / "admin.sock"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert len(pasted) == count, name
    assert run.returncode == 0, run.stdout + run.stderr


def test_an_occupied_port_is_one_line() -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        run = subprocess.run(
            [*PROGRAM, "--listen", f"127.0.0.1:{port}"], capture_output=True, text=True, check=False
        )
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr == (
        f"sealgate: error: cannot listen on 127.0.0.1:{port}: another program listens there;"
        " choose another with --listen HOST:PORT\n"
    )


WRONG = [
    ("no port", ["--listen", "localhost"], "is not host:port"),
    ("a port too large", ["--listen", "127.0.0.1:70000"], "has a port out of range"),
    ("an unknown host", ["--listen", "no.such.host.invalid:1"], "cannot listen on no.such.host.invalid:1: "),
    ("an address of others", ["--listen", "192.0.2.1:1"], "192.0.2.1:1: cannot assign requested address;"),
    ("a kind that is none", ["--limit-kind", "leaky"], "is not one of"),
    ("no requests", ["--limit-requests", "0"], "is not in the range"),
    ("no window", ["--limit-window-s", "0"], "0.001"),
    ("a window that is no number", ["--limit-window-s", "nan"], "is not a finite number"),
    ("a status that is none", ["--needs-transfer-status", "500"], "is not one of"),
    ("a cost without a route", ["--limit-costs", "=2"], "is not METHOD /path=N"),
    ("a cost too large", ["--limit-costs", "GET /x=1000001"], "is not METHOD /path=N"),
    ("a cost that is no number", ["--limit-costs", "GET /x=y"], "is not METHOD /path=N"),
    ("a cost of no call", ["--limit-costs", "POST /v1/ordr=2", *FREE], "'POST /v1/ordr' fits no call"),
    (
        "a database in no folder",
        ["--db", "/nonexistent/s.db", *FREE],
        "there is no folder /nonexistent; make it",
    ),
]


@pytest.mark.parametrize(("name", "options", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_usage_is_2_with_a_reason(name: str, options: list[str], said: str) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2, name
    assert said in result.output
    assert "Traceback" not in result.output
    assert "Errno" not in result.output


def test_the_options_reach_the_sandbox(tmp_path: Path) -> None:
    options = (
        "--limit-kind",
        "sliding_log",
        "--limit-costs",
        "GET /v1/trade/time=5",
        "--limit-requests",
        "5",
    )
    with sandbox_process(
        *options, "--db", str(tmp_path / "s.db"), "--needs-transfer-status", "449"
    ) as process:
        url = f"{process.base_url}/v1/trade/time"
        assert [requests.get(url, timeout=10).status_code for _ in range(2)] == [200, 429]
        limit = requests.delete(f"{process.base_url}/_sandbox/limit", timeout=10).json()
        assert (limit["kind"], limit["costs"]) == ("sliding_log", {"GET /v1/trade/time": 5})


def test_it_listens_on_ipv6() -> None:
    command_line = [*PROGRAM, "--json", "--listen", "[::1]:0"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        base_url = json.loads(popen.stdout.readline())["base_url"]
        assert requests.get(f"{base_url}/v1/trade/time", timeout=10).status_code == 200
        popen.terminate()
    assert base_url.startswith("http://[::1]:")


def test_help_imports_nothing_heavy() -> None:
    program = "import sys; import sealgate.cli.sandbox; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"aiohttp", "pydantic", "sqlite3"}.isdisjoint(run.stdout.split())
