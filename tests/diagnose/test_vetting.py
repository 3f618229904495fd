"""By which bounds a clock, a certificate, a key, a disk is fine, and what the paths of an exchange tell."""

import pytest

from rig.verdicts import judged
from sealgate.diagnose.reads import Asked, judge_paths
from sealgate.diagnose.vetting import (
    refused_certificate,
    vet_certificate,
    vet_clock,
    vet_descriptors,
    vet_disk,
    vet_keep_alive,
    vet_listed,
    vet_own_certificate,
)
from sealgate.keys.key_records import KeyRecord, ListedKey
from sealgate.machine.findings import Level, fail

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.mark.parametrize(
    ("offset_s", "error_s", "level", "words"),
    [
        (0.003, 0.002, Level.OK, "accurate to ±2 ms; this machine's clock is off by +3 ms"),
        (0.0, 0.0021, Level.OK, "accurate to ±3 ms"),
        (0.0, 0.0001, Level.OK, "accurate to ±1 ms; this machine's clock is off by +0 ms"),
        (120.0, 0.002, Level.WARN, "this machine's clock is 120.0 s behind, which the gateway corrects"),
        (-120.0, 0.002, Level.WARN, "this machine's clock is 120.0 s ahead, which the gateway corrects"),
        (1.002, 0.002, Level.OK, "this machine's clock is off by +1002 ms"),
        (1.003, 0.002, Level.WARN, "this machine's clock is 1.0 s behind"),
        (0.0, 2.5, Level.OK, "accurate to ±2500 ms"),
        (0.0, 2.501, Level.FAIL, "accurate to ±2501 ms, not precise enough for a recv_window of 5000 ms"),
        (120.0, 3.0, Level.FAIL, "accurate to ±3000 ms, not precise enough for a recv_window of 5000 ms"),
    ],
)
def test_clock(offset_s: float, error_s: float, level: Level, words: str) -> None:
    finding = vet_clock(offset_s, error_s, 5000)
    assert (finding.area, finding.level) == ("clock", level)
    assert words in finding.text


@pytest.mark.parametrize(
    ("days", "level", "text"),
    [
        (90, Level.OK, "the certificate is valid until 2027-04-15"),
        (14, Level.OK, "the certificate is valid until 2027-01-29"),
        (13.9, Level.WARN, "the certificate is valid until 2027-01-29, in 14 days"),
        (3, Level.WARN, "the certificate is valid until 2027-01-18, in 3 days"),
    ],
)
def test_certificate(days: float, level: Level, text: str) -> None:
    finding = vet_certificate(NOW + days * DAY, NOW)
    assert (finding.area, finding.level, finding.text) == ("TLS", level, text)


@pytest.mark.parametrize(
    ("starts", "ends", "level", "text"),
    [
        (-10, 80, Level.OK, "the certificate matches its key, and is valid until 2027-04-05"),
        (-82, 8, Level.WARN, "the certificate matches its key, and is valid until 2027-01-23"),
        (-77, 13, Level.WARN, "the certificate matches its key, and is valid until 2027-01-28"),
        (-75, 15, Level.OK, "the certificate matches its key, and is valid until 2027-01-30"),
        (-0.5, 0.5, Level.OK, "the certificate matches its key, and is valid until 2027-01-15"),
        (-90, 0, Level.FAIL, "the certificate expired on 2027-01-15"),
        (1, 90, Level.FAIL, "the certificate is valid only from 2027-01-16 on"),
    ],
)
def test_the_certificate_that_bots_see(starts: float, ends: float, level: Level, text: str) -> None:
    finding = vet_own_certificate(NOW + starts * DAY, NOW + ends * DAY, NOW)
    assert (finding.area, finding.level, finding.text) == ("listen.tls_cert", level, text)


