"""The clients of docs/exchanges and docs/moving-bots.md, at exchanges that check each signature."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from rig.fences import ROOT, Fence, fences
from sealgate.cli import main
from venues.exchange_pages import venues_of
from venues.page_rows import PAGES
from venues.recipes import (
    ADDRESS,
    TOKEN,
    assert_only_the_real_key_arrived,
    run,
    several,
    venue_and_gateway,
)

CLIENTS = [
    pytest.param(page, block, id=f"{page}-{block.label or 'curl'}")
    for page in PAGES
    for block in fences(ROOT / "docs" / "exchanges" / f"{page}.md")
    if block.label.startswith("exchange") or block.text.startswith("curl")
]

MOVED = [
    pytest.param(block, id=block.label)
    for block in fences(ROOT / "docs" / "moving-bots.md")
    if block.label.startswith("moving") and block.label != "moving-tokens"
]
SEVERAL = {block.label: block.text for block in fences(ROOT / "docs" / "several-exchanges.md")}


def test_each_page_has_three_clients() -> None:
    assert min(Counter(client.values[0] for client in CLIENTS).values()) >= 3
    assert {client.values[0] for client in CLIENTS} == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_the_environments_that_its_venues_have(page: str) -> None:
    text = (ROOT / "docs" / "exchanges" / f"{page}.md").read_text()
    named = set(re.findall(r'`environment = "(\w+)"`', text))
    assert named == {name for venue in venues_of(page) for name in venue.environments}


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


@pytest.mark.needs("curl")
@pytest.mark.parametrize("block", MOVED)
async def test_a_moved_bot_does_what_it_did(tmp_path: Path, block: Fence) -> None:
    async with several(tmp_path) as (fakes, gateway):
        text = block.text.replace(ADDRESS, f"http://{gateway.address}").replace("TOKEN", TOKEN)
        program = ("sh", "-e") if block.language == "sh" else (sys.executable, "-")
        out = await run(text, *program)
    fake = fakes["bybit" if "bybit" in block.text else "binance"]
    assert "1000" in out
    assert_only_the_real_key_arrived(fake, orders="order" in block.text)


async def test_the_six_bots_have_a_file_and_tokens_that_check_accepts(tmp_path: Path) -> None:
    page = list(fences(ROOT / "docs" / "moving-bots.md"))
    [config] = [block.text for block in page if block.language == "toml"]
    [commands] = [block.text for block in page if block.label == "moving-tokens"]
    (tmp_path / "sealgate.toml").write_text(config)
    for secret in re.findall(r"file:(\w+\.secret)", config):
        (tmp_path / secret).write_text("s")
        (tmp_path / secret).chmod(0o600)
    until_serve = commands.strip().rpartition("\n")[0]
    lines = until_serve.replace("sealgate ", f"{sys.executable} -m sealgate ")
    places = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0"}
    out = await run(f"cd {tmp_path}\n{lines}\n", "sh", "-e", **places)
    assert "6 bots configured" in out


def test_the_commands_for_two_exchanges_write_the_file_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    meant = tomllib.loads(SEVERAL["several-written"])
    for line in SEVERAL["several-commands"].splitlines():
        words = line.split()[1:]
        alias = {"binance": "main"}.get(words[-1], words[-1])
        given = ["--api-key", meant["keys"].get(alias, {}).get("api_key", ""), "--secret-file", "-"]
        options = [] if "--key" in words else given
        result = CliRunner().invoke(main, [*words, *options, "--bot", "grid", "--no-input"], input="s\n")
        assert result.exit_code == 0, result.output
    assert tomllib.loads(Path("sealgate.toml").read_text()) == meant
