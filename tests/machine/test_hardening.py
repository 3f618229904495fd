import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from sealgate.machine.process import forbid_core_dumps
forbid_core_dumps()
print(*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_no_core_dumps_and_no_reading_of_memory() -> None:
    """In a process of its own, as nothing lifts the limit again; prctl 3 is PR_GET_DUMPABLE."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "0"]


OWN_FIGURES = """
import ctypes, os
from sealgate.machine.process import forbid_core_dumps
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(4711); os.setuid(4711)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as for a program that this user started
forbid_core_dumps()
print(len(os.listdir("/proc/self/fd")) > 2, "VmRSS" in open("/proc/self/status").read())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_it_may_still_look_at_itself_for_its_metrics() -> None:
    """As a user that is not root: root may look at everything anyway."""
    done = subprocess.run([sys.executable, "-c", OWN_FIGURES], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


OTHERS_EYES = """
import os, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(4711); os.setuid(4711)
os.listdir(f"/proc/{sys.argv[1]}/fd")
"""
VICTIM = """
import ctypes, os, sys
HARDEN = len(sys.argv) > 1
from sealgate.machine.process import forbid_core_dumps
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(4711); os.setuid(4711)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
if HARDEN:
    forbid_core_dumps()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("is_hardened", [False, True])
def test_another_program_of_the_same_user_cannot_look_into_it(*, is_hardened: bool) -> None:
    arguments = [sys.executable, "-c", VICTIM, *(["harden"] if is_hardened else [])]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        looked = subprocess.run(
            [sys.executable, "-c", OTHERS_EYES, str(victim.pid)], capture_output=True, text=True, check=False
        )
        assert ("PermissionError" in looked.stderr) is is_hardened
        victim.communicate()
