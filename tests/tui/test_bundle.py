"""A bundle proves a reward to whoever has Python and pyarrow, and shows every change."""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lap import lap, well
from packages import PROGRAMS, make_package

from ledger.codec.packing import packed
from ledger.digests import rows_digest
from ledger.events import EVENTS
from ledger.frames import Record, decode
from ledger.proof import bundle_verifier

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with two campaigns and rewards, half of it sealed; the bundle of a reward, and a head from before."""
    home = tmp_path_factory.mktemp("bundle")
    well("ledger", "init", cwd=home)
    well("corpus", "import", make_package(home / "sums", PROGRAMS, large=3), cwd=home)
    well("run", "--campaign", "main", "--repetitions", "2", cwd=home)
    well("ledger", "seal", cwd=home)
    rewards = well("reward", "--criterion", "top-50", "--campaign", "main", "--json", cwd=home).json["rewards"]
    reward = next(row["reward_id"] for row in rewards if "slower" in row["program_id"])
    (home / "head.txt").write_text(well("verify", "--head", cwd=home).out)
    well("run", "--campaign", "second", cwd=home)
    done = well("trace", reward[:12], "--bundle", "reward.zip", cwd=home)
    assert "reward.zip: " in done.err
    (home / "reward.txt").write_text(reward)
    return home


@pytest.fixture
def check(home: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the verifier of a bundle alone in an empty folder, in isolated mode, without lapledger on its path."""
    empty = tmp_path / "elsewhere"
    empty.mkdir()

    def run(bundle: Path, *words: str) -> subprocess.CompletedProcess[str]:
        with zipfile.ZipFile(home / "reward.zip") as archive:
            (empty / "verify.py").write_bytes(archive.read("verify.py"))
        blind = "import sys; sys.modules.update(dict.fromkeys(('ledger', 'consumers', 'replay', 'tui', 'numpy')));"
        script = f"{blind} sys.argv = sys.argv[1:]; exec(compile(open('verify.py').read(), 'verify.py', 'exec'))"
        command = [sys.executable, "-I", "-c", script, "verify.py", str(bundle), *words]
        return subprocess.run(command, cwd=empty, env={}, capture_output=True, text=True, check=False)

    return run


Check = Callable[..., subprocess.CompletedProcess[str]]


