"""Whatever is changed in a bundle is found and named, though every digest in bundle.json was made to match."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from lapledger.consumers.derive.reward_evidence import _EVENTS
from lapledger.consumers.derive.rewarder import declaration
from lapledger.consumers.exports import replayer
from lapledger.consumers.exports.bundle_contents import _WANTED
from lapledger.consumers.exports.replayer import cli, known
from lapledger.ledger.events import EVENTS
from lapledger.ledger.proof.bundles import verifier
from lapledger.ledger.proof.bundles.verifier.canonical import sha
from lapledger.ledger.proof.bundles.verifier.known import COLUMNS, MODULES
from lapledger.replay.criteria import Criterion, describe
from lapledger.replay.loading import KERNEL
from tests.consumers.bundle_edits import (
    Alter,
    about,
    edited,
    extra_part,
    files_of,
    later_cut,
    manifest,
    no_tables,
    other_text,
    put,
    read,
    resealed,
    rows_of,
    swapped,
    table,
    value_of,
    verdict,
    without_table,
    written,
)
from tests.support.lap import lap, well
from tests.support.packages import PROGRAMS, make_package
from tests.support.screen_ledgers import append

TIMINGS, TESTS = "events/timing.measured.v1.parquet", "events/test.added.v3.parquet"
UNASKED = '{"schema":1,"tau":"30"}'
"""The criterion that is asked and not declared: its canonical form is its name."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that was run, two criteria declared with rewards, one that asks for a map, and a named replay."""
    home = tmp_path_factory.mktemp("tampered")
    well("ledger", "init", cwd=home)
    well("import", "icpc", make_package(home / "sums", PROGRAMS, small=1, large=1), cwd=home)
    well("run", "--campaign", "main", "--repetitions", "2", cwd=home)
    for text in ("top-50", "raw-duration"):
        well("reward", "--criterion", text, "--campaign", "main", cwd=home)
    append(home / ".lap", [declaration(Criterion(calibration="affine"), "mapped")])
    well("replay", "--criterion", "top-50", "--name", "kept", "--reason", "before", "--store", cwd=home)
    well("seal", cwd=home)
    well("export", "bundle", "b.zip", "--campaign", "main", "--tau", "30", cwd=home)
    return home


