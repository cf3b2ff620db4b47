"""Services as real processes: shared, stopped, killed, taken over; and what they write into the ledger is the same."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from sqlalchemy import text

from lapledger.ledger.events import PARTITIONS, CampaignOpened, FilterDecided, WorkerStarted
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import judge_campaign, rewards
from lapledger.settings import read_settings
from lapledger.stack.kafka import KafkaServer
from tests.support.lap import lap, process, sql, well
from tests.support.packages import ACCEPTED, FOREVER, make_package
from tests.support.processes import Services, services_on, until
from tests.support.screen_ledgers import MODELS, REFERENCES, Program, campaign_facts, problem_facts, run_facts

ALL = sum(PARTITIONS.values())


@pytest.fixture(params=["local", "kafka"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """An empty ledger with its services, on a local stream and on Kafka."""
    more = {}
    if request.param == "kafka":
        settings: KafkaSettings = request.getfixturevalue("kafka_settings")
        more = {"LAP_KAFKA": settings.address, "LAP_KAFKA_PREFIX": settings.prefix}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    well("ledger", "init", "--ledger", tmp_path / "ledger")
    with services_on(tmp_path, tmp_path / "ledger", **more) as services:
        yield services


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Services]:
    """An empty ledger with its services, on a local stream."""
    well("ledger", "init", "--ledger", tmp_path / "ledger")
    with services_on(tmp_path, tmp_path / "ledger") as services:
        yield services


def location(services: Services) -> Location:
    """Where the ledger's parts are."""
    return read_settings(ledger=str(services.ledger)).location


def decided(number: int) -> FilterDecided:
    """A small fact; ten problems lie on all partitions."""
    return FilterDecided(
        problem_id=f"problem-{number % 10}",
        subject="test",
        subject_id=str(number),
        rule="r",
        campaign_id=None,
        kept=True,
        reason="",
        figure=None,
    )


def count(services: Services, query: str) -> int:
    """A number from the ledger's SQL."""
    with closing(open_ledger(location(services))) as ledger, reading(ledger.engine) as connection:
        return int(connection.execute(text(query)).scalar_one())


def test_two_sinks_share_and_one_takes_over_from_a_killed_one(home: Services) -> None:
    """One is killed while facts arrive; the other goes on after the lease: every frame once, nothing quarantined."""
    first, second = (home.start("sink", "--lease", 2) for _ in range(2))
    home.shared(first, second, partitions=ALL)
    with closing(open_ledger(location(home))) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-test", "test", "0")
        for number in range(60):
            producer.append([decided(number)])
            if number == 30:
                until(lambda: count(home, "SELECT count(*) FROM frame") > 10, "the sinks admit")
                first.send(signal.SIGKILL)
        frames = producer.frames
    assert first.ended() == -signal.SIGKILL
    until(lambda: second.share() and len(second.share()) == ALL, "the other has all partitions")
    until(lambda: count(home, "SELECT count(*) FROM frame") == frames, "all frames are admitted")
    assert count(home, "SELECT count(*) FROM quarantine") == 0
    assert count(home, "SELECT count(*) FROM gap") == 0
    rows = sql(home.ledger, "SELECT count(*), count(DISTINCT subject_id) FROM filter_decided")
    assert rows == [[60, 60]]
    assert second.stop() == 0
    assert count(home, "SELECT count(*) FROM stream_position WHERE lease_until > 0 OR lease_holder <> ''") == 0
    held = f"SELECT count(*) FROM lease WHERE holder = '{second.lines()[0]['process']}'"
    assert count(home, held) == 0
    seen = [line for line in second.lines("admitted") if line["stream"] == "facts"]
    assert all(line["lease_epoch"] > 0 and line["frames"] and line["cut"] for line in seen)
    ids = {name.split(".")[0] for line in seen for name in line["frames"]}
    assert ids == {"epoch-test"}
    assert second.lines()[-1]["event"] == "stopped"


