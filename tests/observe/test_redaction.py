"""What looks like a secret is blanked, and nothing else."""

import pytest

from sealgate.observe.redaction import redact, redacted

CANARY = "c4n4ry-0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization=Basic {CANARY}",
        f"bearer {CANARY}",
        f"X-SERVICE-SIGNATURE: {CANARY}",
        f"x-passkey-token={CANARY}",
        f"('X-Service-ApiKey', '{CANARY}')",
        f"http://grid:{CANARY}@127.0.0.1:8787/x",
        f'{{"api_secret": "{CANARY}"}}',
        f"token={CANARY}&x=1",
        f"ValueError: password='{CANARY}'",
        f"Cookie: {CANARY}",
    ],
)
def test_what_looks_like_a_secret(text: str) -> None:
    assert CANARY not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to 127.0.0.1:443: no such host name",
        "secret=file:/run/secrets/main",
        "http://127.0.0.1:8787",
        "The exchange gave no answer: the connection was closed without a reply.",
        "Set `signing.header_prefix` as the exchange documents it.",
        "look at the token of the bot",
        "file:main.secret: is open to others (mode 0644); chmod 600 main.secret",
    ],
)
def test_what_does_not(text: str) -> None:
    assert redacted(text) == text


def test_values_by_their_name() -> None:
    event = {"event": "x", "signature": CANARY, "count": 3, "note": f"Bearer {CANARY}"}
    assert redact(event) == {
        "event": "x",
        "signature": "***",
        "count": 3,
        "note": "Bearer ***",
    }
