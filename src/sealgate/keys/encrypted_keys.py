"""Private keys that are encrypted with a passphrase, decrypted into memory that can be wiped."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from sealgate.keys.key_texts import (
    OCTET_STRING,
    SEQUENCE,
    Block,
    Element,
    Wiped,
    element,
    is_der,
    members,
    part_of,
)

# Object identifiers as they stand in DER (RFC 8018 appendix A and C).
_PBES2, _PBKDF2 = bytes.fromhex("2a864886f70d01050d"), bytes.fromhex("2a864886f70d01050c")
_HMACS = {
    bytes.fromhex("2a864886f70d0207"): "sha1",
    bytes.fromhex("2a864886f70d0208"): "sha224",
    bytes.fromhex("2a864886f70d0209"): "sha256",
    bytes.fromhex("2a864886f70d020a"): "sha384",
    bytes.fromhex("2a864886f70d020b"): "sha512",
}
# Cipher and length of its key, by object identifier and as OpenSSL names it in a DEK-Info line.
_CIPHERS: dict[bytes, tuple[Callable[[bytes], Any], int]] = {
    bytes.fromhex("60864801650304012a"): (AES, 32),
    bytes.fromhex("608648016503040116"): (AES, 24),
    bytes.fromhex("608648016503040102"): (AES, 16),
    bytes.fromhex("2a864886f70d0307"): (TripleDES, 24),
    b"AES-256-CBC": (AES, 32),
    b"AES-192-CBC": (AES, 24),
    b"AES-128-CBC": (AES, 16),
    b"DES-EDE3-CBC": (TripleDES, 24),
}
_DEK_INFO = re.compile(rb"\s*Proc-Type:\s*4,\s*ENCRYPTED\s+DEK-Info:\s*([A-Z0-9-]+),\s*([0-9A-Fa-f]+)\s")
_SALT_BYTES = 8
_MOST_ROUNDS = 10_000_000  # of PBKDF2: ten seconds, where OpenSSL takes 2,048


class UnknownEncryptionError(Exception):
    """It is encrypted in a way that is not known here."""


def is_encrypted(data: bytearray) -> bool:
    """Whether DER is an EncryptedPrivateKeyInfo: an algorithm, and octets (RFC 5958 section 3)."""
    return [one.tag for one in members(data, element(data, 0, len(data)))] == [SEQUENCE, OCTET_STRING]


def decrypted(data: bytearray, passphrase: bytearray) -> bytearray | None:
    """Decrypt an EncryptedPrivateKeyInfo by PBES2 with PBKDF2; return None where the passphrase is wrong.

    Raises UnknownEncryptionError where it is encrypted otherwise, ValueError where it is damaged.
    """
    algorithm, content = members(data, element(data, 0, len(data)))
    scheme, parameters = members(data, algorithm)
    if _bytes(data, scheme) != _PBES2:
        raise UnknownEncryptionError
    derivation, encryption = members(data, parameters)
    function, values = members(data, derivation)
    name, iv = members(data, encryption)
    if _bytes(data, function) != _PBKDF2:
        raise UnknownEncryptionError
    salt, count, *options = members(data, values)
    # Without a pseudorandom function it is HMAC with SHA-1; the length of the key follows from the cipher.
    functions = [element(data, one.start, one.end) for one in options if one.tag == SEQUENCE]
    digest = _HMACS.get(_bytes(data, functions[0])) if functions else "sha1"
    cipher, size = _CIPHERS.get(_bytes(data, name), (None, 0))
    if digest is None or cipher is None:
        raise UnknownEncryptionError
    rounds = int.from_bytes(_bytes(data, count), "big")
    if not 0 < rounds <= _MOST_ROUNDS:
        raise ValueError("the number of rounds is no such number")
    key = hashlib.pbkdf2_hmac(digest, passphrase, _bytes(data, salt), rounds, size)
    return _deciphered(part_of(data, content.start, content.end), cipher(key), _bytes(data, iv))


def _bytes(data: bytearray, one: Element) -> bytes:
    """Return the content of an element that is public."""
    return bytes(data[one.start : one.end])


def dek_info(text: bytearray, block: Block) -> re.Match[bytes] | None:
    """Return the lines of RFC 1421 that say how a block is encrypted, None where it is not."""
    return _DEK_INFO.match(text, block.start, block.end)


def decrypted_block(lines: re.Match[bytes], content: bytearray, passphrase: bytearray) -> bytearray | None:
    """Decrypt what OpenSSL's older form encrypts; return None where the passphrase is wrong.

    Raises UnknownEncryptionError where it is encrypted otherwise, ValueError where it is damaged.
    """
    cipher, size = _CIPHERS.get(lines[1], (None, 0))
    if cipher is None:
        raise UnknownEncryptionError
    iv, key, last = bytes.fromhex(lines[2].decode("ascii")), b"", b""
    while len(key) < size:  # EVP_BytesToKey: MD5, once
        state = hashlib.md5(last, usedforsecurity=False)
        state.update(passphrase)
        state.update(iv[:_SALT_BYTES])
        last = state.digest()
        key += last
    return _deciphered(content, cipher(key[:size]), iv)


def _deciphered(content: bytearray, cipher: Any, iv: bytes) -> bytearray | None:
    """Decrypt DER by CBC, without its padding (RFC 8018 section 6.1.1); wipe the content."""
    block = cipher.block_size // 8
    if len(content) % block:
        raise ValueError("the data ends too early")
    with Wiped() as wiped:
        wiped(content)
        plain = wiped(bytearray(len(content) + block - 1))
        Cipher(cipher, CBC(iv)).decryptor().update_into(content, plain)
        end = len(content) - plain[len(content) - 1]
        return part_of(plain, 0, end) if is_der(plain, end) else None
