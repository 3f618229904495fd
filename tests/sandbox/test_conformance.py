"""The sandbox does what spec.md says, statement by statement."""

import pytest

from sandbox.client import bot_at_sandbox
from sandbox.conformance import DOCUMENT, STATEMENTS, document, facts
from sandbox.statements.table import Statement
from sealgate.config.venues import default_venue


@pytest.mark.parametrize(
    "statement", [one for one in STATEMENTS if not one.is_repetition], ids=lambda statement: statement.name
)
async def test_statement(statement: Statement) -> None:
    async with bot_at_sandbox(**statement.settings) as bot:
        await statement.case(bot)


def test_every_line_of_the_venues_file_is_held_by_a_statement() -> None:
    assert [fact.says for fact in facts(default_venue()) if not fact.held_by()] == []


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
