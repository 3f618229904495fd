"""What is known about an error stands beside it, with what to do."""

from dataclasses import replace

import pytest

from rig.verdicts import verdict
from sealgate.observe.evidence import Circumstances, advice, evidence
from sealgate.venues.replies import Means, Verdict, Whose

NOTHING = Circumstances(clock_error_s=None, has_worked=False)


@pytest.mark.parametrize("means", [Means.BANNED, Means.COUNTRY])
def test_who_is_shut_out_reads_the_exchanges_words(means: Means) -> None:
    refused = Verdict(means, means.value, Whose.UPSTREAM, "", words="IP has been\nbanned")
    assert evidence(refused, NOTHING) == 'the exchange says: "IP has been banned"'
    assert not evidence(Verdict(means, means.value, Whose.UPSTREAM, ""), NOTHING)


def test_a_country_s_rules_are_not_taken_for_a_missing_permission() -> None:
    known = Circumstances(clock_error_s=0.1, has_worked=True)
    permission = Verdict(Means.ADDRESS, "x", Whose.UPSTREAM, "", others=(Means.PERMISSION,))
    country = Verdict(Means.COUNTRY, "x", Whose.UPSTREAM, "", others=(Means.PERMISSION,))
    assert "most likely it lacks a permission" in evidence(permission, known)
    assert evidence(country, known) == "the key was accepted for other requests since the start"


FRESH = Circumstances(0.004, has_worked=False)
WORKED = Circumstances(0.004, has_worked=True, limit="about 20 per 1 s")
UNSYNCED = Circumstances(None, has_worked=False)


@pytest.mark.parametrize(
    ("kind", "known", "words"),
    [
        (
            "signature_invalid",
            FRESH,
            ("clock is fine (±4 ms), the key is known: most likely the secret belongs to another key"),
        ),
        (
            "signature_invalid",
            WORKED,
            "clock is fine (±4 ms), its signatures were accepted before: most likely its secret was replaced",
        ),
        ("timestamp_outside", UNSYNCED, "clock is not synced"),
        ("timestamp_invalid", Circumstances(1e-5, has_worked=True), "clock is fine (±1 ms)"),
        ("timestamp_invalid", Circumstances(1.0, has_worked=True), "clock is fine (±1000 ms)"),
        ("timestamp_outside", Circumstances(1.001, has_worked=True), "clock is uncertain (±1001 ms)"),
        ("timestamp_outside", Circumstances(3.0, has_worked=True), "clock is uncertain (±3000 ms)"),
        (
            "timestamp_outside",
            FRESH._replace(step_s=3600.04),
            "the exchange's clock stepped by +3600.0 s; before that, clock was fine (±4 ms)",
        ),
        (
            "timestamp_invalid",
            UNSYNCED._replace(step_s=-60.0),
            "the exchange's clock stepped by -60.0 s; before that, clock was not synced",
        ),
        ("key_invalid", WORKED, "it was accepted before: most likely it was revoked or has expired"),
        (
            "key_invalid",
            FRESH,
            "it has not been accepted since the start: most likely `api_key` is mistyped or revoked",
        ),
        ("rate_limited", WORKED, "about 20 per 1 s"),
        ("rate_limited", FRESH, ""),
        (
            "rate_limited",
            WORKED._replace(is_foreign_use=True),
            "about 20 per 1 s; something else seems to use this limit too",
        ),
        ("handshake_limited", WORKED, ""),
        ("off_tick", WORKED, ""),
    ],
)
def test_what_is_known_explains_the_error(kind: str, known: Circumstances, words: str) -> None:
    assert evidence(verdict(kind), known) == words


def test_a_passphrase_that_the_exchange_names_is_blamed_before_the_secret() -> None:
    refused = replace(verdict("signature_invalid"), words='Request header "OK-ACCESS-PASSPHRASE" incorrect.')
    assert evidence(refused, FRESH) == (
        "clock is fine (±4 ms), the exchange names the passphrase: most likely that is wrong"
    )


def test_a_nonce_that_was_never_accepted_blames_a_larger_unit() -> None:
    """Another program that uses the key at the same time would let some of them pass."""
    refused = replace(verdict("key_invalid"), means=Means.NONCE, kind="nonce_invalid", advice="Once more.")
    assert evidence(refused, FRESH) == "the key has not been accepted since the start"
    assert "larger nonces with this key, such as microseconds: make a new key" in advice(refused, FRESH)
    assert (evidence(refused, WORKED), advice(refused, WORKED)) == ("", "Once more.")


SEVERAL = replace(verdict("permission_missing"), others=(Means.ADDRESS, Means.KEY))
ELSEWHERE = "the key was accepted for other requests since the start"
SAW = "the exchange saw the address 203.0.113.5"


@pytest.mark.parametrize(
    ("refused", "known", "words"),
    [
        (SEVERAL, FRESH, "the key has not been accepted since the start"),
        (
            SEVERAL,
            WORKED,
            f"{ELSEWHERE}: most likely it lacks a permission for this one",
        ),
        (
            replace(verdict("key_invalid"), others=(Means.SIGNATURE,)),
            WORKED,
            ELSEWHERE,
        ),
        (
            replace(SEVERAL, found={"address": "203.0.113.5"}),
            FRESH,
            f"the key has not been accepted since the start; {SAW}",
        ),
        (replace(verdict("ip_refused"), found={"address": "203.0.113.5"}), WORKED, SAW),
        (verdict("ip_refused"), WORKED, ""),
    ],
)
def test_a_reply_for_several_things_is_explained_by_what_the_key_was_accepted_for(
    refused: Verdict, known: Circumstances, words: str
) -> None:
    assert evidence(refused, known) == words


@pytest.mark.parametrize("kind", ["timestamp_outside", "timestamp_invalid"])
def test_after_a_step_nobody_is_sent_to_the_window(kind: str) -> None:
    assert advice(verdict(kind), FRESH) == verdict(kind).advice
    stepped = advice(verdict(kind), FRESH._replace(step_s=1.0))
    assert stepped == "Nothing to do: the gateway follows the exchange's clock."
    assert advice(verdict("key_invalid"), FRESH._replace(step_s=1.0)) == verdict("key_invalid").advice
