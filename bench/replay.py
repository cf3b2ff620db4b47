"""How fast stored results are evaluated again, next to scipy and numpy; sizes and aims are those of the paper.

`python bench/replay.py [--quick] [--json] [--only NAME] [--folder DIR] [--large N]` prints
{"rows": [{"name", "value", "unit", "baseline", "ratio", "reach", "reached"}], "bytecode"}. The ledger is made the real
way: events, stream, sink, sealed. Warm figures come from a process of its own, whose peak memory is one of them; the
least of a few rounds counts. Baselines rank candidates alone, without gates, leaderboards or doubt. Not a test.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from campaigns import Size, make
from figures import Row, log, printed, row, text, timed
from peaks import peak_mb, reset_peak
from scipy.stats import percentileofscore

from lapledger.consumers.derive.reward_audit import verify_rewards
from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.batches.problem_batches import ProblemBatch
from lapledger.replay.batches.scaling import Scale, scaled
from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import judge
from lapledger.replay.loading import judge_snapshot, load
from lapledger.replay.measurements import Ints, ProblemMeasurements
from lapledger.replay.studies.sweeps import Axes, Point, at, sweep
from lapledger.workflows.malloc import keep_freed_memory

CRITERION = Criterion(tau="30")
COLD, EXEC = "cold: `lap replay --tau 30` to its table", "cold: load and one criterion, from exec"
FURTHER, TAU = "another calibration, warm", "another tau only, warm"
AGAINST = {
    "scipy timing by timing": 500.0,
    "scipy group by group": 10.0,
    "numpy searchsorted group by group": 4.0,
}
SWEEP, MEMORY, TENFOLD = "sweep of 10 x 10 calibrations, timeouts, tau", "peak memory", "ten times the data"
LARGE = "timings replayed"
ASSIGN, VERIFY = "rewards derived and sealed", "rewards recomputed, as `lap verify` does"
MS = 1_000_000
SAMPLE = 20_000
"""Timings that scipy ranks one by one; the rest is extrapolated."""


@dataclass(slots=True)
class Bench:
    """What is to be measured, and what was."""

    only: str
    quick: bool
    rows: list[Row] = field(default_factory=list)

    def wants(self, *names: str) -> bool:
        """True when one of these figures is asked for."""
        return any(self.only in name for name in names)

    def add(self, made: Row) -> None:
        """Keeps a figure that is asked for, and tells of it."""
        if self.only in made.name:
            self.rows.append(made)
            log(text(made))


def best(call: Callable[[], object], rounds: int = 5) -> float:
    """The least seconds of a few rounds."""
    return min(timed(call) for _ in range(rounds))


def pools(problems: list[ProblemMeasurements], by: Scale) -> list[tuple[Ints, Ints]]:
    """What the baselines rank: of each problem the references' scaled durations [N, T] and the candidates' [M, T]."""
    durations = []
    for m in problems:
        wall = m.wall_ns[:, :, 0]
        pool = np.maximum(np.rint(by.alpha * wall[m.reference] + by.beta_ns), 0).astype(np.int64)
        durations.append((pool, wall[~m.reference]))
    return durations


def scipy_by_timing(problems: list[ProblemMeasurements], by: Scale) -> float:
    """Seconds of `percentileofscore` called timing by timing, extrapolated from the first ones."""
    pool, mine = pools(problems[:1], by)[0]
    cells = [(m, t) for m in range(len(mine)) for t in range(mine.shape[1])][:SAMPLE]
    took = timed(lambda: [percentileofscore(pool[:, t], mine[m, t], kind="mean") for m, t in cells])
    return took / len(cells) * sum(len(m.programs) - int(m.reference.sum()) for m in problems) * mine.shape[1]


def scipy_by_group(problems: list[ProblemMeasurements], by: Scale) -> float:
    """Seconds of `percentileofscore` called once a problem and test."""

    def ranked() -> list[object]:
        return [
            np.mean([percentileofscore(pool[:, t], mine[:, t], kind="mean") for t in range(mine.shape[1])], axis=0)
            for pool, mine in pools(problems, by)
        ]

    return timed(ranked)


def numpy_by_group(problems: list[ProblemMeasurements], by: Scale) -> float:
    """Seconds of two `searchsorted` a problem and test: tie-averaged ranks."""

    def ranked() -> list[object]:
        totals: list[object] = []
        for pool, mine in pools(problems, by):
            total = np.zeros(len(mine), dtype=np.int64)
            for t in range(mine.shape[1]):
                rising = np.sort(pool[:, t])
                total += np.searchsorted(rising, mine[:, t], "left") + np.searchsorted(rising, mine[:, t], "right")
            totals.append(total)
        return totals

    return best(ranked, 3)


BASELINES = dict(zip(AGAINST, (scipy_by_timing, scipy_by_group, numpy_by_group), strict=True))


def warm(bench: Bench, folder: Path) -> None:
    """Everything that a process asks once the measurements are read; the peak is that of all of it, reading too."""
    reset_peak()
    problems = list(load(Questions(open_ledger(folder))).problems)
    batch = ProblemBatch.of(problems, CRITERION)
    batch.evaluate(CRITERION)
    scales = iter(Scale(1 + n / 100, n * MS) for n in range(1, 100))
    value = best(lambda: table(batch, next(scales)))
    bench.add(row(FURTHER, value, "s", reach=None if bench.quick else 0.15))
    if bench.wants(TAU):
        evaluation, taus = batch.evaluate(CRITERION), iter(range(10, 90))
        again = best(lambda: batch.programs.rates(evaluation.status(at(CRITERION, None, next(taus)))))
        bench.add(row(TAU, again, "s", reach=None if bench.quick else 0.010))
    points = swept(bench, problems) if bench.wants(SWEEP) else []
    bench.add(row(MEMORY, peak_mb(), "MB", reach=None if bench.quick else 1500))
    check(points, problems)
    if bench.wants(FURTHER, *AGAINST):
        beside(bench, problems, value)


def table(batch: ProblemBatch, by: Scale) -> object:
    """p_tau of every model under the criterion, with the references scaled."""
    return batch.programs.rates(batch.evaluate(CRITERION, by).status(CRITERION))


def beside(bench: Bench, problems: list[ProblemMeasurements], value: float) -> None:
    """A further criterion beside its three baselines."""
    for name, reach in AGAINST.items():
        took = BASELINES[name](problems, Scale(1.1, MS))
        bench.add(row(f"{FURTHER}: {name}", value, "s", baseline=took))
        bench.add(row(f"{FURTHER}: times {name}", took / value, "times", reach=reach))


AXES = Axes(
    taus=tuple(range(10, 101, 10)),
    timeouts_ns=tuple(ms * MS for ms in (100, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 10_000)),
    alphas=(0.8, 0.9, 1.0, 1.1, 1.2),
    betas_ns=(0, 20 * MS),
)


def swept(bench: Bench, problems: list[ProblemMeasurements]) -> list[Point]:
    """The points of the sweep, and how long it takes."""
    start = time.perf_counter()
    points = sweep(problems, CRITERION, AXES)
    bench.add(row(SWEEP, time.perf_counter() - start, "s", reach=None if bench.quick else 30))
    return points


def check(points: list[Point], problems: list[ProblemMeasurements]) -> None:
    """Evaluates two points of the sweep again by themselves: every point must be the same."""
    draw = random.Random(0)  # noqa: S311  (which points are checked is no secret)
    for _ in range(2 if points else 0):
        by, timeout, tau = draw.choice(AXES.scales), draw.choice(AXES.timeouts_ns), draw.choice(AXES.taus)
        criterion = at(CRITERION, timeout, tau)
        pooled = [scaled(m, CRITERION, by) for m in problems]
        estimates = estimate([judge(m, criterion, hold=False) for m in pooled], pooled, 1)
        single = {e.model: [100 * part for part in (e.value, e.upper_bound, *(e.interval or ()))] for e in estimates}
        point = (by.alpha, by.beta_ns, timeout, tau)
        mine = [p for p in points if (p.alpha, p.beta_ns, p.timeout_ns, p.tau) == point]
        swept_figures = {p.model: [p.p_tau, p.at_most, *(p.interval or ())] for p in mine}
        if swept_figures != single:
            raise SystemExit(f"the sweep differs from its single replay at {point}")


ONCE = """
import sys
from pathlib import Path
from lapledger.workflows.malloc import keep_freed_memory
keep_freed_memory()
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import judge_snapshot, load
criterion = Criterion(tau="30")
snapshot = load(Questions(open_ledger(Path(sys.argv[1]))), clocks=frozenset([criterion.clock]))
for estimate in judge_snapshot(snapshot, criterion).estimates:
    print(estimate.model, estimate.value)
