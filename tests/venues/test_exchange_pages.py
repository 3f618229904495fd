"""The clients of docs/exchanges read the balance and place an order; the exchange checks each signature."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from rig.fences import ROOT, Fence, fences
from venues.exchange_pages import PAGES
from venues.recipes import ADDRESS, TOKEN, assert_only_the_real_key_arrived, run, venue_and_gateway

CLIENTS = [
    pytest.param(page, block, id=f"{page}-{block.label or 'curl'}")
    for page in PAGES
    for block in fences(ROOT / "docs" / "exchanges" / f"{page}.md")
    if block.label.startswith("exchange") or block.text.startswith("curl")
]


def test_each_page_has_three_clients() -> None:
    assert min(Counter(client.values[0] for client in CLIENTS).values()) >= 3
    assert {client.values[0] for client in CLIENTS} == set(PAGES)


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("page", "block"), CLIENTS)
async def test_a_client_reads_the_balance_and_places_an_order(
    tmp_path: Path, page: str, block: Fence
) -> None:
    async with venue_and_gateway(tmp_path, page) as (fake, url):
        text = block.text.replace(ADDRESS, url).replace(ADDRESS.partition("//")[2], url.partition("//")[2])
        text = text.replace("TOKEN", TOKEN).replace("curl ", "curl -fsS ")
        program = ("sh", "-e") if block.language == "sh" else (sys.executable, "-")
        out = await run(text, *program)
    assert "1000" in out
    assert "812" in out
    assert_only_the_real_key_arrived(fake)
