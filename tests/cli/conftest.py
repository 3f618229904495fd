"""The commands' own tests start programs by the hundred: forked, they cost little."""

from collections.abc import Iterator

import pytest

from rig.fork_server import forking


@pytest.fixture(autouse=True, scope="module")
def _forked_programs() -> Iterator[None]:
    with forking():
        yield
