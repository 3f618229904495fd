"""Messages and handshakes of streams, signed. The expected signatures are made here, from the rules alone."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from rig.private_keys import new_key, private, verifies
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.key_kinds import Kind
from sealgate.venues.stream_sealer import Moment, SignedHandshake, StreamSealer
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Venue, read_venue

NOW_MS = 1_790_000_000_387
MOMENT = Moment(NOW_MS, b"77", "ask me \u00fc")
SECRET = b"secret of the key"
HEAD = """name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
timestamp = "ms"
expires_s = 5
recv_window = "4000"
headers = { SIGN = "{signature}" }
"""
STREAM = """[[streams]]
host = "ws.example.com"
[streams.challenge]
at = "/message"
"""
ROW = '[[streams.messages]]\nwhen = { "/op" = "auth" }\n'
KEY = KeyMaterial("K", bytearray(SECRET), passphrase="P", uid="U-1")


def venue(streams: str, head: str = HEAD) -> Venue:
    return read_venue("mine.toml", head + streams)


def signed(row: str, text: str, *, head: str = HEAD, key: KeyMaterial = KEY, path: str = "/v1/ws") -> str:
    """Return a message as it is sent, by one row of a file."""
    made = venue(STREAM + ROW + row, head)
    [stream] = made.streams
    [rule] = stream.messages
    sealer = StreamSealer(sealer_of(made, key, "https://x.example"), "ws.example.com", path)
    return sealer.sign(text, rule.signing, rule.drops, MOMENT)


def mac(text: str, digest: str = "sha256", secret: bytes = SECRET) -> bytes:
    return hmac.digest(secret, text.encode(), digest)


def test_a_login_has_key_time_and_signature_and_all_else_as_it_came() -> None:
    row = """signs = "GET/realtime{expires}"
