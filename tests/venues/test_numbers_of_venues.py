"""The numbers of each venue's limits, costs, waits and replies, written a second time in numbers.txt.

What a file changes without that list turns red, and so does a digit that slipped.
"""

import re

import pytest

from sealgate.venues.replies import Rule
from sealgate.venues.venue import Venue
from venues.through import FILES, HERE, named, venue_of


def listed() -> dict[str, list[str]]:
    """Return the lines of each section of numbers.txt."""
    sections = (HERE / "numbers.txt").read_text("utf-8").split("\n[")[1:]
    found: dict[str, list[str]] = {}
    for section in sections:
        name, _, lines = section.partition("]\n")
        found.setdefault(name, []).extend(line for line in lines.splitlines() if line)
    return found


LISTED = listed()


def numbers_of(venue: Venue) -> set[str]:
    """Return what a venue's file says in numbers, in the lines that numbers.txt has."""
    limits, rules = venue.limits, venue.replies.rules
    counters = {
        (counter.pool, f"{counter.header.lower()} {counter.counts} {counter.window_s:g}s {counter.most:g}")
        for counter in limits.counters
    }
    places = {
        "read": (venue.signed_read, venue.key_list, *venue.price_reads),
        "environment": [environment.base_url for environment in venue.environments.values()],
        "stream": [" is ".join(pair) for one in venue.environments.values() for pair in one.streams.items()],
        "words": venue.replies.words_at,
    }
    return {
        *([f"opens {limits.stream_opens}"] if limits.stream_opens else []),
        *(f"pool {pool.name} {' '.join(pool.known)}" for pool in limits.pools if pool.known),
        *(f"counter {pool} {text.removesuffix(' 0')}" for pool, text in counters),
        *(f"cost {row.cost:g} {venue.prefix}{row.template}" for row in venue.routes if row.cost != 1),
        *(
            f"wait {rule.name} {rule.verdict.wait.documented_s:g}"
            for rule in rules
            if rule.verdict.wait.documented_s
        ),
        *(line for line in map(reply_of, rules) if re.search(r" \S*\d", line)),
        *(f"{name} {at}" for name in places for at in places[name] if re.search(r"\d", at)),
    }


def reply_of(rule: Rule) -> str:
    """Return the line of a rule: its kind, and what of its statuses, places and codes has a digit."""
    parts = [
        ("status", map(str, rule.statuses)),
        ("at", [rule.at]),
        ("is", rule.exact),
        ("begins", rule.begins),
        ("contains", rule.contains),
        ("not", rule.others),
        ("finds", [pattern.pattern for _, pattern in rule.finds]),
    ]
    words = [(name, sorted(text for text in texts if re.search(r"\d", text))) for name, texts in parts]
    return " ".join(
        ("reply", rule.name, *(word for name, found in words if found for word in (name, *found)))
    )


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_numbers_are_those_that_are_listed(name: str) -> None:
    venue = named(name)
    of_parent = numbers_of(named(venue.like)) if venue.like else set()
    assert sorted(numbers_of(venue) - of_parent) == sorted(LISTED.get(name, []))


def test_a_section_is_a_venue_s() -> None:
    assert LISTED.keys() <= {venue_of(file).name for file in FILES}


@pytest.mark.parametrize("name", [file.stem for file in FILES if file.stem != "service"])
def test_the_tier_is_what_signing_changes(name: str) -> None:
    """As docs/exchanges/reference.md has it; `1b` differs from `1a` by what is computed, as people see it."""
    schemes = named(name).schemes.values()
    kinds = {
        "5": any(one.is_static for one in schemes),
        "4": any(one.json is not None and one.json.names for one in schemes),
        "3": any(text for one in schemes for text in (*one.form.values(), *one.form_end.values())),
        "2": any(text for one in schemes for text in (*one.query.values(), *one.query_end.values())),
        "1": True,
    }
    assert named(name).tier[:1] == next(tier for tier, is_so in kinds.items() if is_so)
