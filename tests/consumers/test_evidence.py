"""What a reward rests on: complete enough to be proven elsewhere, under a calibration too, from segments and tail."""

import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.derive.calibrator import CalibrationOrder, calibrate
from lapledger.consumers.derive.reward_audit import trace
from lapledger.consumers.derive.reward_evidence import dependencies_of
from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault
from lapledger.ledger.proof import current_head
from lapledger.ledger.proof.bundles.reward_bundle import RewardDependencies, write_reward_bundle
from lapledger.ledger.proof.bundles.verifier import reward as reward_verifier
from lapledger.ledger.proof.bundles.verifier.bundle_file import BundleFile
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from tests.consumers.histories import all_facts, attempts, opening, requests
from tests.consumers.ledgers import ledger_with
from tests.consumers.test_calibrator import AFFINE, fresh, stored


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two campaigns, a map from one into the other, and rewards under it; the blobs that they name; half sealed."""
    again = [opening(fresh()), *requests(fresh()), *(event for events in attempts(fresh()) for event in events)]
    made = ledger_with(tmp_path / "ledger", all_facts(stored()), again)
    seal(made)
    made.blobs.put_many([b"in", b"out", *(name.encode() for name in ("r0", "r1", "r2", "r3"))])
    with closing(made.stream()) as stream:
        producer = Producer(stream, "epoch-2", "test", "0")
        calibrate(made, producer, CalibrationOrder(AFFINE, "main", "again"))
        drain(made, stream)
        assert assign(made, producer, AFFINE, name="mapped p_50", campaign="again").new
        drain(made, stream)
    return made


def dependencies(ledger: Ledger) -> RewardDependencies:
    """What the reward of `alpha/r0` rests on."""
    with closing(Questions(ledger)) as questions:
        result = questions.rows("SELECT reward_id FROM reward WHERE starts_with(program_id, 'alpha/r0')")
        return dependencies_of(ledger, questions, trace(ledger, questions, result[0]["reward_id"]))


def test_a_mapped_reward_depends_on_both_campaigns(ledger: Ledger, tmp_path: Path) -> None:
    """The reference that was not run again is told with its stored runs; the bundle gives the digest in the reward."""
    result = dependencies(ledger)
    assert result.evidence is not None
    names = [program[0].split("/")[1].split(".")[0] for program in result.evidence.programs]
    assert names == ["r0", "r1", "r2", "r3", "r0"]
    assert all(len(program) == 2 + 4 for program in result.evidence.programs)
    path = tmp_path / "reward.zip"
    write_reward_bundle(path, ledger, result)
    kinds = BundleFile(str(path)).frames["type"].to_pylist()
    assert {"calibration.fitted", "campaign.opened", "reward.assigned", "timing.measured"} <= set(kinds)
    assert kinds.count("campaign.opened") == 2
    assert reward_verifier.main([], str(path)) == 0
    assert reward_verifier.main(["--head", str(current_head(ledger))], str(path)) == 0


def test_a_bundle_is_the_same_from_segments(ledger: Ledger) -> None:
    """Sealing moves frames and changes none: every part but the list of manifests has the same bytes."""
    write_reward_bundle(ledger.root / "before.zip", ledger, dependencies(ledger))
    seal(ledger)
    write_reward_bundle(ledger.root / "after.zip", ledger, dependencies(ledger))
    with zipfile.ZipFile(ledger.root / "before.zip") as old, zipfile.ZipFile(ledger.root / "after.zip") as new:
        assert old.namelist() == new.namelist()
        assert [name for name in old.namelist() if old.read(name) != new.read(name)] == ["bundle.json"]


def test_a_bundle_of_altered_frames_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """What cannot be proven is not handed out: a missing blob, a missing segment."""
    result = dependencies(ledger)
    (path,) = (ledger.root / "segments").glob("timing.measured.v1/*.parquet")
    path.rename(path.with_suffix(".gone"))
    with pytest.raises(Fault, match=r"segment \S+ is missing"):
        write_reward_bundle(tmp_path / "refused.zip", ledger, result)
    path.with_suffix(".gone").rename(path)
    blob = next(iter(result.blobs))
    Path(ledger.blobs.where(blob)).unlink()
    with pytest.raises(Fault, match=rf"blob \S+{blob} is missing"):
        write_reward_bundle(tmp_path / "refused.zip", ledger, result)
