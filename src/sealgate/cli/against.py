"""`sealgate sign --against FILE`: the first difference from a request that the user has."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sealgate.cli.frame import leave_with_error
from sealgate.cli.signing import Request, Signed, sign_request
from sealgate.config import Config
from sealgate.core.comparison import Part, excerpt, explain_signature
from sealgate.core.comparison import Signed as SignedOver
from sealgate.core.written_request import Piece, UnreadableRequestError, WrittenRequest, parse_written
from sealgate.gateway.keys.parts import build_candidates

_MS_DIGITS = 13


@dataclass(frozen=True, slots=True)
class Comparison:
    """The parts compared, in order, and what is known of the signature in the file."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    @property
    def first(self) -> Part | None:
        """The first part that differs."""
        return next((part for part in self.parts if not part.is_same), None)


def compare(config: Config, asked: Request, file: Path) -> Comparison:
    """Compare what is asked for with the request in a file; its timestamp is taken unless one was given."""
    theirs = _read(file)
    body = b"".join(_content(piece, file.parent) for piece in theirs.pieces)
    header = config.venue.header_prefix
    stamps = theirs.values(f"{header}TIMESTAMP")
    ours = sign_request(config, asked.at(_usable(stamps)))
    names = tuple(ours.headers)
    parts = (
        Part("method", ours.method.encode(), theirs.method.encode()),
        Part("target", f"{config.base_url.path}{ours.target.raw}".encode(), _bytes(theirs.target)),
        Part("body", ours.body, body),
        *(Part(name, ours.headers[name].encode(), _only(theirs.values(name))) for name in names),
    )
    return Comparison(parts, tuple(_notes(config, ours, parts)))


def _read(file: Path) -> WrittenRequest:
    try:
        return parse_written(file.read_bytes())
    except UnreadableRequestError as error:
        leave_with_error(f"--against: {file} holds no request: {error}")


def _content(piece: Piece, folder: Path) -> bytes:
    """Return a piece of a body; curl's files are looked for beside the command's."""
    if piece.file is None:
        return piece.content
    content = (folder / piece.file).read_bytes()
    return content.translate(None, b"\r\n\0") if piece.is_text else content


def _usable(stamps: list[str]) -> int | None:
    is_usable = len(stamps) == 1 and stamps[0].isdecimal() and len(stamps[0]) == _MS_DIGITS
    return int(stamps[0]) if is_usable else None


def _only(values: list[str]) -> bytes | None:
    """Return a header's value; where it is there twice, both, as they then differ from any one."""
    return _bytes(", ".join(values)) if values else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _notes(config: Config, ours: Signed, parts: tuple[Part, ...]) -> Iterator[str]:
    *others, stamp, signature = parts
    if stamp.theirs is None or signature.theirs is None:
        yield f"the file has no {(stamp if stamp.theirs is None else signature).name}"
        return
    if not stamp.is_same and len(stamp.theirs) < _MS_DIGITS:
        yield "the file's timestamp is not in milliseconds"
    if signature.is_same or any(not part.is_same for part in others[:3]):
        return
    signed = SignedOver(stamp.theirs.decode("latin-1"), ours.method, ours.target, ours.body)
    keys = build_candidates(config, ours.alias, os.environ)
    how = explain_signature(signature.theirs.decode("latin-1"), signed, [key.signer for key in keys.values()])
    yield how or (
        "the file's signature is made in no known way with this secret: most likely with another one "
        f"(the fingerprint of this one is {ours.fingerprint})"
    )


def text(comparison: Comparison) -> str:
    """Return the comparison for people."""
    width = max(len(part.name) for part in comparison.parts)
    return "\n".join(_lines(comparison, width))


def _lines(comparison: Comparison, width: int) -> Iterator[str]:
    for part in comparison.parts:
        yield f"{part.name:<{width}}  {_state(part)}"
        if part is comparison.first:
            yield f"{'':<{width}}    here  {excerpt(part.ours, part.at)}"
            yield f"{'':<{width}}    file  {excerpt(part.theirs, part.at)}"
    for note in comparison.notes:
        yield f"note: {note}"


def _state(part: Part) -> str:
    if part.is_same:
        return "same"
    if part.at is None:
        return "only here" if part.theirs is None else "only in the file"
    sizes = f"{len(part.ours or b'')} bytes here, {len(part.theirs or b'')} in the file"
    return f"differs from byte {part.at} on ({sizes})"


def document(comparison: Comparison) -> str:
    """Return the comparison for programs."""
    parts = [
        {
            "part": part.name,
            "is_same": part.is_same,
            "at": part.at,
            "here": _shown(part.ours),
            "file": _shown(part.theirs),
        }
        for part in comparison.parts
    ]
    first = comparison.first
    return json.dumps({"first": first and first.name, "parts": parts, "notes": comparison.notes})


def _shown(side: bytes | None) -> str | None:
    return None if side is None else side.decode("utf-8", "backslashreplace")
