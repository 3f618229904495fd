"""An error reply of the exchange in a few words, fit for one line of a terminal."""

from collections.abc import Iterable

_LONGEST = 100


def error_words(status: int, words: str, hidden: Iterable[str] = ()) -> str:
    """Return the status and the words of the reply (`Verdict.words`).

    What was sent and nobody is to read, `hidden`, is left out, should the exchange repeat it.
    """
    # Before anything is cut: a part of a token is too much, too. The longest first, as one may be in another.
    for one in sorted(filter(None, hidden), key=len, reverse=True):
        words = words.replace(one, "…")
    return f"{status} {in_one_line(words)}".strip()


def in_one_line(words: str) -> str:
    """Return what somebody else wrote as a person may read it: printable, and not long."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return f"{printable[:_LONGEST]}…" if len(printable) > _LONGEST else printable
