"""A bundle proves a reward to whoever has Python and pyarrow, and shows every change."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.codec.canonical import rows_digest
from lapledger.ledger.codec.packing import packed
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import Record, decode
from lapledger.ledger.proof.bundles import bundle_verifier
from lapledger.ledger.proof.bundles.bundle import Rests, bundle
from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import lap, well
from tests.support.packages import PROGRAMS, make_package

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with two campaigns and rewards, half of it sealed; the bundle of a reward, and a head from before."""
    home = tmp_path_factory.mktemp("bundle")
    well("ledger", "init", cwd=home)
    well("import", "icpc", make_package(home / "sums", PROGRAMS, large=3), cwd=home)
    well("run", "--campaign", "main", "--repetitions", "2", cwd=home)
    well("seal", cwd=home)
    rewards = well("reward", "--criterion", "top-50", "--campaign", "main", "--json", cwd=home).json["rewards"]
    reward = next(row["reward_id"] for row in rewards if "slower" in row["program_id"])
    (home / "head.txt").write_text(well("verify", "--print-head", cwd=home).out)
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
        assert done.stdout.startswith("proven: reward -1 of sums.")
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


def test_every_altered_part_is_found(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of file with one byte altered, and lost; another head; and what is no bundle."""
    files = parts(home / "reward.zip")
    choice = Random("bundle")  # noqa: S311  (nothing secret)
    kinds = ["frames/*.arrow", "frames/*.json", "chains/*.txt", "blobs/*", "bundle.json", "trace.json"]
    for kind in kinds:
        names = sorted(name for name in files if Path(name).match(kind) and files[name])
        for name in choice.sample(names, min(3, len(names))):
            for fresh in (altered(files[name], choice, kind), None):
                changed = {**files, name: fresh} if fresh is not None else {n: d for n, d in files.items() if n != name}
                if fresh is None and name.endswith(".arrow"):
                    continue  # not each is needed
                assert bundle_verifier.main([str(written(tmp_path / "altered.zip", changed))]) == 1, (name, fresh)
                assert capsys.readouterr().out.startswith("WRONG: ")
    word = json.loads(files["bundle.json"])["head"]
    for other in ("0" * 64 + word[64:], word.replace("@control=", "@control=9")):
        assert bundle_verifier.main([str(home / "reward.zip"), other]) == 1
    (tmp_path / "none.zip").write_bytes(b"PK")
    assert bundle_verifier.main([str(tmp_path / "none.zip")]) == 1
    assert bundle_verifier.main([str(tmp_path / "missing.zip")]) == 1


def test_a_bundle_without_evidence_is_not_written(home: Path) -> None:
    """It would prove nothing: the release that assigned the reward can say what it is made of."""
    with closing(open_ledger(home / ".lap")) as ledger, pytest.raises(UserError, match="release that assigned it"):
        bundle(ledger, Rests(reward="0" * 64, places={}, blobs=(), evidence=None, trace={}))


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
        return ipc(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    words = {"frames/*.json": b'ce_lapprevious": "', "bundle.json": b'"head": "', "trace.json": b'"cut": "control='}
    word = words.get(kind, b"")
    at = data.index(word) + len(word) if word else choice.randrange(len(data) - 1)
    return data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :]


Alter = Callable[[dict[str, bytes]], None]


def edited(name: str, change: Callable[[Any], object]) -> Alter:
    """Changes a JSON file of a bundle."""

    def alter(files: dict[str, bytes]) -> None:
        held = json.loads(files[name])
        change(held)
        files[name] = json.dumps(held).encode()

    return alter


def without(kind: str) -> Alter:
    """Takes all frames of a type out of a bundle."""

    def alter(files: dict[str, bytes]) -> None:
        for name in [name for name in files if name.startswith("frames/") and name.endswith("json")]:
            if json.loads(files[name])["ce_type"] == kind:
                del files[name], files[f"{name.removesuffix('json')}arrow"]

    return alter


def without_blobs(files: dict[str, bytes]) -> None:
    """Takes all blobs out of a bundle."""
    for name in [name for name in files if name.startswith("blobs/")]:
        del files[name]


def everything(files: dict[str, bytes]) -> None:
    """Leaves only the frames, and another value."""
    edited("bundle.json", lambda about: about.update(evidence=None))(files)
    edited("trace.json", lambda trace: trace["reward"].update(value=1.0))(files)
    without_blobs(files)


def reward_frame(files: Mapping[str, bytes], reward: str) -> str:
    """The name of the frame that holds a reward."""
    frames = (name for name in files if name.endswith(".arrow"))
    return next(name for name in frames if reward in pa.ipc.open_stream(files[name]).read_all()[0].to_pylist())


def ipc(batch: pa.RecordBatch) -> bytes:
    """A batch as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def renamed(files: dict[str, bytes]) -> None:
    """Changes the names of two columns, which no frame's digest covers, and what the trace says of them."""
    about = json.loads(files["bundle.json"])
    name = reward_frame(files, about["reward"])
    batch = pa.ipc.open_stream(files[name]).read_next_batch()
    other = {"c": "g", "g": "c"}
    files[name] = ipc(batch.rename_columns([other.get(column, column) for column in batch.schema.names]))
    edited("trace.json", lambda trace: trace["reward"].update(c=trace["reward"]["g"], g=trace["reward"]["c"]))(files)


def retyped(files: dict[str, bytes]) -> None:
    """Reads the octets of the reward's value as numbers of four, of which a frame's buffers hold enough."""
    about = json.loads(files["bundle.json"])
    name = reward_frame(files, about["reward"])
    batch = pa.ipc.open_stream(files[name]).read_next_batch()
    place, row = batch.schema.get_field_index("value"), batch[0].to_pylist().index(about["reward"])
    value = pa.Array.from_buffers(pa.float32(), len(batch), batch["value"].buffers())
    columns = [value if number == place else column for number, column in enumerate(batch.columns)]
    files[name] = ipc(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    told = pa.ipc.open_stream(files[name]).read_next_batch()["value"][row].as_py()
    edited("trace.json", lambda trace: trace["reward"].update(value=told))(files)


def forged(files: dict[str, bytes]) -> None:
    """Puts a frame of its own behind the end of a chain, beyond the head, and calls it by a place within."""
    about = json.loads(files["bundle.json"])
    name = reward_frame(files, about["reward"])
    batch = pa.ipc.open_stream(files[name]).read_next_batch()
    rows = [{**row, "value": -row["value"]} for row in batch.to_pylist()]
    batch = pa.RecordBatch.from_pylist(rows, schema=EVENTS["reward.assigned", 1].schema)
    headers = json.loads(files[name.replace(".arrow", ".json")])
    headers["ce_lapdigest"] = bundle_verifier.frame_digest(headers, batch)
    stream, partition, _, _ = name.removeprefix("frames/").split(".")
    files[f"chains/{stream}.{partition}.txt"] += f"{headers['ce_lapdigest']}\n{'0' * 64}\n".encode()
    del files[name], files[name.replace(".arrow", ".json")]
    files |= {f"frames/{stream}.{partition}.-1.arrow": ipc(batch)}
    files |= {f"frames/{stream}.{partition}.-1.json": json.dumps(headers).encode()}
    edited("trace.json", lambda trace: trace["reward"].update(value=-trace["reward"]["value"]))(files)


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (everything, "its reward is not what its event says"),
        (edited("bundle.json", lambda about: about.update(evidence=None)), "does not give the digest"),
        (edited("bundle.json", lambda about: about.pop("evidence")), "KeyError: 'evidence'"),
        (edited("bundle.json", lambda about: about["evidence"]["programs"].pop(0)), "does not give the digest"),
        (edited("bundle.json", lambda about: about["evidence"]["programs"][0].pop()), "does not give the digest"),
        (edited("bundle.json", lambda about: about["evidence"]["tests"].pop()), "does not give the digest"),
        (edited("bundle.json", lambda about: about.update(reward="0" * 64)), "its reward is not"),
        (edited("trace.json", lambda trace: trace["reward"].update(value=1.0)), "its reward is not"),
        (edited("trace.json", lambda trace: trace["criterion"].update(canonical="{}")), "its criterion is not"),
        (edited("trace.json", lambda trace: trace["program"].update(model="model")), "its program is not"),
        (edited("trace.json", lambda trace: trace.update(calibration={"a": 1.0})), "its calibration is not"),
        (without_blobs, "is missing, an event names it"),
        (without("reward.assigned"), "its reward is not"),
        (without("criterion.declared"), "its criterion is not"),
        (without("program.added"), "a test or a program is not"),
        (without("test.added"), "a test or a program is not"),
        (without("execution.finished"), "its outcome or its timings"),
        (without("timing.measured"), "its outcome or its timings"),
        (renamed, "its columns are not those of reward.assigned"),
        (retyped, "the bundle cannot be read: TypeError"),
        (forged, "in the chain up to the head"),
    ],
)
def test_nothing_in_a_bundle_is_believed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], alter: Alter, told: str
) -> None:
    """Whatever else was altered to fit, against the head that the ledger had."""
    files = parts(home / "reward.zip")
    head = json.loads(files["bundle.json"])["head"]
    alter(files)
    assert bundle_verifier.main([str(written(tmp_path / "altered.zip", files)), head]) == 1
    assert re.search(rf"^WRONG: .*{re.escape(told)}", capsys.readouterr().out, re.MULTILINE)


def test_every_blob_is_needed(home: Path, tmp_path: Path) -> None:
    """A bundle holds none that no event of the evidence names, and lacks none."""
    files = parts(home / "reward.zip")
    for name in [name for name in files if name.startswith("blobs/")]:
        left = {other: data for other, data in files.items() if other != name}
        assert bundle_verifier.main([str(written(tmp_path / "lost.zip", left))]) == 1


def test_the_verifier_knows_the_columns_of_every_event_that_it_reads() -> None:
    """Of all versions that ever were; a new one needs its line in `COLUMNS`."""
    read = set(bundle_verifier.COLUMNS.values())
    known = {
        bundle_verifier.sha(name, *(f"{field.name} {field.type}" for field in declared.schema)): name
        for (name, _), declared in EVENTS.items()
        if name in read
    }
    assert known == bundle_verifier.COLUMNS


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
    assert hashlib.sha256(told).hexdigest() == rows_digest(batch)
    if not pa.types.is_list(kind):
        assert bundle_verifier.rows_bytes(packed(batch).columns, rows) == told
