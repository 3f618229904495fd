"""Whether the modules under test are compiled, and what cannot be asked of such ones.

mypyc's classes take no heirs and no doubles, its modules see no function that was replaced in another one,
and no profiler hears of their calls.
"""

import pytest

from sealgate.http import target

IS_COMPILED = not str(target.__file__).endswith(".py")

# For a test that breaks a compiled module on purpose, follows its calls or has a double of a class in it.
needs_sources = pytest.mark.skipif(IS_COMPILED, reason="it breaks, follows or replaces what is compiled")