"""


def cold(bench: Bench, folder: Path) -> None:
    """A process from its start to the first table; the first run fills the system's caches and counts for nothing."""
    lap = [str(Path(sys.executable).with_name("lap")), "replay", "--tau", "30", "--ledger", str(folder)]
    for name, command in ((COLD, lap), (EXEC, [sys.executable, "-c", ONCE, str(folder)])):
        if bench.wants(name):
            value = best(lambda: subprocess.run(command, check=True, capture_output=True), 4)  # noqa: B023  (called at once)
            bench.add(row(name, value, "s", reach=None if bench.quick else 2))


def tenfold(bench: Bench, folder: Path, small: Path) -> None:
    """How many times longer ten times the data takes, from the ledger to the table, once all code is loaded."""
    short, long = (best(lambda: replayed(root), 3) for root in (small, folder))  # noqa: B023  (called at once)
    bench.add(row(TENFOLD, long / short, "x time", reach=11))


def rewarded(bench: Bench, folder: Path) -> None:
    """Rewards of every candidate, assigned as `lap reward` does and recomputed as `lap verify` does."""
    with closing(open_ledger(folder)) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-rewards", "bench", "0")

        def assigned() -> None:
            assign(ledger, producer, CRITERION, name="bench")
            drain(ledger, stream)
            seal(ledger)

        took = timed(assigned)
        with closing(Questions(ledger)) as questions:
            audits: list[tuple[int, list[str], list[str]]] = []
            again = timed(lambda: audits.append(verify_rewards(ledger, questions)))
    ((count, wrong, _),) = audits
    if wrong or not count:
        raise SystemExit(f"{count} rewards, of which {len(wrong)} differ when they are recomputed")
    bench.add(row(ASSIGN, count / took, "rewards/s"))
    bench.add(row(VERIFY, count / again, "rewards/s"))


