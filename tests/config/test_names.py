"""Paths of settings, as TOML and the environment write them, and paths that have one reading only."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.names import dotted, has_dot_segment, is_plain_path, variable

PARTS = st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc"))), min_size=1, max_size=4)


@given(PARTS)
def test_a_path_is_written_as_toml_reads_it(path: list[str]) -> None:
    read: object = tomllib.loads(f"{dotted(tuple(path))} = 1")
    for part in path:
        assert isinstance(read, dict)
        (read,) = [read[part]]
    assert read == 1


def test_a_member_of_a_list_is_written_by_its_index() -> None:
    assert dotted(("exchanges", "spot", "routes", 0, "match")) == "exchanges.spot.routes[0].match"


def test_a_path_is_written_as_a_variable() -> None:
    assert variable(("exchanges", "spot", "venue")) == "SEALGATE_EXCHANGES__SPOT__VENUE"


@pytest.mark.parametrize("path", ["", "/a", "/a/b.c~d_e-f", "/.a/..b"])
def test_a_plain_path(path: str) -> None:
    assert is_plain_path(path)


@pytest.mark.parametrize("path", ["a", "/", "//a", "/a/", "/a/../b", "/.", "/a%20b", "/a?b"])
def test_a_path_that_is_not_plain(path: str) -> None:
    assert not is_plain_path(path)


def test_a_dot_segment() -> None:
    assert [has_dot_segment(path) for path in ("/a/..", "/./a", "/a.b", "/..a")] == [True, True, False, False]
