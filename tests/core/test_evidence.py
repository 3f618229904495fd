import pytest

from rig.verdicts import verdict
from sealgate.core.evidence import Known, advice, evidence

FRESH = Known(0.004, has_worked=False)
WORKED = Known(0.004, has_worked=True, limit="about 20 per 1 s")
UNSYNCED = Known(None, has_worked=False)


@pytest.mark.parametrize(
    ("kind", "known", "words"),
    [
        (
            "signature_invalid",
            FRESH,
            ("clock is fine (±4 ms), key is known: most likely the secret belongs to another key"),
        ),
        (
            "signature_invalid",
            WORKED,
            "clock is fine (±4 ms), key is known and signed well before: most likely its secret was replaced",
        ),
        ("timestamp_outside", UNSYNCED, "clock is not synced"),
        ("timestamp_invalid", Known(1e-5, has_worked=True), "clock is fine (±1 ms)"),
        ("timestamp_invalid", Known(1.0, has_worked=True), "clock is fine (±1000 ms)"),
        ("timestamp_outside", Known(1.001, has_worked=True), "clock is known to ±1001 ms only"),
        ("timestamp_outside", Known(3.0, has_worked=True), "clock is known to ±3000 ms only"),
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
            "it was not accepted since the start: most likely `api_key` is mistyped or revoked",
        ),
        ("rate_limited", WORKED, "about 20 per 1 s"),
        ("rate_limited", FRESH, ""),
        (
            "rate_limited",
            WORKED._replace(is_foreign_use=True),
            "about 20 per 1 s; someone else seems to use this key too",
        ),
        ("off_tick", WORKED, ""),
    ],
)
def test_what_is_known_explains_the_error(kind: str, known: Known, words: str) -> None:
    assert evidence(kind, known) == words


@pytest.mark.parametrize("kind", ["timestamp_outside", "timestamp_invalid"])
def test_after_a_step_nobody_is_sent_to_the_window(kind: str) -> None:
    assert advice(verdict(kind), FRESH) == verdict(kind).advice
    stepped = advice(verdict(kind), FRESH._replace(step_s=1.0))
    assert stepped == "Nothing to do: the gateway follows the exchange's clock."
    assert advice(verdict("key_invalid"), FRESH._replace(step_s=1.0)) == verdict("key_invalid").advice
