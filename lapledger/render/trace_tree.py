"""The tree that `lap trace` prints: a reward, its gates, its tests with their percentiles, and every timing."""

from typing import Any

from rich.text import Text
from rich.tree import Tree

from lapledger.consumers.derive.reward_audit import TestTrace, Trace
from lapledger.render.output import count


def trace_tree(traced: Trace) -> Tree:
    """The tree of a reward, down to its timings."""
    reward = traced.reward
    root = Tree(Text(f"reward {reward['value']:+g}  {reward['reward_id']}", style="bold"))
    program = root.add(Text(f"program {reward['program_id']} (expected verdict: {traced.program['label'] or 'none'})"))
    if traced.executed != reward["program_id"]:
        program.add(Text(f"not executed itself: {traced.executed} has the same source, its executions count for both"))
    root.add(
        Text(f"criterion {traced.criterion['name']} {reward['criterion_hash'][:12]}  {traced.criterion['canonical']}")
    )
    root.add(Text(_calibration(traced.calibration)))
    gates = root.add(Text("gates"))
    gates.add(Text(f"c = {_gate(reward['c'])}  {'correct' if reward['c'] else traced.reason}"))
    gates.add(Text(f"g = {_gate(reward['g'])}  {_quality(reward)}"))
    tests = root.add(Text(f"tests, ranked among {count(reward['pool_size'], 'reference')}"))
    for test in traced.tests:
        _test(tests, test)
    root.add(Text(f"evidence {reward['evidence_digest']}  kernel {reward['kernel']}"))
    root.add(Text(f"cut of the reward {reward['cut']}"))
    root.add(_agreement(traced))
    return root


def _calibration(row: Any) -> str:
    if row is None:
        return "calibration: none, all timings are of this campaign"
    from lapledger.replay.calibration import formula

    text = formula(row["a"], row["b_ns"], row["power"])
    return f"calibration {row['calibration_id'][:12]}: {text}, from campaign {row['source_campaign']}"


def _gate(value: bool | None) -> str:
    return "undecided" if value is None else str(int(value))


def _quality(reward: Any) -> str:
    if not reward["q_denominator"]:
        return "no rank"
    q = reward["q_numerator"] / reward["q_denominator"]
    return f"q = {reward['q_numerator']}/{reward['q_denominator']} = {q:.4f}"


def _test(tree: Tree, test: TestTrace) -> None:
    name = test.test_id.split("/", 1)[1]
    rank = "not ranked" if test.percentile is None else f"percentile {test.percentile:.1f}{_among(test)}"
    parts = (name, test.outcome, f"{test.duration_ns / 1e6:.2f} ms", rank, _detail(test))
    branch = tree.add(Text("  ".join(parts).rstrip()))
    for timing in test.timings:
        kind = "warm-up" if timing["warmup"] else "timing"
        fields = {name: "unknown" if value in (None, "") else value for name, value in timing.items()}
        memory = timing["peak_memory_bytes"]
        neighbours = timing["neighbours"]
        fields["concurrent"] = "unknown concurrency" if neighbours is None else count(neighbours, "concurrent run")
        fields["memory"] = "unknown memory" if memory is None else f"{memory >> 20} MiB"
        line = (
            "{repetition}: wall {wall_ns} ns, user {user_ns} ns, system {system_ns} ns, {memory}, "
            "slot {slot}, {concurrent}, position {position} in shuffled order, {isolation}"
        )
        branch.add(Text(f"{kind} {line.format_map(fields)}"))


def _among(test: TestTrace) -> str:
    """The basis of the percentile: the references' range, or why the run ranks last."""
    if test.outcome != "accepted":
        return ", as it failed"
    if not test.references_ns:
        return ""
    low, high = test.references_ns[0] / 1e6, test.references_ns[-1] / 1e6
    faster = sum(ns < test.duration_ns for ns in test.references_ns)
    return f", {faster} of {len(test.references_ns)} references faster ({low:.1f} .. {high:.1f} ms)"


def _detail(test: TestTrace) -> str:
    return "" if test.outcome == "accepted" else "".join(c if c.isprintable() else " " for c in test.detail)


def _agreement(traced: Trace) -> Text:
    if traced.note:
        return Text(traced.note, style="yellow")
    if not traced.differences:
        return Text("recomputed: reward matches", style="green")
    return Text("recomputed: MISMATCH: " + "; ".join(traced.differences), style="red")