expires_s = 10
puts = { "/args/0" = "{api_key}", "/args/1" = "{expires}", "/args/2" = "{signature}" }
"""
    expires = NOW_MS + 10_000
    signature = mac(f"GET/realtime{expires}").hex()
    assert signed(row, '{"req_id": 1.0, "op":"auth","args":["", 0,"x"], "f":[]}') == (
        f'{{"req_id": 1.0, "op":"auth","args":["K", {expires},"{signature}"], "f":[]}}'
    )
    assert signed(row, '{"op":"auth"}') == f'{{"op":"auth","args":["K","{expires}","{signature}"]}}'
    assert json.loads(signed(row, '{"args":["a","1","b","c"]}'))["args"] == [
        "K",
        str(expires),
        signature,
        "c",
    ]


@pytest.mark.parametrize(
    ("settings", "stamp", "expires"),
    [
        ("", str(NOW_MS), str(NOW_MS + 5000)),
        ('timestamp = "s"', "1790000000", "1790000005"),
        ('timestamp = "s"\nexpires_s = 0', "1790000000", "1790000000"),
        ('timestamp = "us"\nexpires_s = 60', f"{NOW_MS}000", f"{NOW_MS + 60_000}000"),
        ('timestamp = "iso_s"', "2026-09-21T14:13:20", "2026-09-21T14:13:25"),
    ],
)
def test_times_are_those_of_the_row_or_else_of_the_venue(settings: str, stamp: str, expires: str) -> None:
    row = f'{settings}\nputs = {{ "/t" = "{{timestamp}}", "/e" = "{{expires}}" }}'
    assert json.loads(signed(row, "{}")) == {"t": stamp, "e": expires}


def test_all_values_have_their_names() -> None:
    names = ("nonce", "api_key", "passphrase", "uid", "recv_window", "host", "path", "challenge")
    members = ", ".join(f'"/{name}" = "{{{name}}}"' for name in names)
    values = ("77", "K", "P", "U-1", "4000", "ws.example.com", "/v1/ws", "ask me \u00fc")
    assert json.loads(signed(f"puts = {{ {members} }}", "{}")) == dict(zip(names, values, strict=True))


def test_half_of_a_letter_in_a_challenge_ends_nothing() -> None:
    made = venue(STREAM + ROW + 'puts = { "/a" = "{challenge}" }')
    [rule] = made.streams[0].messages
    sealer = StreamSealer(sealer_of(made, KEY, "https://x.example"), "ws.example.com", "/")
    assert sealer.sign("{}", rule.signing, (), Moment(NOW_MS, b"", "x\ud800")) == '{"a":"x?"}'


@pytest.mark.parametrize(
    ("of_row", "of_venue", "write"),
    [
        ("", "hex", bytes.hex),
        ("", "base64|pct", lambda raw: base64.b64encode(raw).decode()),
        ('encoding = "base64"', "hex", lambda raw: base64.b64encode(raw).decode()),
        ('encoding = "base64|sha256"', "hex", lambda raw: hashlib.sha256(base64.b64encode(raw)).hexdigest()),
        ('encoding = "HEX"', "base64|pct", lambda raw: raw.hex().upper()),
    ],
)
def test_the_encoding_is_that_of_the_row_or_else_of_the_venue_without_its_filters(
    of_row: str, of_venue: str, write: Any
) -> None:
    row = f'{of_row}\nsigns = "{{api_key}}"\nputs = {{ "/s" = "{{signature}}" }}'
    head = HEAD.replace('timestamp = "ms"', f'timestamp = "ms"\nencoding = "{of_venue}"\ndigest = "sha512"')
    assert json.loads(signed(row, "{}", head=head)) == {"s": write(mac("K", "sha512"))}


def test_a_number_stays_one_and_a_text_a_text_and_bare_is_json() -> None:
    row = 'puts = { "/n" = "{timestamp}", "/b" = "{timestamp|bare}", "/u" = "{uid}" }'
    assert signed(row, '{"n":0,"b":0,"u":0}') == f'{{"n":{NOW_MS},"b":{NOW_MS},"u":"U-1"}}'
    assert signed(row, '{"n":"0","b":"0"}') == f'{{"n":"{NOW_MS}","b":"{NOW_MS}","u":"U-1"}}'
    assert signed(row, "{}") == f'{{"n":"{NOW_MS}","b":{NOW_MS},"u":"U-1"}}'


def test_what_is_empty_is_not_put() -> None:
    row = 'puts = { "/pass" = "{passphrase}", "/payload/0" = "{uid}", "/k" = "{api_key}" }'
    key = KeyMaterial("K", bytearray(SECRET))
    assert signed(row, '{"payload":["BTC"],"pass":"x"}', key=key) == '{"payload":["BTC"],"pass":"x","k":"K"}'
    assert signed(row, '{"payload":["BTC"]}') == '{"payload":["U-1"],"pass":"P","k":"K"}'


def test_what_must_not_go_on_is_cut_first_and_never_signed() -> None:
    row = """drops = ["/params/signature", "/url"]
signs = "{/params|raw_query}"
[streams.messages.puts]
"/params/apiKey" = "{api_key}"
"/params/timestamp" = "{timestamp}"
"/params/signature" = "{signature}"
"""
    text = (
        '{"id":"x","params":{"symbol":"BTCUSDT","price":"1e-8","quantity":1.0,"test":true,"signature":"bots",'
        '"timestamp":1},"url":"ws://bot:TOKEN@gateway"}'
    )
    query = f"apiKey=K&price=1e-8&quantity=1.0&symbol=BTCUSDT&test=true&timestamp={NOW_MS}"
    assert signed(row, text) == (
        '{"id":"x","params":{"symbol":"BTCUSDT","price":"1e-8","quantity":1.0,"test":true,'
        f'"timestamp":{NOW_MS},"apiKey":"K","signature":"{mac(query).hex()}"}}}}'
    )


def test_a_row_may_cut_and_sign_nothing() -> None:
    assert signed('drops = ["/url"]', '{"op":1, "url":2}') == '{"op":1}'
    assert signed("", ' {"op":1} ') == ' {"op":1} '


def test_a_pointer_means_the_text_that_is_sent() -> None:
    row = """signs = "api\\n{/channel}\\n{/payload/req}\\n{/time}"
