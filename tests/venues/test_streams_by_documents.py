"""What logs in on a stream, made by hand, where ccxt has no such exchange or was never seen to log in.

The texts are those of the exchanges' documents; docs/venue-files.md says how a venue's file says them.
"""

import hashlib
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode

import pytest

from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.key_kinds import Kind
from sealgate.venues.stream_sealer import Moment, SignedHandshake, StreamSealer
from sealgate.venues.streams import Stream, find_stream
from venues.through import named

NOW_MS = 1_790_000_000_123
NOW_S = NOW_MS // 1000
UUID = "2c1b2f4e-6a0c-4b3a-9a53-0d9f3f6f7a11"
SECRET = b"sEcrEt-0f-text"
NOW = Moment(NOW_MS, b"1790000000456")


def stream_of(venue: str, address: str) -> tuple[Stream, str, str]:
    host, _, path = address.partition("/")
    stream = find_stream(named(venue).streams, host, f"/{path}")
    assert stream is not None
    return stream, host, f"/{path}"


def sealer(venue: str, host: str, path: str, secret: bytes) -> StreamSealer:
    key = KeyMaterial("the-key", bytearray(secret), passphrase="the-passphrase", uid="me@example.com")
    return StreamSealer(sealer_of(named(venue), key, "https://x.example"), host, path)


def sent(venue: str, address: str, message: str, moment: Moment = NOW, secret: bytes = SECRET) -> object:
    """Return what becomes of a message, read as JSON."""
    stream, host, path = stream_of(venue, address)
    rule, _ = stream.find(stream.clear(message), Kind.HMAC)
    assert rule is not None
    return json.loads(sealer(venue, host, path, secret).sign(message, rule.signing, rule.drops, moment))


def upgrade(venue: str, address: str, moment: Moment = NOW) -> SignedHandshake:
    stream, host, path = stream_of(venue, address)
    assert stream.handshake is not None
    return sealer(venue, host, path, SECRET).handshake(stream.handshake, moment)


def mac(text: str, digest: str = "sha256", secret: bytes = SECRET) -> bytes:
    return hmac.digest(secret, text.encode(), digest)


@pytest.mark.parametrize(("version", "signed"), [("v1", "stream"), ("v2", "v2/stream")])
def test_ascendex(version: str, signed: str) -> None:
    assert sent("ascendex", f"ascendex.com/4/api/pro/{version}/stream", '{"op":"auth","id":"a","t":1}') == {
        "op": "auth",
        "id": "a",
        "t": NOW_MS,
        "key": "the-key",
        "sig": b64encode(mac(f"{NOW_MS}+{signed}")).decode(),
    }


def test_bitflyer() -> None:
    message = '{"id":1,"method":"auth","params":{"timestamp":0,"nonce":"0123456789abcdef"}}'
    assert sent("bitflyer", "ws.lightstream.bitflyer.com/json-rpc", message) == {
        "id": 1,
        "method": "auth",
        "params": {
            "timestamp": NOW_MS,
            "nonce": "0123456789abcdef",
            "api_key": "the-key",
            "signature": mac(f"{NOW_MS}0123456789abcdef").hex(),
        },
    }


def test_bitmart() -> None:
    signature = mac(f"{NOW_MS}#me@example.com#bitmart.WebSocket").hex()
    login = '{"op":"login","args":["","",""]}'
    access = '{"action":"access","args":["","","","web"]}'
    assert sent("bitmart", "ws-manager-compress.bitmart.com/user", login) == {
        "op": "login",
        "args": ["the-key", str(NOW_MS), signature],
    }
    assert sent("bitmart-futures", "openapi-ws-v2.bitmart.com/user", access) == {
        "action": "access",
        "args": ["the-key", str(NOW_MS), signature, "web"],
    }


