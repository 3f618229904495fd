import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from sealgate.gateway.hardening import forbid_core_dumps
forbid_core_dumps()
print(*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_no_core_dumps_and_no_reading_of_memory() -> None:
    """In a process of its own, as nothing lifts the limit again; prctl 3 is PR_GET_DUMPABLE."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "0"]