CASES: Mapping[str, tuple[Alter, str]] = {
    "cut": (edited("bundle.json", later_cut), "bundle.json: its cut"),
    "no cut": (about(cut=None), "bundle.json: cut is missing"),
    "head": (about(head="0" * 64 + "@control=1"), "the head 0000"),
    "no head": (about(head=None), "bundle.json: head is missing"),
    "kernel": (about(kernel="0.0.1"), "bundle.json: its kernel is 0.0.1"),
    "no kernel": (about(kernel=None), "bundle.json: kernel is missing"),
    "format": (about(format=1), "bundle.json: its format is 1"),
    "no format": (about(format=None), "bundle.json: format is missing"),
    "ledger": (about(ledger="another"), "does not follow from the chains"),
    "manifests": (edited("bundle.json", manifest), "does not follow from the chains"),
    "campaign": (about(campaign="another"), "bundle.json: its campaign another"),
    "a word of its own": (about(judge="nobody"), "bundle.json: judge is not known here"),
    "no tables": (no_tables, "a criterion without a table"),
    "a table dropped": (without_table("top-50"), "a criterion without a table"),
    "a declared table dropped": (without_table("top-50", verdicts=True), "no table of the declared criterion top-50"),
    "a table twice": (edited("tables.json", lambda tables: tables.append(tables[0])), "two tables of criterion"),
    "a left-out one dropped": (without_table("mapped"), "no table of the declared criterion mapped"),
    "name": (table("top-50", name="evil"), "its name is not that of its criterion, top-50"),
    "an undeclared name": (table(UNASKED, name="evil"), "tables.json: evil: its name is not that of its criterion"),
    "missing": (table("top-50", missing=3), "missing, name, which are not those of a table"),
    "a count more": (
        edited("tables.json", lambda tables: tables[0]["estimates"][0].update(missing=1)),
        "missing of human is in its table, and nothing gives it",
    ),
    "a count": (
        edited("tables.json", lambda tables: tables[0]["estimates"][0].update(references_max=9)),
        "references_max of human is",
    ),
    "k": (table("top-50", k=2), "k of human is 2, and its table says 1"),
    "hash": (table("top-50", hash="0" * 64), "its criterion does not give its hash"),
    "calibration": (table("top-50", calibration="0" * 64), "the calibration 0000"),
    "form": (
        table(
            UNASKED,
            canonical='{"tau":"30"  }',
            name='{"tau":"30"  }',
            hash=hashlib.sha256(b'{"tau":"30"  }').hexdigest(),
        ),
        "not in canonical form",
    ),
    "broken tables": (lambda files: files.update({"tables.json": b"x" + files["tables.json"]}), "tables.json: Expect"),
    "broken verdicts": (lambda files: files.update({"verdicts.parquet": b"PAR1"}), "verdicts.parquet: "),
    "criterion_hash": (verdict("criterion_hash", other_text), "a criterion without a table"),
    "problem_id": (verdict("problem_id", other_text), "its problem_id is"),
    "program_id": (verdict("program_id", other_text), "a verdict on no candidate of the campaign"),
    "model": (verdict("model", other_text), "its model is human, and verdicts.parquet says bbb"),
    "verdict": (verdict("verdict", {"pass": "fail", "fail": "pass", "undecided": "pass"}.get), "its verdict is"),
    "c": (verdict("c", lambda c: not c), "its c is"),
    "g": (verdict("g", lambda g: None if g else True), "its g is"),
    "q_lo": (verdict("q_lo", lambda q: q + 1), "its q_lo is"),
    "q_hi": (verdict("q_hi", lambda q: q + 1), "its q_hi is"),
    "q_den": (verdict("q_den", lambda q: 2 * q + 1), "its q_den is"),
    "references": (verdict("references", lambda n: n + 1), "its references is"),
    "a verdict twice": (
        rows_of("verdicts.parquet", lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])),
        "a program has more than one",
    ),
    "a verdict dropped": (rows_of("verdicts.parquet", lambda rows: rows.slice(1)), ": no verdict"),
    "a column of its own": (
        rows_of("verdicts.parquet", lambda rows: rows.append_column("why", rows["model"])),
        "its columns are not those of verdicts",
    ),
    "an unknown part": (extra_part("notes.txt"), "notes.txt: not a part that a bundle has"),
    "a module of its own": (extra_part("lapbundle/evil.py"), "lapbundle/evil.py: not a part that a bundle has"),
    "a text of nobody": (
        extra_part(f"blobs/{hashlib.sha256(b'{}').hexdigest()}"),
        "no event in the bundle names it",
    ),
    "an event of its own": (extra_part("events/evil.v1.parquet"), "events/evil.v1.parquet: not a part"),
    "columns that swap names": (rows_of(TESTS, swapped("correctness", "original")), "its columns are not those of"),
    "clocks that swap names": (rows_of(TIMINGS, swapped("wall_ns", "user_ns")), "its columns are not those of"),
    "places of rows": (value_of(TIMINGS, "_row", lambda n: n + 7), "not in the order of their frames"),
    "a frame twice": (
        rows_of("frames.parquet", lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])),
        "two frames have the same position",
    ),
    "a place from behind": (
        value_of("frames.parquet", "admission", lambda n: -1),
        "the chain has another digest at its position",
    ),
}