def test_bitmex_logs_in_by_a_message_or_in_the_upgrade() -> None:
    expires, address = NOW_S + 5, "ws.bitmex.com/realtime"
    signature = mac(f"GET/realtime{expires}").hex()
    assert sent("bitmex", address, '{"op":"authKeyExpires","args":["",0,""]}') == {
        "op": "authKeyExpires",
        "args": ["the-key", expires, signature],
    }
    headers = {"api-key": "the-key", "api-expires": str(expires), "api-signature": signature}
    assert upgrade("bitmex", address).headers == headers


def test_btc_markets() -> None:
    secret = b64encode(b"some bytes of a key")
    message = '{"messageType":"subscribe","channels":["fundChange"],"signature":"?"}'
    signed = mac(f"/users/self/subscribe\n{NOW_MS}", "sha512", b64decode(secret))
    assert sent("btcmarkets", "socket.btcmarkets.net/v2", message, NOW, secret) == {
        "messageType": "subscribe",
        "channels": ["fundChange"],
        "key": "the-key",
        "timestamp": str(NOW_MS),
        "signature": b64encode(signed).decode(),
    }


def test_btcturk_has_lists() -> None:
    secret = b64encode(b"some bytes of a key")
    message = '[114,{"type":114,"publicKey":"","timestamp":0,"nonce":3000,"signature":""}]'
    signed = mac("the-key3000", secret=b64decode(secret))
    assert sent("btcturk", "ws-feed-pro.btcturk.com/", message, NOW, secret) == [
        114,
        {
            "type": 114,
            "publicKey": "the-key",
            "timestamp": NOW_MS,
            "nonce": 3000,
            "signature": b64encode(signed).decode(),
        },
    ]


@pytest.mark.parametrize("path", ["/ws/spot", "/ws/futures"])
def test_btse(path: str) -> None:
    assert sent("btse", f"ws.btse.com{path}", '{"op":"authKeyExpires","args":["","",""]}') == {
        "op": "authKeyExpires",
        "args": ["the-key", str(NOW_MS), mac(f"{path}{NOW_MS}", "sha384").hex()],
    }


def test_coincheck() -> None:
    assert sent("coincheck", "stream.coincheck.com/", '{"type":"login"}') == {
        "type": "login",
        "access_key": "the-key",
        "access_nonce": "1790000000456",
        "access_signature": mac("1790000000456wss://stream.coincheck.com/private").hex(),
    }


def test_crypto_com() -> None:
    message = '{"id":11,"method":"public/auth","api_key":"x","sig":"y","nonce":5}'
    assert sent("cryptocom", "stream.crypto.com/exchange/v1/user", message) == {
        "id": 11,
        "method": "public/auth",
        "api_key": "the-key",
        "nonce": NOW_MS,
        "sig": mac(f"public/auth11the-key{NOW_MS}").hex(),
    }


def test_delta() -> None:
    assert sent("delta", "socket.delta.exchange/", '{"type":"key-auth","payload":{"timestamp":1}}') == {
        "type": "key-auth",
        "payload": {
            "timestamp": NOW_S,
            "api-key": "the-key",
            "signature": mac(f"GET{NOW_S}/live").hex(),
        },
    }


def test_digifinex() -> None:
    message = '{"method":"server.auth","id":1,"params":["","",""]}'
    assert sent("digifinex", "openapi.digifinex.com/ws/v1/", message) == {
        "method": "server.auth",
        "id": 1,
        "params": ["the-key", str(NOW_MS), b64encode(mac(str(NOW_MS))).decode()],
    }


def test_exmo() -> None:
    found = sent("exmo", "ws-api.exmo.com/v1/private", '{"id":1,"method":"login"}')
    signature = b64encode(mac("the-key1790000000456", "sha512")).decode()
    assert found == {
        "id": 1,
        "method": "login",
        "api_key": "the-key",
        "nonce": 1790000000456,
        "sign": signature,
    }


