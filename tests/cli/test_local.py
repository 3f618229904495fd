"""What `sealgate check` says of this machine, line by line."""

import pytest

from sealgate.cli.checking.local import told
from sealgate.core.findings import fail


@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        pytest.param("a; b", "a", "b", id="cause and fix"),
        pytest.param(
            "file:/a; b: no such file; make it", "file:/a; b: no such file", "make it", id="its own"
        ),
        pytest.param("permission denied", "permission denied", "", id="a cause alone"),
    ],
)
def test_an_error_is_a_cause_and_its_fix(text: str, cause: str, fix: str) -> None:
    assert told("keys.main", text) == fail("keys.main", cause, fix)
