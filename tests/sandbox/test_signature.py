"""The sandbox's verification against signatures made by openssl."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sealgate.sandbox.signature import hmac_state, is_genuine, new_secret, signed_message

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "signatures.json").read_text("utf-8"))[
    "vectors"
]


def _name(vector: dict[str, Any]) -> str:
    return f"{vector['name']}, {vector['secret_is']}, {vector['encoding']}, {vector['target_mode']}"


def _message(vector: dict[str, Any]) -> bytes:
    body = base64.b64decode(vector["body_base64"])
    return signed_message(
        vector["timestamp"], vector["method"], vector["target"], body, vector["target_mode"]
    )


@pytest.mark.parametrize("vector", VECTORS, ids=_name)
def test_vector(vector: dict[str, Any]) -> None:
    message = _message(vector)
    assert message == base64.b64decode(vector["message_base64"])
    state = hmac_state(vector["secret"], vector["secret_is"])
    assert is_genuine(state, message, vector["signature"], vector["encoding"])


@pytest.mark.parametrize("vector", VECTORS, ids=_name)
def test_one_bit_of_difference_is_noticed(vector: dict[str, Any]) -> None:
    message = bytearray(_message(vector))
    message[-1] ^= 1
    state = hmac_state(vector["secret"], vector["secret_is"])
    assert not is_genuine(state, bytes(message), vector["signature"], vector["encoding"])


@pytest.mark.parametrize(
    ("written", "presented"),
    [
        ("hex in capitals", str.upper),
        ("with a space", lambda text: f" {text}"),
        ("cut short", lambda text: text[:-1]),
        ("not ASCII", lambda text: text[:-1] + "é"),
        ("not even text", lambda text: text[:-1] + "\udcff"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_signature_has_one_spelling(written: str, presented: Any) -> None:
    vector = VECTORS[0]
    state = hmac_state(vector["secret"], vector["secret_is"])
    assert not is_genuine(state, _message(vector), presented(vector["signature"]), "hex"), written


@pytest.mark.parametrize("secret_is", ["utf8", "hex", "base64", "sha256hex"])
def test_a_new_secret_can_key_an_hmac(secret_is: Any) -> None:
    assert hmac_state(new_secret(bytes(range(32)), secret_is), secret_is).digest_size == 32
