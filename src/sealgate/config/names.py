"""Paths of settings, and reserved names."""

import json
import re

# Names of unauthenticated clients: for people, and (older) as a label of metrics. No bot may have them.
STRANGER, STRANGERS_LABEL = "stranger", "unknown"

SettingPath = tuple[str | int, ...]

# The common tables that each exchange inherits, and all that is an exchange's if a file is about one.
COMMON = ("environment", "upstream", "signing", "clock", "limits", "routes")
OF_EXCHANGE = ("venue", "base_url", *COMMON)
LONGEST_NAME = 32

PREFIX = "SEALGATE_"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")  # the unreserved characters of RFC 3986 section 2.3
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")


def dotted(path: SettingPath) -> str:
    """Write a path as TOML does: `keys.main.secret`, `routes[0].match`."""
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            written += f".{part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False)}"
    return written.removeprefix(".")


def variable(path: SettingPath) -> str:
    """Write a path as the environment does: `SEALGATE_KEYS__MAIN__SECRET`."""
    return PREFIX + "__".join(str(part).upper() for part in path)


def has_dot_segment(path: str) -> bool:
    """Whether a path has a segment `.` or `..`, which some servers resolve and others do not."""
    return _DOT_SEGMENT.search(path) is not None


def is_plain_path(path: str) -> bool:
    """Whether a path has only one reading: "", or plain segments between single slashes."""
    return _PLAIN_PATH.fullmatch(path) is not None and not has_dot_segment(path)
