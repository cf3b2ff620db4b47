"""Calibration: maps from stored to fresh durations of references, judged out of fold against no map at all.

A map is directed, and holds for one clock, estimator and start-up rule. It moves stored references that were not
re-run into a fresh campaign, never a candidate. Which campaigns to calibrate is the caller's choice.
"""

from lapledger.replay.calibration.fits import Fit, apply, best, fit_kinds, formula
from lapledger.replay.calibration.maps import KINDS, NONE, Maps, fit_line
from lapledger.replay.calibration.merits import Merits
from lapledger.replay.calibration.pools import outside_warning, with_stored

__all__ = [
    "KINDS",
    "NONE",
    "Fit",
    "Maps",
    "Merits",
    "apply",
    "best",
    "fit_kinds",
    "fit_line",
    "formula",
    "outside_warning",
    "with_stored",
]
