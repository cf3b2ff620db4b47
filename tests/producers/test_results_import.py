"""Files of other tools in a ledger: the same file adds nothing, what is unknown stays so, and nothing is run."""

import dataclasses
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import blob_digest, rows_digest
from lapledger.ledger.events import ExecutionFinishedV2, TimingMeasured, TimingMeasuredV2, latest, to_batch
from lapledger.ledger.proof.bundles.verifier import reward as reward_verifier
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.streams.producer import Producer
from lapledger.producers.campaigns.attempts import NO_TIMINGS
from lapledger.producers.importers import mercury
from lapledger.producers.importers.events import Provenance, campaign_name, closing_events, problem_events
from lapledger.producers.importers.runs import Known
from tests.producers.results_files import (
    imported,
    mercury_sample,
    mercury_session,
    new_ledger,
    outcomes,
    question,
    write,
)
from tests.support.lap import lap, sql, well
from tests.support.packages import make_package

SESSION = mercury_session(
    two_sum=[mercury_sample(index=0), mercury_sample("failed@cases", 0.3, 1), mercury_sample("failed@load", 0, 2)],
    word_break=[mercury_sample("timeout", 0, 0), mercury_sample("failed@error: x", 0, 1)],
)
UNKNOWN = "user_ns, system_ns, peak_memory_bytes, hard_limit_ns, startup_ns, slot, position, core, instructions"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session with every kind of verdict."""
    return write(tmp_path / "tiny_eval.json", SESSION)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """An empty ledger."""
    return new_ledger(tmp_path)


def test_a_session_becomes_a_campaign(session: Path, ledger: Path) -> None:
    """Verdicts by name, references with their durations alone, and what the file says of itself."""
    (seen,) = imported(ledger, "mercury", session, "--source", "someone a1", "--license", "MIT")
    digest = blob_digest(session.read_bytes())
    assert seen["campaign"] == f"mercury-tiny-{digest[:8]}"
    assert (seen["problems"], seen["programs"], seen["executions"], seen["timings"]) == (2, 11, 11, 8)
    right = {f"reference-{k:03d}-of-003": "accepted" for k in (1, 2, 3)}
    failed = {"tiny-0": "accepted", "tiny-1": "wrong_answer", "tiny-2": "run_time_error"}
    rest = {"tiny-0": "time_limit", "tiny-1": "run_time_error"}
    by_slug: dict[str, dict[str, str]] = {}
    for slug, name, outcome in sql(
        ledger,
        "SELECT b.slug, p.name, e.outcome FROM execution e JOIN program p USING (program_id)"
        " JOIN problem b ON b.problem_id = e.problem_id",
    ):
        by_slug.setdefault(slug, {})[name] = outcome
    assert by_slug == {"two-sum": right | failed, "word-break": right | rest}
    row = dict(zip(_COLUMNS, sql(ledger, f"SELECT {', '.join(_COLUMNS)} FROM imported")[0], strict=True))
    assert row == {
        "format": "mercury",
        "tool": "Mercury",
        "tool_version": "",
        "file_name": "tiny_eval.json",
        "file_digest": digest,
        "file_bytes": len(session.read_bytes()),
        "original_id": "someone a1",
        "license": "MIT",
        "campaign_id": seen["campaign"],
        "model": "tiny",
        "records": 2,
    }
    assert well("verify", "--ledger", ledger, "--json").json["problems"] == []


_COLUMNS = (
    *("format", "tool", "tool_version", "file_name", "file_digest", "file_bytes"),
    *("original_id", "license", "campaign_id", "model", "records"),
)


def test_what_the_file_does_not_report_is_null_and_what_it_reports_is_not(session: Path, ledger: Path) -> None:
    """Durations in ns where they were measured; no timing where none was; every other column null."""
    (seen,) = imported(ledger, "mercury", session)
    walls = sql(ledger, "SELECT wall_ns, count(*) FROM timing GROUP BY 1 ORDER BY 1")
    assert walls == [[200_000_000, 2], [300_000_000, 1], [400_000_000, 2], [500_000_000, 1], [1_000_000_000, 2]]
    assert sql(ledger, f"SELECT DISTINCT {UNKNOWN} FROM timing") == [[None] * 9]
    assert sql(ledger, "SELECT DISTINCT input_blob, answer_blob, output_bytes FROM test") == [[None] * 3]
    assert sql(ledger, "SELECT DISTINCT source_blob, source_bytes FROM program WHERE model = 'human'") == [[None, None]]
    limits = "shuffle_seed, hard_limit_ns, memory_bytes, output_bytes, process_limit, repetitions, warmups"
    assert sql(ledger, f"SELECT {limits} FROM campaign") == [[None] * 5 + [1, 0]]
    assert sql(ledger, "SELECT reason, accepted, faults FROM closing") == [["imported", 11, 0]]
    assert seen["unknown"] == list(mercury.UNKNOWN)


def test_the_same_file_twice_adds_nothing(session: Path, ledger: Path) -> None:
    """Whatever it is called, and in whatever folder it lies; the heads stay."""
    first = imported(ledger, "mercury", session)
    before = sql(ledger, "SELECT count(*) FROM timing"), sql(ledger, "SELECT count(*) FROM execution")
    copy = session.with_name("other_eval.json")
    copy.write_bytes(session.read_bytes())
    for again in (session, copy):
        (seen,) = imported(ledger, "mercury", again)
        assert seen["held"]
        assert seen["campaign"] == first[0]["campaign"]
        assert (seen["programs"], seen["executions"], seen["timings"]) == (0, 0, 0)
    assert (sql(ledger, "SELECT count(*) FROM timing"), sql(ledger, "SELECT count(*) FROM execution")) == before
    assert sql(ledger, "SELECT count(*) FROM results_imported") == [[1]]
    done = lap("import", "mercury", session, "--model", "other", "--ledger", ledger)
    assert (done.code, "was imported before, as campaign" in done.err) == (2, True)


def test_two_ledgers_hold_the_same_facts(session: Path, tmp_path: Path) -> None:
    """Ids follow from the file alone: another laboratory gets the same, attempts included."""
    result = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ledger = new_ledger(tmp_path / name)
        imported(ledger, "mercury", session)
        result.append(sql(ledger, "SELECT * FROM execution_finished ORDER BY work_id"))
        result[-1] = [row[:18] for row in result[-1]]
    assert result[0] == result[1]
    assert all(row[1][14] == "8" for row in result[0])  # UUIDv8


@pytest.mark.parametrize("part", ["programs", "timings", "executions", "a problem"])
def test_an_import_that_died_is_completed(session: Path, ledger: Path, part: str) -> None:
    """Whatever was appended before: the next call adds the rest, and every attempt that counts has its timings."""
    results = mercury.read(session)
    campaign, nothing = campaign_name(results), Known(frozenset(), frozenset(), frozenset())
    first, second = (problem_events(results, p, campaign, known=nothing, license_="") for p in results.problems)
    kinds = {"programs": "ProgramAddedV2", "timings": "TimingMeasuredV2", "executions": "ExecutionFinishedV2"}
    seen = list(first.events)
    if part != "a problem":
        last = max(location for location, event in enumerate(seen) if type(event).__name__ == kinds[part])
        seen = seen[: last if part == "executions" else last + 1]
    with closing(open_ledger(ledger)) as opening, closing(opening.stream()) as stream:
        opening.blobs.put_many([*first.texts, *second.texts])
        Producer(stream, "epoch-dead", "a dead import", "0").append(seen)
        drain(opening, stream)
    imported(ledger, "mercury", session)
    assert well("verify", "--ledger", ledger, "--json").json["problems"] == []
    assert sql(ledger, "SELECT count(*), count(*) FILTER (accepted) FROM execution") == [[11, 11]]
    assert sql(ledger, "SELECT count(*), count(DISTINCT (attempt_id, repetition)) FROM timing") == [[8, 8]]


def test_a_campaign_of_that_name_is_never_mixed_with(session: Path, ledger: Path, tmp_path: Path) -> None:
    """One file a campaign; its name is the user's choice."""
    imported(ledger, "mercury", session, "--campaign", "mine")
    twin = write(tmp_path / "other_eval.json", mercury_session(two_sum=[mercury_sample()]))
    done = lap("import", "mercury", twin, "--campaign", "mine", "--ledger", ledger)
    assert (done.code, "a campaign 'mine' is stored already" in done.err) == (2, True)
    done = lap("import", "mercury", twin, session, "--campaign", "mine", "--ledger", ledger)
    assert (done.code, "import the files one by one" in done.err) == (2, True)
    done = lap("import", "mercury", twin, "--campaign", "a b", "--ledger", ledger)
    assert (done.code, "use 1 to 64 letters" in done.err) == (2, True)


