"""Each venue's file against what ccxt itself signs: target, headers and body, byte for byte.

Nobody here wrote an expected value. ccxt signs with the real key; the same class signs with a dummy key and a
clock that is behind, and what it sends is signed by the file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealgate.errors import Refusal
from sealgate.venues.templates import UnsignableError, names_in
from sealgate.venues.venue import Venue, VenueError, read_venue
from venues.calls import GONE, VENUES
from venues.through import FILES, Case, origin, signed_by_ccxt, signed_by_file, venue_of

HELD = [file for file in FILES if file.stem in VENUES]

# Another value that the grammar takes, so that only ccxt can tell.
_OTHERS = {
    "digest": {"sha256": "sha512", "sha384": "sha256", "sha512": "sha256"},
    "secret": {"base64": "utf8", "as_base64": "utf8", "md5hex": "utf8", "appended": "utf8"},
    "encoding": {"base64": "hex", "base64hex": "hex"},
    "timestamp": {"s": "ms", "iso_ms": "ms", "iso_s": "iso_ms"},
    "nonce": {"ms": "us", "uuid": "ms"},
}
_NOT_SENT = "# not sent: "  # see test_how_long_a_timestamp_holds_is_what_the_exchange_documents
_STRING = re.compile(r"""(["'])((?:(?!\1).)*)\1""")
_KEY = re.compile(r"""["']?([\w\-]+)["']? = (.*)""")


def name_of(file: Path) -> str:
    return file.stem


def test_every_file_but_the_default_is_held_against_ccxt() -> None:
    assert {file.stem for file in FILES} - set(VENUES) == {"service"}
    assert set(VENUES) <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", HELD, ids=name_of)
def test_signs_as_ccxt_does(file: Path, cases: dict[str, list[Case]]) -> None:
    venue, held = venue_of(file), cases[file.stem]
    assert len(held) >= 6
    for case in held:
        sent = signed_by_file(venue, case)
        assert sent == signed_by_ccxt(case)
        assert "dummy" not in repr(sent)


@pytest.mark.parametrize("file", HELD, ids=name_of)
def test_names_the_version_and_the_address_that_ccxt_has(file: Path, cases: dict[str, list[Case]]) -> None:
    venue = venue_of(file)
    assert venue.name == file.stem
    assert venue.base_url in {origin(case) for case in cases[file.stem]}
    assert venue.checked.startswith("ccxt 4.5.0," if file.stem in GONE else "ccxt 4.5.90,")


@pytest.mark.parametrize("file", HELD, ids=name_of)
def test_a_wrong_letter_or_digit_is_found(file: Path, cases: dict[str, list[Case]]) -> None:
    unnoticed = [
        change
        for change, text in mutants(file.read_text("utf-8"))
        if not is_noticed(file.name, text, cases[file.stem])
    ]
    assert unnoticed == []


# What the exchanges' own documents say, in milliseconds, where no request states it.
_WINDOWS = {
    "okx": 30_000,
    "bitget": 30_000,
    "coinbase": 30_000,
    "coinbaseexchange": 30_000,
    "gate": 60_000,
    "kucoin": 5_000,
    "bitmart": 60_000,
}


def test_how_long_a_timestamp_holds_is_what_the_exchange_documents() -> None:
    """It makes the fence of an order in doubt. A bot cannot ask for a longer one there."""
    stated = {file.stem: venue_of(file) for file in HELD if _NOT_SENT in file.read_text("utf-8")}
    assert {name: venue.recv_window_ms for name, venue in stated.items()} == _WINDOWS
    assert all(venue.states_window for venue in stated.values())
    assert not any("recv_window" in name for venue in stated.values() for name in _templates(venue))


def _templates(venue: Venue) -> set[str]:
    scheme = venue.signing
    texts = [text for _, text in scheme.headers] + [*scheme.message.values(), *scheme.query.values()]
    return {name for text in texts for name in names_in(text)}


def test_twelve_requests_differ_where_the_digest_is_wrong(cases: dict[str, list[Case]]) -> None:
    file = next(file for file in HELD if file.stem == "okx")
    wrong = read_venue(
        "okx.toml", file.read_text("utf-8").replace("[signing]", '[signing]\ndigest = "sha512"')
    )
    assert [signed_by_file(wrong, case) == signed_by_ccxt(case) for case in cases["okx"]][:12] == [False] * 12


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield (what was changed, text) for each name and value of the file that decides what is sent."""
    lines = text.splitlines()
    begin = lines.index("[signing]")
    after = (at for at, line in enumerate(lines) if at > begin and re.match(r"\[(?!signing)", line))
    end = next(after, len(lines))
    signing = [at for at in range(begin + 1, end) if _NOT_SENT not in lines[at]]
    for at in [*signing, *(at for at, line in enumerate(lines) if line.startswith("prefix"))]:
        for changed in filter(lines[at].__ne__, _changed(lines[at])):
            yield f"{lines[at]} -> {changed}", "\n".join([*lines[:at], changed, *lines[at + 1 :]]) + "\n"


def _changed(line: str) -> Iterator[str]:
    found = _KEY.fullmatch(line)
    if found is None:
        return
    key, value = found[1], found[2]
    other = _OTHERS.get(key, {}).get(value.strip('"'))
    if other is not None:
        yield f'{key} = "{other}"'
    elif value.isdecimal():
        yield f"{key} = {int(value) + 1}"
    elif value == "true":
        yield f"{key} = false"
    else:
        start = line.index(value, len(key))
        for one in _STRING.finditer(line, start):
            text = one[2]
            for wrong in (_digit(text), _cut(text)):
                yield f"{line[: one.start(2)]}{wrong}{line[one.end(2) :]}"
    if line.startswith(key) and "{" in value and '"' in value and key[:1].isupper():
        yield line.replace(key, f"{key}X", 1)


def _digit(text: str) -> str:
    """Return a text with its first digit, or else its end, changed."""
    found = re.search(r"\d(?![^{]*\})", text)
    return text[: found.start()] + str(9 - int(found[0])) + text[found.end() :] if found else f"{text}x"


def _cut(text: str) -> str:
    """Return a text without its last place, or its last letter."""
    return re.sub(r"(\{[^{}]*\}|.)$", "", text)


def is_noticed(name: str, text: str, held: list[Case]) -> bool:
    try:
        venue = read_venue(name, text)
        return any(not is_equal(venue, case) for case in held)
    except VenueError:
        return True


def is_equal(venue: Venue, case: Case) -> bool:
    try:
        return signed_by_file(venue, case) == signed_by_ccxt(case)
    except (UnsignableError, Refusal, ValueError):
        return False
