"""Letters as the most lenient server reads them, so that a name in another spelling is still that name."""

import unicodedata
from collections.abc import Collection

_INVISIBLE = ("Cf",)


def plain_letters(text: str, unseen: Collection[str] = _INVISIBLE) -> str:
    """Return a text in compatible letters (Unicode NFKC) of one case, without the categories `unseen`.

    It goes by way of the capitals, as the dotless i has that of the plain one.
    """
    plain = unicodedata.normalize("NFKC", text).upper().casefold()
    if plain.isascii():
        return plain
    return "".join(letter for letter in plain if unicodedata.category(letter) not in unseen)