def test_nothing_imported_is_run(session: Path, ledger: Path, tmp_path: Path) -> None:
    """`lap run` takes the problems that it can run and no others; a worker finds no request."""
    imported(ledger, "mercury", session)
    done = lap("run", "--dry-run", "--ledger", ledger)
    assert (done.code, "nothing to run" in done.err) == (2, True)
    well("import", "icpc", make_package(tmp_path / "sums"), "--ledger", ledger)
    assert well("run", "--dry-run", "--ledger", ledger, "--json").json["works"] == 25
    assert sql(ledger, "SELECT count(*) FROM request") == [[0]]


def verdicts(ledger: Path, *criterion: object) -> dict[str, str]:
    """Program -> status under a criterion."""
    seen = well("replay", *criterion, "--ledger", ledger, "--json").json["criteria"][0]["verdicts"]
    names = dict(sql(ledger, "SELECT program_id, name FROM program"))
    return {names[verdict["program"]]: verdict["status"] for verdict in seen}


def test_a_reward_that_depends_on_imported_facts_is_proven(session: Path, ledger: Path, tmp_path: Path) -> None:
    """Assigned, followed to the raw timings, computed again; its bundle holds where sources are unknown."""
    imported(ledger, "mercury", session)
    well("reward", "--tau", 30, "--ledger", ledger)
    well("seal", "--ledger", ledger)
    assert well("verify", "--ledger", ledger, "--json").json["problems"] == []
    wanted = "SELECT reward_id FROM reward WHERE program_id LIKE 'two-sum%/tiny-0.%'"
    ((reward,),) = sql(ledger, wanted)
    shown = well("trace", reward, "--bundle", tmp_path / "reward.zip", "--ledger", ledger)
    assert "recomputed: reward matches" in shown.out
    assert "user unknown ns" in shown.out
    assert reward_verifier.main([], str(tmp_path / "reward.zip")) == 0


