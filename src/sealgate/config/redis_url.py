"""Where gateways meet that share a key: the URL of a Redis, or a reference to one that holds a password.

It is never echoed in an error, as people paste URLs with passwords in them.
"""

from urllib.parse import parse_qs, urlsplit

from sealgate.config.references import parse_reference

SCHEMES = ("redis", "rediss", "unix")
_FORM = 'write "redis://HOST:PORT/0"'


def parse_redis(value: object) -> str:
    """Check a setting; "" shares nothing. Raise ValueError with the cause and the fix."""
    if value == "":
        return ""
    if not isinstance(value, str) or not is_redis_url(value):
        try:
            return parse_reference(value)
        except ValueError:
            raise ValueError(f"is neither a Redis URL nor a reference to one; {_FORM}") from None
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(f"is not a URL; {_FORM}")
    check_redis_url(value)
    if _holds_password(value):
        raise ValueError("holds a password; put the whole URL into a file and write file:/path")
    return value


def _holds_password(url: str) -> bool:
    """Whether it stands in one of the two places where a Redis client looks for it."""
    parts = urlsplit(url)
    return parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True)


def is_redis_url(value: str) -> bool:
    """Whether it is the URL itself, and no reference to one."""
    return value.partition("://")[0] in SCHEMES and "://" in value


def check_redis_url(url: str) -> None:
    """Check a URL. Raise ValueError with the cause and the fix."""
    try:
        parts = urlsplit(url)
        is_fine = (parts.port or 1) > 0
    except ValueError:
        is_fine = False
    if not is_fine or not is_redis_url(url):
        raise ValueError(f"is not a Redis URL; {_FORM}")
    if parts.scheme == "unix" and parts.path in {"", "/"}:
        raise ValueError('names no socket; write "unix:///run/redis/redis.sock"')
    if parts.scheme != "unix" and not parts.hostname:
        raise ValueError(f"has no host; {_FORM}")
