"""Small problem packages in the ICPC format, for tests of the commands."""

from collections.abc import Mapping
from pathlib import Path

ACCEPTED = "print(sum(map(int, open(0).read().split())))\n"
SLOWER = f"for _ in range(3_000_000): pass\n{ACCEPTED}"
"""About 0.1 s more than ACCEPTED: far beyond what a busy machine adds."""
WRONG = "print(0)\n"
CRASH = "raise SystemExit(1 // 0)\n"
FOREVER = "while True: pass\n"

PROGRAMS: Mapping[str, str] = {
    "accepted/quick.py": ACCEPTED,
    "accepted/slower.py": SLOWER,
    "accepted/middle.py": SLOWER.replace("3_000_000", "1_000_000"),
    "wrong_answer/zero.py": WRONG,
    "run_time_error/crash.py": CRASH,
}


def make_package(
    folder: Path, programs: Mapping[str, str] = PROGRAMS, *, small: int = 2, large: int = 2, name: str = "Sums"
) -> Path:
    """A package whose task is to print the sum of the numbers it reads."""
    (folder / "data" / "sample").mkdir(parents=True)
    (folder / "problem.yaml").write_text(f"name: {name}\nlicense: cc by-sa\n")
    write_test(folder, "sample/1", [1, 2])
    for number in range(small):
        write_test(folder, f"secret/correctness/{number}", [number, 5])
    for number in range(large):
        write_test(folder, f"secret/optimization/{number}", list(range(1, 3 + 2 * number)))
    for path, source in programs.items():
        target = folder / "submissions" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)
    return folder


def write_test(folder: Path, path: str, numbers: list[int]) -> None:
    """One test: its input and its answer."""
    target = folder / "data" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".in").write_text(" ".join(map(str, numbers)) + "\n")
    target.with_suffix(".ans").write_text(f"{sum(numbers)}\n")