def test_what_depends_on_something_unknown_is_undecided(ledger: Path, tmp_path: Path) -> None:
    """On wall time a pass; minus an unknown start-up, on the processor's clock, or by an unknown size: undecided."""
    session = mercury_session(two_sum=[mercury_sample(runtime=0.1)])
    imported(ledger, "mercury", write(tmp_path / "one_eval.json", session))
    assert verdicts(ledger, "--tau", 30)["one-0"] == "pass"
    for unknown in (("--set", "startup=subtract"), ("--clock", "cpu"), ("--set", "keep_chars=10")):
        assert verdicts(ledger, "--tau", 30, *unknown)["one-0"] == "undecided", unknown


def test_a_run_killed_at_an_unknown_limit_reports_nothing_of_its_duration(ledger: Path, tmp_path: Path) -> None:
    """It fails; yet no rank is guessed for it, however slow the references were."""
    session = mercury_session(two_sum=[mercury_sample("timeout", 0)])
    imported(ledger, "mercury", write(tmp_path / "one_eval.json", session))
    assert verdicts(ledger, "--tau", 100)["one-0"] == "fail"
    assert outcomes(ledger, sql(ledger, "SELECT campaign_id FROM campaign")[0][0])["one-0"] == "time_limit"


def test_a_runners_own_failure_is_no_verdict(ledger: Path, tmp_path: Path) -> None:
    """LiveCodeBench counts it as failed; here it is a fault, and the estimate says what it would be either way."""
    note = {"error_code": -5, "error_message": "TestRunnerError", "error": "IndexError()"}
    path = write(tmp_path / "m_eval_all.json", [question("1", True, False, notes=[{"execution time": 1}, note])])
    (seen,) = imported(ledger, "livecodebench", path)
    assert seen["figures"]["pass@1, %"] == 50.0
    assert sql(ledger, "SELECT outcome, detail, accepted FROM execution ORDER BY outcome") == [
        ["accepted", "", True],
        ["sandbox_fault", "TestRunnerError; IndexError()", False],
    ]
    assert verdicts(ledger, "--tau", 100) == {"m-0": "pass", "m-1": "undecided"}
    assert sql(ledger, "SELECT works FROM campaign") == [[1]]


