"""Calibration of one campaign's stored references into another's state: fitted, stored, used, refused."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lapledger.consumers.derive.calibrator import CalibrationOrder, calibrate
from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CalibrationFitted, CalibrationFittedV1, Event
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.calibration import KINDS, outside_warning
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import find_calibration, judge_snapshot, load, stored_calibration
from tests.consumers.histories import MS, Campaign, Cell, all_facts, attempts, opening, requests
from tests.consumers.ledgers import append, ledger_with

AFFINE = Criterion(tau="50", calibration="affine")
A, B_MS = 1.5, 53.0
"""The map that the fresh campaign obeys; b is the published drift of 53 ms."""

STORED_MS = {
    problem: {
        f"r{location}": tuple(10.0 * (location + 1) * (test + 1) * (1 + number) for test in range(4))
        for location in range(4)
    }
    for number, problem in enumerate(("alpha", "beta", "gamma"))
}


def stored() -> Campaign:
    """Four references a problem, on one correctness and three optimization tests."""
    return Campaign(
        "main",
        {p: {name: tuple(Cell(ms=(t,)) for t in ms) for name, ms in rows.items()} for p, rows in STORED_MS.items()},
    )


def fresh(*, service: str = "local") -> Campaign:
    """Three of the four references of each problem again, in a slower state of the service."""
    return Campaign(
        "again",
        {
            p: {n: tuple(Cell(ms=(A * t + B_MS,)) for t in ms) for n, ms in rows.items() if n != "r1"}
            for p, rows in STORED_MS.items()
        },
        service=service,
    )


def run_facts(campaign: Campaign) -> Iterator[Event]:
    """A campaign over problems that the ledger holds already."""
    yield opening(campaign)
    yield from requests(campaign)
    yield from (event for events in attempts(campaign) for event in events)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Both campaigns."""
    with closing(ledger_with(tmp_path / "ledger", all_facts(stored()), run_facts(fresh()))) as session:
        yield session


def fit(ledger: Ledger, epoch: str, criterion: Criterion = AFFINE) -> CalibrationFitted:
    """The fit of main into again, admitted."""
    with closing(ledger.stream()) as stream:
        fitted = calibrate(
            ledger, Producer(stream, epoch, "test", "0"), CalibrationOrder(criterion, "main", "again")
        ).kept
        drain(ledger, stream)
    return fitted


def test_an_exact_affine_drift_is_found(ledger: Ledger) -> None:
    """fresh = 1.5 stored + 53 ms gives just that, R squared 1 and no error out of fold; no map errs by far."""
    fitted = fit(ledger, "epoch-1")
    assert fitted.refused == ""
    assert fitted.a == pytest.approx(A)
    assert fitted.b_ns == pytest.approx(B_MS * MS)
    assert (fitted.pairs, fitted.problems) == (3 * 3 * 3, 3)  # references re-run x optimization tests x problems
    assert fitted.r2 == pytest.approx(1)
    assert fitted.error_map == pytest.approx(0, abs=1e-9)
    times = np.array([t for rows in STORED_MS.values() for n, ms in rows.items() if n != "r1" for t in ms[1:]])
    assert fitted.error_none == pytest.approx(np.median((A * times + B_MS - times) / (A * times + B_MS)))


def test_fitting_twice_stores_one_fact(ledger: Ledger) -> None:
    """The id hashes campaigns, kind, clock, estimator, evidence and kernel: a second fit is the same fact."""
    first = fit(ledger, "epoch-1")
    append(ledger, "epoch-between", [opening(replace(stored(), name="elsewhere"))])
    second = fit(ledger, "epoch-2")
    assert second == first  # what is held, cut and all, though the ledger has moved on
    with closing(Questions(ledger)) as questions:
        assert questions.rows("SELECT count(*) AS n FROM calibration_fitted") == [{"n": 1}]
        assert fit(ledger, "epoch-3", replace(AFFINE, clock="cpu")).calibration_id != first.calibration_id