@pytest.mark.parametrize(
    ("code", "text", "fix"),
    [
        (10, "the certificate of a.example has expired", "this machine's clock shows 2027-01-15"),
        (9, "the certificate of a.example is not valid yet", "this machine's clock shows 2027-01-15"),
        (64, "the certificate is not for a.example", "correct the host in base_url"),
        (62, "the certificate is not for a.example", "correct the host in base_url"),
        (18, "the certificate of a.example is signed by an unknown authority", "upstream.ca_file"),
        (19, "the certificate of a.example is signed by an unknown authority", "upstream.ca_file"),
        (20, "the certificate of a.example is signed by an unknown authority", "upstream.ca_file"),
        (21, "the certificate of a.example is signed by an unknown authority", "upstream.ca_file"),
        (1, "the certificate of a.example is refused (odd)", "upstream.ca_file"),
    ],
)
def test_refused_certificate(code: int, text: str, fix: str) -> None:
    finding = refused_certificate(code, "a.example", "odd", NOW)
    assert (finding.area, finding.level, finding.text) == ("TLS", Level.FAIL, text)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("record", "permissions", "may", "level", "text"),
    [
        (KeyRecord(None, is_active=True), ("read",), {"read"}, Level.OK, "active, without expiry"),
        (
            KeyRecord(NOW + 90 * DAY, is_active=True),
            ("read",),
            {"read"},
            Level.OK,
            "active, until 2027-04-15",
        ),
        (KeyRecord(None, is_active=True), (), {"trade"}, Level.OK, "active, without expiry"),
        (KeyRecord(NOW + 3 * DAY, is_active=True), (), {"read"}, Level.WARN, "the key expires in 3.0 days"),
        (
            KeyRecord(None, is_active=True),
            ("read",),
            {"trade"},
            Level.WARN,
            "no trade permission",
        ),
        (KeyRecord(NOW - DAY, is_active=True), (), {"read"}, Level.FAIL, "the key expired 1 days ago"),
        (KeyRecord(None, is_active=False), ("read",), {"trade"}, Level.FAIL, "it was revoked"),
    ],
)
def test_what_the_exchange_s_list_says_of_a_key(
    record: KeyRecord, permissions: tuple[str, ...], may: set[str], level: Level, text: str
) -> None:
    key = ListedKey("ak-1", "", permissions, (), None, None, record)
    finding = vet_listed("keys.main.session", key, frozenset(may), NOW)
    assert (finding.area, finding.level, bool(finding.fix)) == (
        "keys.main.session",
        level,
        level is not Level.OK,
    )
    assert text in finding.text


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (500 * 1024**2, None),
        (64 * 1024**2, None),
        (64 * 1024**2 - 1, ("journal", Level.WARN, "63 MiB are free in data, less than journal.max_size")),
        (16 * 1024**2, ("journal", Level.WARN, "16 MiB are free in data, less than journal.max_size")),
        (16 * 1024**2 - 1, ("journal", Level.FAIL, "15 MiB are free in data")),
    ],
)
def test_disk(free: int, told: tuple[str, Level, str] | None) -> None:
    finding = vet_disk("data", free, 64 * 1024**2)
    assert (finding and (finding.area, finding.level, finding.text)) == told


@pytest.mark.parametrize(
    ("announced_s", "is_short"), [(None, False), (15.5, False), (15.0, True), (0.0, True)]
)
def test_keep_alive(announced_s: float | None, *, is_short: bool) -> None:
    finding = vet_keep_alive(announced_s, 15.0)
    assert (finding and (finding.area, finding.level)) == (
        ("upstream.keep_alive", Level.WARN) if is_short else None
    )


@pytest.mark.parametrize(("room", "level"), [(1000, Level.OK), (999, Level.WARN)])
def test_descriptors(room: int, level: Level) -> None:
    finding = vet_descriptors(1024, room, 1000)
    assert (finding.area, finding.level) == ("open files", level)


NO_TIME = Asked("GET /v1/trade/time", 404, judged(404))
CLOCK = fail("clock", "/v1/trade/time: the answer was 404", "correct it")
HOME = " (Mine is at https://mine.example)"


def test_an_exchange_that_has_neither_of_two_paths() -> None:
    read = Asked("GET /v1/trade/symbols/list", 404, judged(404))
    base_url, clock = judge_paths(CLOCK, NO_TIME, read, "https://exchange.example", HOME)
    both = "GET /v1/trade/time was answered 404, and GET /v1/trade/symbols/list was answered 404"
    assert (base_url.area, base_url.level) == ("base_url", Level.FAIL)
    assert base_url.text == f"https://exchange.example: {both}"
    assert base_url.fix.startswith("compare base_url with the exchange's documents (Mine is at https://mine")
    assert clock is CLOCK


@pytest.mark.parametrize(
    ("status", "body", "told", "fix"),
    [
        (
            401,
            b'{"detail": "Invalid API key"}',
            "401 Invalid API key",
            "base_url seems to be right",
        ),
        (200, b"{}", "200", "base_url seems to be right"),
        (403, b"<html>", "403", "compare base_url with the exchange's documents (Mine is at"),
        (502, b"<html>", "502", "compare base_url with the exchange's documents (Mine is at"),
    ],
)
def test_one_path_that_is_missing_proves_nothing(status: int, body: bytes, told: str, fix: str) -> None:
    read = Asked("GET /v1/trade/x", status, judged(status, body))
    [clock] = judge_paths(CLOCK, NO_TIME, read, "https://exchange.example", HOME)
    assert (clock.area, clock.level) == ("clock", Level.FAIL)
    assert clock.text == f"GET /v1/trade/time was answered 404, though GET /v1/trade/x was answered {told}"
    assert clock.fix.startswith(fix)
