"""The sandbox does what spec.md says, statement by statement."""

import pytest

from sandbox.client import bot_at_sandbox
from sandbox.conformance import DOCUMENT, STATEMENTS, document
from sandbox.statements.table import Statement


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
async def test_statement(statement: Statement) -> None:
    async with bot_at_sandbox(**statement.settings) as bot:
        await statement.case(bot)


def test_every_statement_has_a_case_of_its_own() -> None:
    names = [statement.name for statement in STATEMENTS]
    texts = [statement.text for statement in STATEMENTS]
    assert (len(set(names)), len(set(texts))) == (len(names), len(texts))


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