def test_partitions_move_to_a_sink_that_comes_and_back_when_it_goes(home: Services) -> None:
    """The second gets a share at once, and the first has all of them again when it is stopped."""
    first = home.start("sink", "--lease", 5)
    home.shared(first, partitions=ALL)
    second = home.start("sink", "--lease", 5)
    home.shared(first, second, partitions=ALL)
    assert second.stop() == 0
    home.shared(first, partitions=ALL)
    with closing(open_ledger(location(home))) as ledger, closing(ledger.stream()) as stream:
        Producer(stream, "epoch-test", "test", "0").append([decided(number) for number in range(10)])
    until(lambda: sql(home.ledger, "SELECT count(*) FROM filter_decided") == [[10]], "the first admits all")
    assert first.stop() == 0


def test_a_sink_that_dies_within_a_transaction_leaves_no_trace(local: Services) -> None:
    """Killed before the commit and after it: the next one admits the rest, and each fact is there once."""
    for point in ("sink.stored:2", "sink.committed:1"):
        with closing(open_ledger(local.ledger)) as ledger, closing(ledger.stream()) as stream:
            Producer(stream, f"epoch-{point}", "test", "0").append([decided(number) for number in range(10)])
        sink = local.start("sink", "--lease", 1, LAP_CRASH=point)
        assert sink.ended() == -signal.SIGKILL
    done = well("sink", "--once", "--ledger", local.ledger, "--json").json
    assert done["duplicates"] == done["quarantined"] == 0
    assert sql(local.ledger, "SELECT count(*), count(DISTINCT (_partition, _admission, _row)) FROM filter_decided") == [
        [20, 20]
    ]
    assert well("sink", "--once", "--ledger", local.ledger, "--json").json["admitted"] == 0


def test_an_unknown_crash_point_is_the_users_mistake(local: Services) -> None:
    """One line that lists what there is."""
    done = process("sink", "--once", "--ledger", local.ledger, LAP_CRASH="nowhere")
    assert done.code == 2
    assert "'nowhere' is no crash point" in done.err
    assert "sink.stored" in done.err


def test_the_log_is_text_where_a_person_requests_for_it(local: Services) -> None:
    """`--log text` writes lines for a person; without a terminal the default is one JSON object a line."""
    sink = local.start("sink", "--log", "text")
    until(lambda: "assigned" in sink.log.read_text(), "the sink is there")
    assert sink.stop() == 0
    with pytest.raises(json.JSONDecodeError):
        sink.lines()
    assert "[info     ] started" in sink.log.read_text()


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., None]:
    """Imports a package of small programs into a ledger."""

    def imported(ledger: Path, **more: object) -> None:
        folder = tmp_path / f"packages-{ledger.name}" / "sums"
        well("import", "icpc", make_package(folder, **more), "--ledger", ledger)

    return imported


OUTCOMES = (
    "SELECT program_id, test_id, outcome, count(*) FROM execution WHERE accepted AND campaign_id = 'main' GROUP BY ALL"
)


def test_a_pool_of_workers_finishes_a_campaign_as_one_run_does(
    home: Services, package: Callable[..., None], tmp_path: Path
) -> None:
    """Two workers share the lanes of a submitted campaign: the verdicts of `lap run`, each work once, closed once."""
    package(home.ledger)
    sink, item, two = home.start("sink"), *(home.start("worker", "--slots", 1) for _ in range(2))
    home.shared(item, two, partitions=PARTITIONS["requests"])
    done = well("run", "--campaign", "main", "--submit", "--wait", "--ledger", home.ledger, "--json").json
    assert (done["closed"], done["works"], done["left"], done["faults"]) == (True, 25, 0, 0)
    assert [service.stop() for service in (item, two, sink)] == [0, 0, 0]
    well("sink", "--once", "--ledger", home.ledger)
    assert sql(home.ledger, "SELECT count(*), min(accepted) FROM campaign_closed") == [[1, 25]]
    rows = sql(home.ledger, "SELECT worker_id, count(*) FROM execution GROUP BY worker_id")
    assert len(rows) == 2
    assert sql(home.ledger, "SELECT count(*) FROM epoch_closed JOIN worker ON epoch = worker_id") == [[2]]
    twin = tmp_path / "other"
    well("ledger", "init", "--ledger", twin)
    package(twin)
    well("run", "--campaign", "main", "--ledger", twin)
    assert sorted(sql(home.ledger, OUTCOMES)) == sorted(sql(twin, OUTCOMES))


