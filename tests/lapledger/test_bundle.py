"""A bundle proves a reward to whoever has Python, pyarrow and numpy, and shows every change."""

import functools
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.codec.canonical import rows_digest
from lapledger.ledger.codec.packing import packed
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import Record, decode
from lapledger.ledger.proof.bundles.reward_bundle import RewardDependencies, write_reward_bundle
from lapledger.ledger.proof.bundles.verifier import reward
from lapledger.ledger.proof.bundles.verifier.canonical import frame_digest, rows_bytes
from lapledger.ledger.store.open_ledger import open_ledger
from tests.consumers.bundle_edits import (
    ALONE,
    Alter,
    Files,
    about,
    edited,
    extra_part,
    files_of,
    later_cut,
    manifest,
    put,
    read,
    resealed,
    rows_of,
    swapped,
    value_of,
    written,
)
from tests.support.lap import lap, well
from tests.support.packages import PROGRAMS, make_package

REWARDS = "events/reward.assigned.v1.parquet"
SLOW = {**PROGRAMS, "accepted/slower.py": PROGRAMS["accepted/slower.py"].replace("3_000_000", "12_000_000")}
"""One that is slower than the others on the busiest machine."""
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with two campaigns and rewards, half of it sealed; the bundle of a reward, and a head from before."""
    home = tmp_path_factory.mktemp("bundle")
    well("ledger", "init", cwd=home)
    well("import", "icpc", make_package(home / "sums", SLOW, large=3), cwd=home)
    well("run", "--campaign", "main", "--repetitions", "2", cwd=home)
    (home / "early.txt").write_text(well("verify", "--print-head", cwd=home).out)
    well("seal", cwd=home)
    rewards = well("reward", "--criterion", "top-50", "--campaign", "main", "--json", cwd=home).json["rewards"]
    reward_id = next(row["reward_id"] for row in rewards if "slower" in row["program_id"])
    (home / "head.txt").write_text(well("verify", "--print-head", cwd=home).out)
    well("run", "--campaign", "second", cwd=home)
    done = well("trace", reward_id[:12], "--bundle", "reward.zip", cwd=home)
    assert "reward.zip: " in done.err
    (home / "reward.txt").write_text(reward_id)
    return home


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a bundle in an empty folder, in isolated mode, with the standard library, numpy and pyarrow alone."""
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    packages = str(Path(pa.__file__).parents[1])

    def run(bundle: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "-c", ALONE, packages, str(bundle), *options]
        return subprocess.run(command, cwd=empty, env={}, capture_output=True, text=True, check=False)

    return run


Check = Callable[..., subprocess.CompletedProcess[str]]


