"""A bundle of a campaign that was really run: Python with pyarrow and numpy alone proves it and replays its tables."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapledger.ledger.events import CalibrationFitted
from lapledger.replay.loading import KERNEL
from tests.consumers.bundle_edits import ALONE
from tests.support.lap import lap, sql, well
from tests.support.packages import PROGRAMS, make_package
from tests.support.screen_ledgers import MODELS, REFERENCES, append, make_campaign

CRITERIA = (
    "top-50",
    "per-test-top-50",
    "pre-slowest-50",
    "relative-p50",
    "ranked-worst-p80",
    "leaderboard",
    "raw-duration",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns over two problems, several criteria declared, half of it sealed; a head, and then a bundle."""
    home = tmp_path_factory.mktemp("bundled")
    well("ledger", "init", cwd=home)
    for name in ("sums", "totals"):
        well("import", "icpc", make_package(home / name, PROGRAMS, small=1, large=1), cwd=home)
    well("run", "--campaign", "main", "--repetitions", "2", cwd=home)
    for label in CRITERIA:
        well("reward", "--criterion", label, "--campaign", "main", cwd=home)
    (home / "head.txt").write_text(well("verify", "--print-head", cwd=home).out)
    well("seal", cwd=home)
    done = well("export", "bundle", "campaign.zip", "--campaign", "main", "--tau", "30", "--json", cwd=home).json
    assert done["tables"] == 1 + len(sql(home / ".lap", "SELECT * FROM criterion"))  # none where nothing was decided
    assert done["tables"] > 4
    (home / "digest.txt").write_text(done["digest"])
    return home


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def alone(tmp_path: Path) -> Run:
    """Runs a bundle in an empty folder in a fresh interpreter that has only the standard library, numpy and pyarrow."""
    packages = str(Path(pa.__file__).parents[1])

    def run(bundle: Path, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "-c", ALONE, packages, str(bundle), *args]
        return subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)

    return run


def parts(bundle: Path) -> dict[str, bytes]:
    """The files in a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_is_proven_and_every_table_comes_out_again(home: Path, alone: Run) -> None:
    """Against the head that was written down before the bundle was made, too."""
    for args in ((), ("--head", (home / "head.txt").read_text().strip())):
        done = alone(home / "campaign.zip", *args)
        assert (done.stderr, done.returncode) == ("", 0)
        lines = done.stdout.splitlines()
        assert lines[-1] == "proven and replayed"
        assert sum(line.startswith("replayed: ") for line in lines) == len(lines) - 1 > 4


@pytest.mark.parametrize("args", [("--tau", "50"), ("--criterion", "top-10"), ("--criterion", "timeout-0.5s")])
def test_another_criterion_gives_the_table_of_lap_replay(args: tuple[str, str], home: Path, alone: Run) -> None:
    """One that is not in the bundle: the same estimates and verdicts as `lap replay --json` at that cut."""
    about = json.loads(parts(home / "campaign.zip")["bundle.json"])
    seen = well("replay", *args, "--campaign", "main", "--at", about["cut"], "--json", cwd=home).json["criteria"][0]
    done = alone(home / "campaign.zip", "--no-proof", "--json", "--criterion", seen["canonical"])
    table = json.loads(done.stdout)["table"]
    assert table["cut"] == about["cut"]
    for ours, theirs in zip(table["estimates"], seen["estimates"], strict=True):
        for name, value in ours.items():
            floats = isinstance(value, float | list)
            assert value == (pytest.approx(theirs[name], rel=1e-9) if floats else theirs[name]), name
    result = {row["program"]: (row["status"], row["references"]) for row in table["verdicts"]}
    assert result == {row["program"]: (row["status"], row["references"]) for row in seen["verdicts"]}


def test_it_stands_for_one_digest(home: Path) -> None:
    """The word that the command printed is the SHA-256 of bundle.json, which names every other part's."""
    files = parts(home / "campaign.zip")
    assert hashlib.sha256(files["bundle.json"]).hexdigest() == (home / "digest.txt").read_text()
    seen = json.loads(files["bundle.json"])["parts"]
    assert seen.keys() == files.keys() - {"bundle.json"}


