"""What a stored secret looks like, in a few truths that give nothing of it away."""

from dataclasses import dataclass

_WRAPPING = b"\"'` \t\r\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """`is_wrapped`: with quotes or blanks around it. `is_shorter`: than the API key that it belongs to.

    `has_lines`: a line ends inside it, as where a second value was pasted below.
    """

    is_api_key: bool = False
    is_wrapped: bool = False
    is_shorter: bool = False
    has_lines: bool = False


def shape_of(secret: bytearray, api_key: str) -> Shape:
    """Look at a secret, which is not empty."""
    return Shape(
        is_api_key=secret == api_key.encode("ascii"),
        is_wrapped=secret[0] in _WRAPPING or secret[-1] in _WRAPPING,
        is_shorter=len(secret) < len(api_key),
        has_lines=b"\n" in secret.strip(),
    )