def test_kraken_futures_signs_the_challenge_that_came() -> None:
    secret, challenge = b64encode(b"some bytes of a key"), "226aee50-88fc-4618-a42a-34f7709570b2"
    signed = hmac.digest(b64decode(secret), hashlib.sha256(challenge.encode()).digest(), "sha512")
    message = '{"event":"subscribe","feed":"fills","original_challenge":"?","signed_challenge":"?"}'
    assert sent(
        "krakenfutures", "futures.kraken.com/ws/v1", message, Moment(NOW_MS, b"", challenge), secret
    ) == {
        "event": "subscribe",
        "feed": "fills",
        "api_key": "the-key",
        "original_challenge": challenge,
        "signed_challenge": b64encode(signed).decode(),
    }


def test_ndax_has_json_in_a_text() -> None:
    found = sent("ndax", "api.ndax.io/WSGateway", '{"m":0,"i":2,"n":"AuthenticateUser","o":"{}"}')
    assert isinstance(found, dict)
    assert json.loads(found.pop("o")) == {
        "APIKey": "the-key",
        "UserId": "me@example.com",
        "Nonce": "1790000000456",
        "Signature": mac("1790000000456me@example.comthe-key").hex(),
    }
    assert found == {"m": 0, "i": 2, "n": "AuthenticateUser"}


def test_gemini_and_bitopro_sign_a_payload() -> None:
    gemini = upgrade("gemini", "api.gemini.com/v1/order/events").headers
    payload = b64encode(b'{"request":"/v1/order/events","nonce":1790000000456}').decode()
    assert gemini == {
        "X-GEMINI-APIKEY": "the-key",
        "X-GEMINI-PAYLOAD": payload,
        "X-GEMINI-SIGNATURE": mac(payload, "sha384").hex(),
    }
    bitopro = upgrade("bitopro", "stream.bitopro.com/ws/v1/pub/auth/orders").headers
    payload = b64encode(f'{{"nonce":{NOW_MS},"identity":"me@example.com"}}'.encode()).decode()
    assert bitopro == {
        "X-BITOPRO-APIKEY": "the-key",
        "X-BITOPRO-PAYLOAD": payload,
        "X-BITOPRO-SIGNATURE": mac(payload, "sha384").hex(),
    }


@pytest.mark.parametrize("host", ["ws-spot.weex.com", "ws-contract.weex.com"])
def test_weex(host: str) -> None:
    assert upgrade("weex", f"{host}/v3/ws/private").headers == {
        "ACCESS-KEY": "the-key",
        "ACCESS-PASSPHRASE": "the-passphrase",
        "ACCESS-TIMESTAMP": str(NOW_MS),
        "ACCESS-SIGN": b64encode(mac(f"{NOW_MS}/v3/ws/private")).decode(),
    }


def test_hollaex() -> None:
    expires = NOW_S + 10
    found = upgrade("hollaex", "api.hollaex.com/stream")
    signature = mac(f"CONNECT/stream{expires}").hex()
    assert found.query == {"api-key": "the-key", "api-expires": str(expires), "api-signature": signature}
    assert not found.headers


@pytest.mark.parametrize(
    ("venue", "address", "further"),
    [
        ("upbit", "api.upbit.com/websocket/v1/private", {}),
        ("bithumb", "ws-api.bithumb.com/websocket/v2/private", {"timestamp": NOW_MS}),
    ],
)
def test_tokens_are_signed_as_for_requests(venue: str, address: str, further: dict[str, object]) -> None:
    ((name, value),) = upgrade(venue, address, Moment(NOW_MS, UUID.encode())).headers.items()
    token, _, signature = value.removeprefix("Bearer ").rpartition(".")
    head, claims = (json.loads(urlsafe_b64decode(f"{part}==")) for part in token.split("."))
    assert name == "Authorization"
    assert head == {"alg": "HS256", "typ": "JWT"}
    assert claims == {"access_key": "the-key", "nonce": UUID, **further}
    assert signature == urlsafe_b64encode(mac(token)).decode().rstrip("=")
