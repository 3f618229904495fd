"""schemathesis drives everything in the OpenAPI document against a sandbox process, with real signatures."""

import hashlib
import hmac
import json
import time  # noqa: TID251 - the process has a clock of its own
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from multidict import CIMultiDict, CIMultiDictProxy
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sandbox.process import Process, sandbox_process
from sealgate.sandbox.exchange import OPENAPI_PATH, Exchange
from sealgate.sandbox.message import Request
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.store import Store
from sealgate.sandbox.system import System

PREFIX = "/v1/trade"
RESET = "/_sandbox/reset"  # would end the signer's session; it takes no input
APP_ONLY = ("/api-keys", "/deposit", "/withdraw")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

# What switches the sandbox itself; put back after each call, else everything after it would fail.
SWITCHES = {
    "/_sandbox/limit": ("DELETE", "/_sandbox/limit", None),
    "/_sandbox/clock": ("DELETE", "/_sandbox/clock", None),
    "/_sandbox/faults": ("DELETE", "/_sandbox/faults", None),
    "/_sandbox/key_system": ("PUT", "/_sandbox/key_system", {"available": True}),
}


@dataclass(frozen=True)
class Signer(requests.auth.AuthBase):
    """Signs what is about to be sent, and shows session and a fresh passkey; all of them are good.

    The session is another user's than the key, so that revoking all keys leaves the key alone.
    """

    process: Process
    session_token: str
    http: requests.Session

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body: Any = request.body or b""
        raw: bytes = body.encode() if isinstance(body, str) else body
        path = (request.path_url or "").partition("?")[0].removeprefix(PREFIX)
        timestamp = str(time.time_ns() // 1_000_000)
        message = f"{timestamp}{request.method}{path}".encode() + raw
        signature = hmac.new(self.process.api_secret.encode(), message, hashlib.sha256).hexdigest()
        request.headers.update(
            {
                "X-SERVICE-APIKEY": self.process.api_key,
                "X-SERVICE-TIMESTAMP": timestamp,
                "X-SERVICE-SIGNATURE": signature,
                "Authorization": f"Bearer {self.session_token}",
            }
        )
        if request.method != "GET" and path.startswith(APP_ONLY):
            request.headers["X-PASSKEY-TOKEN"] = self._passkey()
        return request

    def _passkey(self) -> str:
        headers = {"Authorization": f"Bearer {self.session_token}"}
        reply = self.http.post(f"{self.process.base_url}/_sandbox/passkey", headers=headers, timeout=10)
        return str(reply.json()["passkey_token"])


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    with sandbox_process("--limit-kind", "none", "--handshake-requests", "1000000") as process:
        yield process


@pytest.fixture(scope="module")
def signer(process: Process) -> Iterator[Signer]:
    http = requests.Session()
    grant = http.post(f"{process.base_url}/_sandbox/users", json={}, timeout=10).json()
    yield Signer(process, grant["session_token"], http)
    http.close()


def _operations() -> list[Any]:
    with closing(Store()) as store:
        exchange = Exchange(SandboxSettings(), System(), store)
        now = exchange.conditions.now()
        reply = exchange.answer(Request("GET", OPENAPI_PATH, CIMultiDictProxy(CIMultiDict()), b"", ""), now)
    found: list[Any] = list(schemathesis.openapi.from_dict(json.loads(reply.body)).get_all_operations())
    operations = [operation.ok() for operation in found]
    return [operation for operation in operations if operation.path != RESET]


OPERATIONS = _operations()
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


def _takes_input(operation: Any) -> bool:
    parts = (operation.body, operation.query, operation.path_parameters, operation.headers)
    return any(len(part) for part in parts)


# Where there is no input, nothing about it can be wrong.
RUNS = [(operation, POSITIVE) for operation in OPERATIONS]
RUNS += [(operation, NEGATIVE) for operation in OPERATIONS if _takes_input(operation)]


@pytest.mark.parametrize(
    ("operation", "mode"), RUNS, ids=[f"{operation.label}, {mode.value}" for operation, mode in RUNS]
)
def test_the_document_is_kept(operation: Any, mode: Any, process: Process, signer: Signer) -> None:
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        _check(case, process, signer)

    check()


def _check(case: Any, process: Process, signer: Signer) -> None:
    own = {"address": process.user_address, "addr": process.user_address}
    case.path_parameters = {name: own.get(name, value) for name, value in case.path_parameters.items()}
    response = case.call(base_url=process.base_url, auth=signer, session=signer.http)
    switch = SWITCHES.get(case.path)
    if switch:
        method, path, value = switch
        signer.http.request(method, process.base_url + path, json=value, timeout=10).raise_for_status()
    case.validate_response(response, checks=CHECKS)
