"""The causes of a 401 or 403: which one comes first, and why, for each set of facts."""

import json

import pytest

from rig.refused import NOW_MS, facts
from rig.verdicts import judged, verdict
from sealgate.core.findings import Weight, blamed
from sealgate.core.key_records import KeyRecord
from sealgate.core.refusals import Facts, Others, Shape, WholeReply, causes_of

OUTSIDE = "Timestamp outside recv_window ({window}ms). Server time: {server}"
SIGNATURE = "Invalid HMAC signature"


def body(detail: str) -> bytes:
    return json.dumps({"detail": detail, "timestamp": "2027-01-15T08:00:00Z"}).encode()


def reply(status: int, content: bytes) -> WholeReply:
    return WholeReply(status, content, judged(status, content))


def outside(skew_ms: int, window_ms: int = 5000) -> str:
    return OUTSIDE.format(window=window_ms, server=NOW_MS - skew_ms)


ENDED = KeyRecord(NOW_MS / 1000 - 1, is_active=True)
REVOKED = KeyRecord(None, is_active=False)
ACTIVE = KeyRecord(None, is_active=True)

# (status, what the exchange said, what is known) -> (weight, words of the first cause, words of its fix)
CASES: dict[str, tuple[int, str, Facts, Weight, str, str]] = {
    "scheme never set": (
        401,
        SIGNATURE,
        facts(),
        Weight.LIKELY,
        "the secret belongs to another key",
        "keys.main.secret",
    ),
    "scheme set by hand": (
        401,
        SIGNATURE,
        facts(scheme_is_default=False),
        Weight.LIKELY,
        "the secret belongs to another key",
        "keys.main.secret",
    ),
    "scheme never set, and no key is accepted": (
        401,
        SIGNATURE,
        facts(others=Others((), ("alt",))),
        Weight.LIKELY,
        "[signing] is not",
        "--key main --path /v1/",
    ),
    "no key is accepted": (
        401,
        SIGNATURE,
        facts(scheme_is_default=False, others=Others((), ("alt",))),
        Weight.LIKELY,
        "[signing] is not",
        "sealgate discover",
    ),
    "another key is accepted": (
        401,
        SIGNATURE,
        facts(others=Others(("alt",))),
        Weight.LIKELY,
        "the secret belongs to another key, or was replaced",
        "keys.main.secret",
    ),
    "two of three are refused": (
        401,
        SIGNATURE,
        facts(others=Others(("alt",), ("spot",))),
        Weight.LIKELY,
        "the secrets of main, spot are swapped",
        "keys.main.secret",
    ),
    "the API key stored as secret": (
        401,
        SIGNATURE,
        facts(shape=Shape(is_api_key=True)),
        Weight.PROVEN,
        "what is stored as the secret is the API key",
        "keys.main.secret",
    ),
    "quotes around the secret": (
        401,
        SIGNATURE,
        facts(shape=Shape(is_wrapped=True)),
        Weight.LIKELY,
        "something around it",
        "store the secret alone",
    ),
    "a second line below the secret": (
        401,
        SIGNATURE,
        facts(shape=Shape(has_lines=True)),
        Weight.LIKELY,
        "something around it",
        "store the secret alone",
    ),
    "key unknown": (
        401,
        "Invalid API key",
        facts(),
        Weight.POSSIBLE,
        "mistyped, revoked or expired",
        "keys.main.api_key",
    ),
    "key expired": (401, "Invalid API key", facts(record=ENDED), Weight.PROVEN, "has expired", "new key"),
    "key revoked": (401, "Invalid API key", facts(record=REVOKED), Weight.PROVEN, "revoked", "new key"),
    "key listed as active": (
        401,
        "Invalid API key",
        facts(record=ACTIVE, is_listed=True),
        Weight.POSSIBLE,
        "mistyped",
        "compare",
    ),
    "key not in the list": (
        401,
        "Invalid API key",
        facts(is_listed=False),
        Weight.LIKELY,
        "mistyped, or another user's",
        "keys.main.api_key",
    ),
    "key and secret swapped": (
        401,
        "Invalid API key",
        facts(shape=Shape(is_shorter=True)),
        Weight.LIKELY,
        "API key and secret are swapped",
        "swap",
    ),
    "headers of another name": (
        401,
        "Missing API key auth headers",
        facts(),
        Weight.LIKELY,
        "another name",
        "signing.header_prefix",
    ),
    "clock without /time": (
        401,
        outside(-7000),
        facts(clock_error_ms=None),
        Weight.PROVEN,
        "this machine's clock is wrong",
        "clock.path",
    ),
    "clock although there is /time": (
        401,
        outside(7000),
        facts(),
        Weight.LIKELY,
        "/time is not the clock that the exchange checks by",
        "clock.field",
    ),
    "timestamp without a number": (
        401,
        "Invalid timestamp",
        facts(),
        Weight.LIKELY,
        "/time is not the clock",
        "clock.path",
    ),
    "window smaller than configured": (
        401,
        outside(1500, 1000),
        facts(clock_error_ms=None),
        Weight.PROVEN,
        "this machine's clock is wrong",
        "clock.path",
    ),
    "window and slow network": (
        401,
        outside(900, 1000),
        facts(round_trip_ms=1200),
        Weight.LIKELY,
        "stricter than it says",
        "again",
    ),
    "permission": (
        403,
        "API key lacks 'read' permission",
        facts(),
        Weight.PROVEN,
        "no read permission",
        "give the key read",
    ),
    "permission in lower case": (
        403,
        "api key lacks 'trade' permission",
        facts(),
        Weight.PROVEN,
        "no trade permission",
        "give the key trade",
    ),
    "whitelist in lower case": (
        403,
        "ip 203.0.113.9 not in api key whitelist",
        facts(),
        Weight.PROVEN,
        "lacks 203.0.113.9",
        "add 203.0.113.9",
    ),
    "clock in lower case": (
        401,
        outside(900, 1000).lower(),
        facts(),
        Weight.LIKELY,
        "stricter than it says",
        "again",
    ),
    "permission without a name": (403, "API key lacks it", facts(), Weight.PROVEN, "no read", "give the key"),
    "whitelist": (
        403,
        "IP 203.0.113.9 not in API key whitelist",
        facts(),
        Weight.PROVEN,
        "lacks 203.0.113.9, which the exchange saw",
        "add 203.0.113.9",
    ),
    "whitelist without an address": (
        403,
        "not in API key whitelist",
        facts(),
        Weight.PROVEN,
        "this machine's public address",
        "add this machine's public address",
    ),
    "whitelist by IPv6": (
        403,
        "IP 2001:db8::9 not in API key whitelist",
        facts(),
        Weight.PROVEN,
        "lacks 2001:db8::9",
        "add 2001:db8::9",
    ),
    "another user": (403, "Address mismatch", facts(), Weight.PROVEN, "another user's address", "--path"),
    "403 of nobody known": (403, "No.", facts(), Weight.LIKELY, "a firewall", "look at the reply"),
    "no such path": (404, "Not found", facts(), Weight.LIKELY, "the prefix is wrong", "upstream.prefix"),
    "401 of nobody known": (
        401,
        "No.",
        facts(),
        Weight.POSSIBLE,
        "no rule of the venue's file",
        "Read the reply",
    ),
    "body refused": (422, "Validation error", facts(), Weight.PROVEN, "its reply says why", "Correct"),
    "not traded": (
        403,
        "Trading handshake not completed",
        facts(),
        Weight.PROVEN,
        "its reply says why",
        "Place one trade",
    ),
    "exchange at fault": (
        500,
        "Internal server error",
        facts(),
        Weight.POSSIBLE,
        "a fault of its own",
        "status page",
    ),
    "503 of nobody known": (503, "Busy", facts(), Weight.POSSIBLE, "a fault of its own", "status page"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_cause(case: tuple[int, str, Facts, Weight, str, str]) -> None:
    status, said, known, weight, text, fix = case
    first = blamed("keys.main", "refused", causes_of(reply(status, body(said)), known)).causes[0]
    assert first.weight is weight
    assert text in first.text
    assert fix in first.fix


def evidence(said: str, known: Facts) -> dict[str, str]:
    return {cause.text: cause.evidence for cause in causes_of(reply(401, body(said)), known)}


SECRET = "the secret belongs to another key, or was replaced"
SCHEME = "[signing] is not what the exchange takes"
PREFIX = "upstream.prefix is not what the exchange leaves out of the signature"


@pytest.mark.parametrize(
    ("known", "weights", "seen"),
    [
        (facts(), (Weight.LIKELY, Weight.POSSIBLE), "it is at its defaults"),
        (facts(scheme_is_default=False), (Weight.LIKELY, Weight.POSSIBLE), "it was set by hand"),
        (
            facts(scheme_is_default=False, others=Others((), ("alt",))),
            (Weight.POSSIBLE, Weight.LIKELY),
            "no key is accepted",
        ),
    ],
)
def test_all_causes_of_a_signature_that_nothing_else_explains(
    known: Facts, weights: tuple[Weight, Weight], seen: str
) -> None:
    causes = causes_of(reply(401, body(SIGNATURE)), known)
    assert [(cause.weight, cause.text, cause.evidence) for cause in causes] == [
        (weights[0], SECRET, ""),
        (weights[1], SCHEME, seen),
        (Weight.POSSIBLE, PREFIX, ""),
    ]


def test_where_the_venues_file_says_how_it_is_signed_only_the_keys_own_settings_are_blamed() -> None:
    known = facts(venue="okx", wants=("passphrase",))
    causes = causes_of(reply(401, body(SIGNATURE)), known)
    assert [(cause.weight, cause.text) for cause in causes] == [
        (Weight.LIKELY, SECRET),
        (Weight.POSSIBLE, "the passphrase belongs to another key"),
    ]
    assert not any("[signing]" in cause.fix or "discover" in cause.fix for cause in causes)
    assert "keys.main.passphrase" in causes[1].fix
    [first, *_, last] = causes_of(
        reply(401, body(SIGNATURE)), facts(venue="okx", scheme_is_default=False, others=Others(("alt",)))
    )
    assert (first.text, first.weight) == (SECRET, Weight.LIKELY)
    assert last.fix == "take [signing] out: the file of okx says how it is signed"


def test_the_headers_of_a_venue_are_those_of_its_file() -> None:
    [dropped] = causes_of(reply(401, body("Missing API key auth headers")), facts(venue="okx"))
    assert dropped.text == "a proxy before the exchange drops them"


def test_headers_may_also_be_dropped_on_the_way() -> None:
    named, dropped = causes_of(reply(401, body("Missing API key auth headers")), facts())
    assert named.evidence == f"they were sent as {facts().header_prefix}APIKEY and so on"
    assert (dropped.weight, dropped.text) == (Weight.POSSIBLE, "a proxy before the exchange drops them")


def test_a_kind_without_causes_names_none_and_leads_to_its_line_of_the_documents() -> None:
    finding = blamed(
        "keys.main", "refused, 404", causes_of(reply(404, body("No open position found")), facts())
    )
    assert finding.text == "refused, 404: its reply says why"
    assert finding.fix == verdict("no_position").advice
    assert [cause.evidence for cause in finding.causes] == ["docs/errors.md#no_position"]


def test_a_skew_of_just_the_window_is_inside_it() -> None:
    assert evidence(outside(5000), facts()) == {
        "the exchange takes the window stricter than it says": (
            "the timestamp was 5.0 s ahead of the exchange's time, the window is 5000 ms"
        )
    }


def test_a_large_skew_is_told_to_a_tenth_of_a_second() -> None:
    found = evidence(outside(-600_000), facts(clock_error_ms=None))
    assert list(found.values()) == ["the timestamp was 600.0 s behind the exchange's time"]


def test_what_speaks_against_a_cause_puts_it_last() -> None:
    causes = blamed("a", "b", causes_of(reply(401, body(SIGNATURE)), facts(others=Others(("alt",))))).causes
    assert causes[-1].weight is Weight.UNLIKELY
    assert causes[-1].evidence == "others are signed the same way and accepted: alt"


def test_a_smaller_window_is_told_beside_the_clock() -> None:
    found = evidence(outside(1500, 1000), facts())
    assert found["/time is not the clock that the exchange checks by"] == (
        "the timestamp was 1.5 s ahead of the exchange's time; /time was read to ±2 ms"
    )
    told = found["recv_window_ms is not what the exchange grants"]
    assert told == "the exchange says 1000 ms, the configuration 5000 ms"


def test_the_skew_is_measured_from_the_refusal() -> None:
    found = evidence(outside(-7000), facts(clock_error_ms=None))
    assert list(found.values()) == ["the timestamp was 7.0 s behind the exchange's time"]


@pytest.mark.parametrize(("clock_error_ms", "seen"), [(None, ""), (2, "/time was read to ±2 ms")])
def test_where_the_exchange_states_no_time_no_skew_is_told(clock_error_ms: int | None, seen: str) -> None:
    found = causes_of(reply(401, body("Timestamp outside recv_window")), facts(clock_error_ms=clock_error_ms))
    assert [cause.evidence for cause in found] == [seen]


@pytest.mark.parametrize(("round_trip_ms", "told"), [(1000, None), (1001, "the round trip took 1001 ms")])
def test_a_slow_way_is_told(round_trip_ms: int, told: str | None) -> None:
    found = evidence(outside(100, 1000), facts(round_trip_ms=round_trip_ms, recv_window_ms=1000))
    assert found.get("the way to the exchange is too slow") == told


def test_ipv6_is_a_second_cause() -> None:
    causes = causes_of(reply(403, body("IP 2001:db8::9 not in API key whitelist")), facts())
    assert [(cause.weight, cause.evidence) for cause in causes] == [
        (Weight.PROVEN, ""),
        (Weight.POSSIBLE, "2001:db8::9 is IPv6"),
    ]


def test_what_is_no_address_is_not_repeated() -> None:
    [cause] = causes_of(reply(403, body("IP \x1b[31mevil not in API key whitelist")), facts())
    assert cause.fix == "add this machine's public address to the key's whitelist in the app"


def test_a_reply_that_is_no_json_comes_from_elsewhere() -> None:
    [cause] = causes_of(reply(403, b"<html>Access denied</html>"), facts())
    assert cause.evidence == "the reply is not JSON, so it is not of the exchange itself"
    for json_reply in (body("No."), b"\n" + body("No.")):
        [cause] = causes_of(reply(403, json_reply), facts())
        assert cause.evidence == ""
