"""The log's last guard: whatever looks like a secret is blanked, also inside a sentence or a traceback.

Nothing secret should come this far, as secrets are held in values that hide themselves; this is for the day
when somebody logs what a peer sent.
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


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank what looks like a secret, by its name or by what stands before it. A structlog processor."""
    for name, value in event.items():
        if name in _NAMES:
            event[name] = BLANK
        elif isinstance(value, str):
            event[name] = redacted(value)
    return event


def redacted(text: str) -> str:
    """Return a text without what looks like a secret."""
    return _SUSPECT.sub(lambda found: found["kept"] + BLANK, text)
