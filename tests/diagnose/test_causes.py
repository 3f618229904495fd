"""The causes of a 401 or 403: which one comes first, and why, for each set of facts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rig.refused_reads import NOW_MS, facts
from rig.verdicts import judged, verdict
from sealgate.diagnose.causes import Facts, WholeReply, causes_of, fix_of_own_read
from sealgate.diagnose.reads import Read, judge_limited, judge_reads
from sealgate.exchange.refused_reads import ASK_WHETHER_SERVED, refused_unsigned
from sealgate.keys.key_records import KeyRecord
from sealgate.keys.wrong_secrets import Shape
from sealgate.machine.findings import Finding, Level, Weight, blamed, clause
from sealgate.venues.replies import Means

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

KEY, NO_HEADERS = "Invalid API key", "Missing API key auth headers"
IP = "IP {} not in API key whitelist"
ACCEPTED, REFUSED_TOO = {"accepted": ("alt",)}, {"signature_refused": ("alt",)}
SPOT_REFUSED = {"signature_refused": ("spot",)}
PROVEN, LIKELY, POSSIBLE = Weight.PROVEN, Weight.LIKELY, Weight.POSSIBLE

# What the exchange said, what is known -> weight, words of the first cause, words of its fix
CASES: list[tuple[int, str, dict[str, Any], Weight, str, str]] = [
    (401, SIGNATURE, {}, LIKELY, "belongs to another key", "keys.main.secret"),
    (401, SIGNATURE, REFUSED_TOO, LIKELY, "[signing]", "sealgate discover --key main --path /v1/"),
    (401, SIGNATURE, ACCEPTED, LIKELY, "or was replaced", "keys.main.secret"),
    (401, SIGNATURE, ACCEPTED | SPOT_REFUSED, LIKELY, "of main, spot are swapped", "keys.main.secret"),
    (
        401,
        SIGNATURE,
        {"shape": Shape("has more than one line")},
        LIKELY,
        "around it",
        "store the secret alone",
    ),
    (401, KEY, {}, POSSIBLE, "mistyped, revoked or expired", "keys.main.api_key"),
    (401, KEY, {"record": ENDED}, PROVEN, "has expired", "new API key"),
    (401, KEY, {"record": REVOKED}, PROVEN, "revoked", "new API key"),
    (401, KEY, {"record": ACTIVE, "is_listed": True}, POSSIBLE, "mistyped", "compare"),
    (401, KEY, {"is_listed": False}, LIKELY, "another user", "keys.main.api_key"),
    (401, KEY, {"shape": Shape(is_shorter=True)}, LIKELY, "are swapped", "swap"),
    (401, NO_HEADERS, {}, LIKELY, "headers", "signing.header_prefix"),
    (401, outside(-7000), {"clock_error_ms": None}, PROVEN, "clock is wrong", "clock.path"),
    (401, outside(1500, 1000), {"clock_error_ms": None}, PROVEN, "clock is wrong", "clock.path"),
    (401, outside(7000), {}, LIKELY, "another clock", "clock.field"),
    (401, "Invalid timestamp", {}, LIKELY, "another clock", "clock.path"),
    (401, outside(900, 1000), {"round_trip_ms": 1200}, LIKELY, "shorter receive window", "again"),
    (403, "API key lacks 'read' permission", {}, PROVEN, "no read", "give the key the read permission"),
    (403, "API key lacks it", {}, PROVEN, "for this request", "give the key"),
    (403, IP.format("203.0.113.9"), {}, PROVEN, "203.0.113.9, which", "add 203.0.113.9"),
    (403, "not in API key whitelist", {}, PROVEN, "public IP address", "add this machine's"),
    (403, "Address mismatch", {}, PROVEN, "another user's address", "--path"),
    (403, "No.", {}, LIKELY, "a firewall", "read the reply"),
    (404, "Not found", {}, LIKELY, "the prefix is wrong", "upstream.prefix"),
    (401, "No.", {}, POSSIBLE, "the venue's file has no rule", "compare base_url"),
    (422, "Validation error", {}, PROVEN, "the exchange's reply gives the reason", "correct"),
    (500, "Internal server error", {}, POSSIBLE, "itself has a fault", "status page"),
]


@pytest.mark.parametrize(("status", "said", "known", "weight", "text", "fix"), CASES)
def test_the_first_cause(  # noqa: PLR0913, PLR0917 - one row
    status: int, said: str, known: dict[str, Any], weight: Weight, text: str, fix: str
) -> None:
    first = blamed("keys.main", "refused", causes_of(reply(status, body(said)), facts(**known))).causes[0]
    assert first.weight is weight
    assert text in first.text
    assert fix in first.fix


def evidence(said: str, known: Facts) -> dict[str, str]:
    return {cause.text: cause.evidence for cause in causes_of(reply(401, body(said)), known)}


SECRET = "the secret belongs to another key, or was replaced"
SCHEME = "[signing] does not match what the exchange expects"
PREFIX = "upstream.prefix is not the part of the path that the exchange leaves out of the signature"


@pytest.mark.parametrize(
    ("known", "weights", "seen"),
    [
        (facts(), (Weight.LIKELY, Weight.POSSIBLE), "it is at its defaults"),
        (facts(scheme_is_default=False), (Weight.LIKELY, Weight.POSSIBLE), "it was set by hand"),
        (
            facts(scheme_is_default=False, signature_refused=("alt",)),
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
    plain = reply(401, body(SIGNATURE))
    named = replace(plain, verdict=replace(plain.verdict, words='Header "OK-ACCESS-PASSPHRASE" incorrect.'))
    assert [(cause.weight, cause.text) for cause in causes_of(named, known)] == [
        (Weight.POSSIBLE, SECRET),
        (Weight.LIKELY, "the passphrase belongs to another key"),
    ]
    assert not any("[signing]" in cause.fix or "discover" in cause.fix for cause in causes)
    assert "keys.main.passphrase" in causes[1].fix
    [first, *_, last] = causes_of(
        reply(401, body(SIGNATURE)), facts(venue="okx", scheme_is_default=False, accepted=("alt",))
    )
    assert (first.text, first.weight) == (SECRET, Weight.LIKELY)
    assert last.fix == "remove [signing]: the file of okx states how requests are signed"


def test_the_headers_of_a_venue_are_those_of_its_file() -> None:
    [dropped] = causes_of(reply(401, body("Missing API key auth headers")), facts(venue="okx"))
    assert dropped.text == "a proxy in front of the exchange drops them"


def test_a_kind_without_causes_names_none_and_leads_to_its_line_of_the_documents() -> None:
    finding = blamed(
        "keys.main", "refused, 404", causes_of(reply(404, body("No open position found")), facts())
    )
    assert finding.text == "refused, 404: the exchange's reply gives the reason"
    assert finding.fix == clause(verdict("no_position").advice)
    assert [cause.evidence for cause in finding.causes] == ["docs/errors.md#no_position"]


def test_a_large_skew_is_told_to_a_tenth_of_a_second() -> None:
    found = evidence(outside(-600_000), facts(clock_error_ms=None))
    assert list(found.values()) == ["the timestamp was 600.0 s behind the exchange's time"]


def test_what_speaks_against_a_cause_puts_it_last() -> None:
    causes = blamed("a", "b", causes_of(reply(401, body(SIGNATURE)), facts(accepted=("alt",)))).causes
    assert causes[-1].weight is Weight.UNLIKELY
    assert causes[-1].evidence == "other keys are signed the same way and accepted: alt"


def test_a_smaller_window_is_told_beside_the_clock() -> None:
    found = evidence(outside(1500, 1000), facts())
    assert found["the exchange checks timestamps against another clock than /time shows"] == (
        "the timestamp was 1.5 s ahead of the exchange's time; the exchange's time is accurate to ±2 ms"
    )
    told = found["recv_window_ms differs from the window that the exchange grants"]
    assert told == "the exchange states 1000 ms, the configuration 5000 ms"


@pytest.mark.parametrize(
    ("clock_error_ms", "seen"), [(None, ""), (2, "the exchange's time is accurate to ±2 ms")]
)
def test_where_the_exchange_states_no_time_no_skew_is_told(clock_error_ms: int | None, seen: str) -> None:
    found = causes_of(reply(401, body("Timestamp outside recv_window")), facts(clock_error_ms=clock_error_ms))
    assert [cause.evidence for cause in found] == [seen]


def test_a_time_that_is_read_where_the_venues_file_says_is_nothing_to_correct() -> None:
    [cause] = causes_of(reply(401, body("Invalid timestamp")), facts(is_own_clock=False))
    assert cause.text == "the exchange checks timestamps against another clock than /time shows"
    assert "clock.path" not in cause.fix


@pytest.mark.parametrize(
    ("status", "detail", "fix"),
    [
        (401, "Invalid or expired session token", "store a new one where keys.main.session points"),
        (401, "Missing API key auth headers", "store a new one where keys.main.session points"),
        (429, "Rate limit exceeded", "wait, and run the command again"),
        (502, "Bad Gateway", "look at the exchange's status page, and run the check again"),
        (503, "API key system not available", "look at the exchange's status page, and run the check again"),
        (404, "Not found", "read the reply: the venue's file has no rule for this error"),
    ],
)
def test_advice_on_a_commands_own_read_speaks_of_no_order(status: int, detail: str, fix: str) -> None:
    assert fix_of_own_read(judged(status, body(detail)), "main").endswith(fix)


@pytest.mark.parametrize(("round_trip_ms", "told"), [(1000, None), (1001, "the round trip took 1001 ms")])
def test_a_slow_way_is_told(round_trip_ms: int, told: str | None) -> None:
    found = evidence(outside(100, 1000), facts(round_trip_ms=round_trip_ms, recv_window_ms=1000))
    assert found.get("the connection to the exchange is too slow") == told


def test_ipv6_is_a_second_cause() -> None:
    causes = causes_of(reply(403, body("IP 2001:db8::9 not in API key whitelist")), facts())
    assert [(cause.weight, cause.evidence) for cause in causes] == [
        (Weight.PROVEN, "the exchange says so"),
        (Weight.POSSIBLE, "2001:db8::9 is IPv6"),
    ]


def test_what_is_no_address_is_not_repeated() -> None:
    [cause] = causes_of(reply(403, body("IP \x1b[31mevil not in API key whitelist")), facts())
    assert cause.fix == "add this machine's public IP address to the key's whitelist at the exchange"


def test_a_reply_that_is_no_json_comes_from_elsewhere() -> None:
    [cause] = causes_of(reply(403, b"<html>Access denied</html>"), facts())
    assert cause.evidence == "the reply is not JSON, so it is not from the exchange itself"
    for json_reply in (body("No."), b"\n" + body("No.")):
        [cause] = causes_of(reply(403, json_reply), facts())
        assert cause.evidence == ""


PATH = "/v1/trade/symbols/list"


GOOD = reply(200, b'{"symbols": []}')


def refused(detail: str, status: int = 401) -> WholeReply:
    return reply(status, body(detail))


def read(got: WholeReply | None, alias: str = "main", **known: Any) -> Read:
    return Read("ak-1", facts(alias=alias, **known), got, "" if got else "it was cut")


def judgement(*reads: Read, is_public: bool = False) -> list[Finding]:
    return list(judge_reads(reads, is_public=is_public))


@pytest.mark.parametrize(
    ("reply", "level", "text"),
    [
        (GOOD, Level.OK, f"a signed read is accepted (GET {PATH}, 30 ms)"),
        (reply(200, b" []"), Level.OK, f"a signed read is accepted (GET {PATH}, 30 ms)"),
        (reply(200, b"<html>"), Level.WARN, "the reply to a signed read is not JSON"),
        (reply(301, b""), Level.FAIL, "the exchange redirects to another address (301)"),
        (
            refused("API key lacks 'read' permission", 403),
            Level.FAIL,
            "a signed read was refused, 403 API key lacks 'read' permission: the key has no read permission",
        ),
        (None, Level.FAIL, "no answer to a signed read: it was cut"),
    ],
)
def test_a_line_for_each_reply(reply: WholeReply | None, level: Level, text: str) -> None:
    [finding] = judgement(read(reply))
    assert (finding.area, finding.level, finding.text) == ("keys.main", level, text)


@pytest.mark.parametrize(("stated", "wait"), [(3.0, "wait 3 s"), (None, "wait a while")])
def test_a_429_says_how_long_to_wait(stated: float | None, wait: str) -> None:
    finding = judge_limited("exchange", 429, judged(429), stated)
    assert (finding.area, finding.level) == ("exchange", Level.WARN)
    assert finding.fix.startswith(wait)


def test_a_public_path_proves_nothing() -> None:
    [finding] = judgement(read(GOOD), is_public=True)
    assert finding.level is Level.WARN
    assert "--path" in finding.fix


def test_one_key_explains_another() -> None:
    wrong = refused("Invalid HMAC signature")
    main, alt, spot = judgement(read(wrong), read(GOOD, "alt"), read(wrong, "spot"))
    assert alt.level is Level.OK
    assert "the secrets of main, spot are swapped" in main.text
    assert "the secrets of spot, main are swapped" in spot.text
    assert any(cause.evidence.endswith("accepted: alt") for cause in main.causes)


@pytest.mark.parametrize(
    ("status", "text"),
    [(300, "the exchange redirects to another address"), (400, "a signed read was refused")],
)
def test_what_is_no_success_is_told_and_no_witness(status: int, text: str) -> None:
    alt = read(reply(status, GOOD.body), "alt")
    main, told = judgement(read(refused("Invalid HMAC signature")), alt)
    assert told.text.startswith(text)
    assert not any("accepted: alt" in cause.evidence for cause in main.causes)


def test_a_ban_is_told_in_the_exchanges_words() -> None:
    ban = replace(judged(429), means=Means.BANNED, words="banned until 1800000000000")
    finding = judge_limited("exchange", 418, ban, None)
    assert (finding.level, finding.fix[:12]) == (Level.FAIL, "wait a while")
    assert "(418 banned until 1800000000000)" in finding.text


def of_several(means: Means, *others: Means, **found: str) -> WholeReply:
    verdict = replace(judged(403, b"{}"), means=means, others=others, found=found, words="one of several")
    return WholeReply(403, b"{}", verdict)


NEITHER = of_several(Means.PERMISSION, Means.ADDRESS, Means.KEY, address="203.0.113.5")
WITH_COUNTRY = of_several(Means.PERMISSION, Means.COUNTRY)
UNLIKELY = Weight.UNLIKELY


def weighed(reply: WholeReply, **known: Any) -> list[tuple[Weight, str, str]]:
    causes = causes_of(reply, facts(venue="Mine", **known))
    return [(cause.weight, cause.text, cause.evidence) for cause in causes]


def test_a_reply_for_several_things_makes_none_of_them_certain() -> None:
    assert weighed(NEITHER) == [
        (POSSIBLE, "the key lacks the permission for this request", ""),
        (POSSIBLE, "the exchange saw this machine as 203.0.113.5, which is not on the key's whitelist", ""),
        (POSSIBLE, "the API key is mistyped, revoked or expired", ""),
        (
            POSSIBLE,
            "the key is from another environment: a test network, demo trading or a regional site",
            "",
        ),
    ]
    [finding] = judgement(read(NEITHER))
    assert finding.text == "a signed read was refused, 403 one of several, which can mean:"
    assert (finding.fix, finding.lists_causes) == ("", True)


def test_a_secret_that_nothing_speaks_against_is_not_blamed_first() -> None:
    assert {weight for weight, *_ in weighed(of_several(Means.KEY, Means.SIGNATURE))} == {POSSIBLE}
    assert weighed(of_several(Means.SIGNATURE))[0][0] is LIKELY


def test_a_page_of_somebody_else_is_told_in_its_words() -> None:
    page = b"<html><style>p{}</style><title>Access Denied</title><p>You don't have access, ak.</html>"
    for body, words in (
        (page, "403 Access Denied You don't have"),
        (b"\xff", "refused, 403:"),
        (b" {", "403:"),
        (
            b"<html><title>403 Forbidden</title><h1>403 Forbidden</h1><hr>nginx",
            "refused, 403 Forbidden nginx:",
        ),
    ):
        [finding] = judgement(read(reply(403, body)))
        assert words in finding.text


def test_what_was_measured_counts_for_one_of_several_things() -> None:
    first, *_ = sorted(weighed(NEITHER, shape=Shape(is_shorter=True)), reverse=True)
    assert first == (LIKELY, "API key and secret are swapped", "the secret is not longer than the API key")


def test_a_key_that_is_accepted_elsewhere_lacks_a_permission() -> None:
    (first, *others) = weighed(NEITHER, accepted_read="GET /account", is_served=True)
    assert first == (
        LIKELY,
        "the key lacks the permission for this request",
        "the other meanings are excluded",
    )
    assert {weight for weight, *_ in others} == {UNLIKELY}
    assert {seen for *_, seen in others} == {
        "GET /account is accepted with this key",
        "the exchange answered a read without a key",
    }
    [finding] = judgement(Read("ak", facts(accepted_read="GET /account"), NEITHER))
    assert finding.text.endswith("most likely the key lacks the permission for this request")
    assert finding.lists_causes


def test_only_a_signed_read_excludes_the_country_which_may_be_the_account_s() -> None:
    assert [weight for weight, *_ in weighed(WITH_COUNTRY)] == [POSSIBLE, POSSIBLE]
    assert [weight for weight, *_ in weighed(WITH_COUNTRY, is_served=True)] == [POSSIBLE, POSSIBLE]
    assert [weight for weight, *_ in weighed(WITH_COUNTRY, accepted_read="GET /x")] == [LIKELY, UNLIKELY]


@pytest.mark.parametrize(("unit", "fix"), [("ms", 'nonce = "us" or "ns"'), ("us", 'nonce = "ns"')])
def test_a_nonce_that_is_too_low_blames_a_larger_unit_first(unit: str, fix: str) -> None:
    low = of_several(Means.NONCE)
    larger_unit, other_program = causes_of(low, facts(venue="kraken", nonce=unit))
    assert larger_unit.weight is LIKELY
    assert larger_unit.text == "an earlier program used larger nonces with this key"
    assert f"{fix} in a copy of the venue's file (sealgate venues show kraken > mine.toml)" in larger_unit.fix
    assert "too low" in larger_unit.evidence
    assert other_program.weight is POSSIBLE


@pytest.mark.parametrize("unit", ["ns", "uuid", ""])
def test_no_unit_is_larger_than_the_largest(unit: str) -> None:
    [cause] = causes_of(of_several(Means.NONCE), facts(venue="mine", nonce=unit))
    assert cause.text.startswith("another program uses the API key")


def test_a_signature_that_is_one_of_several_things_is_no_witness_against_another() -> None:
    unsure = of_several(Means.SIGNATURE, Means.KEY)
    main, _ = judgement(read(refused("Invalid HMAC signature")), read(unsure, "alt"))
    assert not any("are swapped" in cause.text for cause in main.causes)


BLOCKED = b'{"detail": "access from your country is blocked."}'
NOT_SERVED = (
    "the exchange does not serve this IP address (because of its country?): "
    "403 access from your country is blocked"
)


def test_a_country_that_is_not_served_is_no_limit_and_no_fault_of_the_key() -> None:
    finding = judge_limited("exchange", 403, judged(403, BLOCKED), None)
    assert (finding.level, finding.text) == (Level.FAIL, f"{NOT_SERVED}; the check stopped here")
    assert finding.fix == ASK_WHETHER_SERVED
    [cause] = causes_of(reply(403, BLOCKED), facts())
    assert (cause.weight, cause.fix) == (LIKELY, ASK_WHETHER_SERVED)


@pytest.mark.parametrize(
    ("status", "content", "cause", "fix"),
    [
        (403, BLOCKED, NOT_SERVED, ASK_WHETHER_SERVED),
        (403, b"", "the answer was 403", f"a firewall may refuse this IP address: {ASK_WHETHER_SERVED}"),
        (404, b"", "the answer was 404", ""),
        (429, b"", "the answer was 429", judged(429).advice),
        (503, b"", "the answer was 503", ""),
    ],
)
def test_a_read_that_needs_no_key_and_is_refused(status: int, content: bytes, cause: str, fix: str) -> None:
    assert refused_unsigned(status, judged(status, content)) == (cause, fix)


def test_a_public_path_makes_no_witness() -> None:
    main, _ = judgement(read(refused("Invalid HMAC signature")), read(GOOD, "alt"), is_public=True)
    assert main.causes
    assert not any("accepted: alt" in cause.evidence for cause in main.causes)


def test_a_read_does_not_tell_whether_a_key_may_trade() -> None:
    [finding] = judgement(read(GOOD, is_to_trade=True, is_listed=None))
    words = "; only the exchange's list of keys shows whether the key may trade (set keys.main.session)"
    assert (finding.level, finding.text.endswith(words)) == (Level.OK, True)
    [finding] = judgement(read(GOOD, is_to_trade=True, is_listed=True))
    assert "may trade" not in finding.text
