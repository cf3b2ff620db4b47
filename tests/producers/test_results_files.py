"""Result files are untrusted: whatever is wrong is one line with file, place and what to do, and leaves nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import UserError
from lapledger.ledger.events import key_of, to_batch, type_of
from lapledger.ledger.frames.frame import Link, make_frame
from lapledger.ledger.store.values import check_values
from lapledger.producers.importers import evalperf, files, livecodebench, mercury, pyperf
from lapledger.producers.importers.events import Provenance, closing_events, problem_events
from lapledger.producers.importers.model import identifier_part, line, model_of
from lapledger.producers.importers.records import Record
from lapledger.producers.importers.runs import Known
from tests.producers.results_files import (
    benchmark,
    mercury_sample,
    mercury_session,
    new_ledger,
    perf_task,
    question,
    suite,
    write,
)
from tests.support.lap import lap, sql

READERS: dict[str, Callable[[Path], Any]] = {
    "mercury": mercury.read,
    "livecodebench": livecodebench.read,
    "evalperf": evalperf.read,
    "pyperf": pyperf.read,
}
SOUND: dict[str, Any] = {
    "mercury": mercury_session(two_sum=[mercury_sample()]),
    "livecodebench": [question("1", True, False)],
    "evalperf": {"HumanEval/1": perf_task([1.0], 1, [(50.0, 2.0), (100.0, 1.0)])},
    "pyperf": suite(benchmark("nbody", [0.1, 0.2])),
}
BROKEN = {
    "not UTF-8": (b'{"a": "\xff"}', "line 1: not UTF-8"),
    "cut off": (b'{"a":\n [1,', "line 2: broken JSON"),
    "NaN": (b'{"a": NaN}', "NaN is no JSON number"),
    "minus infinity": (b'{"a": -Infinity}', "-Infinity is no JSON number"),
    "beyond floats": (b'{"a": 1e999}', "1e999 is beyond every measurement"),
    "a key twice": (b'{"a": 1, "a": 2}', "the key 'a' appears twice"),
    "too deep": (b"[" * 100_000, "nested too deeply"),
    "a number of many digits": (b"[" + b"9" * 5000 + b"]", "digits"),
    "gzip": (b"\x1f\x8b\x08\x00", "compressed by gzip; unpack it first"),
    "a pickle": (b"\x80\x04\x95\x0b", "not UTF-8"),
    "nothing": (b"", "broken JSON"),
}


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_sound_json_is_refused_by_every_reader(tmp_path: Path, form: str, broken: str) -> None:
    """One line, with the file's name and the reason."""
    data, reason = BROKEN[broken]
    path = tmp_path / "results.json"
    path.write_bytes(data)
    with pytest.raises(UserError, match=reason) as refused:
        READERS[form](path)
    assert "results.json" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("form", READERS)
def test_a_file_of_another_format_is_refused(tmp_path: Path, form: str) -> None:
    """No reader takes what another tool wrote."""
    for second, value in SOUND.items():
        path = write(tmp_path / f"{second}.json", value)
        if second == form:
            assert READERS[form](path).problems
            continue
        with pytest.raises(UserError):
            READERS[form](path)


