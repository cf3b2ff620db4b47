"""A/A figures by hand: the same code between campaigns and between the halves of its repetitions."""

import dataclasses

import numpy as np
import pytest

from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates import between_campaigns, between_halves
from tests.replay.builders import MS, measured


def test_the_same_code_in_two_campaigns():
    """Everything 1.25 times slower the second time but one program, 1.6 times: geometric mean and spread by hand."""
    first = [measured([[4, 8], [12, 20]], reference=[0], problem=p, campaign="one") for p in ("x", "y")]
    second = [dataclasses.replace(m, campaign="two", wall_ns=m.wall_ns * 5 // 4) for m in first]
    wall = second[0].wall_ns.copy()
    wall[0] = first[0].wall_ns[0] * 8 // 5  # 6 and 12
    second[0] = dataclasses.replace(second[0], wall_ns=wall)
    figure = between_campaigns(first, second, Criterion())
    assert (figure.between, figure.programs, figure.problems, figure.pairs) == ("campaigns one and two", 4, 2, 8)
    assert 1 / figure.speedup == pytest.approx((1.25**3 * 1.5) ** (1 / 4), rel=1e-9)
    assert (figure.usual, figure.largest) == (pytest.approx(1.25), pytest.approx(1.5))
    logs = np.log([1.25**1 * 1.5, 1.25**2]) / 2
    assert figure.interval[0] < 1 / np.exp(logs.mean()) < figure.interval[1]
    assert between_campaigns(first, [], Criterion()) is None


def test_each_problem_counts_alike_in_the_a_a_figure():
    """One program half as slow on x, three that stay as they are on y: the root of 2, not its fourth root."""
    first, second = (
        [measured([[ms]] * count, reference=[0], problem=p, campaign=of) for p, ms, count in (("x", x, 1), ("y", 2, 3))]
        for of, x in (("one", 4), ("two", 2))
    )
    figure = between_campaigns(first, second, Criterion())
    assert figure.speedup == pytest.approx(2**0.5)
    assert (figure.programs, figure.problems, figure.usual, figure.largest) == (4, 2, 1, pytest.approx(2))


@pytest.mark.parametrize(("startup", "expected"), [("keep", 60 / 62), ("subtract", 10 / 12)])
def test_the_same_code_without_its_start_up(startup, expected):
    """60 and 62 ms, of which 50 ms are start-up: 10 and 12, in halves as in two campaigns."""
    criterion, baseline = Criterion(startup=startup), np.full((3, 1), 50 * MS)
    wall = np.array([[[60 * MS, 62 * MS]]] * 3)
    halves = between_halves([measured(wall, reference=[0], startup_ns=baseline)], criterion)
    assert halves.speedup == pytest.approx(expected)
    first, second = (measured(wall[:, :, i], reference=[0], startup_ns=baseline, campaign=str(i)) for i in (0, 1))
    assert between_campaigns([first], [second], criterion).speedup == pytest.approx(expected)
    unknown = measured(wall, reference=[0], startup_ns=np.full((3, 1), -1))
    assert (between_halves([unknown], criterion) is None) == (startup == "subtract")


def test_the_same_code_in_two_halves_of_its_repetitions():
    """Odd repetitions 2, 2, even 3: the median of each half, 2/3; without repetitions there is no figure."""
    wall = np.array([[[2, 3, 2]], [[20, 30, 20]]])
    m = measured(wall, reference=[0])
    figure = between_halves([m], Criterion())
    assert (figure.speedup, figure.usual, figure.programs) == (pytest.approx(2 / 3), pytest.approx(1.5), 2)
    assert (figure.between, figure.interval) == ("odd and even repetitions", None)
    assert between_halves([measured([[1]], reference=[0])], Criterion()) is None
