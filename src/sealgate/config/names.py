"""Names and paths that users choose, and the characters they may have."""

import json
import re

# Who is no known bot: to people, and in the metrics, whose label is older. No bot may have these names.
STRANGER, STRANGERS_LABEL = "stranger", "unknown"

SettingPath = tuple[str | int, ...]

PREFIX = "SEALGATE_"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")  # the unreserved characters of RFC 3986 section 2.3
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")
NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")  # RFC 9110 section 5.6.2
API_KEY = re.compile(r"[!-~]{1,512}")
_UID = re.compile(r"[ -~]{0,512}")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")  # RFC 6901 section 3
_MATCH = re.compile(
    r"(?P<method>GET|POST|PUT|PATCH|DELETE) (?P<path>(?:/(?:[A-Za-z0-9._~-]+|\{[A-Za-z0-9_]+\}))+)"
)


def dotted(path: SettingPath) -> str:
    """Write a path as TOML does: `keys.main.secret`, `routes[0].match`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def variable(path: SettingPath) -> str:
    """Write a path as the environment does: `SEALGATE_KEYS__MAIN__SECRET`."""
    return PREFIX + "__".join(str(part).upper() for part in path)


def _key(part: str) -> str:
    return part if _BARE_KEY.fullmatch(part) else json.dumps(part)


def is_plain_path(value: str) -> bool:
    """Whether a path has one reading only: "", or plain segments between single slashes."""
    return _PLAIN_PATH.fullmatch(value) is not None and _DOT_SEGMENT.search(value) is None


def parse_name(value: str) -> str:
    """Check the name of a key or a bot."""
    if NAME.fullmatch(value) is None:
        raise ValueError("is not a usable name; use 1 to 32 letters, digits, _ and -")
    return value


def parse_prefix(value: object) -> str:
    """Check a path prefix and return it without a slash at its end, so that "/" becomes ""."""
    if not isinstance(value, str) or not value.startswith("/") or not is_plain_path(value.rstrip("/")):
        raise ValueError('is not a plain path; begin it with "/" and use letters, digits and -._~')
    return value.rstrip("/")


def parse_optional_path(value: object) -> str:
    """Check the path of one resource; "" is none."""
    if value == "":
        return ""
    if not isinstance(value, str) or not is_plain_path(value):
        raise ValueError('is not a plain path; begin it with "/" and use letters, digits and -._~')
    return value


def parse_header_prefix(value: object) -> str:
    """Check what the names of the signature's headers begin with."""
    if not isinstance(value, str) or TOKEN.fullmatch(value) is None:
        raise ValueError('cannot begin a header\'s name; use letters, digits and -, as in "X-MINE-"')
    return value


def parse_api_key(value: object) -> str:
    """Check an API key, which travels as a header's value."""
    if not isinstance(value, str) or API_KEY.fullmatch(value) is None:
        raise ValueError("is not an API key; use 1 to 512 printable ASCII characters without spaces")
    return value


def parse_key_uid(value: object) -> str:
    """Check what a venue wants beside a key: a memo, the number of an account. "" is none."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or _UID.fullmatch(text) is None:
        raise ValueError("is not an account's id or memo; use at most 512 printable ASCII characters")
    return text


def parse_pointer(value: object) -> str:
    """Check a JSON pointer ("" is the whole document)."""
    if not isinstance(value, str) or _POINTER.fullmatch(value) is None:
        raise ValueError('is not a JSON pointer; write "/data/serverTime", or "" to have it found')
    return value


def split_match(value: str) -> tuple[str, str]:
    """Split a route's `METHOD /path/{placeholder}` into method and path template."""
    found = _MATCH.fullmatch(value)
    if found is None or _DOT_SEGMENT.search(value):
        raise ValueError('is not METHOD and path; write "POST /prefix/orders/{id}/query"')
    return found["method"], found["path"]


def parse_match(value: object) -> str:
    """Check a route's `METHOD /path/{placeholder}`."""
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - pydantic turns a ValueError into a problem
    split_match(value)
    return value
