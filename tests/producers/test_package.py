"""The package reader: what it takes from a folder, and the one line with which it refuses each broken one."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.producers.corpus import files as bounds
from lapledger.producers.corpus.documents import MAX_DOCUMENT_BYTES, parse
from lapledger.producers.corpus.folders import find_packages
from lapledger.producers.corpus.package import read_package
from lapledger.producers.corpus.settings import read_limit, read_settings

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "icpc"
realdata = [
    pytest.mark.realdata,
    pytest.mark.skipif(not REAL.is_dir(), reason="the real packages are not beside the checkout (../shared/data/icpc)"),
]

Contents = Mapping[str, str | bytes | None]

BASE = {
    "problem.yaml": "name: Adding\nvalidation: default\n",
    "data/sample/1.in": "1 2\n",
    "data/sample/1.ans": "3\n",
    "submissions/accepted/add.py": "print(sum(map(int, input().split())))\n",
}


def write(folder: Path, extra: Contents) -> Path:
    """A package of BASE with some files put in, or left out where they are None."""
    for path, content in {**BASE, **extra}.items():
        if content is not None:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def pair(path: str, content: str = "5\n") -> dict[str, str]:
    """The two files of a test."""
    return {f"{path}.in": content, f"{path}.ans": content}


def refusal(folder: Path) -> str:
    """The message with which a folder is refused; it is one printable line."""
    with pytest.raises(UserError) as caught:
        read_package(folder)
    message = str(caught.value)
    assert message.isprintable()
    return message


# What a package says


def test_a_small_package_is_read_complete(tmp_path: Path) -> None:
    """Title, judging, statement, tests and programs come from their places; ids follow from the digests."""
    package = read_package(
        write(
            tmp_path / "My_Sum",
            {
                "problem.yaml": "name: {sv: Summa, en: Sum}\nsource: A contest\nlicense: cc by-sa\n"
                "validator_flags: float_tolerance 1e-6\nlimits: {time_limit: 1.5}\nlevel: easy\n",
                "problem_statement/problem.sv.md": "Lägg ihop.",
                "problem_statement/problem.en.md": "Add.",
                "problem_statement/solution.en.md": "a + b",
            },
        ),
        tier_field="level",
    )
    assert (package.slug, package.name, package.source, package.license) == ("my-sum", "Sum", "A contest", "cc by-sa")
    assert (package.validator_flags, package.time_limit_ns) == ("float_tolerance 1e-6", 1_500_000_000)
    assert (package.statement, package.tier, package.grading) == (b"Add.", "easy", "")
    source = BASE["submissions/accepted/add.py"].encode()
    assert package.problem_id == f"my-sum.{package.digest[:12]}"
    assert [package.test_id(test) for test in package.tests] == [f"{package.problem_id}/sample/1"]
    assert [package.program_id(program) for program in package.programs] == [
        f"{package.problem_id}/add.{hashlib.sha256(source).hexdigest()[:12]}"
    ]


@pytest.mark.parametrize(
    ("path", "original", "correctness", "optimization"),
    [
        ("sample/a", True, True, False),
        ("secret/a", True, True, True),
        ("secret/group1/a", True, True, True),
        ("secret/correctness/a", True, True, False),
        ("secret/correctness/deep/a", True, True, False),
        ("secret/optimization/a", False, False, True),
        ("secret/optimization", True, True, True),
        ("secret/optimizations/a", True, True, True),
    ],
)
def test_the_folder_of_a_test_gives_its_roles(
    tmp_path: Path, path: str, original: bool, correctness: bool, optimization: bool
) -> None:
    """Samples check correctness, added optimization tests only time; any other secret test does both."""
    tests = {test.path: test for test in read_package(write(tmp_path / "p", pair(f"data/{path}"))).tests}
    test = tests[path]
    assert (test.original, test.correctness, test.optimization) == (original, correctness, optimization)
    assert test.group == path.rpartition("/")[0]


def test_tests_come_in_the_order_of_the_format(tmp_path: Path) -> None:
    """Names sort at each level, files and folders together, samples first; the suffix plays no part."""
    extra = pair("data/secret/b") | pair("data/secret/a-1") | pair("data/secret/a/z") | pair("data/secret/a.b")
    tests = read_package(write(tmp_path / "p", extra)).tests
    assert [test.path for test in tests] == ["sample/1", "secret/a/z", "secret/a-1", "secret/a.b", "secret/b"]


def test_grading_is_canonical_json_of_what_the_groups_state(tmp_path: Path) -> None:
    """Keys sorted, numbers as numbers, an open end null, nothing that was not stated; only for scoring problems."""
    extra = {
        "problem.yaml": "name: A\ntype: scoring\n",
        "data/sample/testdata.yaml": "accept_score: 0.5\nrange: -inf +inf\n",
        "data/secret/g/testdata.yaml": "range: 0 7\naccept_score: 7\non_reject: break\ngrader_flags: min\nother: 1\n",
    }
    extra |= pair("data/secret/g/1")
    package = read_package(write(tmp_path / "p", extra))
    assert package.grading == (
        '{"sample":{"accept_score":0.5,"range":[null,null]},'
        '"secret/g":{"accept_score":7,"grader_flags":"min","on_reject":"break","range":[0,7]}}'
    )
    plain = read_package(write(tmp_path / "q", extra | {"problem.yaml": "name: A\n"}))
    assert plain.grading == ""
    assert plain.digest != package.digest


def test_time_limit_file_counts_where_the_yaml_states_none(tmp_path: Path) -> None:
    """`.timelimit` holds seconds; `limits.time_limit` goes before it."""
    assert read_package(write(tmp_path / "p", {".timelimit": "2\n"})).time_limit_ns == 2_000_000_000
    both = {".timelimit": "2\n", "problem.yaml": "name: A\nlimits:\n  time_limit: 3\n"}
    assert read_package(write(tmp_path / "q", both)).time_limit_ns == 3_000_000_000


def test_a_title_falls_back_to_the_statement_then_to_the_folder(tmp_path: Path) -> None:
    """Older packages keep their title in the statement only."""
    yaml = {"problem.yaml": "author: x\nname:\n"}
    titled = yaml | {"problem_statement/problem.en.tex": "\\problemname{Two  Words}\n"}
    assert read_package(write(tmp_path / "p", titled)).name == "Two Words"
    assert read_package(write(tmp_path / "q", yaml)).name == "q"


def test_submissions_that_are_passed_over_are_listed(tmp_path: Path) -> None:
    """Other languages, unlabelled files, programs of several files and exact twins are left out, each with a reason."""
    source = BASE["submissions/accepted/add.py"]
    package = read_package(
        write(
            tmp_path / "p",
            {
                "submissions/loose.py": source,
                "submissions/accepted/add.cpp": "int main() {}",
                "submissions/accepted/latin.py": b"x = 1\ny = '\xe9'\n",
                "submissions/accepted/old.py": "print 1\n",
                "submissions/accepted/many/a.py": source,
                "submissions/accepted/many/b.py": source,
                "submissions/accepted/other.py": source,
                "submissions/wrong_answer/add.py": source,
                "submissions/time_limit_exceeded/add.py": "while True: pass\n",
                "submissions/accepted/__pycache__/add.pyc": b"\0",
                "submissions/accepted/.DS_Store": b"\0",
            },
        )
    )
    assert [(program.label, program.name) for program in package.programs] == [
        ("accepted", "add.py"),
        ("accepted", "other.py"),
        ("time_limit_exceeded", "add.py"),
    ]
    assert {left.path: left.reason for left in package.excluded} == {
        "submissions/loose.py": "no label: it lies in no folder such as submissions/accepted",
        "submissions/accepted/add.cpp": "not a Python program",
        "submissions/accepted/latin.py": "a program that is not UTF-8 (line 2)",
        "submissions/accepted/old.py": "a Python 2 program",
        "submissions/accepted/many": "a program of several files",
        "submissions/wrong_answer/add.py": "the same program as submissions/accepted/add.py",
    }


def test_the_digest_covers_judging_and_tests_but_no_program(tmp_path: Path) -> None:
    """More programs or a new statement leave the problem as it is; a test's bytes or path or a limit make another."""
    digest = read_package(write(tmp_path / "p", {})).digest
    same = {"submissions/accepted/b.py": "x = 1", "problem_statement/problem.en.md": "?", "data/gen.py": "x"}
    assert read_package(write(tmp_path / "same", same)).digest == digest
    changes: list[Contents] = [
        {"data/sample/1.ans": "4\n"},
        {"data/sample/1.in": "1 2\n\n"},
        {"data/sample/1.in": None, "data/sample/1.ans": None, **pair("data/sample/2", "1 2\n")},
        pair("data/sample/2"),
        {".timelimit": "1"},
        {"problem.yaml": "name: A\nvalidator_flags: case_sensitive\n"},
    ]
    digests = [read_package(write(tmp_path / str(n), change)).digest for n, change in enumerate(changes)]
    assert len({digest, *digests}) == len(changes) + 1