def parts(bundle: Path) -> dict[str, bytes]:
    """The files in a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, files: Mapping[str, bytes]) -> Path:
    """A bundle of these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_a_bundle_proves_a_reward_without_a_ledger(home: Path, check: Check) -> None:
    """By itself, against the head of when it was written, and against one that was kept before the ledger grew."""
    about = json.loads(parts(home / "reward.zip")["bundle.json"])
    kept = (home / "head.txt").read_text().strip()
    assert about["head"] != kept
    for words in ((), (about["head"],), (kept,)):
        done = check(home / "reward.zip", *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("proven: ")
        assert done.stdout.endswith(f"head {'given' if words else 'of the bundle'}\n")


def test_it_holds_what_the_reward_rests_on(home: Path) -> None:
    """Frames of every type behind it, sources, inputs and answers, its evidence in words, and the trace."""
    files = parts(home / "reward.zip")
    about = json.loads(files["bundle.json"])
    assert about["reward"] == (home / "reward.txt").read_text()
    kinds = {
        json.loads(data)["ce_type"]
        for name, data in files.items()
        if name.startswith("frames/") and name.endswith("json")
    }
    assert kinds == {
        *("reward.assigned", "criterion.declared", "campaign.opened", "worker.started", "problem.added", "test.added"),
        *("program.added", "execution.finished", "timing.measured"),
    }
    runs = [cell for program in about["evidence"]["programs"] for cell in program[2:]]
    assert about["attempts"] == [attempt for _, _, attempt, _ in runs]
    tests, programs = about["evidence"]["tests"], about["evidence"]["programs"]
    assert len(runs) == len(tests) * len(programs)
    blobs = {name.removeprefix("blobs/") for name in files if name.startswith("blobs/")}
    sources = {source for _, source, *_ in programs}
    assert sources < blobs
    assert b"3\n" in (files[f"blobs/{digest}"] for digest in blobs - sources)  # the sample's answer
    assert json.loads(files["trace.json"])["reward"]["reward_id"] == about["reward"]
    assert sum(name.startswith("chains/") for name in files) == 13


def test_a_bundle_has_the_same_bytes_again(home: Path, tmp_path: Path) -> None:
    """It holds no time; and a failed one leaves no file."""
    shutil.copytree(home / ".lap", tmp_path / ".lap")
    reward = (home / "reward.txt").read_text()
    well("trace", reward, "--bundle", "again.zip", cwd=tmp_path)
    assert (tmp_path / "again.zip").read_bytes() == (home / "reward.zip").read_bytes()
    for blob in (tmp_path / ".lap" / "blobs").glob("??/*"):
        blob.unlink()
    done = lap("trace", reward, "--bundle", "none.zip", cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "is missing" in done.err
    assert not (tmp_path / "none.zip").exists()


def test_every_altered_part_is_found(home: Path, tmp_path: Path, check: Check) -> None:
    """Each kind of file with one byte altered, and lost; another head; and what is no bundle."""
    files = parts(home / "reward.zip")
    choice = Random("bundle")  # noqa: S311  (nothing secret)
    kinds = ["frames/*.arrow", "frames/*.json", "chains/*.txt", "blobs/*", "bundle.json"]
    for kind in kinds:
        names = sorted(name for name in files if Path(name).match(kind) and files[name])
        for name in choice.sample(names, min(3, len(names))):
            for fresh in (altered(files[name], choice, kind), None):
                changed = {**files, name: fresh} if fresh is not None else {n: d for n, d in files.items() if n != name}
                if fresh is None and (kind == "blobs/*" or name.endswith((".arrow", "worker"))):
                    continue  # a part that is not there proves nothing, nor is it said to
                done = check(written(tmp_path / "altered.zip", changed))
                assert (done.returncode, done.stderr) == (1, ""), (name, fresh)
                assert "WRONG: " in done.stdout
    word = json.loads(files["bundle.json"])["head"]
    assert check(home / "reward.zip", "0" * 64 + word[64:]).returncode == 1
    assert check(home / "reward.zip", word.replace("@control=", "@control=9")).returncode == 1
    (tmp_path / "none.zip").write_bytes(b"PK")
    assert check(tmp_path / "none.zip").returncode == 1
    assert check(tmp_path / "missing.zip").returncode == 1


def altered(data: bytes, choice: Random, kind: str) -> bytes:
    """The bytes with one changed where it matters: a value of a frame, a digit of a digest."""
    if kind == "frames/*.arrow":
        batch = pa.ipc.open_stream(data).read_next_batch()
        index = choice.choice(
            [n for n, kind in enumerate(batch.schema.types) if kind in (pa.string(), pa.int64(), pa.bool_())]
        )
        values = batch.column(index).to_pylist()
        values[0] = {str: "x", int: 7, bool: not values[0], type(None): None}[type(values[0])]
        if values[0] is None:
            values[0] = "x" if batch.schema.types[index] == pa.string() else 7
        columns = [pa.array(values, c.type) if n == index else c for n, c in enumerate(batch.columns)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
        return sink.getvalue().to_pybytes()
    word = b'ce_lapprevious": "' if kind == "frames/*.json" else b'"head": "' if kind == "bundle.json" else b""
    at = data.index(word) + len(word) if word else choice.randrange(len(data) - 1)
    return data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :]


@pytest.mark.parametrize(("name", "version"), sorted(EVENTS))
def test_the_verifier_gives_the_digest_of_every_golden_sample(name: str, version: int) -> None:
    """Its canonical form is that of the ledger, for every event type ever written."""
    path = GOLDEN / f"{name}.v{version}.arrow"
    headers = json.loads(path.with_suffix(".json").read_text())
    batch = pa.ipc.open_stream(path.read_bytes()).read_next_batch()
    assert bundle_verifier.frame_digest(headers, batch) == headers["ce_lapdigest"]
    assert decode(Record(headers, path.read_bytes())).digest == headers["ce_lapdigest"]


_WORDS = st.one_of(
    st.text(max_size=3),
    st.integers(0, 2**256 - 1).map(lambda n: f"{n:064x}"),
    st.uuids().map(str),
)


@given(st.data())
def test_the_verifier_tells_columns_as_the_ledger_does(data: st.DataObject) -> None:
    """Words, digests and UUIDs, few or many, with and without nulls; numbers of any width; flags, floats and lists."""
    rows = data.draw(st.sampled_from([1, 63, 64, 65, 130]))
    kind = data.draw(st.sampled_from([pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())]))
    width = data.draw(st.sampled_from([6, 14, 30, 63]))
    value = {
        pa.string(): data.draw(st.sampled_from([st.text(max_size=3), st.uuids().map(str), _WORDS])),
        pa.int64(): st.integers(-(2**width), 2**width - 1),
        pa.float64(): st.floats(),
        pa.bool_(): st.booleans(),
        pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=3),
    }[kind]
    some = data.draw(st.lists(value, min_size=1, max_size=70))
    if data.draw(st.booleans()):
        some = [None, *some]
    order = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, len(some), rows)
    batch = pa.RecordBatch.from_arrays([pa.array([some[n] for n in order], kind)], names=["c"])
    told = bundle_verifier.rows_bytes(batch.columns, rows)
    assert bundle_verifier.hashlib.sha256(told).hexdigest() == rows_digest(batch)
    if not pa.types.is_list(kind):
        assert bundle_verifier.rows_bytes(packed(batch).columns, rows) == told
