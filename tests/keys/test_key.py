"""A key while the gateway runs: what it signs, and what it shows."""

import pytest

from sealgate.config.venues import built_in_venue, default_venue
from sealgate.http.target import parse_target
from sealgate.keys.key import Secret, SigningKey, bearer_line, by_session, headers_in
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.sealer import FORM_LINE

URL = "https://api.example.com"


def key_at(venue: str | None, *, has_fence: bool = True) -> SigningKey:
    material = KeyMaterial("ak-1", bytearray(b"c2VjcmV0"), passphrase="sesame")
    sealer = sealer_of(default_venue() if venue is None else built_in_venue(venue), material, URL)
    return SigningKey("main", "ak-1", 5000, sealer, Secret("tok-1"), has_fence)


@pytest.mark.parametrize(
    ("venue", "needs_clock"), [(None, True), ("kraken", True), ("luno", False), ("upbit", False)]
)
def test_a_key_needs_the_clock_for_timestamps_and_for_nonces_that_follow_it(
    venue: str | None, *, needs_clock: bool
) -> None:
    assert key_at(venue).needs_clock is needs_clock


def test_a_session_shows_where_it_is_sent_and_nowhere_else() -> None:
    session = Secret("tok-1")
    assert bearer_line(session) == b"Authorization: Bearer tok-1\r\n"
    assert {repr(session), str(session), f"{session}"} == {"Secret(***)"}
    assert not hasattr(session, "__dict__")
    assert "tok-1" not in repr(key_at(None))
    assert "c2VjcmV0" not in repr(key_at(None))


def test_keys_with_one_session_are_told_by_its_value() -> None:
    sessions = {"main": Secret("tok-1"), "other": Secret("tok-2"), "third": Secret("tok-1")}
    assert by_session(sessions) == {Secret("tok-1"): ["main", "third"], Secret("tok-2"): ["other"]}
    assert Secret("tok-1") != "tok-1"


def test_the_proof_of_a_key_tells_it_from_one_with_another_secret() -> None:
    material = KeyMaterial("ak-1", bytearray(b"another secret"))
    other = SigningKey("main", "ak-1", 5000, sealer_of(default_venue(), material, "https://x.example"))
    assert key_at(None).proof == key_at(None, has_fence=False).proof
    assert key_at(None).proof != other.proof


def test_a_signed_read_is_shown_by_its_headers() -> None:
    raw, lines, body = key_at(None).sign_read(7, b"", "GET", parse_target("/v1/trade/x", "/v1/trade"))
    shown = headers_in((lines, raw, body, b""))
    assert (raw, body, shown["X-SERVICE-APIKEY"], shown["X-SERVICE-TIMESTAMP"]) == (
        "/v1/trade/x",
        b"",
        "ak-1",
        "7",
    )


def test_a_signed_read_that_is_a_form_says_so() -> None:
    _, lines, body = key_at("kraken").sign_read(7, b"7", "POST", parse_target("/0/private/Balance", ""))
    assert lines.endswith(FORM_LINE)
    assert body == b"nonce=7"


@pytest.mark.parametrize(
    ("venue", "has_fence", "dates_back"), [(None, True, True), (None, False, False), ("phemex", True, False)]
)
def test_a_validity_goes_into_the_timestamp_where_that_is_exact_and_the_window_known(
    venue: str | None, has_fence: bool, dates_back: bool
) -> None:
    assert key_at(venue, has_fence=has_fence).dates_back is dates_back
