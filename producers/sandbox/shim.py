"""The first process inside a sandbox: starts the program, limits, times and, at the wall limit, kills it.

Runs as a script of its own (`python -I -S shim.py INPUT name=value... -- COMMAND...`), so it imports the standard
library only, and of that only what loads fast: `signal`, `json` and `typing` cost more than the whole sandbox. It
reports one JSON line on a pipe that the program neither inherits nor can open.
"""

import _signal  # type: ignore[import-not-found]  # the half of `signal` without its enumerations
import os
import resource
import select
import sys
import time

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 36, 38
NEVER_STARTED = 127


def main(arguments: list[str]) -> None:
    """Runs the command after `--` and writes the report; the exit status says nothing."""
    split = arguments.index("--")
    options = {name: int(value) for name, _, value in (item.partition("=") for item in arguments[1:split])}
    os.set_inheritable(options["report"], False)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # a first process is deaf to what it does not handle
    try:
        if options["uid"] < 0:
            _set(PR_SET_DUMPABLE, 0)  # a program of the same user then reaches neither descriptors nor memory
        if os.getpid() != 1:
            _set(PR_SET_CHILD_SUBREAPER, 1)  # what the program leaves behind becomes the shim's to kill
            _set(PR_SET_NO_NEW_PRIVS, 1)  # else a set-user-id command would be out of the shim's reach
        line = _measure(arguments[0], options, arguments[split + 1 :])
    except (OSError, ValueError) as error:
        line = _fault(f"{type(error).__name__}: {error}")
    os.write(options["report"], line.encode())
    os._exit(0)


def _set(option: int, value: int) -> None:
    """Sets an attribute of this process."""
    import ctypes  # here, because bubblewrap's shim for another user does without it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _measure(stdin: str, options: dict[str, int], command: list[str]) -> str:
    """The report of one run, as a JSON line; durations in nanoseconds, memory in bytes.

    The run ends when nothing of it is left: an answer that a forgotten child prints late is late.
    """
    source = os.open(stdin, os.O_RDONLY)
    error_out, error_in = os.pipe()
    begin = time.monotonic_ns()
    pid = os.fork()
    if pid == 0:
        _become(source, options, command, error_in)
    ended = _ends_by(begin + options["wall_ns"], pid, options["report"])
    if not ended:
        os.kill(pid, _signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    usages = [usage, *_sweep(options["uid"])]
    wall_ns = time.monotonic_ns() - begin
    os.close(error_in)
    trouble = os.read(error_out, 500)
    if trouble:
        return _fault(trouble.decode(errors="replace"))
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    figures = {
        "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1,  # -1: a signal ended it
        "signal": signal,
        "killed": int(not ended and signal == _signal.SIGKILL),
        "wall_ns": wall_ns,
        "tasks": _tasks(pid, len(usages)) if ended and signal == _signal.SIGKILL else len(usages),
    }
    return _report(figures, usages)


def _ends_by(deadline: int, pid: int, report: int) -> bool:
    """Whether the program ended before the deadline [ns, to 1 ms], and before the report's reader was gone."""
    handle = os.pidfd_open(pid)
    waiter = select.poll()
    waiter.register(handle, select.POLLIN)
    waiter.register(report, 0)  # an error is always reported: a worker that died leaves no program running
    left = max(deadline - time.monotonic_ns(), 0)
    return any(ready == handle for ready, _ in waiter.poll(-(-left // 1_000_000)))


def _become(source: int, options: dict[str, int], command: list[str], error_in: int) -> None:
    """Turns the forked child into the program; what prevents that goes into the pipe, which a program never sees."""
    try:
        os.setsid()  # a signal to its own process group then reaches neither the shim nor bubblewrap
        os.dup2(source, 0)
        for which, value in (
            (resource.RLIMIT_CPU, options["cpu"]),
            (resource.RLIMIT_FSIZE, options["file"]),
            (resource.RLIMIT_NPROC, options["tasks"]),
            (resource.RLIMIT_NOFILE, options["files"]),
            (resource.RLIMIT_STACK, options["stack"]),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_AS, options["memory"]),
        ):
            _limit(which, value)
        if options["uid"] >= 0:
            os.setgroups([])
            os.setresgid(options["uid"], options["uid"], options["uid"])
            os.setresuid(options["uid"], options["uid"], options["uid"])
        os.execv(command[0], command)  # noqa: S606  a list, never a shell
    except BaseException as error:  # noqa: BLE001  a forked child must never return into the shim
        os.write(error_in, f"the program could not be started: {type(error).__name__}: {error}".encode()[:500])
    finally:
        os._exit(NEVER_STARTED)


def _limit(which: int, value: int) -> None:
    """Sets a limit for good, or keeps the machine's own where that is lower."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    room = 1 if which == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0  # first SIGXCPU, then SIGKILL
    resource.setrlimit(which, (value, value + room))


def _sweep(uid: int) -> list[resource.struct_rusage]:
    """Kills and reaps all that the program left behind; what it used, whether the program had waited for it or not."""
    usages = []
    try:
        while True:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises where no child is left
            _kill_the_rest(uid)
            usages.append(os.wait4(-1, 0)[2])
    except ChildProcessError:
        return usages


def _kill_the_rest(uid: int) -> None:
    """Kills every process of the run: in a namespace all that there are, else the shim's descendants alone."""
    if os.getpid() == 1:
        os.kill(-1, _signal.SIGKILL)
        return
    if uid >= 0:
        _kill_all_of(uid)
    for pid in _descendants():
        try:
            os.kill(pid, _signal.SIGKILL)
        except ProcessLookupError:
            continue  # its parent reaped it meanwhile


def _kill_all_of(uid: int) -> None:
    """Kills every process of the program's own user, who has no other, at once: one by one, a bomb refills itself."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, _signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, os.WUNTRACED)  # a bomb may stop it; it is then killed like the rest, and the next round comes


def _descendants() -> set[int]:
    """The processes below this one. A child of ours stays until it is reaped, so each round finds at least those."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  pathlib loads slowly
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended meanwhile
    descendants: set[int] = set()
    more = {os.getpid()}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - descendants
        descendants |= more
    return descendants


def _tasks(first: int, reaped: int) -> int:
    """How many processes and threads the run had in all; without a namespace, the processes that the shim reaped."""
    if os.getpid() != 1:
        return reaped
    probe = os.fork()  # a namespace numbers its tasks in turn, and nothing else is left in it
    if probe == 0:
        os._exit(0)
    os.waitpid(probe, 0)
    return max(probe - first, reaped)


def _report(figures: dict[str, int], usages: list[resource.struct_rusage]) -> str:
    """The JSON line of a program that ran: `figures`, and what all its processes used together."""
    figures |= {
        "user_ns": sum(round(usage.ru_utime * 1e6) * 1000 for usage in usages),
        "system_ns": sum(round(usage.ru_stime * 1e6) * 1000 for usage in usages),
        "peak_memory_bytes": max(usage.ru_maxrss for usage in usages) * 1024,
        "voluntary_switches": sum(usage.ru_nvcsw for usage in usages),
        "forced_switches": sum(usage.ru_nivcsw for usage in usages),
    }
    return "{" + ", ".join(f'"{name}": {value}' for name, value in figures.items()) + "}\n"


def _fault(text: str) -> str:
    """The JSON line of a run that says nothing about the program."""
    import json

    return json.dumps({"fault": text}) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
