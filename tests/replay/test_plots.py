"""Curves and pictures: the curve is what each tau would say by itself, the picture is a file of its kind."""

import numpy as np
from hypothesis import given, settings

from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import judge
from lapledger.replay.plots.curves import curve_plot
from lapledger.replay.studies.curves import tau_curve
from tests.replay.builders import measured, problems

TAUS = ("100", "50", "12.5", 10)


@given(m=problems())
@settings(deadline=None, max_examples=30)
def test_a_curve_is_the_estimate_at_every_tau(m):
    """Ranks made once and reused give the same pass@1 as judging each tau from the start."""
    curves = tau_curve([m], Criterion(reading="score"), TAUS)
    tau, value, low, high = curves["human"]
    assert tau.tolist() == [100, 50, 12.5, 10]
    for i, at in enumerate(TAUS):
        (expected,) = estimate([judge(m, Criterion(tau=str(at), reading="score"))], [m], 1)
        assert value[i] == expected.value
    assert np.isnan(low).all()
    assert np.isnan(high).all()  # one problem has no interval


def test_pictures_are_files_of_their_kind_and_repeat():
    """PNG and SVG by their signatures; the same input gives the same bytes; the footer is in the SVG's text paths."""
    curves = tau_curve([measured([[3], [1], [2]], reference=[1, 2])], Criterion(), TAUS)
    png, svg = (curve_plot(curves, "pass@1 against tau", "cut 7", fmt=fmt) for fmt in ("png", "svg"))
    assert png.startswith(b"\x89PNG\r\n")
    assert b"<svg" in svg
    assert b"cut 7" in svg
    assert curve_plot(curves, "pass@1 against tau", "cut 7", fmt="svg") == svg
    assert curve_plot(curves, "pass@1 against tau", "cut 7") == png