puts = { "/time" = "{timestamp}", "/payload/sign" = "{signature}" }
timestamp = "s"
"""
    text = '{"time":1,"channel":"a\\u00fc","payload":{"req":{"p": 1.0, "q":[ ]}}}'
    signature = mac('api\na\u00fc\n{"p": 1.0, "q":[ ]}\n1790000000').hex()
    assert signed(row, text) == (
        '{"time":1790000000,"channel":"a\\u00fc","payload":{"req":{"p": 1.0, "q":[ ]},"sign":"'
        f'{signature}"}}}}'
    )
    empty = mac("api\n\n\n1790000000").hex()
    assert json.loads(signed(row, '{"payload":{}}'))["payload"]["sign"] == empty


def test_a_challenge_is_signed_by_its_hash() -> None:
    row = """signs = "{challenge|sha256bin}"
encoding = "base64"
puts = { "/original" = "{challenge}", "/signed" = "{signature}" }
"""
    digest = hashlib.sha256("ask me \u00fc".encode()).digest()
    signature = base64.b64encode(hmac.digest(SECRET, digest, "sha256")).decode()
    assert json.loads(signed(row, "{}")) == {"original": "ask me \u00fc", "signed": signature}


def test_parts_may_be_made_of_others_of_the_message_and_of_the_signature() -> None:
    row = """signs = "{token}"
encoding = "base64url"
puts = { "/jwt" = "{jwt}", "/inner" = "{inner}" }
[streams.messages.parts]
head = { json = { alg = "HS256" } }
claims = { json = { sub = "{api_key}", nbf = "{timestamp|bare}", t = "{/topics|bare}", "no?" = "{/absent}" } }
token = "{head|base64url}.{claims|base64url}"
jwt = "{token}.{signature}"
inner = { of = "{claims}", at = "/sub" }
absent = { of = "{/absent}", then = "x" }
empty = ""
"""
    message = json.loads(signed(row, '{"topics":["a"]}'))
    head, claims, signature = message["jwt"].split(".")

    def decoded(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    assert json.loads(decoded(head)) == {"alg": "HS256"}
    assert decoded(claims) == b'{"sub":"K","nbf":%d,"t":["a"]}' % NOW_MS
    assert decoded(signature) == mac(f"{head}.{claims}")
    assert message["inner"] == "K"


@pytest.mark.parametrize("kind", [Kind.ED25519, Kind.ES256, Kind.RSA])
def test_a_private_key_signs_messages_too(kind: Kind) -> None:
    key = new_key(kind)
    head = HEAD + "[signing.kinds]\nhmac = {}\ned25519 = {}\nrsa = {}\nes256 = {}\n"
    row = (
        'encoding = "base64"\nsigns = "{/p|raw_query}"\nputs = { "/p/k" = "{api_key}", "/s" = "{signature}" }'
    )
    message = json.loads(
        signed(row, '{"p":{"z":1}}', head=head, key=KeyMaterial("K", bytearray(private(key))))
    )
    assert verifies(key.public_key(), b"k=K&z=1", base64.b64decode(message["s"]))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ('puts = { "/a/b" = "x" }', '{"a":1}'),
        ('puts = { "/a" = "x" }', "ping"),
        ('puts = { "/args/1" = "x" }', '{"args":[]}'),
        ('puts = { "/a" = "{/b/c}" }', '{"b":1}'),
        ('puts = { "/a" = "{/b|raw_query}" }', '{"b":{"c":[1]}}'),
        ('puts = { "/a" = "{/b|raw_query}" }', '{"b":{"c":1,"c":2}}'),
        ('puts = { "/a" = "{/b|raw_query}" }', '{"b":[1]}'),
        ('puts = { "/a" = "{/b}" }', '{"b":"\\ud800"}'),
        ('puts = { "/a" = "{/b|raw_query}" }', '{"b":{"c":"\\ud800"}}'),
        ('puts = { "/a" = "{api_key|sha256bin}" }', "{}"),
        ('drops = ["/a/b"]', '{"a":1}'),
    ],
)
def test_what_cannot_be_signed_is_told_and_not_sent(row: str, text: str) -> None:
    with pytest.raises(UnsignableError):
        signed(row, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("{}", ""),
        ('{"b":1.0,"a":"x y&=%","c":false,"A":1e-8}', "A=1e-8&a=x y&=%&b=1.0&c=false"),
        ('{"\u00fc":"\u20ac","z":"\\u0061"}', "z=a&\u00fc=\u20ac"),
        ('{"a":"","ab":2,"a-":3}', "a=&a-=3&ab=2"),
    ],
)
def test_members_are_a_query_in_order_of_their_names(text: str, expected: str) -> None:
    """The filter `raw_query`; an absent object is an empty text."""
    body = f'{{"p":{text}}}' if text else "{}"
    assert json.loads(signed('puts = { "/q" = "x{/p|raw_query}" }', body))["q"] == f"x{expected}"


def handshake(text: str, key: KeyMaterial = KEY) -> SignedHandshake:
    made = venue(f"{STREAM}[streams.handshake]\n{text}")
    [stream] = made.streams
    assert stream.handshake is not None
    sealer = StreamSealer(sealer_of(made, key, "https://x.example"), "ws.example.com", "/v1/order/events")
    return sealer.handshake(stream.handshake, MOMENT)


def test_a_handshake_is_signed_in_its_headers() -> None:
    text = """signs = "{payload}"