def replayed(folder: Path) -> None:
    """One criterion over all problems of a ledger, as `lap replay` judges them."""
    clocks = frozenset([CRITERION.clock])
    with closing(open_ledger(folder)) as ledger, closing(Questions(ledger)) as questions:
        judge_snapshot(load(questions, clocks=clocks), CRITERION)


def large(bench: Bench, root: Path, timings: int) -> None:
    """Many more timings than a campaign of the paper has, in a process of their own."""
    size = Size(tests=240)  # a campaign names its programs in one event, which has room for about a million
    problems = max(timings // (size.tests * size.programs), 1)
    count = problems * size.tests * size.programs
    name = f"{count:,} {LARGE}"
    if not timings or not bench.wants(f"{name}: peak memory", f"{name}: time"):
        return
    took = timed(lambda: make(root, Size(problems=problems, tests=size.tests)))
    log(f"made {count:,} timings in {took:.0f} s")
    command = [sys.executable, __file__, "--replay", str(root)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    bench.add(row(f"{name}: time", answer["s"], "s"))
    bench.add(row(f"{name}: peak memory", answer["mb"], "MB", reach=8000))


def child(bench: Bench, folder: Path, options: list[str]) -> None:
    """The warm figures, from a process of their own."""
    command = [sys.executable, __file__, "--warm", str(folder), "--only", bench.only, *options]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    bench.rows += [Row(**made) for made in answer["rows"]]


def main() -> None:
    """Prints the figures, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few problems: done within 50 s, and no reach is told")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME", help="figures whose name has this in it")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the files lie meanwhile; on a disk")
    parser.add_argument(
        "--large", type=int, metavar="N", help="timings to replay at once (100 million; 0: none); not with --quick"
    )
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    bench = Bench(given.only, given.quick)
    keep_freed_memory()
    if given.replay:
        print(json.dumps({"s": timed(lambda: replayed(given.replay)), "mb": peak_mb()}))
        return
    if given.warm:
        warm(bench, given.warm)
        print(json.dumps({"rows": [asdict(made) for made in bench.rows]}))
        return
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="lap-bench-") as folder:
        measure(bench, Path(folder), given)
    print(printed(bench.rows, as_json=given.json))


def measure(bench: Bench, folder: Path, given: argparse.Namespace) -> None:
    """All figures, on ledgers that are made here."""
    size = Size(problems=6) if bench.quick else Size()
    full, tenth = folder / "full", folder / "tenth"
    if bench.wants(COLD, EXEC, FURTHER, TAU, SWEEP, MEMORY, TENFOLD):
        took = timed(lambda: make(full, size))
        log(f"made {size.timings:,} timings in {took:.0f} s, {size.candidates:,} of them of candidates")
        cold(bench, full)
    if bench.wants(FURTHER, TAU, SWEEP, MEMORY):
        child(bench, full, ["--quick"] if bench.quick else [])
    if bench.wants(TENFOLD) and not bench.quick:
        make(tenth, Size(problems=size.problems // 10))
        tenfold(bench, full, tenth)
    if bench.wants(ASSIGN, VERIFY):
        few = folder / "rewards"
        make(few, Size(problems=size.problems // (1 if bench.quick else 10)))
        rewarded(bench, few)
    if not bench.quick:
        large(bench, folder / "large", 100_000_000 if given.large is None else given.large)


if __name__ == "__main__":
    main()
