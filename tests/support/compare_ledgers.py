"""Campaigns of two pairs of training runs over four problems, for comparisons and calibrations."""

from tests.support.screen_ledgers import Program, opening_over, run_facts

PROBLEMS = tuple(f"p{i}.0123456789ab" for i in range(1, 5))
FIRST = {"top-1": (15, 55, 95, None), "top-2": (15, 55, 95, None), "base-1": (55, 95, 95, None), "base-2": (55,) * 4}
LAST = {"top-1": (15, 15, 15, 15), "top-2": (15, 55, 55, 95), "base-1": (None,) * 4, "base-2": (95, 95, 95, None)}
"""ms of four samples a model on problems 1 to 3, and on problem 4; None is a wrong answer.

Among references of 10, 20, ... 100 ms: 15 ms has q = 1/10, 55 ms 5/10, 95 ms 9/10.
"""
SLOWER, LATER_MS = 1.25, 20


def programs(problem, scale=lambda ms: ms):
    """Ten references and the models' samples."""
    yield from (Program(f"h{i}", (scale(10.0 * (i + 1)),) * 2, reference=True) for i in range(10))
    for model, durations in (LAST if problem == PROBLEMS[-1] else FIRST).items():
        for i, ms in enumerate(durations):
            wrong = {} if ms else {0: "wrong_answer"}
            yield Program(f"{model}-{i}", (scale(float(ms or 1)),) * 2, model=model, outcomes=wrong)


def campaign(name, scale=lambda ms: ms, *, excluded=()):
    """The opening and the runs of a campaign over the four problems, without some programs."""
    programs_of = {
        problem: [program for program in programs(problem, scale) if program.name not in excluded]
        for problem in PROBLEMS
    }
    run = [
        fact
        for problem, chosen in programs_of.items()
        for program in chosen
        for fact in run_facts(name, problem, program)
    ]
    return [opening_over(name, programs_of), *run]
