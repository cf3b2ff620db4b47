"""A ledger of several problems with many models, made through the real path: for sweeps, matrices and simulations."""

from dataclasses import replace

from tests.support.screen_ledgers import Program, append, opening_over, problem_facts, run_facts

PROBLEMS = ("easy.0123456789ab", "middle.0123456789ab", "hard.0123456789ab")
MODELS = {  # ms of each program; None is a wrong answer
    "base": (95, 85, 75, None),
    "run-1k": (95, 55, 45, None),
    "run-2k": (15, 45, 35, 85),
}
REFERENCES = 10


def programs(slow=1.0):
    """Ten references of 10, 20, ... 100 ms, two wrong humans, and the models' programs, all times `slow`."""
    yield from (Program(f"h{i}", (10 * (i + 1) * slow,) * 2, reference=True) for i in range(REFERENCES))
    yield from (Program(f"w{i}", (5 * slow,) * 2, label="wrong_answer", outcomes={0: "wrong_answer"}) for i in range(2))
    for model, durations in MODELS.items():
        for i, ms in enumerate(durations):
            wrong = {} if ms else {0: "wrong_answer"}
            yield Program(f"{model}-{i}", ((ms or 1) * slow,) * 2, model=model, outcomes=wrong)


def make_many(root, *, killed=False, more=(), change=lambda fact: fact):
    """The cut of a campaign `nightly` over three problems; `killed`: one program of `base` ran into the hard limit.

    `more` are further facts, and `change` is applied to every fact.
    """
    programs_of = {problem: list(programs(1 + number)) for number, problem in enumerate(PROBLEMS)}
    if killed:
        slow = {"ms": (10_000, 1), "outcomes": {0: "time_limit"}}
        programs_of = {
            key: [replace(p, **slow) if p.name == "base-0" else p for p in programs_of[key]] for key in PROBLEMS
        }
    facts = [opening_over("nightly", programs_of)]
    for problem, chosen in programs_of.items():
        facts += problem_facts(problem, chosen, 2)
        facts += [fact for program in chosen for fact in run_facts("nightly", problem, program)]
    return append(root, [change(fact) for fact in (*facts, *more)])