def test_an_honest_bundle_is_proven(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is changed below is the only thing wrong; the criterion that asks for a map is said to have no table."""
    assert cli.main([], str(home / "b.zip")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "proven and replayed"
    assert f"replayed: {UNASKED} (ae497ac1222b)" in lines
    assert any(line.startswith("no table: mapped: no calibration of this kind") for line in lines)


@pytest.mark.parametrize("case", CASES)
def test_what_was_changed_is_named(case: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and a line that says what is wrong."""
    alter, text = CASES[case]
    files = files_of(home / "b.zip")
    alter(files)
    assert cli.main([], str(written(tmp_path / "b.zip", resealed(files)))) == 1
    seen = capsys.readouterr()
    assert any(text in line for line in seen.out.splitlines() if line.startswith("WRONG: ")), seen.out
    assert seen.out.endswith("damaged\n")
    assert seen.err == ""


def test_a_flipped_byte_is_damage_and_no_wrong_text(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In tables.json, also where another criterion is asked; nothing was made to match."""
    files = files_of(home / "b.zip")
    files["tables.json"] = b"\xff" + files["tables.json"][1:]
    bundle = written(tmp_path / "b.zip", files)
    for args in ([], ["--tau", "50"], ["--tau", "50", "--no-proof"], ["--criterion", '{"colour":"red"}']):
        assert cli.main(args, str(bundle)) == 1
        seen = capsys.readouterr()
        assert (seen.err, "WRONG: the bundle cannot be read" in seen.out) == ("", True)
        assert seen.out.endswith("damaged\n")


def test_a_part_that_is_there_twice_is_reported(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers differ in which of two entries of one name they take."""
    shutil.copy(home / "b.zip", tmp_path / "b.zip")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(tmp_path / "b.zip", "a") as archive:
        archive.writestr("tables.json", files_of(home / "b.zip")["tables.json"])
    assert cli.main([], str(tmp_path / "b.zip")) == 1
    assert "WRONG: tables.json: it is in the bundle 2 times" in capsys.readouterr().out


def test_no_table_is_stated_and_is_not_all(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables, verdicts and declarations gone alike: what is there may hold, and nothing was replayed."""
    files = files_of(home / "b.zip")
    files["tables.json"] = b"[]"
    put(files, "verdicts.parquet", read(files, "verdicts.parquet").slice(0, 0))
    for name in ("events/criterion.declared.v1.parquet", "events/replay.completed.v2.parquet"):
        del files[name]
    bundle = written(tmp_path / "b.zip", resealed(files))
    assert cli.main(["--no-proof"], str(bundle)) == 3
    assert capsys.readouterr().out == "not proven; no table in the bundle\n"
    assert lap("export", "check", bundle).code == 1  # the frames of the declarations are named


def test_what_was_left_out_and_can_be_answered_is_not_replayed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that was made a criterion without answer: told, and not all was replayed."""
    files = files_of(home / "b.zip")
    without_table("top-50", verdicts=True)(files)
    item = next(t for t in json.loads(files_of(home / "b.zip")["tables.json"]) if t["name"] == "top-50")
    left = {name: item[name] for name in ("name", "hash", "canonical")} | {"excluded": "no reason"}
    edited("tables.json", lambda tables: tables.append(left))(files)
    assert cli.main([], str(written(tmp_path / "b.zip", resealed(files)))) == 3
    seen = capsys.readouterr().out
    assert "not replayed: top-50: excluded when the bundle was written: no reason" in seen


def test_what_the_verifier_knows_is_what_the_release_has() -> None:
    """Kernel, fields and defaults, the columns of every event that a bundle takes, and the modules that travel."""
    assert known.KERNEL == KERNEL
    assert {field.name: field.default for field in describe()} == known.FIELDS
    taken = {table.replace("_", ".", 1) for table in (*_WANTED, *_EVENTS)}
    assert {
        f"{name}.v{version}": sha(name, *(f"{field.name} {field.type}" for field in declared.schema))
        for (name, version), declared in EVENTS.items()
        if name in taken
    } == COLUMNS
    for package, modules in ((replayer, known.MODULES), (verifier, MODULES)):
        assert {path.stem for path in Path(package.__file__ or "").parent.glob("*.py")} == {*modules}
