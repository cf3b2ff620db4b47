"""Peak memory of this process, of one stretch of its work at a time. Linux only, as it reads /proc."""

from pathlib import Path

_SELF = Path("/proc/self")


def reset_peak() -> None:
    """Begins a new stretch: what was used before and given back counts no longer."""
    (_SELF / "clear_refs").write_text("5", encoding="ascii")


def peak_mb() -> float:
    """Most memory that this process held since the last reset, in MB."""
    fields = dict(line.split(":", 1) for line in (_SELF / "status").read_text(encoding="utf-8").splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024
