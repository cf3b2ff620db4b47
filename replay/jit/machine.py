"""How a function becomes machine code: the one place that knows numba.

The code is kept in files beside the sources, or in the user's cache folder, so that it is made once for a release. What
is kept holds the numbers that a function names and the functions that it calls, but goes by the age and size of its own
file alone: a change in `asked`, `runs` or `ranking` takes one in `weighing` too.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def in_machine_code(function: F) -> F:
    """The same function, compiled when it is called first; it lets other threads run."""
    compiled: F
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep it in: made anew in every process
        compiled = numba.njit(nogil=True)(function)
    return compiled
