import json
from typing import Any

import pytest

from rig import verdicts
from rig.refused import facts
from sealgate.core.findings import Finding, Level
from sealgate.core.refusals import WholeReply
from sealgate.core.vetting import Read, judge_reads, limited

PATH = "/v1/trade/symbols/list"


def whole(status: int, body: bytes) -> WholeReply:
    return WholeReply(status, body, verdicts.judged(status, body))


GOOD = whole(200, b'{"symbols": []}')


def refused(detail: str, status: int = 401) -> WholeReply:
    return whole(status, json.dumps({"detail": detail}).encode())


def read(reply: WholeReply | None, alias: str = "main", **known: Any) -> Read:
    return Read("ak-1", facts(alias=alias, **known), reply, "" if reply else "it was cut")


def judged(*reads: Read, is_public: bool = False) -> list[Finding]:
    return list(judge_reads(reads, is_public=is_public))


@pytest.mark.parametrize(
    ("reply", "level", "text"),
    [
        (GOOD, Level.OK, f"a signed read is accepted (GET {PATH}, 30 ms)"),
        (whole(200, b" []"), Level.OK, f"a signed read is accepted (GET {PATH}, 30 ms)"),
        (whole(200, b"<html>"), Level.WARN, "a signed read was answered, but not with JSON"),
        (whole(301, b""), Level.FAIL, "the exchange redirects to another address (301)"),
        (
            refused("API key lacks 'read' permission", 403),
            Level.FAIL,
            "a signed read was refused, 403 API key lacks 'read' permission: the key has no read permission",
        ),
        (None, Level.FAIL, "no answer to a signed read: it was cut"),
    ],
)
def test_a_line_for_each_reply(reply: WholeReply | None, level: Level, text: str) -> None:
    [finding] = judged(read(reply))
    assert (finding.area, finding.level, finding.text) == ("keys.main", level, text)


@pytest.mark.parametrize(("stated", "wait"), [(3.0, "wait 3 s"), (None, "wait a while")])
def test_a_429_says_how_long_to_wait(stated: float | None, wait: str) -> None:
    finding = limited("exchange", stated)
    assert (finding.area, finding.level) == ("exchange", Level.WARN)
    assert finding.fix.startswith(wait)


def test_a_public_path_proves_nothing() -> None:
    [finding] = judged(read(GOOD), is_public=True)
    assert finding.level is Level.WARN
    assert "--path" in finding.fix


def test_one_key_explains_another() -> None:
    wrong = refused("Invalid HMAC signature")
    main, alt, spot = judged(read(wrong), read(GOOD, "alt"), read(wrong, "spot"))
    assert alt.level is Level.OK
    assert "the secrets of main, spot are swapped" in main.text
    assert "the secrets of spot, main are swapped" in spot.text
    assert any(cause.evidence.endswith("accepted: alt") for cause in main.causes)


@pytest.mark.parametrize(
    ("status", "text"),
    [(300, "the exchange redirects to another address"), (400, "a signed read was refused")],
)
def test_what_is_no_success_is_told_and_no_witness(status: int, text: str) -> None:
    alt = read(whole(status, GOOD.body), "alt")
    main, told = judged(read(refused("Invalid HMAC signature")), alt)
    assert told.text.startswith(text)
    assert not any("accepted: alt" in cause.evidence for cause in main.causes)


def test_a_public_path_makes_no_witness() -> None:
    main, _ = judged(read(refused("Invalid HMAC signature")), read(GOOD, "alt"), is_public=True)
    assert main.causes
    assert not any("accepted: alt" in cause.evidence for cause in main.causes)


def test_a_read_does_not_tell_whether_a_key_may_trade() -> None:
    [finding] = judged(read(GOOD, is_to_trade=True, is_listed=None))
    words = "; whether it may trade, only the exchange's list tells (keys.main.session)"
    assert (finding.level, finding.text.endswith(words)) == (Level.OK, True)
    [finding] = judged(read(GOOD, is_to_trade=True, is_listed=True))
    assert "trade," not in finding.text