def test_links_inside_the_package_are_followed(tmp_path: Path) -> None:
    """A linked test, group or program reads as if it lay there."""
    folder = write(tmp_path / "p", pair("data/secret/g/1"))
    (folder / "data/secret/again").symlink_to("g")
    (folder / "submissions/accepted/twice.py").symlink_to("add.py")
    package = read_package(folder)
    assert [test.path for test in package.tests] == ["sample/1", "secret/again/1", "secret/g/1"]
    assert [program.name for program in package.programs] == ["add.py", "twice.py"]


# What is refused


@pytest.mark.parametrize(
    ("extra", "parts"),
    [
        ({"problem.yaml": None}, ["p: not a package", "no problem.yaml"]),
        ({"problem.yaml": ""}, ["problem.yaml: says nothing"]),
        ({"problem.yaml": "name: A\nb: [1\nc: 2\n"}, ["problem.yaml, line 3: broken YAML"]),
        ({"problem.yaml": "name: A\nb: \x07\n"}, ["problem.yaml, line 2: broken YAML"]),
        ({"problem.yaml": b"a: 1\nname: \xff\n"}, ["problem.yaml, line 2: not UTF-8"]),
        ({"problem.yaml": "- a\n- b\n"}, ["problem.yaml: not a mapping"]),
        ({"problem.yaml": 'name: "\\ud800"\n'}, ["`name` holds unprintable characters"]),
        ({"problem.yaml": "a: &x [1]\nb: [*x, *x]\n"}, ["problem.yaml, line 2: an alias"]),
        ({"problem.yaml": "a: " + "[" * 10_000}, ["problem.yaml, line 1:", "nested deeper than 20"]),
        ({"problem.yaml": "a: 1\n" * MAX_DOCUMENT_BYTES}, ["bytes of YAML, above the limit"]),
        ({"problem.yaml": "validation: custom\n"}, ["validation `custom`", "not supported"]),
        ({"problem.yaml": "validation: custom interactive\n"}, ["interactive problems are not supported"]),
        ({"problem.yaml": "type: [pass-fail, interactive]\n"}, ["type `pass-fail interactive` is not supported"]),
        ({"output_validator/check.py": ""}, ["output_validator: custom validators are not supported"]),
        (
            {"problem.yaml": "validator_flags: float_tolerence 1\n"},
            ["problem.yaml: 'float_tolerence' is no answer flag"],
        ),
        ({"problem.yaml": "validator_flags: float_tolerance\n"}, ["problem.yaml: ", "float_tolerance"]),
        ({"problem.yaml": "validator_flags: float_tolerance -1\n"}, ["problem.yaml: ", "float_tolerance"]),
        ({"problem.yaml": "name: A\nlimits: {time_limit: soon}\n"}, ["time limit 'soon'", "write seconds"]),
        ({".timelimit": "0"}, [".timelimit: time limit '0'"]),
        ({".timelimit": "nan"}, [".timelimit: time limit 'nan'"]),
        ({"data/sample/1.ans": None}, ["data/sample/1.in: has no 1.ans beside it"]),
        ({"data/sample/1.in": None}, ["data/sample/1.ans: has no 1.in beside it"]),
        ({"data/sample/1.in": None, "data/sample/1.ans": None}, ["data: no tests"]),
        ({"submissions/accepted/add.py": None}, ["submissions: no submissions"]),
        ({"submissions/accepted/b.py": b"x = 1\0\n"}, ["accepted/b.py: a program with a NUL byte"]),
        ({"data/sample/testdata.yaml": "on_reject: stop\n"}, ["testdata.yaml: `on_reject: stop`"]),
        ({"data/sample/testdata.yaml": "range: 100\n"}, ["testdata.yaml: `range: 100`", "two numbers"]),
        ({"data/sample/testdata.yaml": "accept_score: many\n"}, ["`accept_score` is 'many'"]),
        ({"data/sample/testdata.yaml": "accept_score: inf\n"}, ["`accept_score` has no bound"]),
        ({"data/sample/testdata.yaml": "grading: custom\n"}, ["custom graders are not supported"]),
        ({"/".join(["data/secret", *["d"] * 40, "1.in"]): "1"}, ["nested deeper than 16"]),
        ({"data/secret/new\nline.in": "1"}, ["a name with unprintable characters"]),
    ],
)
def test_a_broken_package_is_refused_in_one_line(tmp_path: Path, extra: Contents, parts: list[str]) -> None:
    """Each message says what is wrong and where."""
    message = refusal(write(tmp_path / "p", extra))
    assert all(part in message for part in parts), message


