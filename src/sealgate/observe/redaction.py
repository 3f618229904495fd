"""Blanks what looks like a secret in a text, or in the fields of a log line.

Nothing secret should come this far: secrets are held in values that hide themselves. This is for the day when
somebody logs what a peer sent.
"""

import re
from collections.abc import MutableMapping
from typing import Any

BLANK = "***"
_NAMES = frozenset(
    ("api_secret", "authorization", "cookie", "passkey_token", "password", "session_token", "signature")
)
_SUSPECT = re.compile(
    r"(?i)(?P<kept>\b(?:bearer|basic)\s+"
    r"|\b(?:authorization|cookie|x-[\w-]*(?:signature|apikey|token))\b['\"]?\s*[:=,]\s*['\"]?"
    r"|(?<![./])\b(?:api_?secret|secret|token|signature|password)\b['\"]?\s*[:=]\s*['\"]?(?!(?:file|env|cmd|systemd|keyring):)"
    r"|://[^/\s:@]*:(?=[^/\s@]*@))(?P<blanked>(?:(?:bearer|basic)\s+)?[^\s'\",;@&]+)"
)


def redacted(text: str) -> str:
    """Return a text without what looks like a secret by the words before it."""
    return _SUSPECT.sub(lambda found: found["kept"] + BLANK, text)


def redact(event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank in place the fields that look like a secret, by their name or by their text."""
    for name, value in event.items():
        if name in _NAMES:
            event[name] = BLANK
        elif isinstance(value, str):
            event[name] = redacted(value)
    return event
