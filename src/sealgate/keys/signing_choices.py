"""The ways in which a venue file with `[signing]` of its own can have requests signed."""

from enum import StrEnum
from typing import NamedTuple


class Encoding(StrEnum):
    """How the 32 bytes of the signature are written."""

    HEX = "hex"
    UPPER_HEX = "HEX"
    BASE64 = "base64"
    BASE64URL = "base64url"


class SecretIs(StrEnum):
    """What the stored secret is to the HMAC."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    SHA256HEX = "sha256hex"


class SignedTarget(StrEnum):
    """Which part of the target is signed."""

    PATH = "path"
    PATH_AND_QUERY = "path_and_query"


class Way(NamedTuple):
    """How a signature is made of what is signed."""

    encoding: Encoding
    secret_is: SecretIs
