"""Writes the committed data of the corpus: inputs from each problem's generator, answers from its accepted programs.

`python corpus/build.py [SLUG...]` writes data/; with `--check` it only compares the generated inputs with the files.
How programs run and how outputs are compared also lives here, because measure.py needs both. No timing tables here.
"""

import argparse
import re
import resource
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parent
LIMIT_S = 10.0
MAX_FILE_BYTES = 400_000
MAX_DATA_BYTES = 1_200_000


@dataclass(frozen=True, slots=True)
class Run:
    """One program on one input: verdict "ok", "RTE" or "TLE", output text, CPU and wall time in nanoseconds."""

    verdict: str
    output: str
    cpu_ns: int
    wall_ns: int


def run_program(program: Path, text: str, *, limit_s: float = LIMIT_S) -> Run:
    """Returns what `program` did with `text` on its standard input, killed after `limit_s` seconds of wall time."""
    before, start = _children_ns(), time.monotonic_ns()
    verdict, output = "ok", b""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(program)], input=text.encode(), capture_output=True, timeout=limit_s, check=False
        )
        output = done.stdout
        if done.returncode != 0:
            verdict = "RTE"
    except subprocess.TimeoutExpired:
        verdict = "TLE"
    wall_ns = time.monotonic_ns() - start
    return Run(verdict, output.decode(errors="replace"), _children_ns() - before, wall_ns)


def _children_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def same_output(left: str, right: str, *, tolerance: float | None) -> bool:
    """Returns whether two outputs have equal tokens; numbers may differ by `tolerance`, absolute or relative."""
    a, b = left.split(), right.split()
    return len(a) == len(b) and all(x == y or _close(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _close(x: str, y: str, tolerance: float | None) -> bool:
    if tolerance is None:
        return False
    try:
        p, q = float(x), float(y)
    except ValueError:
        return False
    return abs(p - q) <= tolerance * max(1.0, abs(q))


def float_tolerance(problem: Path) -> float | None:
    """Returns the float tolerance that problem.yaml names in validator_flags, None where tokens must be equal."""
    found = re.search(
        r"^validator_flags:.*tolerance\s+([0-9.eE+-]+)", (problem / "problem.yaml").read_text(), re.MULTILINE
    )
    return float(found.group(1)) if found else None


def problems(slugs: Sequence[str]) -> list[Path]:
    """Returns the folders of `slugs`, of all problems when there are none. Exits with one line for an unknown slug."""
    found = [CORPUS / slug for slug in slugs] or sorted(path.parent for path in CORPUS.glob("*/problem.yaml"))
    for path in found:
        if not (path / "generators" / "generate.py").is_file():
            sys.exit(f"{path.name}: no generators/generate.py in {path}; name a folder of the corpus")
    return found


def programs(problem: Path, folder: str) -> list[Path]:
    """Returns the program files in submissions/`folder`, by name."""
    return sorted((problem / "submissions" / folder).glob("*.py"))


def inputs(problem: Path) -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test, as the problem's generator makes them."""
    yield from runpy.run_path(str(problem / "generators" / "generate.py"))["cases"]()


def answer(problem: Path, name: str, text: str) -> str:
    """Returns the output that all accepted programs agree on. Exits with one line where one fails or differs."""
    tolerance, first = float_tolerance(problem), None
    for program in programs(problem, "accepted"):
        done = run_program(program, text)
        if done.verdict != "ok":
            sys.exit(
                f"{problem.name}: {program.name} ended with {done.verdict} on {name}; mend the program or the test"
            )
        if first is None:
            first = done.output
        elif not same_output(done.output, first, tolerance=tolerance):
            sys.exit(f"{problem.name}: {program.name} disagrees with the first accepted program on {name}")
    if first is None:
        sys.exit(f"{problem.name}: no program in submissions/accepted; add one")
    return first.rstrip("\n") + "\n"


def build(problem: Path) -> None:
    """Writes every .in and .ans below data/ and removes the files that no test owns any more."""
    data, kept = problem / "data", set()
    tests = [(name, text, answer(problem, name, text)) for name, text in inputs(problem)]
    for name, text, output in tests:
        question, reply = data / f"{name}.in", data / f"{name}.ans"
        question.parent.mkdir(parents=True, exist_ok=True)
        question.write_bytes(text.encode())
        reply.write_bytes(output.encode())
        kept |= {question, reply}
    for path in sorted(data.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()


def first_difference(problem: Path) -> str | None:
    """Returns one line about the first file that differs from what the generator makes, None where all is well."""
    data = problem / "data"
    found = {path for path in data.rglob("*") if path.is_file()}
    for name, text in inputs(problem):
        question, reply = data / f"{name}.in", data / f"{name}.ans"
        if question not in found or reply not in found:
            return f"{problem.name}: {name}: .in or .ans is missing; run build.py {problem.name}"
        if question.read_bytes() != text.encode():
            return f"{problem.name}: {name}.in differs from the generated input; run build.py {problem.name}"
        found -= {question, reply}
    for path in sorted(found):
        return f"{problem.name}: {path.relative_to(data)} belongs to no test; run build.py {problem.name}"
    return over_budget(problem)


def over_budget(problem: Path) -> str | None:
    """Returns one line where data/ breaks the size budget in bytes, else None."""
    sizes = {path: path.stat().st_size for path in (problem / "data").rglob("*") if path.is_file()}
    for path, size in sorted(sizes.items()):
        if size > MAX_FILE_BYTES:
            return f"{problem.name}: {path.name} has {size} bytes, more than {MAX_FILE_BYTES}; make the test smaller"
    total = sum(sizes.values())
    if total > MAX_DATA_BYTES:
        return f"{problem.name}: data/ has {total} bytes, more than {MAX_DATA_BYTES}; make the tests smaller"
    return None


def main() -> None:
    """Builds or checks the named problems; exit status 1 and one line at the first thing that is wrong."""
    parser = argparse.ArgumentParser(description="Write or check the inputs and answers of the corpus.")
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="problems to take (all when none is named)")
    parser.add_argument("--check", action="store_true", help="compare inputs with the committed files, run nothing")
    chosen = parser.parse_args()
    for problem in problems(chosen.slugs):
        if not chosen.check:
            build(problem)
        wrong = first_difference(problem)
        if wrong:
            sys.exit(wrong)
        print(f"{problem.name}: ok")


if __name__ == "__main__":
    main()
