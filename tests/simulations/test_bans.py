"""Nine hosts, scripted after their documents, limit or ban a gateway at random moments, in virtual time.

`scripts/bench bans` prints the same as a table, with more seeds.
"""

from pathlib import Path
from secrets import randbelow  # noqa: TID251 - a new seed each time

import pytest

from rig.banned_gateways import BOTS, closures, run_through_ban
from rig.scripted_exchanges import Closure

_CASES = [pytest.param(venue, closure, id=f"{venue} {closure.name}") for venue, closure in closures()]
# Others are over by the time that another run has begun.
_LONG = [
    pytest.param(venue, closure, id=f"{venue} {closure.name}")
    for venue, closure in closures()
    if closure.is_known and closure.lasts_s[1] >= 60
]


@pytest.fixture
def seed() -> int:
    """Return a seed that is new in each run; pytest shows it where something fails."""
    return randbelow(1_000_000)


@pytest.mark.parametrize(("venue", "closure"), _CASES)
def test_nothing_is_sent_into_a_wait_and_the_first_after_it_is_alone(
    venue: str, closure: Closure, seed: int
) -> None:
    figures = run_through_ban(venue, closure, seed)
    assert figures.refused, "the exchange shut nobody out"
    assert figures.went_on, "the bots did not go on"
    if closure.is_known:
        assert (figures.of_bots, figures.of_gateway) == (0, 0)
    assert figures.beside_the_first == 0


@pytest.mark.parametrize(("venue", "closure"), _LONG)
def test_a_gateway_that_starts_again_remembers_the_wait(
    venue: str, closure: Closure, seed: int, tmp_path: Path
) -> None:
    figures = run_through_ban(venue, closure, seed, tmp_path / "journal.db", restarts=True)
    assert figures.refused
    assert (figures.of_bots, figures.of_gateway, figures.beside_the_first) == (0, 0, 0)


@pytest.mark.parametrize(("venue", "closure"), _LONG[::3])  # what is new to a gateway is the same at each
def test_without_a_journal_only_what_is_under_way_finds_out(venue: str, closure: Closure, seed: int) -> None:
    figures = run_through_ban(venue, closure, seed, restarts=True)
    assert figures.of_gateway <= 1
    assert figures.of_bots <= len(BOTS), "one each, as none of them can know"
    assert figures.beside_the_first == 0