def test_a_bundle_proves_a_reward_without_a_ledger(home: Path, check: Check) -> None:
    """By itself, against the head of when it was written, and against one that was kept before the ledger grew."""
    stated = json.loads(files_of(home / "reward.zip")["bundle.json"])
    kept = (home / "head.txt").read_text().strip()
    assert stated["head"] != kept
    for options in ((), ("--head", stated["head"]), ("--head", kept)):
        done = check(home / "reward.zip", *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("proven: reward -1 of sums.")
        assert done.stdout.endswith(f"{'given head' if options else 'head of the bundle'}\n")
    done = lap("export", "check", home / "reward.zip", "--head", kept)  # the code of the release gives the same
    assert (done.code, done.out) == (0, check(home / "reward.zip", "--head", kept).stdout)
    values = well("export", "check", home / "reward.zip", "--head", kept, "--json").json
    assert values == json.loads(check(home / "reward.zip", "--head", kept, "--json").stdout)
    assert (values["wrong"], values["proven"], values["head"]) == ([], True, kept)
    assert values["checked"].startswith("reward -1 of sums.")


def test_it_holds_what_the_reward_depends_on(home: Path) -> None:
    """Frames of every type behind it, sources, inputs and answers, its evidence in words, and the trace."""
    files = files_of(home / "reward.zip")
    stated = json.loads(files["bundle.json"])
    assert stated["reward"] == (home / "reward.txt").read_text()
    kinds = set(read(files, "frames.parquet")["type"].to_pylist())
    assert kinds == {
        *("reward.assigned", "criterion.declared", "campaign.opened", "worker.started", "problem.added", "test.added"),
        *("program.added", "execution.finished", "timing.measured"),
    }
    executions = [cell for program in stated["evidence"]["programs"] for cell in program[2:]]
    tests, programs = stated["evidence"]["tests"], stated["evidence"]["programs"]
    assert len(executions) == len(tests) * len(programs)
    blobs = {name.removeprefix("blobs/") for name in files if name.startswith("blobs/")}
    sources = {source for _, source, *_ in programs}
    assert sources < blobs
    assert b"3\n" in (files[f"blobs/{digest}"] for digest in blobs - sources)  # the sample's answer
    assert json.loads(files["trace.json"])["reward"]["reward_id"] == stated["reward"]
    assert sum(name.startswith("chains/") for name in files) == 13


def test_a_bundle_has_the_same_bytes_again(home: Path, tmp_path: Path) -> None:
    """It holds no time; and a failed one leaves no file."""
    shutil.copytree(home / ".lap", tmp_path / ".lap")
    reward_id = (home / "reward.txt").read_text()
    well("trace", reward_id, "--bundle", "again.zip", cwd=tmp_path)
    assert (tmp_path / "again.zip").read_bytes() == (home / "reward.zip").read_bytes()
    for blob in (tmp_path / ".lap" / "blobs").glob("??/*"):
        blob.unlink()
    done = lap("trace", reward_id, "--bundle", "none.zip", cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "is missing" in done.err
    assert not (tmp_path / "none.zip").exists()


def test_every_altered_part_is_found(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of file with one value altered, and lost, though every digest matches; another head; and no bundle."""
    files = files_of(home / "reward.zip")
    choice = Random("bundle")  # noqa: S311  (nothing secret)
    for kind in ("events/*.parquet", "frames.parquet", "chains/*.txt", "blobs/*", "bundle.json", "trace.json"):
        names = sorted(name for name in files if Path(name).match(kind) and files[name])
        for name in choice.sample(names, min(3, len(names))):
            for changed in ({**files, name: altered(files[name], choice, kind)}, without(files, name)):
                bundle = written(tmp_path / "altered.zip", resealed(changed) if "bundle.json" in changed else changed)
                assert reward.main([], str(bundle)) == 1, name
                assert capsys.readouterr().out.startswith("WRONG: ")
    head = json.loads(files["bundle.json"])["head"]
    for second in ("0" * 64 + head[64:], head.replace("@control=", "@control=9")):
        assert reward.main(["--head", second], str(home / "reward.zip")) == 1
    (tmp_path / "none.zip").write_bytes(b"PK")
    assert reward.main([], str(tmp_path / "none.zip")) == 1
    assert reward.main([], str(tmp_path / "missing.zip")) == 1


def test_every_byte_of_a_part_is_covered(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One flipped byte of any part is reported by its name, also of the program."""
    files = files_of(home / "reward.zip")
    choice = Random("byte")  # noqa: S311  (nothing secret)
    for name in choice.sample(sorted(name for name in files if name != "bundle.json" and files[name]), 12):
        at = choice.randrange(len(files[name]))
        flipped = files[name][:at] + bytes([files[name][at] ^ 1]) + files[name][at + 1 :]
        assert reward.main([], str(written(tmp_path / "flipped.zip", {**files, name: flipped}))) == 1
        out = capsys.readouterr().out
        assert f"{name}: its bytes do not match bundle.json" in out or "cannot be read" in out


def test_a_bundle_without_evidence_is_not_written(home: Path, tmp_path: Path) -> None:
    """It would prove nothing: the release that assigned the reward can recompute its evidence."""
    dependencies = RewardDependencies(reward="0" * 64, frames={}, blobs=(), evidence=None, trace={})
    with closing(open_ledger(home / ".lap")) as ledger, pytest.raises(UserError, match="release that assigned it"):
        write_reward_bundle(tmp_path / "none.zip", ledger, dependencies)
    assert not (tmp_path / "none.zip").exists()


def altered(data: bytes, choice: Random, kind: str) -> bytes:
    """The bytes with one changed where it matters: a value of a row, a digit of a digest."""
    if kind.endswith(".parquet"):
        rows = pq.read_table(io.BytesIO(data))
        types = (pa.string(), pa.int64(), pa.bool_())
        name = choice.choice([field.name for field in rows.schema if field.type in types and field.name != "_row"])
        value = rows[name][0].as_py()
        default = "x" if rows.schema.field(name).type == pa.string() else 7
        fresh = default if value is None else {str: "x", int: 7, bool: not value}[type(value)]
        files = {"rows": data}
        value_of("rows", name, lambda _value: fresh)(files)
        return files["rows"]
    marks = {"bundle.json": b'"head": "', "trace.json": b'"evidence_digest": "'}
    mark = marks.get(kind, b"")
    at = data.index(mark) + len(mark) if mark else choice.randrange(len(data) - 1)
    return data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :]


def without(files: Files, *names: str) -> Files:
    """The files of a bundle but for some."""
    return {name: data for name, data in files.items() if name not in names}


def without_events(kind: str) -> Alter:
    """Takes all events of a type out of a bundle."""

    def alter(files: Files) -> None:
        for name in [name for name in files if name.startswith(f"events/{kind}.")]:
            del files[name]

    return alter


def without_blobs(files: Files) -> None:
    """Takes all blobs out of a bundle."""
    for name in [name for name in files if name.startswith("blobs/")]:
        del files[name]


def without_evidence(files: Files) -> None:
    """Leaves only the frames, and another value."""
    about(evidence={})(files)
    edited("trace.json", lambda trace: trace["reward"].update(value=1.0))(files)
    without_blobs(files)


def swap_gates(files: Files) -> None:
    """Changes the names of two columns, which no frame's digest covers, and what the trace says of them."""
    rows_of(REWARDS, swapped("c", "g"))(files)
    edited("trace.json", lambda trace: trace["reward"].update(c=trace["reward"]["g"], g=trace["reward"]["c"]))(files)


def retyped(files: Files) -> None:
    """Stores the reward's value in another type."""

    def change(rows: pa.Table) -> pa.Table:
        position = rows.schema.get_field_index("value")
        return rows.set_column(position, "value", rows["value"].cast(pa.float32()))

    rows_of(REWARDS, change)(files)


def forged(files: Files) -> None:
    """Puts another reward behind the end of a chain, beyond the head, under an admission that ends the list."""
    reward_id = json.loads(files["bundle.json"])["reward"]
    rows = read(files, REWARDS)
    number = rows["_frame"].to_pylist()[rows["reward_id"].to_pylist().index(reward_id)]
    values = [-value if frame == number else value for frame, value in zip(*columns(rows), strict=True)]
    position = rows.schema.get_field_index("value")
    rows = rows.set_column(position, "value", pa.array(values, pa.float64()))
    put(files, REWARDS, rows)
    frames = read(files, "frames.parquet").to_pylist()
    frame = frames[number]
    headers = {"ce_type": frame["type"], "ce_lapversion": str(frame["version"]), "ce_subject": frame["key"]}
    headers |= {"ce_lapepoch": frame["epoch"], "ce_lapsequence": str(frame["sequence"])}
    headers |= {"ce_lapprevious": frame["previous"]}
    of_frame = rows.filter(pc.equal(rows["_frame"], number)).drop_columns(["_frame", "_row"]).combine_chunks()
    frame |= {"digest": frame_digest(headers, of_frame.to_batches()[0]), "admission": -1}
    put(files, "frames.parquet", pa.Table.from_pylist(frames, schema=read(files, "frames.parquet").schema))
    files[f"chains/{frame['stream']}.{frame['partition']}.txt"] += f"{frame['digest']}\n{'0' * 64}\n".encode()
    edited("trace.json", lambda trace: trace["reward"].update(value=-trace["reward"]["value"]))(files)


def columns(rows: pa.Table) -> tuple[list[int], list[float]]:
    return rows["_frame"].to_pylist(), rows["value"].to_pylist()


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (without_evidence, "its reward is not what its event says"),
        (about(evidence={}), "does not give the digest"),
        (about(evidence=None), "bundle.json: evidence is missing"),
        (about(reward=None), "bundle.json: reward is missing"),
        (about(format=2), "bundle.json: its format is 2"),
        (about(ledger="another"), "does not follow from the chains"),
        (edited("bundle.json", manifest), "does not follow from the chains"),
        (edited("bundle.json", later_cut), "bundle.json: its cut"),
        (about(judge="nobody"), "bundle.json: judge is not known here"),
        (extra_part("notes.txt"), "notes.txt: not a part that a bundle has"),
        (extra_part("lapbundle/evil.py"), "lapbundle/evil.py: not a part that a bundle has"),
        (extra_part(f"blobs/{hashlib.sha256(b'{}').hexdigest()}"), "no event in the bundle names it"),
        (edited("bundle.json", lambda stated: stated["evidence"]["programs"].pop(0)), "does not give the digest"),
        (edited("bundle.json", lambda stated: stated["evidence"]["programs"][0].pop()), "does not give the digest"),
        (edited("bundle.json", lambda stated: stated["evidence"]["tests"].pop()), "does not give the digest"),
        (about(reward="0" * 64), "its reward is not"),
        (edited("trace.json", lambda trace: trace["reward"].update(value=1.0)), "its reward is not"),
        (edited("trace.json", lambda trace: trace["criterion"].update(canonical="{}")), "its criterion is not"),
        (edited("trace.json", lambda trace: trace["program"].update(model="model")), "its program is not"),
        (edited("trace.json", lambda trace: trace.update(calibration={"a": 1.0})), "its calibration is not"),
        (without_blobs, "it is missing, and an event names it"),
        (without_events("reward.assigned"), "its reward is not"),
        (without_events("criterion.declared"), "its criterion is not"),
        (without_events("program.added"), "a test or a program is not"),
        (without_events("test.added"), "a test or a program is not"),
        (without_events("execution.finished"), "its outcome or its timings"),
        (without_events("timing.measured"), "its outcome or its timings"),
        (swap_gates, "its columns are not those of reward.assigned"),
        (retyped, "its columns are not those of reward.assigned"),
        (forged, "the chain has another digest at its position"),
    ],
)
def test_nothing_in_a_bundle_is_believed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], alter: Alter, message: str
) -> None:
    """Whatever else was altered to fit, against the head that the ledger had."""
    files = files_of(home / "reward.zip")
    head = json.loads(files["bundle.json"])["head"]
    alter(files)
    assert reward.main(["--head", head], str(written(tmp_path / "altered.zip", resealed(files)))) == 1
    assert re.search(rf"^WRONG: .*{re.escape(message)}", capsys.readouterr().out, re.MULTILINE)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value of a JSON document that is neither a list nor an object, null excluded."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    elif value is not None:
        yield path


