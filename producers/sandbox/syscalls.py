"""The kernel calls that a program in the sandbox is refused, as a seccomp filter for bubblewrap.

What the namespaces leave open: memory that no limit counts (new namespaces with file systems in them, memfd, System V
segments, io_uring), looking into other processes, changing the shim's limits or its share of the core, leaving the core
that the worker chose, and children that end uncounted. Pure data.
"""

import errno
import struct
from collections.abc import Iterator

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24  # the low half comes first
_SIGCHLD = 17
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

# Source: the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
# (AUDIT_ARCH, (clone, rt_sigaction, prlimit64), numbers); from 424 on all architectures share one numbering
_SHARED = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "memfd_secret": 447,
}
_CLONE3 = 435
_NAMES = (
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "ptrace", "process_vm_readv"),
    *("process_vm_writev", "bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl"),
    *("memfd_create", "shmget", "msgget", "semget", "mq_open", "sched_setaffinity", "open_by_handle_at"),
    *("setpriority", "sched_setparam", "sched_setscheduler", "sched_setattr", "ioprio_set"),
)
_X86_64 = (
    *(272, 308, 165, 166, 155, 161, 101, 310, 311, 321, 298, 323, 248, 249, 250, 319, 29, 68, 64, 240, 203, 304),
    *(141, 142, 144, 314, 251),
)
_AARCH64 = (
    *(97, 268, 40, 39, 41, 51, 117, 270, 271, 280, 241, 282, 217, 218, 219, 279, 194, 186, 190, 180, 122, 265),
    *(140, 118, 119, 274, 30),
)
_MACHINES = {
    "x86_64": (0xC000003E, (56, 13, 302), dict(zip(_NAMES, _X86_64, strict=True)) | _SHARED),
    "aarch64": (0xC00000B7, (220, 134, 261), dict(zip(_NAMES, _AARCH64, strict=True)) | _SHARED),
}


def refused(machine: str) -> dict[str, int]:
    """The refused calls of an architecture such as "x86_64": name to number; {} for one that is not known."""
    return _MACHINES[machine][2] if machine in _MACHINES else {}


def seccomp_filter(machine: str) -> bytes:
    """The filter program (an array of `struct sock_filter`) for an architecture; b"" for one that is not known."""
    if machine not in _MACHINES:
        return b""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _instructions(*_MACHINES[machine]))


def _instructions(
    architecture: int, partly: tuple[int, int, int], numbers: dict[str, int]
) -> Iterator[tuple[int, int, int, int]]:
    """One test and one return a rule: (code, jump if true, jump if false, value)."""
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    yield (_LOAD, 0, 0, _ARCHITECTURE_AT)
    yield (_EQUAL, 1, 0, architecture)
    yield refuse
    yield (_LOAD, 0, 0, _NUMBER_AT)
    yield (_AT_LEAST, 0, 1, _X32)
    yield refuse
    for number in numbers.values():
        yield (_EQUAL, 0, 1, number)
        yield refuse
    yield (_EQUAL, 0, 1, _CLONE3)  # its flags lie in memory; where it is reported missing, libc takes clone
    yield (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    clone, action, limit = partly
    yield (_EQUAL, 0, 4, clone)
    yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
    yield (_ANY_BIT, 0, 1, _NEW_NAMESPACES)
    yield refuse
    yield (_RETURN, 0, 0, _ALLOW)
    yield (_EQUAL, 0, 4, limit)  # of another process; 0 is the caller itself
    yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
    yield (_EQUAL, 1, 0, 0)
    yield refuse
    yield (_RETURN, 0, 0, _ALLOW)
    yield (_EQUAL, 0, 8, action)  # whoever ignores SIGCHLD has children whose use the kernel counts nowhere
    yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
    yield (_EQUAL, 0, 6, _SIGCHLD)
    for half in (0, 4):  # without a new action the call only asks for the old one
        yield (_LOAD, 0, 0, _SECOND_ARGUMENT_AT + half)
        yield (_EQUAL, 1, 0, 0)
        yield refuse
    yield (_RETURN, 0, 0, _ALLOW)