def test_the_works_of_a_killed_worker_are_taken_over(home: Services, package: Callable[..., None]) -> None:
    """After its lease its lanes go to the other: every work has an outcome, those run twice are surplus."""
    package(home.ledger, small=10, large=4)
    home.start("sink")
    item, two = (home.start("worker", "--slots", 1, "--lease", 2) for _ in range(2))
    home.shared(item, two, partitions=PARTITIONS["requests"])
    well("run", "--campaign", "main", "--submit", "--ledger", home.ledger)
    item.logged("works taken")
    item.send(signal.SIGKILL)
    done = well("run", "--campaign", "main", "--submit", "--wait", "--ledger", home.ledger, "--json").json
    assert (done["closed"], done["left"]) == (True, 0)
    assert len(two.share()) == PARTITIONS["requests"]
    assert [n for *_, n in sql(home.ledger, OUTCOMES)] == [1] * done["works"]


def test_workers_leave_a_campaign_to_the_run_that_holds_it(local: Services, package: Callable[..., None]) -> None:
    """`lap run` runs its own plan though a worker is there; only its own worker is known to the campaign."""
    package(local.ledger)
    local.start("sink")
    worker = local.start("worker", "--slots", 1)
    worker.logged("assigned")
    done = well("run", "--campaign", "main", "--ledger", local.ledger, "--json").json
    assert (done["left"], done["surplus"]) == (0, 0)
    assert sql(local.ledger, "SELECT count(*) FROM worker WHERE campaign_id = 'main'") == [[1]]
    assert sql(local.ledger, "SELECT count(*) FROM campaign_closed") == [[1]]
    assert worker.stop() == 0
    assert worker.lines("campaign begun") == []


def test_a_worker_refuses_what_another_kind_of_machine_began_and_goes_on(
    local: Services, package: Callable[..., None]
) -> None:
    """One line about the campaign whose timings would not mix; the next campaign is run."""
    package(local.ledger)
    begun = WorkerStarted(
        worker_id="w",
        campaign_id="main",
        host="elsewhere",
        host_description="",
        interpreter="",
        interpreter_version="",
        isolation="",
        slots=1,
        startup_ns=1,
        started_at="",
    )
    with closing(open_ledger(local.ledger)) as ledger, closing(ledger.stream()) as stream:
        Producer(stream, "epoch-w", "test", "0").append([begun])
    for campaign in ("main", "second"):
        well("run", "--campaign", campaign, "--submit", "--ledger", local.ledger)
    local.start("sink")
    worker = local.start("worker", "--slots", 2)
    done = well("run", "--campaign", "second", "--submit", "--wait", "--ledger", local.ledger, "--json").json
    assert done["left"] == 0
    assert worker.stop() == 0
    (line,) = worker.lines("campaign refused")
    assert (line["campaign"], line["level"]) == ("main", "warning")
    assert "host and interpreter and isolation" in line["reason"]
    assert sql(local.ledger, "SELECT count(*) FROM execution WHERE campaign_id = 'main'") == [[0]]


def test_a_worker_of_another_service_leaves_a_campaign_alone(local: Services, package: Callable[..., None]) -> None:
    """A campaign belongs to the worker class that it was opened for."""
    package(local.ledger)
    well("run", "--campaign", "main", "--submit", "--ledger", local.ledger)
    worker = local.start("worker", "--service", "other")
    assert "service (local)" in worker.logged("campaign refused")[0]["reason"]
    assert worker.stop() == 0


def test_a_second_ctrl_c_ends_a_worker_at_once(local: Services, package: Callable[..., None]) -> None:
    """The first waits for the program that runs, which takes an hour; the second does not."""
    package(local.ledger, programs={"accepted/forever.py": FOREVER}, small=1, large=1)
    local.start("sink")
    well("run", "--campaign", "main", "--limit", 3600, "--submit", "--ledger", local.ledger)
    worker = local.start("worker", "--slots", 1)
    worker.logged("works taken")
    until(worker.children, "the program runs")
    worker.send(signal.SIGINT)
    worker.logged("stopping")

    def pressed_again() -> bool:
        worker.send(signal.SIGINT)
        return worker.process.poll() is not None

    until(pressed_again, "a press after the burst of the first one ends it")
    assert worker.ended() == 130


def test_waiting_belongs_to_submitting(local: Services) -> None:
    """`lap run --wait` is the user's mistake: it waits anyway."""
    done = lap("run", "--wait", "--ledger", local.ledger)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "--submit" in done.err