def test_paths_that_are_no_package_are_refused(tmp_path: Path) -> None:
    """A missing path names its nearest parent; a file and an empty folder say what they are."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    assert f"does not exist; the nearest folder that does is {tmp_path}" in refusal(tmp_path / "a" / "b")
    assert "file: not a folder" in refusal(tmp_path / "file")
    assert "empty: not a package" in refusal(tmp_path / "empty")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))
    assert "does not exist" in refusal(tmp_path / "nul\0byte")
    assert "the folder's name gives no short name" in refusal(write(tmp_path / "---", {}))
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in refusal(tmp_path / "loop")


def test_links_out_of_the_package_in_circles_or_to_nothing_are_refused(tmp_path: Path) -> None:
    """No file of the machine enters the ledger through a package."""
    (tmp_path / "secret.txt").write_text("private")
    out = write(tmp_path / "out", {"data/sample/2.ans": "1"})
    (out / "data/sample/2.in").symlink_to(tmp_path / "secret.txt")
    assert "2.in: a link that leads out of the package" in refusal(out)
    folder = write(tmp_path / "folder", {})
    (folder / "data/secret").symlink_to(tmp_path)
    assert "data/secret: a link that leads out of the package" in refusal(folder)
    circle = write(tmp_path / "circle", pair("data/secret/1"))
    (circle / "data/secret/again").symlink_to("../secret")
    assert "in a circle" in refusal(circle)
    dangling = write(tmp_path / "dangling", {})
    (dangling / "submissions/accepted/gone.py").symlink_to("nowhere.py")
    assert "gone.py: cannot be followed" in refusal(dangling)


def test_special_and_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named pipe would block a reader for ever; a file without permission is named."""
    pipe = write(tmp_path / "pipe", {})
    os.mkfifo(pipe / "submissions/accepted/pipe.py")
    assert "pipe.py: neither a file nor a folder" in refusal(pipe)
    closed = write(tmp_path / "closed", {})

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "problem.yaml: cannot be read (Permission denied)" in refusal(closed)


