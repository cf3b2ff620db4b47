"""`lap why` and `lap trace` where the plain answer is missing: another campaign's program, an open gate, a kernel."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from lapledger.ledger.events import RewardAssigned
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.loading import KERNEL
from tests.consumers.histories import Campaign, Cell, all_facts, program_id
from tests.consumers.ledgers import append, ledger_with
from tests.support.lap import lap, well

ROW = (Cell(), Cell(ms=(20.0,)))
CAMPAIGN = Campaign("nightly", {"alpha": {"r1": ROW, "r2": ROW, "wrong": (Cell("wrong_answer"), Cell())}})


def test_a_program_of_another_campaign_is_named(tmp_path: Path) -> None:
    """The campaign and the problem that it does not hold stand in one line; exit code 2."""
    later = Campaign("later", {"beta": {"r3": ROW}})
    ledger_with(tmp_path / "ledger", all_facts(CAMPAIGN), all_facts(later)).close()
    args = ("why", program_id("beta", "r3"), "--criterion", "top-50", "--campaign", "nightly")
    done = lap(*args, "--ledger", tmp_path / "ledger")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "campaign 'nightly' has no results of problem 'beta'" in done.err


def test_a_trace_reports_an_open_gate_and_another_kernel(tmp_path: Path) -> None:
    """Eight references asked, two there: g is undecided, not 0. Another kernel's reward is a note, not a failure."""
    root, criterion = tmp_path / "ledger", tmp_path / "mine.toml"
    criterion.write_text("tau = 50\nmin_references = 8\n")
    with closing(ledger_with(root, all_facts(CAMPAIGN))) as ledger:
        (reward,) = well("reward", "--criterion", criterion, "--ledger", root, "--json").json["rewards"]
        tree = well("trace", reward["reward_id"][:12], "--ledger", root).out
        assert "c = 0  wrong_answer on alpha/t0" in tree
        assert "g = undecided  q = " in tree
        with closing(Questions(ledger)) as questions:
            (row,) = questions.rows("SELECT * FROM reward")
        append(ledger, "epoch-older", [replace(RewardAssigned(**row), reward_id="f" * 64, kernel="0.9.0", value=1.0)])
    tree = well("trace", "ffff", "--ledger", root).out
    assert f"not recomputed (kernel 0.9.0; this release has {KERNEL})" in tree
    assert "DIFFERS" not in tree
