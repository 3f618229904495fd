from pathlib import Path

from sealgate.core import venues
from sealgate.core.venues.page import venues_page
from sealgate.core.venues.venue import read_venue

FILES = sorted(Path(venues.__file__).parent.glob("*.toml"))


def test_the_page_names_every_venue_with_what_it_was_held_against() -> None:
    read = [read_venue(file.name, file.read_text("utf-8")) for file in FILES]
    page = venues_page(read)
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == len(FILES)
    assert rows[0].startswith("| `service`<br>The trading service of spec.md | built-in | spec.md, ")
    kucoin = next(row for row in rows if row.startswith("| `kucoin`"))
    assert "| 1b | ccxt 4.5.90, 2026-11 | utf8, sha256, base64 |" in kucoin
    assert "The key needs `passphrase`." in kucoin
    assert {row.count(" | ") for row in rows} == {6}
