"""`lap demo`: the full workflow on four problems of the corpus; each command is printed before it runs."""

import shutil
from pathlib import Path

import click

from lapledger.ledger.errors import UserError
from lapledger.render.output import print_message

PROBLEMS = ("slidingmax", "stonegame", "pairsums", "recurrence")
LIMIT = "2"
MARKER = "made-by-lap-demo"
STRICT, SECOND = "top-50", "per-test-top-30"


@click.command()
@click.option("--into", default="demo", type=click.Path(), metavar="DIR", help="New folder.  [default: demo]")
@click.option("--replace", is_flag=True, help="Delete an earlier demo in this folder, with all that was added to it.")
def command(into: str, *, replace: bool) -> None:
    """Run the full workflow on four sample problems: import, run, evaluate, reward, trace, calibrate, verify, plot.

    \b
    Example:
      lap demo --into /tmp/demo
    """
    root = Path(into)
    _make_room(root, replace=replace)
    at = ["--ledger", str(root)]
    packages = [str(demo_corpus() / name) for name in PROBLEMS]
    _lap("ledger", "init", *at)
    _lap("import", "icpc", *packages, *at)
    _lap("import", "samples", str(demo_corpus() / "samples.jsonl"), *at)
    _lap("run", "--campaign", "main", "--limit", LIMIT, "--slots", "2", *at)
    _lap("problems", *at)
    _lap("replay", "--tau", "100", "--tau", "50", "--tau", "30", "--plot", str(root / "curve.png"), *at)
    _lap("replay", "--criterion", STRICT, "--against", SECOND, "--flips", *at)
    _lap("compare", "tuned-0", "tuned-100", "--tau", "100", "--tau", "30", *at)
    _lap("reward", "--criterion", STRICT, *at)
    _lap("why", _slow_but_right(root), *at)
    _lap("trace", _a_reward(root), *at)
    recheck = ["--campaign", "recheck", "--references-only", "--every", "3"]
    _lap("run", "stonegame", "recurrence", *recheck, "--limit", LIMIT, "--slots", "2", *at)
    _lap("calibrate", "--from", "main", "--to", "recheck", *at)
    _lap("seal", *at)
    _lap("verify", *at)
    print_message(
        f"\nresults are in {root}: browse them with `lap tui --ledger {root}`; the plot is {root / 'curve.png'}"
    )


def _make_room(root: Path, *, replace: bool) -> None:
    """Recreates the folder; UserError when it holds an earlier demo that is not to be replaced, or anything else."""
    if root.exists():
        if not root.is_dir() or (any(root.iterdir()) and not (root / MARKER).is_file()):
            raise UserError(f"{root} was not made by `lap demo`; choose another folder with --into")
        if any(root.iterdir()) and not replace:
            raise UserError(
                f"{root} holds an earlier demo; add --replace to delete it, or choose another folder with --into"
            )
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


def _lap(*arguments: str) -> None:
    from lapledger.cli.main import run

    print_message(f"\n$ lap {' '.join(arguments)}")
    code = run(arguments)
    if code:
        raise click.exceptions.Exit(code)


def _slow_but_right(root: Path) -> str:
    """A correct program that failed by its speed: the one whose verdict is the least obvious."""
    return _first(root, f"SELECT program_id AS text {_SLOW}")


def _a_reward(root: Path) -> str:
    return _first(root, f"SELECT reward_id[:16] AS text {_SLOW}")


_SLOW = """FROM reward JOIN program USING (program_id)
WHERE model = 'human' AND c AND value < 0 ORDER BY program_id LIMIT 1"""


def _first(root: Path, sql: str) -> str:
    from lapledger.ledger.questions.open_questions import open_questions

    with open_questions(root) as questions:
        return str(questions.rows(sql)[0]["text"])