def test_a_stored_reference_joins_the_pool_by_the_map(ledger: Ledger) -> None:
    """With the map, r1 (20 ms and so on stored) stands between r0 and r2, in pools of 3 others.

    r0 ties with the best own score of r1, r2, r3 (both 0): q = (0 + 1/2) / 3. r2 has two better ones: 2/3. r3 ties
    with the worst: (2 + 1/2) / 3. Unmapped, r1 would be the fastest. It was not re-run, so it gets no verdict.
    """
    fit(ledger, "epoch-1")
    with closing(Questions(ledger)) as questions:
        snapshot = load(questions, "again")
        calibration = find_calibration(questions, "again", AFFINE)
        campaign = judge_snapshot(snapshot, AFFINE, calibration)
    for m, v in zip(campaign.measurements, campaign.verdicts, strict=True):
        names = [p.split("/")[1].split(".")[0] for p in m.programs]
        judged = {
            name: (int(v.q_lo[i]), int(v.q_den[i]), int(v.pool_size[i]))
            for i, name in enumerate(names)
            if m.candidate[i]
        }
        assert {name: q / den for name, (q, den, _) in judged.items()} == {"r0": 1 / 6, "r2": 2 / 3, "r3": 5 / 6}
        assert {size for *_, size in judged.values()} == {3}


def test_a_reward_names_its_calibration(ledger: Ledger) -> None:
    """Rewards under the map carry its id, and another id than rewards without one."""
    fitted = fit(ledger, "epoch-1")
    with closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-2", "test", "0")
        mapped = assign(ledger, producer, AFFINE, name="a", campaign="again", source="main").new
        plain = assign(ledger, producer, Criterion(tau="50"), name="b", campaign="again").new
    assert {reward.calibration_id for reward in mapped} == {fitted.calibration_id}
    assert {reward.calibration_id for reward in plain} == {None}
    assert {r.pool_size for r in mapped} == {3}
    assert {r.pool_size for r in plain} == {2}
    assert not {r.reward_id for r in mapped} & {r.reward_id for r in plain}


def test_no_calibration_no_comparison(ledger: Ledger) -> None:
    """A criterion that asks for a map finds none before one is fitted, and none for another clock."""
    with closing(Questions(ledger)) as questions:
        assert find_calibration(questions, "again", Criterion()) is None
        with pytest.raises(UserError, match="no usable calibration into campaign 'again'; fit one with"):
            find_calibration(questions, "again", AFFINE)
    fit(ledger, "epoch-1")
    for twin in (replace(AFFINE, clock="cpu"), replace(AFFINE, calibration="power")):
        with closing(Questions(ledger)) as questions, pytest.raises(UserError, match="no usable calibration"):
            find_calibration(questions, "again", twin)


def order(*kinds: str) -> CalibrationOrder:
    """An order of main into again."""
    return CalibrationOrder(AFFINE, "main", "again", kinds)


def test_of_all_kinds_the_best_is_kept_under_its_own_name(ledger: Ledger) -> None:
    """The drift is a line: three kinds find it, the plainest is kept, each kind has an id of its own."""
    with closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-1", "test", "0")
        done = calibrate(ledger, producer, order(*KINDS))
        drain(ledger, stream)
    assert [item.kind for item in done.fits] == list(KINDS)
    assert len({item.calibration_id for item in done.fits}) == len(KINDS)
    assert (done.kept.kind, done.kept.refused) == ("affine", "")
    assert {item.kind for item in done.fits if item.error_map is not None and item.error_map < 1e-6} == {
        "affine",
        "affine-weighted",
        "theil-sen",
    }
    assert (done.kept.moved, done.kept.low_ns, done.kept.high_ns) == (9, 20 * MS, 480 * MS)
    assert done.kept.outside == 0
    with closing(Questions(ledger)) as questions:
        assert questions.rows("SELECT kind FROM calibration") == [{"kind": "affine"}]


def test_a_kind_is_requested_for_by_its_name(ledger: Ledger) -> None:
    """Two kinds into one campaign stand beside each other; a criterion's word says which is meant."""
    with closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-1", "test", "0")
        kept = {kind: calibrate(ledger, producer, order(kind)).kept for kind in ("affine", "theil-sen")}
        drain(ledger, stream)
    with closing(Questions(ledger)) as questions:
        for kind, item in kept.items():
            result = find_calibration(questions, "again", replace(AFFINE, calibration=kind))
            assert result is not None
            assert (result.calibration_id, result.fit.kind) == (item.calibration_id, kind)
            assert (result.fit.low_ns, result.fit.outside) == (item.low_ns, item.outside)


def test_a_fit_of_version_1_is_read_and_used(ledger: Ledger) -> None:
    """An older release told an affine map and no range: it is used as it was, and nothing is said to lie outside."""
    new = fit(ledger, "epoch-1")
    old = {name: getattr(new, name) for name in CalibrationFittedV1.__dataclass_fields__}
    first = CalibrationFittedV1(**(old | {"calibration_id": "1" * 64, "a": 2.0}))
    append(ledger, "epoch-old", [first])
    with closing(Questions(ledger)) as questions:
        result = find_calibration(questions, "again", AFFINE)
        assert stored_calibration(questions, "1" * 64).fit.a == 2.0
    assert result is not None
    assert (result.calibration_id, result.fit.power, result.fit.low_ns) == ("1" * 64, 1.0, None)
    assert outside_warning(result.fit) == ""


