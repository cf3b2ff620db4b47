"""What each criterion preset means, in one line, and a criterion as TOML lines."""

from lapledger.replay.criteria import Criterion

MEANINGS = {
    "correct": "Correct by all tests; speed is not scored.",
    "rlvr": "Correct by the original tests; speed is not scored.",
    "rlvr-added-tests": "Correct by all tests, where a timeout fails; speed is not scored.",
    "pre": "Only some optimization tests are run; every one of them must end within the hard limit. q is over those.",
    "timeout": "Every optimization test must end within one limit; q is the share of tests that do not.",
    "relative": "A limit on each test from the references' durations there; q is the share of tests above it.",
    "ranked-worst": "A limit on each test from the best references; q is the share of tests above it.",
    "top": "Everything is run, then ranked: q is the rank of the program's score among the references' own scores.",
    "per-test-top": "Everything is run, then ranked: q is the mean of the per-test percentiles.",
    "raw-duration": "-1 when wrong, else the mean duration on the scale of 10 s: the naive reward that hardly teaches.",
    "leaderboard": "-1 when wrong, else by tenths of the leaderboard from 1 down to 0.",
    "split": "-1 when wrong, else one half from the gate at the fastest 30%, and the other from 1 - 2 q.",
    "optimization-only": "Speed alone, right or wrong: a policy learns to be fast and wrong.",
    "additive": "Half for being right, half for being among the fastest 30%: fast and wrong still earns.",
    "multitask": "Groups of rollouts alternate: an even one is rewarded for being right, an odd one for being fast."
    " Programs without a group have no reward.",
}
"""Preset -> its meaning, by the name without parameters."""


def meaning(name: str) -> str:
    """The meaning of a preset."""
    return MEANINGS[max((known for known in MEANINGS if name.startswith(known)), key=len)]


def as_toml(criterion: Criterion) -> list[str]:
    """A line of TOML for every key that differs from its default."""
    changed = criterion.changed().items()
    return [f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"' for key, value in changed]
