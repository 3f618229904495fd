"""A secret to look for: in the forms in which it could leak, and where."""

import base64
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from rig.programs import path_of
from rig.wire import PATIENCE_S

_PAGE = 4096
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


def core_of(process: int, folder: Path) -> bytes:
    """Return a core of a running process; skip the test where none can be had."""
    done = subprocess.run(
        [path_of("gcore"), "-o", str(folder / "core"), str(process)],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    file = folder / f"core.{process}"
    if not file.exists():
        pytest.skip(f"gcore may not read other processes here: {done.stderr.strip()[-200:]}")
    return b"".join(_used_pages(file.read_bytes()))


def _used_pages(core: bytes) -> Iterator[bytes]:
    """Leave out pages of zeros, which are most of a core: what is left is searched in a fifth of the time."""
    for start in range(0, len(core), _PAGE):
        page = core[start : start + _PAGE]
        if page != _ZEROS[: len(page)]:
            yield page
