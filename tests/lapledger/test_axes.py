"""Axes as a person writes them: exact ranges with both ends, units, and what cannot be read."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import UserError
from lapledger.workflows.analysis.axes import durations_ns, factors, limits_ns, percents

TIMES = ["20", "1m", "0.1ns", "ms", "-1s", "0s", "1s:2s:0.4ns"]
tenths = st.integers(1, 400).map(lambda n: Fraction(n, 10))


def test_lists_and_ranges_by_hand():
    """Values as written, ranges with both ends whatever floats would make of them, each unit in ns."""
    assert factors("--alpha", "0.8:1.2:0.1") == (0.8, 0.9, 1.0, 1.1, 1.2)
    assert factors("--alpha", "2,0.5:1:0.25") == (2.0, 0.5, 0.75, 1.0)
    assert percents("100:10:-30,5") == (100, 70, 40, 10, 5)
    assert durations_ns("--beta", "-20ms:20ms:20ms", signed=True) == (-20_000_000, 0, 20_000_000)
    assert durations_ns("--timeout", "1s, 0.5s,3us,7ns") == (10**9, 5 * 10**8, 3_000, 7)
    assert durations_ns("--beta", "0", signed=True) == (0,)
    assert limits_ns("--timeout", "2s,none") == (None, 2 * 10**9)
    assert limits_ns("--timeout", "none") == (None,)


@given(first=tenths, step=tenths, count=st.integers(0, 60), rest=st.integers(0, 9))
def test_a_range_is_first_plus_complete_steps(first, step, count, rest):
    """Every value is first + i step, and the last is at most one step before the end that was asked for."""
    last = first + count * step + step * rest / 10
    args = ":".join(f"{float(value):.9f}".rstrip("0").rstrip(".") for value in (first, last, step))
    assert factors("--alpha", args) == tuple(float(first + i * step) for i in range(count + 1))


@pytest.mark.parametrize(
    "text", ["", ",", "1,", "1:2", "1:2:3:4", "2:1:1", "1:2:-1", "1e3", "nan", "inf", "1/2", "0x1"]
)
def test_numbers_that_cannot_be_read(text):
    """One line that names the option and what was written."""
    with pytest.raises(UserError) as refused:
        factors("--alpha", text)
    assert f"--alpha {text}"[:9] in str(refused.value)


def test_too_many_values():
    """Two ranges of 600 each."""
    with pytest.raises(UserError, match="1200 values; give at most 1000"):
        factors("--alpha", "1:600:1,601:1200:1")


@pytest.mark.parametrize("text", TIMES)
def test_timeouts_that_cannot_be_read(text):
    """No unit, an unknown one, less than a nanosecond, and nothing or less."""
    with pytest.raises(UserError, match="--timeout"):
        limits_ns("--timeout", text)