def test_a_refused_fit_is_kept_but_never_used(tmp_path: Path) -> None:
    """Where nothing drifted, no map wins: the fit is stored with the reason, and asking for it says so."""
    same = replace(stored(), name="again")
    with closing(ledger_with(tmp_path / "ledger", all_facts(stored()), run_facts(same))) as ledger:
        fitted = fit(ledger, "epoch-1")
        assert fitted.refused != ""
        with closing(Questions(ledger)) as questions, pytest.raises(UserError, match="the stored fit was refused"):
            find_calibration(questions, "again", AFFINE)


def test_two_services_are_not_compared(tmp_path: Path) -> None:
    """A map holds within one worker class."""
    twin = fresh(service="cluster")
    with (
        closing(ledger_with(tmp_path / "ledger", all_facts(stored()), run_facts(twin))) as ledger,
        pytest.raises(UserError, match="ran on different services"),
    ):
        fit(ledger, "epoch-1")


def test_the_last_fit_of_a_source_counts(ledger: Ledger) -> None:
    """A fit with other evidence, admitted later, replaces the first; the ids' order has no say."""
    first = fit(ledger, "epoch-1")
    for digit in "f0":
        append(ledger, f"epoch-{digit}", [replace(first, calibration_id=digit * 64, evidence_digest=digit * 64)])
        with closing(Questions(ledger)) as questions:
            result = find_calibration(questions, "again", AFFINE)
        assert result is not None
        assert result.calibration_id == digit * 64


@pytest.mark.parametrize("unfinished", ["main", "again"])
def test_an_unfinished_campaign_is_not_fitted(tmp_path: Path, unfinished: str) -> None:
    """Works without an accepted outcome, on either side: the message counts them and says what to do."""
    arms = {"main": stored(), "again": fresh()}
    rows = dict(arms[unfinished].cells["beta"])
    rows["r0"] = (Cell("sandbox_fault"), Cell("sandbox_fault"), *rows["r0"][2:])
    arms[unfinished] = replace(arms[unfinished], cells={**arms[unfinished].cells, "beta": rows})
    works = {"main": 48, "again": 36}[unfinished]  # programs x 4 tests x 3 problems
    message = f"campaign '{unfinished}' has 2 of {works} works without an outcome; finish it with `lap run`"
    with (
        closing(ledger_with(tmp_path / "ledger", all_facts(arms["main"]), run_facts(arms["again"]))) as ledger,
        pytest.raises(UserError, match=message),
    ):
        fit(ledger, "epoch-1")


def test_the_evidence_covers_references_that_were_not_re_run(tmp_path: Path) -> None:
    """r1 of main is in no pair, but stands in the pool of the rank correlations: other timings of it, another id."""
    ids = []
    for location, ms in enumerate((1.0, 70.0)):
        rows = dict(stored().cells["alpha"])
        rows["r1"] = (Cell(),) + (Cell(ms=(ms,)),) * 3
        main = replace(stored(), cells={**stored().cells, "alpha": rows})
        with closing(ledger_with(tmp_path / str(location), all_facts(main), run_facts(fresh()))) as ledger:
            fitted = fit(ledger, "epoch-1")
        ids.append((fitted.calibration_id, fitted.evidence_digest, fitted.spearman_before))
    assert all(a != b for a, b in zip(*ids, strict=True))


def test_several_sources_must_be_named(ledger: Ledger) -> None:
    """With two usable fits into one campaign, the source decides."""
    fit(ledger, "epoch-1")
    third = replace(stored(), name="older")
    append(ledger, "epoch-older", run_facts(third))
    with closing(ledger.stream()) as stream:
        calibrate(ledger, Producer(stream, "epoch-2", "test", "0"), CalibrationOrder(AFFINE, "older", "again"))
        drain(ledger, stream)
    with closing(Questions(ledger)) as questions:
        with pytest.raises(UserError, match="several calibrations into campaign 'again' are stored, from main, older"):
            find_calibration(questions, "again", AFFINE)
        chosen = find_calibration(questions, "again", AFFINE, source="older")
    assert chosen is not None
    assert chosen.stored.name == "older"
