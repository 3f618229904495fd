"""The first difference, and how a signature came about."""

import itertools

import pytest

from rig import oracle
from sealgate.core.comparison import Part, Signed, excerpt, explain_signature
from sealgate.core.signing import Encoding, Scheme, SecretIs, SignedTarget, Signer
from sealgate.core.target import parse_target

PREFIX = "/v1/trade"
SECRET = b"00ff" * 8
STAMP = "1790000000000"
SIGNED = Signed(STAMP, "POST", parse_target("/v1/trade/order?a=1", PREFIX), b'{"size": "0.10"}')
SCHEMES = [Scheme(PREFIX, *parts) for parts in itertools.product(Encoding, SecretIs, SignedTarget)]
SIGNERS = [Signer(scheme, bytearray(SECRET)) for scheme in SCHEMES]


@pytest.mark.parametrize(
    ("ours", "theirs", "at"),
    [
        (b"abc", b"abc", None),
        (b"abc", b"abX", 2),
        (b"abc", b"ab", 2),
        (b"", b"x", 0),
        (None, b"x", None),
        (b"x", None, None),
    ],
)
def test_where_they_differ(ours: bytes | None, theirs: bytes | None, at: int | None) -> None:
    part = Part("body", ours, theirs)
    assert (part.at, part.is_same) == (at, ours == theirs)


@pytest.mark.parametrize(
    ("side", "at", "shown"),
    [
        (None, None, "nothing"),
        (b"a\n", 0, r"b'a\n'"),
        (b"x", None, "b'x'"),
        (b"x" * 24, 0, f"{b'x' * 24!r}"),
        (b"x" * 25, 0, f"{b'x' * 24!r}…"),
        (bytes(range(65, 91)) * 3, 30, f"…{(bytes(range(65, 91)) * 3)[6:54]!r}…"),
    ],
)
def test_what_is_shown_around_it(side: bytes | None, at: int | None, shown: str) -> None:
    assert excerpt(side, at) == shown


@pytest.mark.parametrize("signer", SIGNERS, ids=lambda signer: str(signer.scheme))
def test_the_scheme_of_a_signature_is_found(signer: Signer) -> None:
    signature = signer.sign(int(STAMP), SIGNED.method, SIGNED.target, SIGNED.body)
    scheme = signer.scheme
    assert explain_signature(signature, SIGNED, SIGNERS) == (
        f"the file's signature is made with encoding = {scheme.encoding}, secret_is = {scheme.secret_is}, "
        f"target = {scheme.target}"
    )


@pytest.mark.parametrize(
    ("message", "mistake"),
    [
        (b"1790000000000POST/v1/trade/order" + SIGNED.body, "over a path with the prefix"),
        (b"1790000000POST/order" + SIGNED.body, "over a timestamp in seconds"),
        (b"1790000000000POST/order", "without the body"),
        (b'1790000000000POST/order{"size":"0.10"}', "over the body written anew by a JSON library"),
        (
            b"1790000000POST/v1/trade/order" + SIGNED.body,
            "over a path with the prefix, over a timestamp in seconds",
        ),
    ],
)
def test_the_mistakes_of_the_specification_are_named(message: bytes, mistake: str) -> None:
    told = explain_signature(oracle.hmac_sha256(SECRET, message), SIGNED, SIGNERS)
    assert told is not None
    assert told.endswith(f"target = path, and {mistake}")


@pytest.mark.parametrize(
    ("sent", "signed"),
    [
        pytest.param(b'{"a": 1, "b": 2}', b'{"a":1,"b":2}', id="signed without spaces"),
        pytest.param(b'{"a":1,"b":2}', b'{"a": 1, "b": 2}', id="signed with spaces"),
    ],
)
def test_a_body_written_anew_is_told_with_and_without_spaces(sent: bytes, signed: bytes) -> None:
    signature = oracle.hmac_sha256(SECRET, b"1790000000000POST/order" + signed)
    told = explain_signature(signature, SIGNED._replace(body=sent), SIGNERS)
    assert told is not None
    assert told.endswith("and over the body written anew by a JSON library")


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json(body: bytes) -> None:
    signed = SIGNED._replace(body=body)
    right = SIGNERS[0].sign(int(STAMP), "POST", SIGNED.target, body)
    told = explain_signature(right, signed, SIGNERS)
    assert told is not None
    assert "and " not in told
    assert explain_signature("00", signed, SIGNERS) is None


def test_a_timestamp_that_is_no_ascii_is_signed_in_no_known_way() -> None:
    assert explain_signature("00", SIGNED._replace(timestamp="\xb2" * 13), SIGNERS) is None


def test_without_a_prefix_it_is_no_mistake() -> None:
    signed = SIGNED._replace(target=parse_target("/order", ""))
    signer = Signer(Scheme(""), bytearray(SECRET))
    told = explain_signature(signer.sign(int(STAMP), "POST", signed.target, signed.body), signed, [signer])
    assert told is not None
    assert "prefix" not in told