def test_nothing_in_it_names_a_location_of_this_machine(home: Path) -> None:
    """No text of any part, unpacked, holds the ledger's folder or the user's."""
    args = [str(home), str(Path.home()) + "/"]
    for name, data in parts(home / "campaign.zip").items():
        table = pq.read_table(io.BytesIO(data)).to_pylist() if name.endswith(".parquet") else data.decode()
        assert not [label for label in args if label in str(table)], name


def rewritten(bundle: Path, path: Path, changed: Mapping[str, bytes]) -> Path:
    """The bundle with some parts changed, and bundle.json's digests made to match, as one who cheats would."""
    files = parts(bundle) | dict(changed)
    about = json.loads(files["bundle.json"])
    if "bundle.json" not in changed:
        about["parts"] |= {name: hashlib.sha256(data).hexdigest() for name, data in changed.items()}
        files["bundle.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def with_value(data: bytes, column: str, row: int, value: object) -> bytes:
    """A Parquet file with one value changed."""
    table = pq.read_table(io.BytesIO(data))
    values = table[column].to_pylist()
    values[row] = value
    location = table.schema.get_field_index(column)
    held = io.BytesIO()
    pq.write_table(
        table.set_column(location, table.schema.field(location), pa.array(values, table.schema.field(location).type)),
        held,
    )
    return held.getvalue()


TIMINGS, ENDS = "events/timing.measured.v1.parquet", "events/execution.finished.v1.parquet"


@pytest.mark.parametrize(
    ("name", "column", "value", "label"),
    [
        (TIMINGS, "wall_ns", 1, "its rows do not give its digest"),
        (TIMINGS, "wall_ns", 1, "its timings do not match the digest in its end"),
        (ENDS, "outcome", "wrong_answer", "its rows do not give its digest"),
        ("verdicts.parquet", "verdict", "undecided", "its verdict is"),
        ("frames.parquet", "admission", 1, "the chain has another digest at its position"),
    ],
)
def test_a_changed_number_is_found(
    name: str, column: str, value: object, label: str, home: Path, tmp_path: Path, alone: Run
) -> None:
    """Though all digests of parts were made to match."""
    changed = with_value(parts(home / "campaign.zip")[name], column, 0, value)
    done = alone(rewritten(home / "campaign.zip", tmp_path / "changed.zip", {name: changed}))
    assert (done.returncode, done.stderr) == (1, "")
    assert label in done.stdout
    assert done.stdout.endswith("damaged\n")


def test_a_changed_table_criterion_chain_and_head_are_found(home: Path, tmp_path: Path, alone: Run) -> None:
    """An estimate, a criterion, a link of a chain, the head, and a byte of any other part."""
    bundle, files = home / "campaign.zip", parts(home / "campaign.zip")
    tables = json.loads(files["tables.json"])
    tables[0]["estimates"][0]["passed"] += 1
    changes: list[tuple[dict[str, bytes], str]] = [({"tables.json": json.dumps(tables).encode()}, "passed of human is")]
    tables = json.loads(files["tables.json"])
    tables[0]["canonical"] = tables[0]["canonical"].replace("30", "31")
    changes.append(({"tables.json": json.dumps(tables).encode()}, "its criterion does not give its hash"))
    chain = next(name for name, data in files.items() if name.startswith("chains/facts") and data)
    changes.append(({chain: b"0" * 64 + files[chain][64:]}, "the chain has another digest at its position"))
    about = json.loads(files["bundle.json"])
    about["head"] = "0" * 64 + about["head"][64:]
    changes.append(({"bundle.json": json.dumps(about).encode()}, "does not follow from the chains"))
    about = json.loads(files["bundle.json"])
    choice = Random("bundle")  # noqa: S311  (nothing secret)
    code = choice.choice([name for name in files if name.startswith("lapbundle/")])
    about["parts"][code] = "0" * 64
    changes.append(({"bundle.json": json.dumps(about).encode()}, f"{code}: its bytes do not match"))
    for changed, label in changes:
        done = alone(rewritten(bundle, tmp_path / "changed.zip", changed))
        assert (done.returncode, done.stderr) == (1, "")
        assert label in done.stdout


def test_the_code_of_a_release_checks_a_bundle_too(home: Path, tmp_path: Path) -> None:
    """Nothing in a bundle is believed, its own code neither: with forged code `lap` still finds the changed number."""
    head = (home / "head.txt").read_text().strip()
    done = lap("export", "check", home / "campaign.zip", "--head", head)
    assert (done.code, done.out.splitlines()[-1]) == (0, "proven and replayed")
    verdicts = with_value(parts(home / "campaign.zip")["verdicts.parquet"], "verdict", 0, "undecided")
    forged = {"verdicts.parquet": verdicts, "__main__.py": b"print('proven and replayed')\n"}
    done = lap("export", "check", rewritten(home / "campaign.zip", tmp_path / "forged.zip", forged))
    assert (done.code, "its verdict is" in done.out) == (1, True)


def test_what_it_cannot_answer_it_reports(home: Path, alone: Run) -> None:
    """A field of another release, sources, a map that is not there: one line, exit code 2."""
    for criterion, label in (
        ('{"colour":"red"}', "the field 'colour' is not known here"),
        ('{"interface":"required"}', "needs sources"),
        ('{"calibration":"affine"}', "no calibration"),
        ("{", "cannot be answered"),
    ):
        done = alone(home / "campaign.zip", "--no-proof", "--criterion", criterion)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert label in done.stderr
    assert alone(home / "campaign.zip", "--head", "0" * 64 + "@facts=9999.0.0.0").returncode == 1


def test_mapped_references_come_along(tmp_path: Path, alone: Run) -> None:
    """A fresh campaign that re-ran two of four references: the others' durations are mapped by the stored fit.

    fresh = 1.5 * stored + 1 ms: 30 and 40 ms become 46 and 61, so 25 ms lies behind two of four, q = 4/8 as by hand.
    """
    make_campaign(tmp_path / ".lap", REFERENCES, campaign="stored")
    make_campaign(tmp_path / ".lap", [*REFERENCES[:2], MODELS[0]], campaign="fresh")
    append(tmp_path / ".lap", [FIT])
    args = ("--campaign", "fresh", "--calibration", "affine", "--tau", "50", "--json")
    seen = well("replay", *args, cwd=tmp_path).json["criteria"][0]["verdicts"]
    well("export", "bundle", "mapped.zip", *args, cwd=tmp_path)
    done = alone(tmp_path / "mapped.zip", "--no-proof", "--criterion", '{"calibration":"affine","tau":"40"}')
    assert done.returncode == 2  # the fit is named by its id
    label = ("--criterion", '{"calibration":"affine","tau":"50"}', "--calibration", FIT.calibration_id)
    table = json.loads(alone(tmp_path / "mapped.zip", "--no-proof", "--json", *label).stdout)
    assert table["wrong"] == []
    middle = next(row for row in table["table"]["verdicts"] if "middle" in row["program"])
    assert (middle["q"], middle["references"], middle["status"]) == ("1/2", 4, "pass")
    assert [(row["program"], row["status"]) for row in table["table"]["verdicts"]] == [
        (row["program"], row["status"]) for row in seen
    ]


FIT = CalibrationFitted(
    calibration_id="c" * 64,
    kind="affine",
    source_campaign="stored",
    target_campaign="fresh",
    service="local",
    clock="wall",
    estimator="median",
    startup="keep",
    a=1.5,
    b_ns=1_000_000.0,
    pairs=4,
    problems=1,
    r2=None,
    error_map=None,
    error_none=None,
    points_map=None,
    points_none=None,
    spearman_before=None,
    spearman_after=None,
    refused="",
    evidence_digest="e" * 64,
    kernel=KERNEL,
    cut="control=1",
    power=1.0,
    low_ns=None,
    high_ns=None,
    moved=None,
    outside=None,
    r2_none=None,
)
