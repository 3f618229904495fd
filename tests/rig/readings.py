"""How others read a request target: `urllib`, `yarl`, nginx, and whoever decodes or normalises once more.

nginx is a small model of what its documentation of `location` and `merge_slashes` says: it decodes escapes,
resolves `.` and `..`, and makes one slash of several, before it chooses a location. The real one is asked in
tests/exchange/test_nginx.py.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from yarl import URL

from sealgate.http.target import Target

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def nginx_path(raw: str) -> bytes | None:
    """Return the path by which nginx chooses a location, None where it answers 400."""
    path = raw.partition("?")[0].partition("#")[0]
    if not path.startswith("/") or _BAD_ESCAPE.search(path):
        return None
    decoded = unquote_to_bytes(path)
    if b"\0" in decoded:
        return None
    kept: list[bytes] = []
    *middle, last = decoded.split(b"/")
    for segment in middle:
        if segment == b".." and not kept:
            return None
        if segment == b"..":
            kept.pop()
        elif segment not in (b"", b"."):
            kept.append(segment)
    if last == b"..":
        if not kept:
            return None
        kept.pop()
    end = b"" if last in (b".", b"..") else last
    return b"/" + b"".join(segment + b"/" for segment in kept) + end


def _of_ours(target: Target) -> bytes:
    return unquote_to_bytes(target.path)


def _of_urllib(target: Target) -> bytes:
    return unquote_to_bytes(urlsplit(target.raw).path)


def _of_yarl(target: Target) -> bytes:
    return URL(target.raw, encoded=True).path.encode("utf-8", "surrogateescape")


def _of_nginx(target: Target) -> bytes | None:
    return nginx_path(target.raw)


def _of_a_second_decoder(target: Target) -> bytes:
    return unquote_to_bytes(unquote_to_bytes(target.path))


def _of_a_file_server(target: Target) -> bytes:
    path = unquote(target.path, errors="strict")
    return (posixpath.normpath(path) + "/" * path.endswith("/")).encode()


def _of_windows(target: Target) -> bytes:
    return unquote_to_bytes(target.path.replace("\\", "/"))


def _of_a_servlet(target: Target) -> bytes:
    return unquote_to_bytes(re.sub(r";[^/]*", "", target.path))


READERS: dict[str, Callable[[Target], bytes | None]] = {
    "ours": _of_ours,
    "urllib": _of_urllib,
    "yarl": _of_yarl,
    "nginx": _of_nginx,
    "second decoder": _of_a_second_decoder,
    "file server": _of_a_file_server,
    "Windows": _of_windows,
    "servlet": _of_a_servlet,
}


def check_one_reading(raw: str, prefix: str, target: Target) -> None:
    """Check that an accepted target means one path to all, below the prefix, and is passed on as it came."""
    assert raw == target.raw == target.path + ("" if target.query is None else f"?{target.query}")
    assert {reader(target) for reader in READERS.values()} == {_of_ours(target)}, target
    assert _of_ours(target).startswith(prefix.encode() + b"/")
    assert URL(raw, encoded=True).raw_path == urlsplit(raw).path == target.path
    assert URL(raw, encoded=True).raw_query_string == urlsplit(raw).query == (target.query or "")
    assert not [letter for letter in unquote(target.path) if unicodedata.category(letter) == "Cc"]