def campaign_of(problems: tuple[str, ...], programs: tuple[Program, ...]) -> CampaignOpened:
    """The opening of one campaign over several problems."""
    parts = [part for problem in problems for part in campaign_facts("main", problem, programs)]
    return replace(
        parts[0],
        problems=problems,
        programs=tuple(program for part in parts for program in part.programs),
        references=tuple(program for part in parts for program in part.references),
        works=sum(part.works for part in parts),
    )


CRITERION = Criterion(tau="50")
PROBLEMS = ("alpha.0123456789ab", "beta.0123456789ab", "gamma.0123456789ab", "delta.0123456789ab")


def test_live_rewards_equal_the_replay_at_their_cuts(home: Services) -> None:
    """Two rewarders, one killed while facts arrive: each reward is what the replay gives at its cut, and none lacks."""
    home.start("sink", "--lease", 2)
    args = ("reward", "--tau", "50", "--campaign", "main", "--follow", "--lease", 2)
    item, two = (home.start(*args) for _ in range(2))
    home.shared(item, two, partitions=PARTITIONS["facts"])
    programs = (*REFERENCES, *MODELS[:2])
    with closing(open_ledger(location(home))) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-test", "test", "0")
        for problem in PROBLEMS:
            producer.append(problem_facts(problem, programs, 2))
        producer.append([campaign_of(PROBLEMS, programs)])
        for number, problem in enumerate(PROBLEMS):
            for program in programs:
                producer.append(run_facts("main", problem, program))
            if number == 1:
                until(lambda: item.lines("rewards assigned") or two.lines("rewards assigned"), "rewards come")
                item.send(signal.SIGKILL)
    wanted = "SELECT count(DISTINCT problem_id) FROM reward"
    until(lambda: sql(home.ledger, wanted) == [[len(PROBLEMS)]], "every problem has rewards")
    assert two.stop() == 0
    with closing(open_ledger(location(home))) as ledger:
        with closing(Questions(ledger)) as questions:
            stored = questions.rows("SELECT * FROM reward")
            final, _ = rewards(judge_campaign(questions, "main", CRITERION))
            times = questions.rows("SELECT count(DISTINCT value) AS n FROM reward_assigned GROUP BY reward_id")
        for cut in {row["cut"] for row in stored}:
            with closing(Questions(ledger, Cut.parse(cut))) as questions:
                derived, _ = rewards(judge_campaign(questions, "main", CRITERION))
            expected = {reward.reward_id: asdict(reward) for reward in derived}
            assert all(expected[row["reward_id"]] == row for row in stored if row["cut"] == cut)
    assert {row["reward_id"] for row in stored} == {reward.reward_id for reward in final}
    assert {row["n"] for row in times} == {1}


def test_a_calibrator_waits_for_both_campaigns_then_fits(home: Services) -> None:
    """It says what it waits for and is killed; another one fits once both are complete, and closes its epoch."""
    home.start("sink")
    args = "calibrate", "--from", "old", "--to", "new", "--follow", "--lease", 2
    killed = home.start(*args)
    assert "no campaign" in killed.logged("waiting")[0]["reason"]
    calibrator = home.start(*args)
    calibrator.logged("assigned")
    killed.send(signal.SIGKILL)
    assert killed.ended() == -signal.SIGKILL
    programs, problem = (*REFERENCES, MODELS[0]), PROBLEMS[0]
    with closing(open_ledger(location(home))) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-test", "test", "0")
        producer.append(problem_facts(problem, programs, 2))
        for campaign in ("old", "new"):
            producer.append(campaign_facts(campaign, problem, programs))
            for program in programs:
                producer.append(run_facts(campaign, problem, program))
    (line,) = calibrator.logged("calibration fitted")
    until(lambda: sql(home.ledger, "SELECT count(*) FROM calibration") == [[1]], "the fit is admitted")
    assert calibrator.stop() == 0
    assert sql(home.ledger, "SELECT calibration_id, cut FROM calibration") == [[line["calibration"], line["cut"]]]
    closed = f"SELECT count(*) FROM epoch_closed WHERE epoch = '{line['epoch']}'"
    until(lambda: sql(home.ledger, closed) == [[1]], "its epoch is closed")