def test_every_value_of_the_trace_is_proven(home: Path) -> None:
    """Each leaf of trace.json altered by itself is found: nothing in it is only for reading."""
    bundle = reward.RewardBundle(str(home / "reward.zip"))
    assert list(bundle.check_trace()) == []
    paths = list(leaves(bundle.trace))
    assert len(paths) == 25
    for path in paths:
        altered = json.loads(json.dumps(bundle.trace))
        *parents, last = path
        holder = functools.reduce(lambda part, key: part[key], parents, altered)
        value = holder[last]
        holder[last] = (not value) if isinstance(value, bool) else f"{value}x" if isinstance(value, str) else value + 1
        tampered = reward.RewardBundle(str(home / "reward.zip"))
        tampered.trace = altered
        assert list(tampered.check_trace()), path
    more = reward.RewardBundle(str(home / "reward.zip"))
    more.trace = {**bundle.trace, "tests": [{"duration_ns": 1}]}
    assert list(more.check_trace()) == ["trace.json: its parts are not reward, criterion, calibration, program"]


def test_a_frame_admitted_after_the_head_is_reported(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A head that is older than the reward proves other facts, not this one."""
    head = (home / "early.txt").read_text().strip()
    assert reward.main(["--head", head], str(home / "reward.zip")) == 1
    assert "it was admitted after the head" in capsys.readouterr().out


def test_every_blob_is_needed(home: Path, tmp_path: Path) -> None:
    """A bundle holds none that no event of the evidence names, and lacks none."""
    files = files_of(home / "reward.zip")
    for name in [name for name in files if name.startswith("blobs/")]:
        lost = written(tmp_path / "lost.zip", resealed(without(files, name)))
        assert reward.main([], str(lost)) == 1


@pytest.mark.parametrize(("name", "version"), sorted(EVENTS))
def test_the_verifier_gives_the_digest_of_every_golden_sample(name: str, version: int) -> None:
    """Its canonical form is that of the ledger, for every event type ever written."""
    path = GOLDEN / f"{name}.v{version}.arrow"
    headers = json.loads(path.with_suffix(".json").read_text())
    batch = pa.ipc.open_stream(path.read_bytes()).read_next_batch()
    assert frame_digest(headers, batch) == headers["ce_lapdigest"]
    assert decode(Record(headers, path.read_bytes())).digest == headers["ce_lapdigest"]


_TEXTS = st.one_of(
    st.text(max_size=3),
    st.integers(0, 2**256 - 1).map(lambda n: f"{n:064x}"),
    st.uuids().map(str),
)


@given(st.data())
def test_the_verifier_encodes_columns_as_the_ledger_does(data: st.DataObject) -> None:
    """Texts, digests and UUIDs, few or many, with and without nulls; numbers of any width; flags, floats and lists."""
    rows = data.draw(st.sampled_from([1, 63, 64, 65, 130]))
    kind = data.draw(st.sampled_from([pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())]))
    width = data.draw(st.sampled_from([6, 14, 30, 63]))
    value = {
        pa.string(): data.draw(st.sampled_from([st.text(max_size=3), st.uuids().map(str), _TEXTS])),
        pa.int64(): st.integers(-(2**width), 2**width - 1),
        pa.float64(): st.floats(),
        pa.bool_(): st.booleans(),
        pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=3),
    }[kind]
    values = data.draw(st.lists(value, min_size=1, max_size=70))
    if data.draw(st.booleans()):
        values = [None, *values]
    order = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, len(values), rows)
    batch = pa.RecordBatch.from_arrays([pa.array([values[n] for n in order], kind)], names=["c"])
    encoded = rows_bytes(batch.columns, rows)
    assert hashlib.sha256(encoded).hexdigest() == rows_digest(batch)
    if not pa.types.is_list(kind):
        assert rows_bytes(packed(batch).columns, rows) == encoded