def locations(value: Any) -> list[list[Any]]:
    """The path of keys and indices to every value in a JSON value, itself left out."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [[key, *rest] for key in keys for rest in ([], *locations(value[key]))]


@given(st.sampled_from(sorted(SOUND)), st.data())
def test_a_value_of_a_wrong_kind_never_brings_a_reader_down(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: Any
) -> None:
    """Any value replaced by any other: the file is read into events that can be stored, or refused in one line."""
    value = json.loads(json.dumps(SOUND[form]))
    *way, last = data.draw(st.sampled_from(locations(value)))
    at = value
    for key in way:
        at = at[key]
    junk = [None, True, -1, 2**70, 1e300, -0.5, "", "\ud800", "x\0\n", [], [None], {}, {"a": 1}, [[1, 2, 3]], "9" * 400]
    at[last] = data.draw(st.sampled_from(junk))
    path = write(tmp_path_factory.getbasetemp() / "junk.json", value)
    try:
        results = READERS[form](path)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert "junk.json" in str(error)  # noqa: PT017
        return
    nothing = Known(frozenset(), frozenset(), frozenset())
    made = [problem_events(results, item, "c", known=nothing, license_="") for item in results.problems]
    seen = [event for item in made for event in item.events] + closing_events(results, "c", Provenance())
    for location, event in enumerate(seen):
        declared = type_of(event)
        link = Link("e", declared.stream, 0, location, "")
        check_values(make_frame(declared, key_of(event), link, to_batch([event])))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a name that leads nowhere, a pipe that would never end."""
    with pytest.raises(UserError, match="is no file"):
        files.read_file(tmp_path)
    with pytest.raises(UserError, match="cannot read"):
        files.read_file(tmp_path / "absent.json")
    with pytest.raises(UserError, match="is no file"):
        files.digest_of(Path("/dev/zero"))


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read whole, and a line of one that is not."""
    path = write(tmp_path / "long.json", ["x" * 3000])
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 2000)
    with pytest.raises(UserError, match=r"'long\.json': 3004 bytes, above the limit"):
        files.read_file(path)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 2000)
    with pytest.raises(UserError, match=r"'long\.json', line 1: longer than"):
        list(files.lines_of(path))


def test_a_record_reports_what_is_wrong_with_a_value() -> None:
    """The place, the key, what was found and what was expected."""
    record = Record({"a": "x" * 200, "b": True, "c": 1.5, "e": {}}, "FILE, sample 3")
    with pytest.raises(UserError, match=r"^FILE, sample 3: 'a' is 'x{60}\.\.\.', expected a finite number; is this"):
        record.number("a")
    with pytest.raises(UserError, match="'b' is 'true', expected a whole number from 0"):
        record.integer("b")
    with pytest.raises(UserError, match="'d' is missing, expected a text"):
        record.text("d")
    with pytest.raises(UserError, match=r"'c' is '1\.5', expected a list"):
        record.items("c")
    with pytest.raises(UserError, match=r"'e' is '\{\}', expected true or false"):
        record.flag("e")


@pytest.mark.parametrize(("seconds", "ns"), [(0, 0), (0.0003066062927246094, 306606), (4.272644281387329, 4272644281)])
def test_seconds_become_complete_nanoseconds(seconds: float, ns: int) -> None:
    """Rounded to the nearest."""
    assert Record({"t": seconds}, "").seconds_ns("t") == ns
    for wrong in (-1e-9, 2**60 / 1e9, 10**400):
        with pytest.raises(UserError, match="'t' is"):
            Record({"t": wrong}, "").seconds_ns("t")


def test_texts_of_a_file_become_parts_of_ids() -> None:
    """Only letters, digits, dots, dashes and underscores are left, and something always is."""
    assert identifier_part("HumanEval/17") == "HumanEval-17"
    assert identifier_part("..//..") == "x"
    assert identifier_part("a" * 99) == "a" * 40
    assert model_of("gpt-4-1106-preview_eval.json") == "gpt-4-1106-preview"
    assert model_of("deepseek-coder-6.7b-instruct_eval_new.json") == "deepseek-coder-6.7b-instruct"
    assert model_of("q_evalperf_results.json") == "q"
    assert line("a\n\x1b[2Jb\u200b  c") == "a [2Jb c"


def test_a_bad_file_among_good_ones_leaves_nothing(tmp_path: Path) -> None:
    """All are read before anything is written; the command ends with 2 and one line."""
    ledger = new_ledger(tmp_path)
    good = write(tmp_path / "good_eval.json", SOUND["mercury"])
    bad = write(tmp_path / "bad_eval.json", {"two-sum": [{"status": 3}]})
    done = lap("import", "mercury", good, bad, "--ledger", ledger)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "'bad_eval.json', 'two-sum', sample 1" in done.err
    assert sql(ledger, "SELECT count(*) FROM program") == [[0]]