def test_a_killed_sealer_is_replaced_and_no_frame_is_lost(local: Services) -> None:
    """Killed between its files and the commit: the next one seals everything, each fact once, and merges segments."""
    local.start("sink", "--lease", 2)
    sealer = local.start("seal", "--follow", "--max-tail-age", 0, "--lease", 2, LAP_CRASH="seal.settled")
    with closing(open_ledger(local.ledger)) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-test", "test", "0")
        producer.append([decided(number) for number in range(10)])
        assert sealer.ended() == -signal.SIGKILL
        sealer = local.start("seal", "--follow", "--max-tail-age", 0, "--lease", 2)
        for number in range(10, 20):
            producer.append([decided(number)])
        until(
            lambda: count(local, "SELECT coalesce(sum(admissions), 0) FROM stream_position") == producer.frames,
            "admitted",
        )
    sealer.logged("sealed")
    until(lambda: count(local, "SELECT count(*) FROM tail") == 0, "the tail is sealed")
    assert sealer.stop() == 0
    assert sql(local.ledger, "SELECT count(*), count(DISTINCT subject_id) FROM filter_decided") == [[20, 20]]
    assert all(line["lease_epoch"] and line["admissions"] for line in sealer.lines("sealed"))


def test_services_outlive_their_broker(
    tmp_path: Path,
    package: Callable[..., None],
    kafka_cluster: Callable[..., KafkaServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker is killed while programs run: outcomes wait in the spool, and all goes on when it is there again."""
    broker = kafka_cluster(nodes=1)
    more = {"LAP_KAFKA": broker.bootstrap, "LAP_KAFKA_PREFIX": "outage", "LAP_KAFKA_TIMEOUT": "3"}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    ledger = tmp_path / "ledger"
    well("ledger", "init", "--ledger", ledger)
    package(ledger)
    well("run", "--campaign", "main", "--submit", "--ledger", ledger)
    with services_on(tmp_path, ledger, **more) as services:
        sink, worker = services.start("sink"), services.start("worker", "--slots", 1)
        until(lambda: sql(ledger, "SELECT count(*) FROM execution")[0][0] > 2, "programs run")
        broker.kill()
        worker.logged("broker away")
        sink.logged("server away")
        broker.start()
        worker.logged("broker back")
        sink.logged("server back")
        until(lambda: sql(ledger, "SELECT count(*) FROM closing") == [[1]], "the campaign is closed")
        assert [service.stop() for service in (worker, sink)] == [0, 0]
    well("sink", "--once", "--ledger", ledger)
    assert [n for *_, n in sql(ledger, OUTCOMES)] == [1] * 25
    assert sql(ledger, "SELECT count(*) FROM execution WHERE surplus OR outcome = 'sandbox_fault'") == [[0]]
    assert list((ledger / "spool").iterdir()) == []


def test_a_worker_whose_spool_stays_full_finishes_what_runs_and_fails(
    tmp_path: Path,
    package: Callable[..., None],
    kafka_cluster: Callable[..., KafkaServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes no more works, ends with exit code 1, and what it had done is delivered when the broker is back."""
    broker = kafka_cluster(nodes=1)
    more = {"LAP_KAFKA": broker.bootstrap, "LAP_KAFKA_PREFIX": "full", "LAP_SPOOL_MB": "1"}
    more |= {"LAP_SPOOL_WAIT": "1", "LAP_KAFKA_TIMEOUT": "3"}
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    ledger = tmp_path / "ledger"
    well("ledger", "init", "--ledger", ledger)
    package(ledger, programs={"accepted/quick.py": ACCEPTED}, small=600)
    well("run", "--campaign", "main", "--submit", "--ledger", ledger)
    with services_on(tmp_path, ledger, **more) as services:
        sink, worker = services.start("sink"), services.start("worker", "--slots", 2)
        worker.logged("works taken")
        assert sink.stop() == 0
        broker.kill()
        assert worker.ended() == 1
        assert worker.lines("failed")[0]["reason"].count("records still wait in") == 1
        broker.start()
        well("run", "--campaign", "main", "--submit", "--ledger", ledger)
        well("sink", "--once", "--ledger", ledger)
    ((finished, faults),) = sql(ledger, "SELECT count(*), count(*) FILTER (outcome = 'sandbox_fault') FROM execution")
    assert finished > 100
    assert faults == 0
    assert list((ledger / "spool").iterdir()) == []
