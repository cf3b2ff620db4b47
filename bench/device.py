"""One criterion over timings that lie on a device: the rank kernel in torch against torch's own binary search.

`python bench/device.py [--device cuda] [--problems 302] [--quick] [--json]` prints what the other
benches do. 302 problems x 60 tests x 360 candidates are 6.5 million timings, beside 50 references a problem.
On a GPU the device is waited for around every round. Not a test: no figure here can fail the gate.
"""

import argparse
import dataclasses
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from figures import log, printed, row, timed
from judge import synthetic

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.batches import hold
from lapledger.replay.judging.gates import judge

REACH_S = {"cuda": 0.001}
"""What is aimed at on an H200."""
ROUNDS = {"cpu": 3, "cuda": 100}


def waiting(call: Callable[[], object], device: str) -> None:
    """The call, and all that it left the device to do."""
    call()
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(call: Callable[[], object], device: str) -> float:
    """The median wall time of a call over some rounds, after one that warms up, in seconds."""
    waiting(call, device)
    return statistics.median(timed(partial(waiting, call, device)) for _ in range(ROUNDS[device]))


def main() -> None:
    """Prints the figures, as lines or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--problems", type=int, default=302)
    parser.add_argument("--quick", action="store_true", help="ten problems")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    criterion = Criterion(tau="30")
    several = [
        dataclasses.replace(synthetic(360, 60, seed), problem=f"p{seed}")
        for seed in range(10 if options.quick else options.problems)
    ]
    held = hold(several, criterion, options.device)
    check(held.resident.evaluate(criterion).passed, several, criterion)
    (arm,) = held.resident.ends
    search = seconds(partial(torch.searchsorted, arm.rising, arm.mine, out_int32=True), options.device)
    rows = [row("torch.searchsorted alone", search, "s")]
    for reading in ("leaderboard", "score"):
        question = dataclasses.replace(criterion, reading=reading)
        value = seconds(partial(held.resident.evaluate, question), options.device)
        rows.append(row(f"one criterion, {reading}", value, "s", baseline=search, reach=REACH_S.get(options.device)))
    log(f"{options.device}: {torch.cuda.get_device_name() if options.device == 'cuda' else 'no GPU'}")
    print(printed(rows, as_json=options.json))


def check(passed: torch.Tensor, several: list, criterion: Criterion) -> None:
    """The first problem's programs that pass are those of the numpy kernel: wrong answers are quickly given."""
    verdicts = judge(several[0], criterion)
    models = np.array(several[0].models)
    expected = [int((verdicts.status[models == model] == 1).sum()) for model in ("human", "model")]
    if passed[0].tolist() != expected:
        raise SystemExit(f"device: {passed[0].tolist()} programs pass, numpy says {expected}")


if __name__ == "__main__":
    main()