def test_sizes_are_bounded_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file, all files and their number have limits; a sparse file of 64 MB and a byte stands in for a real one."""
    large = write(tmp_path / "large", {"data/sample/2.ans": "1"})
    with (large / "data/sample/2.in").open("wb") as file:
        file.truncate(bounds.MAX_FILE_BYTES + 1)
    assert "2.in: 67108865 bytes, above the limit of 64 MB a file" in refusal(large)
    small = write(tmp_path / "small", {})
    monkeypatch.setattr(bounds, "MAX_FILES", 3)
    assert "the package is too large" in refusal(small)
    monkeypatch.setattr(bounds, "MAX_FILES", 4)
    assert len(read_package(small).tests) == 1
    monkeypatch.setattr(bounds, "MAX_TOTAL_BYTES", 10)
    assert "the package is too large" in refusal(small)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text("[]{}:,-?&*!|>'\"% \n#ab1~", max_size=60).map(str.encode))
def test_any_bytes_are_a_document_or_one_line(data: bytes) -> None:
    """No YAML, however odd, ends in anything but a mapping with text keys or a UserError."""
    try:
        document = parse(data, "x.yaml")
        read_settings(document, "x.yaml", tier_field="a")
    except UserError as error:
        assert str(error).isprintable()  # noqa: PT017 - either end is right
    else:
        assert all(isinstance(key, str) for key in document)


@settings(deadline=None)
@given(st.decimals(min_value="0.000000001", max_value=86_400, places=9))
def test_a_limit_is_exact_to_the_nanosecond(seconds: object) -> None:
    """Decimal text times 10^9, no float in between."""
    complete, _, part = f"{seconds:f}".partition(".")
    assert read_limit(f" {seconds:f}\n", "x") == int(complete + part.ljust(9, "0"))


# Where packages lie


def test_packages_are_found_one_level_down_each_once(tmp_path: Path) -> None:
    """A package, a folder of packages and both together; other folders beside them are passed over."""
    first, second = write(tmp_path / "a", {}), write(tmp_path / "b", {})
    (tmp_path / "notes").mkdir()
    assert find_packages([tmp_path]) == [first, second]
    assert find_packages([second, tmp_path, tmp_path / "notes" / ".." / "a"]) == [second, first]


def test_a_folder_without_or_with_half_a_package_is_refused(tmp_path: Path) -> None:
    """Nothing is passed over in silence: no package at all, or one that lacks its problem.yaml."""
    with pytest.raises(UserError, match="no package here"):
        find_packages([tmp_path])
    write(tmp_path / "a", {})
    write(tmp_path / "b", {"problem.yaml": None})
    with pytest.raises(UserError, match="b: not a package, it has no problem"):
        find_packages([tmp_path])
    with pytest.raises(UserError, match=f"the nearest folder that does is {tmp_path}$"):
        find_packages([tmp_path / "c" / "d"])


# Real packages


class TestRealPackages:
    """The six packages beside the checkout work unchanged."""

    pytestmark = realdata

    def test_all_six_are_read(self) -> None:
        """Counts are those of the folders: pairs of .in and .ans below data, and Python files below a label."""
        packages = {folder.name: read_package(folder) for folder in find_packages([REAL])}
        assert len(packages) == 6
        for slug, package in packages.items():
            assert package.slug == slug
            assert len(package.tests) == len(list((REAL / slug / "data").rglob("*.ans")))
            assert len(package.programs) == len(list((REAL / slug / "submissions").glob("*/*.py")))
        assert [left.path for left in packages["virus3"].excluded] == ["submissions/theodor_old.py"]
        assert packages["kopatavlor"].name == "Köpa tavlor"

    def test_datepicker_states_its_tolerance_and_labels(self) -> None:
        """Five accepted, three that time out (the data's README); float tolerance from its problem.yaml."""
        package = read_package(REAL / "datepicker")
        labels = [program.label for program in package.programs]
        assert (labels.count("accepted"), labels.count("time_limit_exceeded")) == (5, 3)
        assert (package.name, package.validator_flags, package.grading) == ("Date Picker", "float_tolerance 1e-6", "")

    def test_a_time_limit_file_is_read(self) -> None:
        """`.timelimit` of adolescentarchitecture2 says 2."""
        assert read_package(REAL / "adolescentarchitecture2").time_limit_ns == 2_000_000_000

    @pytest.mark.parametrize("slug", ["kopatavlor", "pickleclicker", "theodortrollkarlen", "virus3"])
    def test_group_scores_add_up_to_the_complete(self, slug: str) -> None:
        """In the Swedish olympiad each group scores all or nothing and the groups share 100 points."""
        grading = json.loads(read_package(REAL / slug).grading)
        groups = {name: group for name, group in grading.items() if name.startswith("secret/")}
        assert sum(group["accept_score"] for group in groups.values()) == 100
        assert all(group["range"] == [0, group["accept_score"]] for group in groups.values())
        assert all((group["on_reject"], group["grader_flags"]) == ("break", "min") for group in groups.values())
        assert grading["secret"]["range"] == [0, 100]
        assert grading[""]["grader_flags"] == "ignore_sample"


def test_a_link_written_as_text_is_followed(tmp_path: Path) -> None:
    """Git without symbolic links writes `../group1/first.in` as the file's text: the test is the one it names."""
    links = {
        f"data/secret/{location}.{end}": f"../{target}.{end}"
        for location, target in (("group2/again", "group1/first"), ("group3/third", "group2/again"))
        for end in ("in", "ans")
    }
    first = {"data/secret/group1/first.in": "7 8\n", "data/secret/group1/first.ans": "15\n"}
    tests = {test.path: (test.input, test.answer) for test in read_package(write(tmp_path, {**links, **first})).tests}
    assert tests["secret/group2/again"] == tests["secret/group3/third"] == (b"7 8\n", b"15\n")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("../group9/none.in", "a link to data/secret/group9/none.in, which is not there"),
        ("../group2/x.in", "on and on"),
    ],
)
def test_a_link_written_as_text_that_leads_nowhere_is_refused(tmp_path: Path, text: str, output: str) -> None:
    """A missing target and a circle: one line that names the first file."""
    message = refusal(write(tmp_path, {"data/secret/group2/x.in": text, "data/secret/group2/x.ans": "1\n"}))
    assert "data/secret/group2/x.in: " in message
    assert output in message


