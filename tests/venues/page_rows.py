"""Rows of tables about venues, and how one venue's file stands to another's."""

from collections.abc import Iterable

from sealgate.config.venues import built_in_venue
from sealgate.venues.venue import Venue

DEFAULT = "service"  # the sandbox's own


def parent_of(venue: Venue) -> Venue | None:
    """Return the venue that a file is like."""
    return built_in_venue(venue.like) if venue.like else None


def code(names: Iterable[str]) -> str:
    """Return names in code font."""
    return ", ".join(f"`{name}`" for name in names)


def table_row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |\n"
