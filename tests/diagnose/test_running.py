"""What a running gateway says of itself, as lines of a check."""

from typing import Any

import pytest

from sealgate.diagnose.running import judge_pause, judge_running, judge_stale, pause_s
from sealgate.machine.findings import Level, ok, warn
from sealgate.observe.units import BAD, CALM, WARN

LIMIT = {"words": "20 per 1 s, from 14 refusals", "is_foreign_use": False, "next_step": None}
KEY: dict[str, Any] = {"alias": "main", "pause_s": 0.0, "trouble": None, "limits": [LIMIT]}
ALL = ("spot",)
LIMITS = ok("limits", "keys.main: 20 per 1 s, from 14 refusals")


def running(*notices: tuple[str, str], **changes: Any) -> dict[str, Any]:
    told = [{"mood": mood, "text": text} for mood, text in notices]
    return {"version": "1.0", "not_ready": [], "keys": [KEY], "words": {"notices": told}} | changes


def test_a_gateway_that_is_ready() -> None:
    found = list(judge_running(running((CALM, "No bot has sent a request yet.")), ALL))
    assert found == [ok("gateway", "version 1.0 is running and ready"), LIMITS]


def test_the_notices_of_its_page_are_lines() -> None:
    halted = "Orders are halted for all bots. Lift the halt with: `sealgate resume`"
    assert list(judge_running(running((BAD, halted), (WARN, "grid: 42 of 42 reads refused")), ALL)) == [
        warn("gateway", halted),
        warn("gateway", "grid: 42 of 42 reads refused"),
        ok("gateway", "version 1.0 is running and ready, but degraded"),
        LIMITS,
    ]
    assert list(judge_running(running((BAD, "Not ready: clock"), not_ready=["clock"]), ALL)) == [
        warn("gateway", "Not ready: clock"),
        LIMITS,
    ]


def test_what_is_known_of_limits() -> None:
    shared = LIMIT | {"is_foreign_use": True, "next_step": "next: 21 per 1 s, in 40 s"}
    keys = [KEY | {"limits": [shared]}, KEY | {"alias": "alt", "limits": []}]
    _, first, second = judge_running(running(keys=keys), ALL)
    words = (
        "20 per 1 s, from 14 refusals; another program seems to use this limit as well; "
        "next: 21 per 1 s, in 40 s"
    )
    assert (first, second) == (
        ok("limits", f"keys.main: {words}"),
        ok("limits", "keys.alt: no rate limit known yet"),
    )


def test_a_gateway_that_is_older_than_the_command() -> None:
    [line] = judge_running({"version": "0.2.0", "keys": [KEY], "not_ready": []}, ALL)
    assert line == warn("gateway", "version 0.2.0 is running, older than this command", "restart it")


@pytest.mark.parametrize(
    ("accepted", "told"), [(set[str](), []), ({"alt"}, []), ({"main", "alt"}, ["keys.main"])]
)
def test_a_key_that_is_accepted_as_it_is_stored_now_has_to_be_loaded(
    accepted: set[str], told: list[str]
) -> None:
    trouble = "the exchange refused its last 9 signatures"
    status = {"keys": [KEY | {"trouble": trouble}, KEY | {"alias": "alt"}]}
    found = list(judge_stale(status, "spot", accepted))
    assert [one.area for one in found] == told
    assert all(one.fix.endswith("with `sealgate reload`") and trouble in one.text for one in found)


def test_a_limit_of_several_names_its_pool() -> None:
    of_pool = LIMIT | {"pool": "path", "of": "GET /x"}
    *_, found = judge_running(running(keys=[KEY | {"has_pools": True, "limits": [of_pool]}]), ALL)
    assert found.text == "keys.main, path GET /x: 20 per 1 s, from 14 refusals"


def test_a_ban_fails_in_the_exchange_s_words() -> None:
    evidence = 'the exchange says: "IP has been banned"'
    ban = {"means": "banned", "kind": "ip_ban", "last_ms": 1_790_000_000_000, "over_since_ms": None}
    late = {**ban, "means": "limited", "kind": "rate_limited", "last_ms": 1_790_000_005_000}
    found = judge_pause({"errors": [late, ban | {"evidence": evidence}]}, "spot", 597.2)
    assert found.level is Level.FAIL
    assert found.text.endswith(f"since 2026-09-21 14:13:20 UTC, {evidence}")
    assert found.fix == "stop other programs that use them, and run this again in 597 s"
    for errors in ([], [{**ban, "over_since_ms": 1}], [late]):
        assert judge_pause({"errors": errors}, "spot", 5.0).level is Level.WARN


def test_the_longest_pause_of_a_key_counts() -> None:
    assert pause_s({"keys": [KEY, KEY | {"pause_s": 3.0}]}, "spot") == 3.0
    assert pause_s({"keys": []}, "spot") == 0.0


SPOT, PERP = ({**KEY, "exchange": name} for name in ("spot", "perp"))


def test_what_is_said_of_one_exchange_is_not_of_another() -> None:
    status = {"keys": [SPOT, PERP | {"pause_s": 3.0, "trouble": "refused"}]}
    assert (pause_s(status, "spot"), pause_s(status, "perp")) == (0.0, 3.0)
    assert list(judge_stale(status, "spot", {"main"})) == []
    assert len(list(judge_stale(status, "perp", {"main"}))) == 1
    ban = {"means": "banned", "kind": "ip_ban", "last_ms": 0, "over_since_ms": None, "exchange": "perp"}
    levels = [judge_pause({"errors": [ban]}, name, 5.0).level for name in ("spot", "perp")]
    assert levels == [Level.WARN, Level.FAIL]
    assert [one.exchange for one in judge_running(running(keys=[SPOT, PERP]), {"perp"})] == ["", "perp"]
