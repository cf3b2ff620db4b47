"""pyperf's files of three machines: every value is there, and the fits between machines are the published ones.

The files are third-party data beside the checkout, described in its README; the tests are skipped where they are not.
The README's fits are those of the mean of a benchmark's values, not of their median: with the median the leave-one-out
R squared of the first pair is 0.9930.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lapledger.ledger.errors import UserError
from lapledger.producers.importers import pyperf
from tests.producers.results_files import benchmark, imported, new_ledger, suite, write
from tests.support.lap import sql, well

TAIL = "python-f3909b8bc83675b7ab09-3.11.3-f3909b8.json"
FILES = {
    "linux": f"bm-20230404-linux-x86_64-{TAIL}",
    "fast": f"bm-20230404-pythonperf2-x86_64-{TAIL}",
    "windows": f"bm-20230404-pythonperf1-amd64-{TAIL}",
}


@pytest.fixture(scope="module")
def suites(real_data: Path) -> dict[str, dict[str, list[float]]]:
    """Machine -> benchmark -> its values in seconds, read without our reader."""
    result = {}
    for machine, name in FILES.items():
        benchmarks = json.loads((real_data / "pyperf" / name).read_text())["benchmarks"]
        result[machine] = {
            item["metadata"]["name"]: [value for run in item["runs"] for value in run.get("values", [])]
            for item in benchmarks
        }
    return result


@pytest.fixture(scope="module")
def ledger(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the three files as campaigns."""
    location = new_ledger(tmp_path_factory.mktemp("pyperf"))
    for machine, name in FILES.items():
        imported(location, "pyperf", real_data / "pyperf" / name, "--campaign", machine)
    return location


@pytest.mark.realdata
def test_every_value_is_there(ledger: Path, suites: dict[str, dict[str, list[float]]]) -> None:
    """By machine and benchmark, in order, to the nanosecond; warm-ups beside them, marked."""
    rows = sql(
        ledger,
        "SELECT t.campaign_id, b.slug, list(t.wall_ns ORDER BY t.repetition) FROM timing t"
        " JOIN problem b USING (problem_id) WHERE NOT t.warmup GROUP BY ALL",
    )
    due = {
        (machine, name): [round(value * 1e9) for value in values]
        for machine, benchmarks in suites.items()
        for name, values in benchmarks.items()
    }
    assert {(machine, name): values for machine, name, values in rows} == due
    assert sql(ledger, "SELECT count(*) > 2000 FROM timing WHERE warmup") == [[True]]
    assert sql(ledger, "SELECT count(DISTINCT host) FROM timing WHERE length(host) = 64") == [[3]]
    memory = "SELECT campaign_id, count(peak_memory_bytes) > 0 FROM timing GROUP BY 1 ORDER BY 1"
    assert sql(ledger, memory) == [["fast", True], ["linux", True], ["windows", False]]


