"""A bot's own token, looked for in what it sends: whoever has that can use the gateway in its place."""

import base64
import re
from collections.abc import Iterator
from urllib.parse import quote_from_bytes, unquote_to_bytes

_ESCAPE = re.compile(rb"\\u00([0-7][0-9a-fA-F])")  # of an ASCII letter in JSON


class OwnToken:
    """The token by which a bot came in, empty for one that came without."""

    def __init__(self, token: bytes) -> None:
        self._forms = frozenset(_forms(token)) if token else frozenset()

    def is_in(self, data: bytes) -> bool:
        """Ask whether it stands in these bytes: plain, escaped as in JSON or a URL, or within any base64."""
        if not self._forms:
            return False
        read = [data]
        if b"\\" in data:
            read.append(_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data))
        if b"%" in data:
            read.append(unquote_to_bytes(read[-1]))
        return any(form in one for one in read for form in self._forms)


def _forms(token: bytes) -> Iterator[bytes]:
    """Yield the token, and what its base64 has in common whatever stands around it."""
    yield token
    yield quote_from_bytes(token, safe="").encode("ascii")
    for before in range(3):
        text = base64.b64encode(b"\0" * before + token)
        # The first letters have bits of what stands before it, the last group of what stands behind it.
        inner = text[(0, 2, 3)[before] : (before + len(token)) // 3 * 4]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