def native_timing(number: int) -> TimingMeasured:
    """A timing of our own sandbox."""
    return dataclasses.replace(_TIMING, attempt_id=f"a-{number}", wall_ns=number)


_TIMING = TimingMeasured(
    work_id="w",
    attempt_id="a",
    campaign_id="c",
    problem_id="p",
    program_id="p/x",
    test_id="p/t",
    block=0,
    repetition=0,
    warmup=False,
    wall_ns=1,
    user_ns=1,
    system_ns=0,
    peak_memory_bytes=1,
    voluntary_switches=0,
    forced_switches=0,
    judged_limit_ns=1,
    hard_limit_ns=1,
    cut="",
    position=0,
    offset_ns=0,
    core=None,
    slot=0,
    neighbours=0,
    startup_ns=0,
    interpreter="",
    isolation="plain",
    host="",
)


@pytest.mark.parametrize("stored", ["tail", "sealed", "compacted"])
def test_timings_of_both_versions_are_read_together(tmp_path: Path, stored: str) -> None:
    """Arrow and SQL alike, before and after sealing: those of version 1 have no instructions and lack nothing else."""
    location = new_ledger(tmp_path)
    unknown = TimingMeasuredV2(**dataclasses.asdict(_TIMING) | {"user_ns": None, "attempt_id": "b", "instructions": 7})
    with closing(open_ledger(location)) as ledger:
        for seen in ([native_timing(1)], [unknown], [native_timing(2)]):
            _append(ledger, seen)
            if stored == "compacted":
                seal(ledger)
        if stored == "sealed":
            seal(ledger)
        if stored == "compacted":
            compact(ledger, 0)
        assert latest("timing.measured").version == 2
        rows = events(ledger, "timing.measured", 2, ledger.cut()).to_pylist()
        assert [(r["attempt_id"], r["user_ns"], r["instructions"]) for r in rows] == [
            ("a-1", 1, None),
            ("b", None, 7),
            ("a-2", 1, None),
        ]
    query = "SELECT attempt_id, user_ns, instructions FROM timing_measured ORDER BY _admission"
    assert sql(location, query) == [["a-1", 1, None], ["b", None, 7], ["a-2", 1, None]]


def _append(ledger: Ledger, seen: list[TimingMeasured] | list[TimingMeasuredV2]) -> None:
    with closing(ledger.stream()) as stream:
        Producer(stream, f"epoch-{seen[0].attempt_id}", "test", "0").append(seen)
        drain(ledger, stream)


def test_attempts_name_the_digest_of_their_own_timings(session: Path) -> None:
    """Made in one go for a problem; each is what `rows_digest` gives of the attempt alone."""
    results = mercury.read(session)
    nothing = Known(frozenset(), frozenset(), frozenset())
    for problem in results.problems:
        seen = problem_events(results, problem, "c", known=nothing, license_="").events
        timings = [event for event in seen if isinstance(event, TimingMeasuredV2)]
        for end in (event for event in seen if isinstance(event, ExecutionFinishedV2)):
            mine = [timing for timing in timings if timing.attempt_id == end.attempt_id]
            assert end.timings == len(mine)
            assert end.timings_digest == (rows_digest(to_batch(mine)) if mine else NO_TIMINGS)
    assert [type(event).__name__ for event in closing_events(results, "c", Provenance())] == [
        "CampaignOpenedV2",
        "CampaignClosed",
        "ResultsImported",
    ]
