"""Where a request that somebody wrote differs from the one signed here, and what its signature is over.

The parts are compared in the order in which they are read, and the signature last: it differs wherever
another part does.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from sealgate.core.signing import Scheme, Signer
from sealgate.core.target import Target

_SHOWN = 24  # bytes before and behind the first that differs
_SECONDS_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Part:
    """One part on both sides. None is a header that is not there."""

    name: str
    ours: bytes | None
    theirs: bytes | None

    @property
    def at(self) -> int | None:
        """The position of the first byte that differs, from 0; None where nothing does, or one is missing."""
        if self.ours is None or self.theirs is None or self.ours == self.theirs:
            return None
        pairs = zip(self.ours, self.theirs, strict=False)
        shorter = min(len(self.ours), len(self.theirs))
        return next((at for at, (one, other) in enumerate(pairs) if one != other), shorter)

    @property
    def is_same(self) -> bool:
        """Whether both sides are equal."""
        return self.ours == self.theirs


def excerpt(side: bytes | None, at: int | None) -> str:
    """Return what is around a position as a bytes literal, so that every byte can be told."""
    if side is None:
        return "nothing"
    middle = at or 0
    start, end = max(0, middle - _SHOWN), middle + _SHOWN
    before, behind = ("…" if start else ""), ("…" if end < len(side) else "")
    return f"{before}{side[start:end]!r}{behind}"


class Signed(NamedTuple):
    """What a signature is over."""

    timestamp: str
    method: str
    target: Target
    body: bytes


def explain_signature(signature: str, signed: Signed, signers: Iterable[Signer]) -> str | None:
    """Return how a signature was made, in words; None where no known way leads to it.

    Tried are the schemes of `signers`, each with the mistakes that spec.md names for "Invalid signature".
    """
    if not signed.timestamp.isascii():
        return None
    for signer in signers:
        for mistake, message in _messages(signed, signer.scheme):
            if signer.sign_message(message) == signature:
                scheme = signer.scheme
                settings = (
                    f"encoding = {scheme.encoding}, secret_is = {scheme.secret_is}, target = {scheme.target}"
                )
                return f"the file's signature is made with {settings}{mistake and ', and '}{mistake}"
    return None


def _messages(signed: Signed, scheme: Scheme) -> Iterator[tuple[str, bytes]]:
    """Yield each message that may have been signed, with the mistake in words.

    Of equal messages the one without a mistake counts, which is the last of each.
    """
    prefixes = {"": "over a path with the prefix", scheme.prefix: ""}
    stamps = {signed.timestamp[:_SECONDS_DIGITS]: "over a timestamp in seconds", signed.timestamp: ""}
    bodies = dict(_bodies(signed.body))
    for prefix, stamp, body in itertools.product(prefixes, stamps, bodies):
        mistakes = (prefixes[prefix], stamps[stamp], bodies[body])
        message = replace(scheme, prefix=prefix).message(stamp, signed.method, signed.target, body)
        yield ", ".join(filter(None, mistakes)), message


def _bodies(body: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the ways in which a body may have been signed, the plain one last."""
    yield b"", "without the body"
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if document is not None:
        for separators in ((",", ":"), (", ", ": ")):
            written = json.dumps(document, separators=separators)
            yield written.encode("ascii"), "over the body written anew by a JSON library"
    yield body, ""
