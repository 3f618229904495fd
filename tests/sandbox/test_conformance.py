"""The sandbox does what spec.md says, statement by statement."""

import pytest

from sandbox.client import bot_at_sandbox
from sandbox.conformance import DOCUMENT, STATEMENTS, document, facts
from sandbox.statements.table import Statement
from sealgate.config.venues import default_venue, venue_source
from sealgate.venues.venue import read_venue


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
async def test_statement(statement: Statement) -> None:
    async with bot_at_sandbox(**statement.settings) as bot:
        await statement.case(bot)


def test_every_statement_has_a_case_of_its_own() -> None:
    names = [statement.name for statement in STATEMENTS]
    texts = [statement.text for statement in STATEMENTS]
    assert (len(set(names)), len(set(texts))) == (len(names), len(texts))


def test_every_line_of_the_venues_file_is_held_by_a_statement() -> None:
    assert [fact.says for fact in facts(default_venue()) if not fact.held_by()] == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("X-SERVICE-APIKEY =", "X-SERVICE-KEY ="),
        ('recv_window = "5000"', 'recv_window = "6000"'),
        ('contains = ["needs_transfer"]', 'contains = ["needs_transfers"]'),
        ("status = [422]", "status = [423]"),
        ("/spot/symbols/list", "/spot/symbols/all"),
    ],
)
def test_a_wrong_line_of_it_is_found(right: str, wrong: str) -> None:
    """`python -m sandbox.conformance` makes the page from the file, and cannot leave such a line out."""
    text = venue_source(default_venue())
    assert right in text
    changed = read_venue("service.toml", text.replace(right, wrong))
    assert any(not fact.held_by() for fact in facts(changed))


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
