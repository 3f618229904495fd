"""One key and the secrets that must be sent as they are: what shows of them, and the header lines."""

import pytest

from rig.admitted import signing_key, ticket
from sealgate.config.venues import default_venue
from sealgate.core.venues.venue import KeyMaterial
from sealgate.gateway.keys.key import Secret, by_session, headers_in

STAMP_MS = 1_790_000_000_000
ORDER = ticket("POST /order")


def test_a_secret_shows_at_its_one_door_alone() -> None:
    secret = Secret("tok-1")
    assert secret.reveal() == "tok-1"
    assert {repr(secret), str(secret), f"{secret}"} == {"Secret(***)"}
    assert not hasattr(secret, "__dict__")


def test_secrets_are_compared_by_what_they_are() -> None:
    assert Secret("tok-1") == Secret("tok-1")
    assert Secret("tok-1") != Secret("tok-2")
    assert Secret("tok-1") != "tok-1"
    assert len({Secret("tok-1"), Secret("tok-1"), Secret("tok-2")}) == 2


def test_keys_of_one_session_are_asked_about_together() -> None:
    sessions = {"main": Secret("a"), "alt": Secret("b"), "third": Secret("a")}
    assert by_session(sessions) == {Secret("a"): ["main", "third"], Secret("b"): ["alt"]}


def test_nothing_secret_shows_of_a_key() -> None:
    key = signing_key(session="tok-1")
    assert "tok-1" not in repr(key)
    assert "battery" not in repr(key)


@pytest.mark.parametrize("api_key", ["ak-public-1", "100%-mine", "%d%s%b"])
def test_the_lines_are_the_headers_whatever_signs_the_key_has(api_key: str) -> None:
    material = KeyMaterial(api_key, bytearray(b"correct horse battery staple"))
    sealer = default_venue().overridden(header_prefix="X-100%-").sealer(material)
    headers = headers_in(sealer.sign(STAMP_MS, b"", "POST", ORDER.target, b"{}"))
    assert list(headers) == ["X-100%-APIKEY", "X-100%-TIMESTAMP", "X-100%-SIGNATURE"]
    assert (headers["X-100%-APIKEY"], headers["X-100%-TIMESTAMP"]) == (api_key, str(STAMP_MS))
