"""A secret to look for: in the forms in which it could leak, and where."""

import base64
import os
import signal
from collections import Counter
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

_PAGE, _PIECE = 4096, 1 << 20
_ZEROS = bytes(_PAGE)
BYTES = 48
START_BYTES = 16


def new_canary() -> bytes:
    """Return a random secret of printable characters, some of which URLs and shells would escape."""
    return base64.b85encode(os.urandom(BYTES * 4 // 5 - 2)) + b"+/=%&"


def forms(canary: bytes) -> dict[str, bytes]:
    """Return what to look for, by name. The first bytes alone give it away, so most forms are of those."""
    start = canary[:START_BYTES]
    # In base64 three bytes are four letters, so that where a text begins in it changes how it looks.
    offsets = {f"base64 at {n}": base64.b64encode(bytes(n) + canary)[4 * n : -4][:20] for n in range(3)}
    return {
        "plain": canary,
        "first bytes": start,
        "hex": start.hex().encode(),
        "HEX": start.hex().upper().encode(),
        **offsets,
        **{f"{name}url": form.translate(_URL_SAFE) for name, form in offsets.items()},
        "URL-escaped": quote(canary, safe="").encode(),
        "form-escaped": quote_plus(canary).encode(),
        "the HMAC's inner key": bytes(byte ^ 0x36 for byte in start),
        "the HMAC's outer key": bytes(byte ^ 0x5C for byte in start),
        "UTF-16": canary[:START_BYTES].decode("ascii").encode("utf-16-le"),
    }


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def found_in(content: bytes, canary: bytes) -> Counter[str]:
    """Count the forms in which a content has the canary."""
    return Counter({name: count for name, form in forms(canary).items() if (count := content.count(form))})


def core_of(process: int) -> bytes:
    """Return all that a process has in its memory, as a debugger or root sees it; skip where nobody may look.

    Pages of zeros, which are most of it, are left out.
    """
    place = Path(f"/proc/{process}")
    os.kill(process, signal.SIGSTOP)
    try:
        with (place / "mem").open("rb", buffering=0) as memory:
            return b"".join(_pages(memory, (place / "maps").read_text()))
    except PermissionError as error:
        pytest.skip(f"nobody may read the memory of other processes here: {error}")
    finally:
        os.kill(process, signal.SIGCONT)


def _pages(memory: RawIOBase, maps: str) -> Iterator[bytes]:
    for line in maps.splitlines():
        place, rights, *_, inode = line.split(maxsplit=5)[:5]
        if (
            "r" not in rights
            or ("w" not in rights and inode != "0")
            or line.endswith(("[vvar]", "[vsyscall]"))
        ):
            continue  # what may only be read of a file is as in the file
        at, end = (int(number, 16) for number in place.split("-"))
        while at < end:
            memory.seek(at)
            try:
                piece = memory.read(min(_PIECE, end - at)) or b""
            except OSError:  # behind the end of a file
                at += _PAGE
                continue
            yield from (
                page
                for start in range(0, len(piece), _PAGE)
                if (page := piece[start : start + _PAGE]) != _ZEROS
            )
            at += len(piece)
