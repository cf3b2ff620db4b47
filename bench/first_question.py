"""The first named question of a new process, to a ledger of whole attempts, and what its parts take alone."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import duckdb
from figures import log, timed

from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger

QUESTION = """
import sys, time
from pathlib import Path
from lapledger.ledger.questions.queries import DURATIONS, Questions
from lapledger.ledger.store.open_ledger import open_ledger
start = time.perf_counter()
rows = len(Questions(open_ledger(Path(sys.argv[1]))).query(DURATIONS))
print(rows, time.perf_counter() - start)
"""
PLAIN = """
SELECT program_id, test_id, median(wall_ns)::BIGINT FROM read_parquet($files) WHERE NOT warmup
GROUP BY program_id, test_id
"""
"""The same question to the files alone: no cut, no tail, no rule on which attempt counts."""

PARTS = {
    "which attempts count, by work": "SELECT count(*) FROM execution WHERE accepted",
    "that, joined with timings by attempt": "SELECT count(*) FROM timing WHERE accepted AND NOT warmup",
    "timings grouped, without a join": (
        "SELECT program_id, test_id, median(wall_ns) FROM timing_measured WHERE NOT warmup GROUP BY ALL"
    ),
}


def first_answer(folder: Path) -> tuple[int, float, float]:
    """(rows of the answer, seconds from the end of the imports, seconds from exec) of a process that asks once."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", QUESTION, str(folder)], capture_output=True, text=True, check=True)
    rows, answer = done.stdout.split()
    return int(rows), float(answer), time.perf_counter() - start


def files_alone(folder: Path) -> tuple[int, float]:
    """(rows of the answer, seconds) of DuckDB on the Parquet files of the timings, without the ledger."""
    files = {"files": [str(path) for path in folder.glob("segments/timing.measured.v1/*.parquet")]}
    rows: list[int] = []
    took = timed(lambda: rows.append(duckdb.sql(PLAIN, params=files).to_arrow_table().num_rows))
    return rows[0], took


def where_the_time_goes(folder: Path) -> None:
    """Says what the parts of the question take alone: ids are words of 36 and 64 letters, which joins must compare."""
    with closing(open_ledger(folder)) as ledger:
        for name, sql in PARTS.items():
            with closing(Questions(ledger)) as questions:
                log(f"  {name:42} {timed(lambda: questions.query(sql)):10.3f} s")  # noqa: B023  (called at once)