def excluded(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """R squared of a least-squares line, each point predicted by the line through the others."""
    guesses = []
    for location in range(len(x)):
        rest = np.arange(len(x)) != location
        guesses.append(np.polyval(np.polyfit(x[rest], y[rest], 1), x[location]))
    return float(1 - ((y - guesses) ** 2).sum() / ((y - y.mean()) ** 2).sum())


DUE: dict[str, dict[str, float]] = {
    "fast": {"r2": 0.9935, "a": 1.053, "b_ms": -1.7},
    "windows": {"r2": 0.625},
}


@pytest.mark.realdata
@pytest.mark.parametrize("target", DUE)
def test_fits_between_machines_are_the_published_ones(
    ledger: Path, suites: dict[str, dict[str, list[float]]], target: str
) -> None:
    """Slope, intercept and leave-one-out R squared, as refitted here point by point; for Windows all are refused."""
    args = (
        "--from",
        "linux",
        "--to",
        target,
        "--set",
        "estimator=mean",
        "--kind",
        "all",
        "--ledger",
        ledger,
        "--json",
    )
    seen = well("calibrate", *args).json
    fits = {fit["kind"]: fit for fit in seen["tried"]}
    affine = fits["affine"]
    shared = sorted(set(suites["linux"]) & set(suites[target]))
    x, y = (np.array([np.mean(suites[machine][name]) for name in shared]) for machine in ("linux", target))
    slope, intercept = np.polyfit(x, y, 1)
    assert affine["pairs"] == affine["problems"] == len(shared)
    assert affine["a"] == pytest.approx(slope, rel=1e-6)
    assert affine["b_ns"] == pytest.approx(1e9 * intercept, rel=1e-4)
    assert affine["r2"] == pytest.approx(excluded(x, y), abs=1e-6)
    assert affine["r2"] == pytest.approx(DUE[target]["r2"], abs=0.0005)
    if target == "fast":
        assert affine["a"] == pytest.approx(DUE[target]["a"], abs=0.0005)
        assert affine["b_ns"] / 1e6 == pytest.approx(DUE[target]["b_ms"], abs=0.05)
        assert not seen["refused"]  # another kind helps; the affine one is worse than no map on short benchmarks
    else:
        assert seen["refused"]
        assert all(fit["refused"] for fit in fits.values())
    assert affine["refused"]
    assert affine["error_map"] > affine["error_none"]


def test_warm_ups_are_marked_and_memory_is_that_of_the_process(tmp_path: Path) -> None:
    """The calibrating run gives warm-ups alone; each process one, then its values, all with its own peak memory."""
    ledger = new_ledger(tmp_path)
    path = write(tmp_path / "suite.json", suite(benchmark("nbody", [0.1, 0.2], [0.3], description="Bodies")))
    (seen,) = imported(ledger, "pyperf", path)
    assert seen["campaign"].startswith("pyperf-machine-")
    assert seen["figures"] == {"benchmarks": 1, "repetitions": 3, "rounded by more than 1%": 0}
    columns = "repetition, warmup, wall_ns // 1000000, peak_memory_bytes"
    assert sql(ledger, f"SELECT {columns} FROM timing ORDER BY repetition") == [
        [0, True, 9000, None],
        [1, True, 8000, None],
        [2, True, 200, 1000],
        [3, False, 100, 1000],
        [4, False, 200, 1000],
        [5, True, 600, 2000],
        [6, False, 300, 2000],
    ]
    assert sql(ledger, "SELECT slug, name FROM problem") == [["nbody", "Bodies"]]
    assert sql(ledger, "SELECT finished_at FROM execution") == [["2026-01-02 10:00:00"]]
    assert sql(ledger, "SELECT tool_version, model, source_metadata FROM imported") == [
        ["2.5.0", "", json.dumps({"hostname": "machine", "perf_version": "2.5.0", "unit": "second"})]
    ]


def test_values_that_integer_nanoseconds_round_are_counted(tmp_path: Path) -> None:
    """1.8 and 0.41 ns lose 11% and everything, 60.4 ns loses 0.7%, and 7 ns nothing."""
    values = benchmark("attr", [1.8e-9, 0.41e-9, 60.4e-9, 7e-9])
    path = write(tmp_path / "suite.json", suite(values))
    done = well("import", "pyperf", path, "--ledger", new_ledger(tmp_path))
    assert "suite.json: 2 values lose more than 1% in whole nanoseconds" in done.err


def test_only_seconds_are_timings(tmp_path: Path) -> None:
    """A benchmark of bytes is left out and named; a file without any other is refused."""
    sized = benchmark("size", [5.0], unit="byte")
    ledger = new_ledger(tmp_path)
    (seen,) = imported(ledger, "pyperf", write(tmp_path / "a.json", suite(benchmark("nbody", [0.1]), sized)))
    assert seen["excluded"] == ["size: measured in byte, not in seconds"]
    assert sql(ledger, "SELECT excluded FROM imported") == [[["size: measured in byte, not in seconds"]]]
    cases: dict[str, Any] = {
        "holds no benchmark in seconds": suite(sized),
        "'nbody' appears twice": suite(benchmark("nbody", [0.1]), benchmark("nbody", [0.1])),
        "'nbody' has no value": suite(benchmark("nbody")),
        "'name' is missing": suite({"runs": []}),
    }
    for reason, value in cases.items():
        with pytest.raises(UserError, match=reason):
            pyperf.read(write(tmp_path / "b.json", value))
