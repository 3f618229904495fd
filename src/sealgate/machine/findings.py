"""What a check found, one line each: cause and fix, or several causes by rank. Texts and times for people."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

REACH = "check base_url, the network and the exchange's status page"
WAIT = "wait until the pause is over"
RENEW = "make a new API key, put it into keys.*, and reload"
_LONGEST = 100
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


class Level(StrEnum):
    """How bad it is: `fail` is what keeps the gateway from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


_RANKS = {Level.OK: 0, Level.WARN: 1, Level.FAIL: 2}


class Weight(IntEnum):
    """How much speaks for a cause."""

    UNLIKELY = 0  # something was measured that speaks against it
    POSSIBLE = 1
    LIKELY = 2
    PROVEN = 3  # it was measured, or the exchange says so


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a failure, what to do about it, and what was seen that speaks for or against it."""

    weight: Weight
    text: str
    fix: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `causes` are all of them, most likely first, where `text` and `fix` name the first alone.

    `paste` are lines for the configuration, which stand below the line as they are. `lists_causes`: they are
    shown without being asked for, as the reply meant one of several things. `exchange` is the name of the
    exchange that it is about, "" if it is about none.
    """

    area: str
    level: Level
    text: str
    fix: str = ""
    causes: tuple[Cause, ...] = ()
    paste: tuple[str, ...] = ()
    lists_causes: bool = False
    exchange: str = ""


def ok(area: str, text: str) -> Finding:
    """Return a line about what is as it should be."""
    return Finding(area, Level.OK, text)


def warn(area: str, text: str, fix: str = "", paste: tuple[str, ...] = ()) -> Finding:
    """Return a line about what works, and may not for long."""
    return Finding(area, Level.WARN, text, fix, paste=paste)


def fail(area: str, text: str, fix: str) -> Finding:
    """Return a line about what does not work."""
    return Finding(area, Level.FAIL, text, fix)


def blamed(area: str, text: str, causes: Iterable[Cause], *, lists: bool = False) -> Finding:
    """Return the line of a failure that has at least one cause, with the one that most speaks for.

    If none of several is likelier than the others, the line names none. Then, or with `lists`, all are shown.
    """
    ranked = tuple(sorted(causes, key=lambda cause: -cause.weight))
    first = ranked[0]
    if len(ranked) > 1 and first.weight is ranked[1].weight is Weight.POSSIBLE:
        return Finding(area, Level.FAIL, f"{text}, which can mean:", "", ranked, lists_causes=True)
    how_sure = "" if first.weight is Weight.PROVEN else "most likely " if len(ranked) > 1 else "probably "
    line = f"{text}: {how_sure}{first.text}"
    return Finding(area, Level.FAIL, line, first.fix, ranked, lists_causes=lists)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level, OK where there is nothing."""
    return max((finding.level for finding in findings), key=_RANKS.__getitem__, default=Level.OK)


def sentence(advice: str) -> str:
    """Return advice as a sentence."""
    return f"{advice[0].upper()}{advice[1:]}."


def clause(advice: str) -> str:
    """Return an advice, which is one sentence or several, as the end of a sentence."""
    is_word = advice[1:2].islower()
    text = f"{advice[:1].lower()}{advice[1:]}" if is_word else advice
    return text.removesuffix(".")


def error_words(status: int, words: str, hidden: Iterable[str] = ()) -> str:
    """Return the status and the words of the reply (`Verdict.words`), without what is `hidden`.

    A status that begins the words is not repeated.
    """
    return f"{status} {shown_words(words, hidden).removeprefix(f'{status} ')}".strip()


def shown_words(words: str, hidden: Iterable[str]) -> str:
    """Return words of the exchange as a person may read them.

    What was sent and nobody is to read, `hidden`, is left out, should the exchange repeat it.
    """
    # Before anything is cut: a part of a token is too much, too. The longest first, as one may be in another.
    for one in sorted(filter(None, hidden), key=len, reverse=True):
        words = words.replace(one, "…")
    return in_one_line(words)


def page_text(body: bytes) -> str:
    """Return the text of an HTML page, as firewalls answer, without repeats; "" if a body is none."""
    try:
        text = body.decode("utf-8").lstrip()
    except UnicodeDecodeError:
        return ""
    if text.startswith(("{", "[")):
        return ""
    parts = (" ".join(part.split()) for part in _MARKUP.sub("\n\n", text).split("\n\n"))
    return " ".join(dict.fromkeys(filter(None, parts)))


def in_one_line(words: str) -> str:
    """Return what somebody else wrote as a person may read it: printable, and not long."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return f"{printable[:_LONGEST]}…" if len(printable) > _LONGEST else printable


def program_named(user_agent: bytes) -> str:
    """Return a User-Agent, which anybody can send, as a person may read it: a short line of ASCII."""
    return in_one_line(user_agent[: 2 * _LONGEST].decode("ascii", "replace").replace("\ufffd", "?")).strip()


def listed(words: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def span(seconds: float) -> str:
    """Return "12 s", "10 min" or "3 h": the largest unit that there is more than one of, down to "0.05 s"."""
    seconds = max(0.0, seconds)
    size, unit = next((one for one in _UNITS if seconds > one[0]), _UNITS[-1])
    return f"{round(seconds / size, 2 if seconds < 1 else 0):g} {unit}"
