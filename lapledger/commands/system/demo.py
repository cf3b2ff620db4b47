"""`lap demo`: the main job on four problems of the corpus, one command after another, each printed before it runs."""

import shutil
from pathlib import Path

import click

from lapledger.ledger.errors import UserError
from lapledger.render.output import say

PROBLEMS = ("slidingmax", "stonegame", "pairsums", "recurrence")
LIMIT = "2"
MARKER = "made-by-lap-demo"
STRICT, OTHER = "top-50", "per-test-top-30"


@click.command()
@click.option("--into", default="demo", type=click.Path(), metavar="DIR", help="A new folder.  [default: demo]")
def command(into: str) -> None:
    """Run the main job: import, run, judge under two criteria, reward, trace, calibrate, verify, draw a picture.

    \b
    Example:
      lap demo --into /tmp/demo
    """
    root = Path(into)
    _make_room(root)
    at = ["--ledger", str(root)]
    packages = [str(demo_corpus() / name) for name in PROBLEMS]
    _lap("ledger", "init", *at)
    _lap("import", "icpc", *packages, *at)
    _lap("run", "--campaign", "main", "--limit", LIMIT, "--slots", "2", *at)
    _lap("problems", *at)
    _lap("replay", "--tau", "100", "--tau", "50", "--tau", "30", "--plot", str(root / "curve.png"), *at)
    _lap("replay", "--criterion", STRICT, "--against", OTHER, "--flips", *at)
    _lap("reward", "--criterion", STRICT, *at)
    _lap("why", _slow_but_right(root), *at)
    _lap("trace", _a_reward(root), *at)
    recheck = ["--campaign", "recheck", "--references-only", "--every", "3"]
    _lap("run", "stonegame", "recurrence", *recheck, "--limit", LIMIT, "--slots", "2", *at)
    _lap("calibrate", "--from", "main", "--to", "recheck", *at)
    _lap("seal", *at)
    _lap("verify", *at)
    say(f"\nall of it is in {root}; open it with `lap tui --ledger {root}`, the picture is {root / 'curve.png'}")


def _make_room(root: Path) -> None:
    """Makes the folder anew; UserError when there is anything that no earlier demo made."""
    if root.exists():
        if not root.is_dir() or (any(root.iterdir()) and not (root / MARKER).is_file()):
            raise UserError(f"{root} was not made by `lap demo`; choose another folder with --into")
        shutil.rmtree(root)
    root.mkdir(parents=True)
    (root / MARKER).write_text("`lap demo` made this folder and may delete it\n")


def demo_corpus() -> Path:
    """The folder with the demo's problems: beside the code in a checkout, inside the package when installed."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package.parent / "corpus", package / "producers" / "corpus" / "demo"):
        if all((folder / name / "problem.yaml").is_file() for name in PROBLEMS):
            return folder
    raise UserError("the demo's problems are missing from this installation; install lapledger again")


def _lap(*words: str) -> None:
    from lapledger.cli.main import run

    say(f"\n$ lap {' '.join(words)}")
    code = run(words)
    if code:
        raise click.exceptions.Exit(code)


def _slow_but_right(root: Path) -> str:
    """A correct program that failed by its speed: the one whose verdict is the least obvious."""
    return _one(root, "SELECT program_id AS found FROM reward WHERE c AND value < 0 ORDER BY program_id LIMIT 1")


def _a_reward(root: Path) -> str:
    return _one(root, "SELECT reward_id[:16] AS found FROM reward WHERE c AND value < 0 ORDER BY program_id LIMIT 1")


def _one(root: Path, sql: str) -> str:
    from lapledger.ledger.questions.open_questions import open_questions

    with open_questions(root) as questions:
        return str(questions.rows(sql)[0]["found"])
