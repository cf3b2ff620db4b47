"""A problem's own limits of time and memory put to runs that were executed under others, as a worker would have."""

from dataclasses import replace

from lapledger.consumers.exports.replayer.facts import Problem, Run


def enforce(problem: Problem) -> Problem:
    """The problem with each run above a limit of its package stopped there; repetitions stay as measured."""
    time, memory = (problem.limits[name] for name in ("time_limit_ns", "memory_limit_bytes"))
    return replace(problem, runs=[[run and _stopped(run, time, memory) for run in row] for row in problem.runs])


def _stopped(run: Run, time: int | None, memory: int | None) -> Run:
    if time is not None:
        longer = max(run.clocks["wall"], default=0) > time
        limit = time if longer else min(run.limit_ns, time)
        if longer or (run.outcome == "time_limit" and run.limit_ns > time):
            return replace(run, outcome="time_limit", limit_ns=limit)
        run = replace(run, limit_ns=limit)
    above = memory is not None and max(run.clocks["memory"], default=0) > memory
    return replace(run, outcome="memory_limit") if above and run.outcome in ("accepted", "wrong_answer") else run
