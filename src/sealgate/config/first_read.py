"""The first request to send through a gateway: what people paste."""

import shlex

from sealgate.config.tree import ExchangeConfig

_NO_READ = "/PATH"  # an exchange without a signed read that can be sent as it is


def first_read(exchange: ExchangeConfig, address: str) -> str:
    """Return the URL of the exchange's own signed read; `address` is that of the gateway for the exchange."""
    return f"{address}{exchange.venue.signed_read or _NO_READ}"


def curl_lines(url: str, token: str | None) -> tuple[str, ...]:
    """Return the command that sends it. The token is read from its file; None: none is needed.

    A token that is elsewhere is left to be filled in.
    """
    plain = url if url.isascii() and not set("?&;'\" ") & set(url) else shlex.quote(url)
    if token is None:
        return (f"curl {plain}",)
    path = token.removeprefix("file:")
    text = f"$(cat {shlex.quote(path)})" if path != token else "TOKEN"
    return f"curl {plain} \\", f'  -H "Authorization: Bearer {text}"'