# What a package sets for its tests, and its limits


def test_settings_are_inherited_down_to_the_test(tmp_path: Path) -> None:
    """The nearest file counts: data/, the group's folder, the test's own; an empty list sets nothing."""
    package = read_package(
        write(
            tmp_path / "p",
            {
                "problem.yaml": "problem_format_version: 2025-09\nname: Half\n",
                "data/test_group.yaml": "output_validator_args: [float_tolerance, '1E-6']\n",
                "data/secret/a/test_group.yaml": "args: [--factor, '2']\n",
                **pair("data/secret/a/1"),
                **pair("data/secret/a/2"),
                "data/secret/a/2.yaml": "args: []\noutput_validator_args: [case_sensitive]\nhint: double it\n",
            },
        )
    )
    settings = {test.path: (test.validator_flags, test.arguments) for test in package.tests}
    assert settings == {
        "sample/1": ("float_tolerance 1E-6", ()),
        "secret/a/1": ("float_tolerance 1E-6", ("--factor", "2")),
        "secret/a/2": ("case_sensitive", ()),
    }
    assert package.unknown_keys == ()


def test_legacy_flags_of_a_group_add_to_those_of_the_problem(tmp_path: Path) -> None:
    """As the reference tools do: both are passed to the validator, the group's last."""
    package = read_package(
        write(
            tmp_path / "p",
            {
                "problem.yaml": "name: Half\nvalidator_flags: case_sensitive\n",
                "data/secret/testdata.yaml": "output_validator_flags: float_tolerance 1e-4\n",
                **pair("data/secret/1"),
            },
        )
    )
    assert [test.validator_flags for test in package.tests] == ["", "case_sensitive float_tolerance 1e-4"]


