"""How this process holds memory: a choice for the edge, as it is one for the whole process."""

import ctypes

_MALLOPT = {-1: 64 << 20, -2: 4 << 20, -3: 32 << 20, -8: 2}
"""glibc's M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD (the most that it takes) and M_ARENA_MAX."""


def keep_freed_memory() -> None:
    """Makes freed memory wait for its next use instead of going back to the system; nothing where there is no glibc.

    Frames and row groups are many buffers of 100 KB and more. By default each is given back and asked for again page by
    page, and a page costs a virtual machine as much as filling it: a third of the time of sealing. Before threads.
    """
    import pyarrow as pa  # slow to load

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in _MALLOPT.items():
        mallopt(option, value)
    pa.set_memory_pool(pa.system_memory_pool())
