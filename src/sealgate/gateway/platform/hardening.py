"""Keep secrets out of core dumps (a core holds every key of the process)."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def forbid_core_dumps() -> None:
    """Let this process leave no core dump and, on Linux, no other process of its user read its memory.

    Call it before the first secret is read. The process itself may still look at its own descriptors and
    memory figures under /proc/self.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