def test_own_limits_are_read_and_make_another_problem(tmp_path: Path) -> None:
    """Seconds and MiB as the format has them; a package without limits keeps the id that it always had."""
    plain = read_package(write(tmp_path / "a", {}))
    stated = {"problem.yaml": f"{BASE['problem.yaml']}limits: {{time_limit: 0.5, memory: 128, output: 8}}\n"}
    limited = read_package(write(tmp_path / "b", stated))
    sizes = limited.memory_limit_bytes, limited.output_limit_bytes
    assert (limited.time_limit_ns, *sizes) == (500_000_000, 128 << 20, 8 << 20)
    assert (plain.time_limit_ns, plain.memory_limit_bytes, plain.output_limit_bytes) == (None, None, None)
    assert plain.digest != limited.digest
    texts = ["sample/1", *(hashlib.sha256(text).hexdigest() for text in (b"1 2\n", b"3\n"))]
    assert plain.digest == sha256_fields("package", "", "", 0, *texts)


def test_unknown_keys_are_named_with_their_file(tmp_path: Path) -> None:
    """Those that no version of the format has, in problem.yaml, its limits, groups and tests."""
    package = read_package(
        write(
            tmp_path / "p",
            {
                "problem.yaml": "name: Sum\nlimit: 2\nlimits: {tims_limit: 1}\n",
                "data/secret/test_group.yaml": "outputvalidator_args: [case_sensitive]\n",
                **pair("data/secret/1"),
                "data/secret/1.yaml": "max_score: 3\n",
            },
        )
    )
    assert set(package.unknown_keys) == {
        "problem.yaml: limit",
        "problem.yaml: limits.tims_limit",
        "data/secret/test_group.yaml: outputvalidator_args",
        "data/secret/1.yaml: max_score",
    }


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"problem.yaml": "name: x\nproblem_format_version: 2031-01\n"}, "problem_format_version `2031-01`"),
        ({"problem.yaml": "name: x\nconstants: {n: 3}\n"}, "`constants` are not supported"),
        ({"problem.yaml": "name: x\nlimits: 5\n"}, "`limits` is no mapping"),
        ({"problem.yaml": "name: x\nlimits: {memory: -1}\n"}, "`limits.memory` is '-1'"),
        ({"problem.yaml": "name: x\nlimits: {memory: 99999999}\n"}, "`limits.memory` is '99999999'"),
        ({"data/sample/1.yaml": "args: --factor\n"}, "`args` is no list of strings"),
        ({"data/sample/1.yaml": "args: [[a]]\n"}, "`args` is no list of strings"),
        ({"data/sample/1.yaml": f"args: [{'x' * 5000}]\n"}, "4096 characters in one"),
        ({"data/sample/1.yaml": "output_validator_args: [tolerance, '1']\n"}, "'tolerance' is no answer flag"),
        ({"data/sample/2.yaml": "hint: x\n"}, "2.yaml: has no .in file beside it"),
        ({"data/sample/1.files/a.txt": "x"}, "input files are not supported"),
        ({"data/secret/test_group.yaml": "static_validation_score: 10\n"}, "static validators are not supported"),
        ({"static_validator/run.py": "x"}, "static validators are not supported"),
        ({"include/python3/lib.py": "x"}, "files that are added to every program"),
    ],
)
def test_what_would_change_verdicts_and_is_not_supported_is_refused(
    tmp_path: Path, extra: Contents, message: str
) -> None:
    """In one line each, never passed over."""
    assert message in refusal(write(tmp_path / "p", extra))
