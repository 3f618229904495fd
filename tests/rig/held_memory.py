"""What is still held of the memory that was allocated meanwhile, without help of the garbage collector."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting_held() -> Iterator[Callable[[], int]]:
    """Switch the collector off; yield what returns the bytes held of all that was allocated since."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
