"""Measures the corpus: runs every program of a problem on every test, one at a time, and prints one table a problem.

Prints each program's verdict against its folder, its time over the start-up of an empty program, the ladder of
accepted programs and the robust CV of the optimization tests. It writes nothing; the data comes from build.py.
"""

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from build import LIMIT_S, Run, float_tolerance, problems, programs, run_program, same_output

FOLDERS = {"accepted": "AC", "wrong_answer": "WA", "run_time_error": "RTE", "time_limit_exceeded": "TLE"}
STARTUP_RUNS = 15
RUNG = 1.5


@dataclass(frozen=True, slots=True)
class Case:
    """One test: name below data/, input and answer text."""

    name: str
    question: str
    reply: str

    @property
    def timed(self) -> bool:
        """Returns whether this is an optimization test."""
        return "/optimization/" in self.name


@dataclass(frozen=True, slots=True)
class Row:
    """One program on all tests: (verdict, seconds over start-up) by test name."""

    program: Path
    results: dict[str, tuple[str, float]]

    def timed(self, cases: list[Case]) -> list[float]:
        """Returns the seconds over start-up [optimization tests]."""
        return [self.results[case.name][1] for case in cases if case.timed]

    def complaint(self, cases: list[Case]) -> str:
        """Returns what contradicts the program's folder, "" where nothing does."""
        folder = FOLDERS[self.program.parent.name]
        small = {self.results[case.name][0] for case in cases if not case.timed}
        every = {verdict for verdict, _ in self.results.values()}
        if folder == "TLE":
            return "" if "TLE" in every and small == {"AC"} else "must pass the small tests and time out on a large one"
        if folder == "AC":
            return "" if every == {"AC"} else "must pass every test"
        return "" if folder in small and "TLE" not in every else f"must show {folder} on a small test and no TLE"


def load_cases(problem: Path) -> list[Case]:
    """Returns the tests of a problem, sample and correctness before optimization, by name."""
    paths = sorted((problem / "data").rglob("*.in"), key=lambda path: ("optimization" in path.parts, str(path)))
    return [
        Case(
            str(path.relative_to(problem / "data").with_suffix("")),
            path.read_text(),
            path.with_suffix(".ans").read_text(),
        )
        for path in paths
    ]


def seconds(run: Run, *, wall: bool) -> float:
    """Returns the run's CPU time, or its wall time, in seconds."""
    return (run.wall_ns if wall else run.cpu_ns) / 1e9


def startup_s(*, wall: bool) -> float:
    """Returns the median time of an empty program in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text("pass\n")
        return median(seconds(run_program(empty, ""), wall=wall) for _ in range(STARTUP_RUNS))


def measure(program: Path, cases: list[Case], *, args: argparse.Namespace, base_s: float) -> Row:
    """Returns the program's row; a test's time is the least of `args.repeat` runs, less the start-up `base_s`."""
    tolerance = float_tolerance(program.parents[2])
    results = {}
    for case in cases:
        repeats = args.repeat if case.timed else 1
        runs = [run_program(program, case.question, limit_s=args.limit) for _ in range(repeats)]
        verdict = runs[-1].verdict
        if verdict == "ok":
            verdict = "AC" if same_output(runs[-1].output, case.reply, tolerance=tolerance) else "WA"
        results[case.name] = (verdict, min(seconds(run, wall=args.wall) for run in runs) - base_s)
    return Row(program, results)


def robust_cv(durations: list[float]) -> float:
    """Returns 1.4826 * MAD / median of durations [tests] in seconds (0.0 for a median of zero)."""
    middle = median(durations)
    return 1.4826 * median(abs(value - middle) for value in durations) / middle if middle else 0.0


def rungs(times: list[float]) -> list[float]:
    """Returns the longest ladder of times in which neighbours differ by more than RUNG (greedy from the fastest)."""
    ladder: list[float] = []
    for value in sorted(times):
        if not ladder or value > RUNG * ladder[-1]:
            ladder.append(value)
    return ladder


def report(problem: Path, args: argparse.Namespace) -> bool:
    """Prints the table of one problem and returns whether every program shows its folder's verdict."""
    cases, base_s, rows = load_cases(problem), startup_s(wall=args.wall), []
    print(f"== {problem.name}: {len(cases)} tests, {sum(case.timed for case in cases)} timed, start-up {base_s:.4f} s")
    print(f"   {'program':<44} {'median':>8} {'sum':>8} {'max':>8}  verdicts")
    for folder in FOLDERS:
        for program in programs(problem, folder):
            row = measure(program, cases, args=args, base_s=base_s)
            print_row(row, cases)
            rows.append(row)
    print_spread([row for row in rows if row.program.parent.name == "accepted"], cases)
    return not any(row.complaint(cases) for row in rows)


def print_row(row: Row, cases: list[Case]) -> None:
    """Prints one program: seconds over start-up on the optimization tests, and its verdicts on all tests."""
    times, complaint = row.timed(cases), row.complaint(cases)
    counts = " ".join(f"{name} {n}" for name, n in sorted(Counter(v for v, _ in row.results.values()).items()))
    label = f"{row.program.parent.name}/{row.program.name}"
    note = f"  <-- {complaint}" if complaint else ""
    print(f"   {label:<44} {median(times):8.4f} {sum(times):8.3f} {max(times):8.3f}  {counts}{note}", flush=True)


def print_spread(accepted: list[Row], cases: list[Case]) -> None:
    """Prints the ladder of the accepted programs and the robust CV over the optimization tests."""
    names = [case.name for case in cases if case.timed]
    durations = [median(row.results[name][1] for row in accepted) for name in names]
    for label, times in (
        ("medians", [median(row.timed(cases)) for row in accepted]),
        ("sums", [sum(row.timed(cases)) for row in accepted]),
    ):
        ladder = rungs(times)
        print(f"   rungs by {label}: {len(ladder)}  " + " ".join(f"{value:.4f}" for value in ladder))
    for name, duration in zip(names, durations, strict=True):
        print(f"   {name:<44} {duration:8.4f}")
    print(f"   robust CV {robust_cv(durations):.3f}")


def main() -> None:
    """Measures the named problems; exit status 1 where a program contradicts its folder."""
    parser = argparse.ArgumentParser(description="Run every program of the corpus on every test and print the times.")
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="problems to take (all when none is named)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each optimization test; the least time counts")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="wall-time limit of one run in seconds")
    parser.add_argument("--wall", action="store_true", help="print wall times, not CPU times (for an idle machine)")
    args = parser.parse_args()
    results = [report(problem, args) for problem in problems(args.slugs)]
    if not all(results):
        sys.exit("a program contradicts its folder; see the lines marked with <--")


if __name__ == "__main__":
    main()
