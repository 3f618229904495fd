"""The fuzz target holds for a short run, and finds each hole that was mended here once it is open again."""

import pytest

from bench.fuzz_target import FoundError, Fuzz
from rig.compiled import needs_sources
from sealgate.core import headers
from sealgate.gateway.http import server
from sealgate.gateway.http.parser import _BODY, RequestHead, RequestParser

SEED = 19


async def finding() -> str:
    """Return what the fuzz finds first."""
    with pytest.raises(FoundError) as caught:
        await Fuzz(SEED, 1, lambda number: number < 500, closed_within_s=1.0).run()
    return str(caught.value)


def check_goes_on(found: str) -> None:
    """Either what follows is executed, or the connection waits for more."""
    assert "in a body or behind the end" in found or "the connection stays" in found


async def test_nothing_is_found_in_a_short_run() -> None:
    run = Fuzz(SEED, 1, lambda number: number < 40)
    await run.run()
    assert run.figures["requests arrived"] > run.figures["connections"] / 10


@needs_sources
async def test_a_name_that_is_compared_with_one_mark_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_canonical", lambda name: name.lower().replace(b"_", b"-"))
    assert "arrived, the gateway's own name where" in await finding()


@needs_sources
async def test_a_request_behind_chunks_of_http_1_0_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Trusting(RequestParser):
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            head = self._events[-1]
            if isinstance(head, RequestHead) and head.length is None:
                self._keep_alive = head.keep_alive = self._llhttp.should_keep_alive()

    monkeypatch.setattr(server, "RequestParser", Trusting)
    check_goes_on(await finding())


@needs_sources
async def test_a_request_behind_connect_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Trusting(RequestParser):
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            if self._llhttp.get_method() == b"CONNECT":
                self._events.pop()
                self._keep_alive = self._events[-1].keep_alive = True
                self._part = _BODY  # it has one, as an offer of another protocol has

    monkeypatch.setattr(server, "RequestParser", Trusting)
    check_goes_on(await finding())
