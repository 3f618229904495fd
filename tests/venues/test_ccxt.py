"""Each venue's file against what ccxt itself signs: target, headers and body, byte for byte.

Nobody here wrote an expected value. ccxt signs with the real key; the same class signs with a dummy key and a
clock that is behind, and what it sends is signed by the file.
"""

from pathlib import Path

import pytest

from sealgate.venues.key_kinds import Kind
from sealgate.venues.templates import names_in
from sealgate.venues.venue import Venue
from venues.calls import GONE, OF_EVERY_KIND, VENUES
from venues.through import FILES, Case, named, origin, settled, signed_by_ccxt, signed_by_file, venue_of

HELD = [file for file in FILES if file.stem in VENUES]

_NOT_SENT = "# not sent: "  # see test_how_long_a_timestamp_holds_is_what_the_exchange_documents


def name_of(file: Path) -> str:
    return file.stem


def test_every_file_but_the_default_is_held_against_ccxt() -> None:
    assert {file.stem for file in FILES} - set(VENUES) == {"service"}
    assert set(VENUES) <= {file.stem for file in FILES}


def test_so_is_every_kind_of_key_that_a_file_names() -> None:
    rows = {(name.partition(":")[0], calls.kind) for name, calls in OF_EVERY_KIND.items()}
    venues = [venue_of(file) for file in HELD]
    assert rows == {(venue.name, kind.value) for venue in venues for kind in venue.schemes}


@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_signs_as_ccxt_does(name: str, cases: dict[str, list[Case]]) -> None:
    venue, held = named(name.partition(":")[0]), cases[name]
    assert len(held) >= 6
    for case in held:
        sent = signed_by_file(venue, case)
        assert settled(case, sent) == signed_by_ccxt(case)
        assert "dummy" not in repr(sent)


@pytest.mark.parametrize("file", HELD, ids=name_of)
def test_names_the_version_and_the_address_that_ccxt_has(file: Path, cases: dict[str, list[Case]]) -> None:
    venue = venue_of(file)
    assert venue.name == file.stem
    assert venue.base_url in {origin(case) for case in cases[file.stem]}
    assert venue.checked.startswith("ccxt 4.5.0," if file.stem in GONE else "ccxt 4.5.90,")


# What the exchanges' own documents say, in milliseconds, where no request states it.
_WINDOWS = {
    "okx": 30_000,
    "bitget": 30_000,
    "coinbase": 30_000,
    "coinbaseexchange": 30_000,
    "cryptocom": 60_000,
    "gate": 60_000,
    "kucoin": 5_000,
    "bitmart": 60_000,
}


def test_how_long_a_timestamp_holds_is_what_the_exchange_documents() -> None:
    """It makes the fence of an order in doubt. A bot cannot ask for a longer one there."""
    stated = {
        file.stem: venue_of(file).of_kind(Kind.HMAC) for file in HELD if _NOT_SENT in file.read_text("utf-8")
    }
    assert {name: venue.recv_window_ms for name, venue in stated.items()} == _WINDOWS
    assert all(venue.states_window for venue in stated.values())
    assert not any("recv_window" in name for venue in stated.values() for name in _templates(venue))


def _templates(venue: Venue) -> set[str]:
    scheme = venue.signing
    texts = [text for _, text in scheme.headers] + [*scheme.message.values(), *scheme.query.values()]
    return {name for text in texts for name in names_in(text)}


def test_a_header_that_changes_what_is_signed_is_the_gateways_alone() -> None:
    """It chooses what stands between the signed texts (apidocs.bithumb.com, version 1.2)."""
    assert named("bithumb-v1").signs_with("Api-Client-Type")
