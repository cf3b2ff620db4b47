"""A bundle answers for every table, named replays and interfaces too, or says for how many it does not."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.lap import lap, sql, well
from tests.support.packages import ACCEPTED, SLOWER, make_package
from tests.support.screen_ledgers import (
    MODELS,
    REFERENCES,
    STEPS,
    Program,
    append,
    make_campaign,
    program_id,
    run_facts,
)

SOLVE = "def total(numbers):\n    return sum(numbers)\n\nprint(total(list(map(int, open(0).read().split()))))\n"
PROGRAMS = {
    "accepted/quick.py": SOLVE,
    "accepted/slower.py": "for _ in range(2_000_000): pass\n" + SOLVE,
    "wrong_answer/stripped.py": ACCEPTED,  # right, but no reference, and without the function that all of them define
    "wrong_answer/kept.py": SLOWER.replace("print(sum", "def total(numbers): ...\nprint(sum"),
}
INTERFACE = '{"interface":"required"}'


def parts(bundle: Path) -> dict[str, bytes]:
    """The files in a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(bundle: Path, path: Path, changes: Mapping[str, bytes | None]) -> Path:
    """The bundle with some parts changed or gone, and bundle.json's digests made to match, as one who cheats would."""
    files = {name: data for name, data in (parts(bundle) | dict(changes)).items() if data is not None}
    about = json.loads(files["bundle.json"])
    about["parts"] = {n: hashlib.sha256(data).hexdigest() for n, data in files.items() if n != "bundle.json"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (files | {"bundle.json": json.dumps(about).encode()}).items():
            archive.writestr(name, data)
    return path


def checked(bundle: Path, *args: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of `python BUNDLE`, in an interpreter that does not see this checkout."""
    packages = str(Path(pa.__file__).parents[1])
    script = "import runpy, sys; sys.path.append(sys.argv.pop(1)); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"
    script = script.replace("runpy.run_path(sys.argv[0])", "runpy.run_path(sys.argv[0], run_name='__main__')")
    command = [sys.executable, "-I", "-S", "-c", script, packages, str(bundle), "--json", *args]
    done = subprocess.run(command, cwd=bundle.parent, env={}, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that was run, with a table under a criterion that looks at interfaces and one that does not."""
    home = tmp_path_factory.mktemp("looked")
    well("ledger", "init", cwd=home)
    well("import", "icpc", make_package(home / "sums", PROGRAMS, small=1, large=1), cwd=home)
    well("run", "--campaign", "main", cwd=home)
    well("replay", "--tau", "100", "--k", "2", "--name", "plain", "--reason", "before", "--store", cwd=home)
    (home / "iface.toml").write_text('interface = "required"\n')
    well("replay", "--criterion", "iface.toml", "--name", "kept", "--reason", "with it", "--store", cwd=home)
    well("export", "bundle", "b.zip", "--criterion", "iface.toml", cwd=home)
    return home


def test_interfaces_are_looked_at_without_a_ledger(looked: Path) -> None:
    """By hand: of the two right programs that are no references one defines `total` as all references do."""
    code, actual = checked(looked / "b.zip", "--criterion", INTERFACE)
    assert (code, actual["wrong"], actual["unreplayed"], actual["proven"]) == (0, [], 0, True)
    verdicts = {row["program"].split("/")[-1].split(".")[0]: row["status"] for row in actual["table"]["verdicts"]}
    assert verdicts == {"quick": "pass", "slower": "pass", "stripped": "fail", "kept": "pass"}
    sources = {source for (source,) in sql(looked / ".lap", "SELECT source_blob FROM program")}
    assert sources <= {name.removeprefix("blobs/") for name in parts(looked / "b.zip")}


def test_named_replays_come_out_again(looked: Path) -> None:
    """Each with its k, and the one program that the interface turned: `stripped`, from a pass to a fail."""
    code, actual = checked(looked / "b.zip")
    names = [line.rsplit(" (", 1)[0] for line in actual["lines"]]
    assert code == 0
    assert {"replayed: replay plain, k = 2", "replayed: replay kept, k = 1"} <= set(names)
    assert sql(looked / ".lap", "SELECT name, flipped FROM replay_completed ORDER BY _admission") == [
        ["plain", None],
        ["kept", 1],
    ]


def test_less_than_all_has_a_text_and_a_code_of_its_own(looked: Path, tmp_path: Path) -> None:
    """Without the sources two answers cannot be replayed: what is there is proven, and that is all that is claimed."""
    gone = {
        name: None for name, data in parts(looked / "b.zip").items() if name.startswith("blobs/") and b"int" in data
    }
    bundle = changed(looked / "b.zip", tmp_path / "gone.zip", gone)
    code, actual = checked(bundle)
    assert (code, actual["wrong"], actual["unreplayed"]) == (3, [], 2)
    done = lap("export", "check", bundle)
    assert done.code == 3
    assert done.out.splitlines()[-1] == f"proven; 2 of {actual['tables']} tables not replayed"
    assert "needs sources, which this bundle does not hold" in done.out
    code, actual = checked(bundle, "--no-proof")
    assert (code, actual["proven"]) == (3, False)


def test_a_field_that_is_not_known_is_not_replayed(looked: Path, tmp_path: Path) -> None:
    """A table of a later release, with its hash: proven, one table not replayed, exit code 3."""
    tables = json.loads(parts(looked / "b.zip")["tables.json"])
    canonical = '{"colour":"red"}'
    later = {
        **tables[0],
        "name": canonical,
        "canonical": canonical,
        "hash": hashlib.sha256(canonical.encode()).hexdigest(),
    }
    args = {"tables.json": json.dumps([*tables, later]).encode()}
    code, actual = checked(changed(looked / "b.zip", tmp_path / "later.zip", args))
    assert (code, actual["wrong"], actual["unreplayed"]) == (3, [], 1)
    assert any(line.startswith(f"not replayed: {canonical}: the field 'colour'") for line in actual["lines"])


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A replay stored while `halfway` had no result on a test, one stored when it had, and the bundle of both."""
    home = tmp_path_factory.mktemp("grown")
    make_campaign(home / ".lap", [*REFERENCES, *MODELS])
    args = ("--criterion", "top-50", "--k", "2", "--store", "--reason", "to see", "--name")
    well("replay", *args, "early", cwd=home)
    done = list(run_facts("nightly", STEPS, Program("halfway", (5, 5), model="model")))
    append(home / ".lap", [fact for fact in done if fact.test_id.endswith("t1")])
    well("replay", *args, "late", cwd=home)
    well("export", "bundle", "grown.zip", "--criterion", "top-50", cwd=home)
    return home


def test_a_replay_is_requested_again_at_its_own_cut(grown: Path) -> None:
    """pass@2 of three programs, by hand: one passed and one was open, then two passed; `halfway` is what flipped.

    1 - C(2, 2) / C(3, 2) = 2/3, and 1 - C(1, 2) / C(3, 2) = 1.
    """
    code, actual = checked(grown / "grown.zip", "--no-proof")
    assert (code, actual["wrong"], actual["unreplayed"], actual["tables"]) == (0, [], 0, 3)
    rows = sql(grown / ".lap", "SELECT name, result, flipped FROM replay_completed ORDER BY _admission")
    seen = {}
    for name, result, flipped in rows:
        (model,) = (item for item in json.loads(result)["estimates"] if item["model"] == "model")
        seen[name] = (model["k"], model["undecided"], model["value"], model["upper_bound"], flipped)
    assert seen == {
        "early": (2, 1, pytest.approx(2 / 3), pytest.approx(1.0), None),
        "late": (2, 0, pytest.approx(1.0), pytest.approx(1.0), 1),
    }


def test_a_changed_replay_is_found(grown: Path, tmp_path: Path) -> None:
    """Another figure, another count of flips, other verdicts, and verdicts that are gone."""
    files = parts(grown / "grown.zip")
    name = "events/replay.completed.v2.parquet"
    rows = pq.read_table(io.BytesIO(files[name]))
    result = json.loads(rows["result"][0].as_py())
    result["estimates"][1]["passed"] += 1
    blob = f"blobs/{rows['verdicts_blob'][1].as_py()}"
    halfway = program_id(STEPS, "halfway")
    cases = [
        ({name: with_value(rows, "result", 0, json.dumps(result))}, "replay early, k = 2: passed of model is 1"),
        (
            {name: with_value(rows, "flipped", 1, 7)},
            "replay late, k = 2: verdicts flipped: 1; its event says 7",
        ),
        ({name: with_value(rows, "cut", 0, rows["cut"][1].as_py())}, f"{halfway}: stored as undecided; the facts"),
        ({blob: files[blob].replace(b"1", b"0", 1)}, "its bytes do not match its name"),
        ({blob: None}, "a named replay names it, and it is not in the bundle"),
    ]
    for changes, label in cases:
        code, actual = checked(changed(grown / "grown.zip", tmp_path / "changed.zip", changes), "--no-proof")
        assert code == 1
        assert any(label in line for line in actual["wrong"]), (label, actual["wrong"])


def with_value(rows: pa.Table, column: str, row: int, value: object) -> bytes:
    """The file of these rows with one value changed."""
    values = rows[column].to_pylist()
    values[row] = value
    held = io.BytesIO()
    location = rows.schema.get_field_index(column)
    pq.write_table(
        rows.set_column(location, rows.schema.field(column), pa.array(values, rows.schema.types[location])), held
    )
    return held.getvalue()


def test_rows_come_in_groups(grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are held at once, the bundle says the same."""
    monkeypatch.setattr("lapledger.ledger.proof.bundles.frame_tables.ROWS", 5)
    well("export", "bundle", tmp_path / "small.zip", "--criterion", "top-50", cwd=grown)
    name = "events/timing.measured.v1.parquet"
    few, several = (parts(path)[name] for path in (tmp_path / "small.zip", grown / "grown.zip"))
    assert pq.ParquetFile(io.BytesIO(few)).num_row_groups > pq.ParquetFile(io.BytesIO(several)).num_row_groups == 1
    assert pq.read_table(io.BytesIO(few)).equals(pq.read_table(io.BytesIO(several)))
    assert checked(tmp_path / "small.zip", "--no-proof")[0] == 0
