"""The ICPC default validator's rules, each with cases computed by hand from the format's own words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import UserError
from lapledger.producers.sandbox.output_checker import AnswerFlags, Judgement, check

PLAIN = AnswerFlags()


def accepted(output: bytes, answer: bytes, flags: str = "") -> bool:
    return check(output, answer, AnswerFlags.parse(flags)).accepted


@pytest.mark.parametrize(
    ("output", "answer", "flags", "verdict"),
    [
        (b"1 2\n3\n", b"1 2 3", "", True),  # white space is a separator and no more
        (b"\t1\r\n2\x0b3\x0c", b"1 2 3", "", True),
        (b"", b" \n", "", True),
        (b"yes", b"YES", "", True),  # case counts only when asked for
        (b"yes", b"YES", "case_sensitive", False),
        (b"12", b"1 2", "", False),
        (b"1.0", b"1", "", False),  # without a tolerance a number is text
        (b"1  2\n", b"1 2\n", "space_change_sensitive", False),
        (b"1 2", b"1 2\n", "space_change_sensitive", False),
        (b"A b\n", b"a B\n", "space_change_sensitive", True),
        (b"1.0", b"1", "float_tolerance 0", True),
        (b"0.5", b"0.75", "float_tolerance 0.25", True),  # 0.25 <= 0.25, absolute
        (b"12.5", b"10", "float_tolerance 0.25", True),  # 2.5 <= 0.25 * 10, relative
        (b"12.5", b"10", "float_absolute_tolerance 0.25", False),
        (b"12.5", b"10", "float_relative_tolerance 0.25", True),
        (b"10", b"12.75", "float_relative_tolerance 0.25", True),  # of the answer: 2.75 <= 3.1875
        (b"12.75", b"10", "float_relative_tolerance 0.25", False),  # not of the output: 2.75 > 2.5
        (b"1e-7", b"0", "float_relative_tolerance 1e-6", False),  # nothing is near zero by proportion
        (b"-.5E+1", b"-5.", "float_tolerance 1e-9", True),
        (b"1_0", b"10", "float_tolerance 1", False),  # not a number in the format
        (b"five", b"5", "float_tolerance 100", False),  # only one is a number: compared as text
        (b"5", b"five", "float_tolerance 100", False),
        (b"Total: 1.0000001", b"total: 1", "float_tolerance 1e-6", True),
        (b"Total: 1.0000001", b"total: 1", "float_tolerance 1e-6 case_sensitive", False),
        (b"nan", b"1", "float_tolerance 1", False),
        (b"1", b"nan", "float_tolerance 1", False),
        (b"nan", b"nan", "float_tolerance 1", True),  # equal text is equal
        (b"inf", b"1e300", "float_tolerance 1", False),
        (b"1e999999999", b"1", "float_tolerance 1e300", False),
        (b"1.5", b"1e400", "float_tolerance 0.5", False),  # inf <= inf / 2 holds, and must not count
        (b"1e999999999", b"1e99999999", "float_tolerance 1", False),  # no difference of two infinities
        (b"\xff\xfe", b"\xff\xfe\n", "", True),
        (b"\xff", b"\xfe", "", False),
        (b"\xc3\x84", b"\xc3\xa4", "", False),  # case is ASCII's: the format speaks of bytes
        (b"\xc2\xa01", b"1", "", False),  # so is white space
    ],
)
def test_each_rule_of_the_format(output: bytes, answer: bytes, flags: str, verdict: bool) -> None:
    """The verdict, and a reason exactly where it is negative."""
    judgement = check(output, answer, AnswerFlags.parse(flags))
    assert judgement.accepted is verdict
    assert (judgement.detail == "") is verdict


@pytest.mark.parametrize(
    ("output", "answer", "detail"),
    [
        (b"1 2 6", b"1 2 5", "token 3: expected '5', got '6'"),
        (b"1 " * 9, b"1 " * 10, "expected 10 tokens, got 9"),
        (b"1 " * 12, b"1 " * 10, "expected 10 tokens, got 12"),
        (b"", b"1", "expected 1 tokens, got 0"),
        (b"\x1b[31m\xff", b"x", "token 1: expected 'x', got '\ufffd[31m\ufffd'"),
        (b"a" * 99, b"b" * 99, f"token 1: expected '{'b' * 40}...', got '{'a' * 40}...'"),
    ],
)
def test_the_reason_names_the_first_difference(output: bytes, answer: bytes, detail: str) -> None:
    """One short line, safe to print."""
    assert check(output, answer, PLAIN) == Judgement(accepted=False, detail=detail)


def test_white_space_is_counted_in_pieces_when_it_matters() -> None:
    """A changed space is named by its place among words and spaces."""
    flags = AnswerFlags(space_change_sensitive=True)
    assert check(b"1\t2", b"1 2", flags).detail == "piece 2: expected ' ', got '\ufffd'"
    assert check(b"1 2\n", b"1 2", flags).detail == "expected 3 pieces, got 4"


def test_flags_are_read_from_a_line() -> None:
    """One tolerance sets both; a later flag adds to an earlier one."""
    assert AnswerFlags.parse("") == PLAIN
    assert AnswerFlags.parse("float_tolerance 1e-6") == AnswerFlags(absolute_tolerance=1e-6, relative_tolerance=1e-6)
    both = "case_sensitive space_change_sensitive float_absolute_tolerance 0.5 float_relative_tolerance 2"
    assert AnswerFlags.parse(both) == AnswerFlags(True, True, 0.5, 2.0)


@pytest.mark.parametrize(
    "line", ["fuzzy", "float_tolerance", "float_tolerance x", "float_tolerance -1", "float_tolerance nan", "1e-6"]
)
def test_unknown_flags_are_the_users_mistake(line: str) -> None:
    """The message is one line and names the flag."""
    with pytest.raises(UserError, match=line.split()[0]):
        AnswerFlags.parse(line)


tokens = st.lists(st.sampled_from([b"1", b"1.5", b"A", b"a", b"nan", b"1e400", b"\xff", b"1e-400"]), max_size=8)
flag_values = st.builds(
    AnswerFlags, st.booleans(), st.booleans(), st.none() | st.floats(0, 2), st.none() | st.floats(0, 2)
)


@given(st.binary(max_size=60), st.binary(max_size=60), flag_values)
def test_any_bytes_are_judged(output: bytes, answer: bytes, flags: AnswerFlags) -> None:
    """Nothing raises, an output is its own answer, and the reason is one printable line of at most 200 characters."""
    assert check(output, output, flags).accepted
    judgement = check(output, answer, flags)
    assert judgement.accepted or 0 < len(judgement.detail) <= 200
    assert judgement.detail.isprintable()


@given(tokens, tokens, flag_values)
def test_the_verdict_is_that_of_a_plain_reading_of_the_rules(
    output: list[bytes], answer: list[bytes], flags: AnswerFlags
) -> None:
    """Against the rules written out one by one; numbers here are those that float() reads, "nan" excepted."""

    def same(want: bytes, have: bytes) -> bool:
        bounds = [flags.absolute_tolerance, flags.relative_tolerance]
        try:
            a, b = float(want), float(have)
        except ValueError:
            a = b = math.nan
        if bounds != [None, None] and not math.isnan(a) and not math.isnan(b):
            absolute, relative = (-1.0 if bound is None else bound for bound in bounds)
            return want == have or (math.isfinite(a - b) and abs(a - b) <= max(absolute, relative * abs(a)))
        return want == have if flags.case_sensitive else want.lower() == have.lower()

    expected = len(output) == len(answer) and all(map(same, answer, output))
    assert check(b" ".join(output), b" ".join(answer), flags).accepted is expected


def test_tokens_longer_than_a_piece_of_the_reading_stay_complete() -> None:
    """The text is split a quarter of a megabyte at a time; tokens across the seam are not cut."""
    long = b"x" * 700_000
    assert accepted(long + b"  " + long + b" y", long + b"\n" + long + b"\ny\n")
    assert not accepted(long + b" " + long, long + long)


def test_megabytes_are_judged() -> None:
    """Many tokens that each need their tolerance, and two enormous ones that differ."""
    flags = AnswerFlags.parse("float_tolerance 1e-6")
    assert check(b"1.5 " * 200_000, b"1.5000001\n" * 200_000, flags).accepted
    assert not check(b"9" * 2_000_000, b"8" * 2_000_000, flags).accepted
