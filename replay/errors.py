"""The one failure of the kernel: an input that cannot be judged as it is.

The message is one line that says what is wrong, where, and what to do next. A program's own failure is data and never
this. The shell and the commands translate it for the user.
"""


class ReplayError(ValueError):
    """A measurement, criterion or question that the kernel refuses."""
