"""The threat model names a test for each claim; the tests are there."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "internals" / "threat-model.md").read_text()


def test_every_claim_names_a_test_that_exists() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert rows
    for row in rows:
        named = re.findall(r"`([\w/]+/test_\w+\.py)`", row.split(" | ")[-1])
        assert named, row
        for name in named:
            assert (TESTS / name).is_file(), name


def test_every_test_that_is_named_exists() -> None:
    for name in re.findall(r"`([\w/]+/test_\w+\.py)`", PAGE):
        assert (TESTS / name).is_file(), name