headers = { X-KEY = "{api_key}", X-PAYLOAD = "{payload}", X-SIGN = "{signature}" }
[streams.handshake.parts]
json = { json = { request = "{path}", nonce = "{nonce|bare}" } }
payload = "{json|base64}"
"""
    payload = base64.b64encode(b'{"request":"/v1/order/events","nonce":77}').decode()
    assert handshake(text) == SignedHandshake(
        {"X-KEY": "K", "X-PAYLOAD": payload, "X-SIGN": mac(payload).hex()}, {}, ""
    )


def test_a_handshake_is_signed_in_its_query() -> None:
    text = """timestamp = "s"
expires_s = 60
signs = "CONNECT/stream{expires}"
query = { api-key = "{api_key}", api-expires = "{expires}", api-signature = "{signature}" }
"""
    signature = mac("CONNECT/stream1790000060").hex()
    assert handshake(text).query == {"api-key": "K", "api-expires": "1790000060", "api-signature": signature}


def test_a_handshake_may_put_the_keys_uid_into_the_path() -> None:
    text = 'path = "/v2/private/{uid}"'
    assert handshake(text) == SignedHandshake({}, {}, "/v2/private/U-1")
    assert handshake(text, KeyMaterial("K", bytearray(SECRET))) == SignedHandshake({}, {}, "")
    odd = KeyMaterial("K", bytearray(SECRET), uid="\u00fc 1?a#b%")
    assert handshake(text, odd).path == "/v2/private/%C3%BC%201%3Fa%23b%25"
    assert handshake('path = "/v2/private"', KeyMaterial("K", bytearray(SECRET))).path == "/v2/private"


def test_the_secret_itself_is_in_nothing_that_a_stream_can_name() -> None:
    head = HEAD.replace("[signing]\n", "[signing]\nstatic = true\n").replace('"{signature}"', '"{secret}"')
    head = head.replace('message = "{timestamp}"\n', "")
    made = venue(STREAM + ROW + 'puts = { "/a" = "{api_key}" }', head)
    [rule] = made.streams[0].messages
    sealer = StreamSealer(sealer_of(made, KEY, "https://x.example"), "ws.example.com", "/")
    assert sealer.sign("{}", rule.signing, rule.drops, MOMENT) == '{"a":"K"}'
