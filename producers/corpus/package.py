"""An ICPC problem package, read whole into frozen values. Nothing is stored here and no program is executed.

The format is that of icpc.io/problem-package-format (legacy, 2023-07 and 2025-09): problem.yaml, a statement, tests
below data/sample and data/secret, Python programs below submissions/LABEL. A package is read completely or refused.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lapledger.ledger.codec.canonical import blob_digest, sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.case_settings import TestSettings, inherited, read_grading, read_test_settings
from lapledger.producers.corpus.documents import Document, parse
from lapledger.producers.corpus.files import Files, scan, shown
from lapledger.producers.corpus.folders import require_package
from lapledger.producers.corpus.languages import unusable
from lapledger.producers.corpus.settings import read_limit, read_settings

_PARTS = ("problem.yaml", ".timelimit", "problem_statement", "statement", "submissions")
_DATA = ("data/testdata.yaml", "data/test_group.yaml", "data/sample", "data/secret")
_REFUSED = {
    "output_validator": "custom validators are not supported; import problems without one",
    "static_validator": "static validators are not supported; import problems without one",
    "include": "files that are added to every program are not supported; put their text into the programs",
}
"""Folders that decide verdicts in a way that is not supported -> what to do."""
_GROUP_FILES = ("testdata.yaml", "test_group.yaml")
_STATEMENT = re.compile(r"(problem_statement|statement)/problem(\.\w+)?\.(md|tex)")
_TEXT_LINK = re.compile(rb"(?:\.\./)+[\w./-]{1,200}\.(?:in|ans)")
MAX_LINKS = 8
_TEX_TITLE = re.compile(r"\\problemname\{([^{}\n]+)\}")


@dataclass(frozen=True, slots=True)
class PackageTest:
    """A test with its path below data/ (no suffix), its group (the folder that holds it) and its roles."""

    path: str
    group: str
    original: bool
    correctness: bool
    optimization: bool
    input: bytes
    answer: bytes
    validator_flags: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageProgram:
    """A Python program: file name, the label that its folder claims, and its source."""

    name: str
    label: str
    source: bytes

    @property
    def stem(self) -> str:
        """The file name without its suffix."""
        return PurePosixPath(self.name).stem


@dataclass(frozen=True, slots=True)
class Excluded:
    """A submission that was passed over, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A whole package. `digest` covers judging and tests, not programs: more programs leave the problem the same."""

    slug: str
    name: str
    source: str
    license: str
    validator_flags: str
    grading: str
    time_limit_ns: int | None
    memory_limit_bytes: int | None = None
    output_limit_bytes: int | None = None
    tier: str | None
    statement: bytes | None
    tests: tuple[PackageTest, ...]
    programs: tuple[PackageProgram, ...]
    excluded: tuple[Excluded, ...]
    digest: str
    unknown_keys: tuple[str, ...] = ()

    @property
    def problem_id(self) -> str:
        """Slug, a dot, and the first 12 hex digits of the digest."""
        return f"{self.slug}.{self.digest[:12]}"

    def test_id(self, test: PackageTest) -> str:
        """Problem id, a slash, and the test's path below data/ without suffix."""
        return f"{self.problem_id}/{test.path}"

    def program_id(self, program: PackageProgram) -> str:
        """Problem id, a slash, file stem, a dot, and the first 12 hex digits of the source's SHA-256."""
        return f"{self.problem_id}/{program.stem}.{blob_digest(program.source)[:12]}"


def read_package(folder: Path, *, tier_field: str = "") -> Package:
    """The package in a folder; `tier_field` names the field of problem.yaml that holds the difficulty, if any does.

    Raises UserError, one line each, for whatever is broken, missing, too large or cannot be judged.
    """
    require_package(folder)
    files = scan(folder, (*_PARTS, *_DATA, *_REFUSED))
    for part, advice in _REFUSED.items():
        if files.under(part):
            raise UserError(f"{files.where(part)}: {advice}")
    where = files.where("problem.yaml")
    document = parse(files.read("problem.yaml"), where)
    if not document:
        raise UserError(f"{where}: says nothing; write at least `name: A title`")
    settings = read_settings(document, where, tier_field=tier_field)
    time_limit_ns = settings.time_limit_ns or _time_limit(files)
    groups = _documents(files)
    grading = _grading(groups)
    grading = grading if settings.scoring else ""
    levels = {path: read_test_settings(*stated, group=_is_group(path)) for path, stated in groups.items()}
    tests = _tests(files, levels, settings.validator_flags)
    programs, excluded = _programs(files)
    statement = _statement(files)
    slug = _slug(folder)
    limits = (time_limit_ns, settings.memory_limit_bytes, settings.output_limit_bytes)
    return Package(
        slug=slug,
        name=settings.name or _title(statement) or slug,
        source=settings.source,
        license=settings.license,
        validator_flags=settings.validator_flags,
        grading=grading,
        time_limit_ns=time_limit_ns,
        memory_limit_bytes=settings.memory_limit_bytes,
        output_limit_bytes=settings.output_limit_bytes,
        tier=settings.tier,
        statement=statement,
        tests=tests,
        programs=programs,
        excluded=excluded,
        digest=digest_of(settings.validator_flags, grading, limits, tests),
        unknown_keys=(
            *(f"problem.yaml: {key}" for key in settings.unknown_keys),
            *(f"{path}: {key}" for path, level in levels.items() for key in level.unknown_keys),
        ),
    )


def _slug(folder: Path) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not slug:
        raise UserError(
            f"{shown(folder)}: the folder's name gives no short name; rename it with letters a to z or digits"
        )
    return slug


def _statement(files: Files) -> bytes | None:
    """The statement in English where there is one, else without a language, else the first."""
    statements = [path for path in files.paths if _STATEMENT.fullmatch(path)]
    statements.sort(key=lambda path: (".en." not in path, path.count("."), path))
    return files.read(statements[0]) if statements else None


def _title(statement: bytes | None) -> str:
    match = _TEX_TITLE.search((statement or b"").decode(errors="replace"))
    title = " ".join(match[1].split()) if match else ""
    return title if title.isprintable() else ""


def _time_limit(files: Files) -> int | None:
    if ".timelimit" not in files.paths:
        return None
    return read_limit(files.read(".timelimit").decode(errors="replace"), files.where(".timelimit"))


def _is_group(path: str) -> bool:
    return PurePosixPath(path).name in _GROUP_FILES


def _documents(files: Files) -> dict[str, tuple[Document, str]]:
    """The YAML files of the test data by path, each with where it lies; UserError for one that no test has."""
    paths = [path for path in files.paths if path.startswith("data/") and path.endswith(".yaml")]
    known = frozenset(files.paths)
    for path in paths:
        if not _is_group(path) and f"{path.removesuffix('.yaml')}.in" not in known:
            raise UserError(f"{files.where(path)}: has no .in file beside it; name it after a test or remove it")
    return {path: (parse(files.read(path), files.where(path)), files.where(path)) for path in paths}


def _grading(documents: Mapping[str, tuple[Document, str]]) -> str:
    groups = {}
    for path, document in documents.items():
        if _is_group(path):
            groups[PurePosixPath(path).parent.relative_to("data").as_posix().removeprefix(".")] = document
    return read_grading(groups)


def _settings_of(test: PurePosixPath, levels: Mapping[str, TestSettings], problem_flags: str) -> TestSettings:
    """What the files from data/ down to the test's own set for it."""
    folders = [parent for parent in reversed(test.parents) if parent.parts]
    paths = [*(f"{folder}/{name}" for folder in folders for name in _GROUP_FILES), f"{test}.yaml"]
    return inherited((levels[path] for path in paths if path in levels), problem_flags)


def _tests(files: Files, levels: Mapping[str, TestSettings], problem_flags: str) -> tuple[PackageTest, ...]:
    data = [PurePosixPath(path) for part in ("data/sample", "data/secret") for path in files.under(part)]
    inputs = {path.with_suffix("") for path in data if path.suffix == ".in"}
    answers = {path.with_suffix("") for path in data if path.suffix == ".ans"}
    for path in sorted(inputs ^ answers):
        missing, present = (".ans", ".in") if path in inputs else (".in", ".ans")
        raise UserError(
            f"{files.where(f'{path}{present}')}: has no {path.name}{missing} beside it; add it or remove this"
        )
    if not inputs:
        raise UserError(f"{files.where('data')}: no tests; put NAME.in and NAME.ans into data/sample or data/secret")
    known = frozenset(files.paths)
    return tuple(
        _test(files, path, known, _settings_of(path, levels, problem_flags))
        for path in sorted(inputs, key=lambda path: path.parts)
    )


def _content(files: Files, path: str, known: frozenset[str]) -> bytes:
    """The bytes of a test file, links that a checkout wrote as plain text followed within the package.

    Git does so where symbolic links are off: the file then holds nothing but the relative path of another test file.
    """
    data, start = files.read(path), path
    for _ in range(MAX_LINKS):
        if not _TEXT_LINK.fullmatch(data):
            return data
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), data.decode()))
        if target not in known:
            raise UserError(f"{files.where(start)}: a link to {target}, which is not there; add that file")
        path, data = target, files.read(target)
    raise UserError(f"{files.where(start)}: links that lead on and on; put the test's text there")


def _test(files: Files, path: PurePosixPath, known: frozenset[str], settings: TestSettings) -> PackageTest:
    if files.under(f"{path}.files"):
        raise UserError(
            f"{files.where(f'{path}.files')}: input files are not supported; put the input into {path.name}.in"
        )
    group = path.parent.relative_to("data").as_posix()
    added = f"{group}/".startswith("secret/optimization/")
    timed = group.split("/")[0] == "secret" and not f"{group}/".startswith("secret/correctness/")
    return PackageTest(
        path=path.relative_to("data").as_posix(),
        group=group,
        original=not added,
        correctness=not added,
        optimization=timed,
        input=_content(files, f"{path}.in", known),
        answer=_content(files, f"{path}.ans", known),
        validator_flags=settings.validator_flags or "",
        arguments=settings.arguments or (),
    )


def _programs(files: Files) -> tuple[tuple[PackageProgram, ...], tuple[Excluded, ...]]:
    kept: dict[tuple[str, bytes], PackageProgram] = {}
    excluded: dict[str, str] = {}
    for path in files.under("submissions"):
        _, *folders, name = path.split("/")
        if not folders:
            excluded[path] = "no label: it lies in no folder such as submissions/accepted"
        elif len(folders) > 1:
            excluded["/".join(["submissions", *folders[:2]])] = "a program of several files"
        elif PurePosixPath(name).suffix not in (".py", ".py3"):
            excluded[path] = "not a Python program"
        elif reason := unusable(source := _source(files, path), name):
            excluded[path] = reason
        else:
            program = PackageProgram(name, folders[0], source)
            twin = kept.setdefault((program.stem, program.source), program)
            if twin is not program:
                excluded[path] = f"the same program as submissions/{twin.label}/{twin.name}"
    if not kept:
        raise UserError(f"{files.where('submissions')}: no submissions; put Python programs into submissions/accepted")
    return tuple(kept.values()), tuple(Excluded(path, reason) for path, reason in excluded.items())


def _source(files: Files, path: str) -> bytes:
    source = files.read(path)
    if b"\0" in source:
        raise UserError(f"{files.where(path)}: a program with a NUL byte; repair or remove it")
    return source


def digest_of(
    validator_flags: str, grading: str, limits: tuple[int | None, int | None, int | None], tests: Sequence[PackageTest]
) -> str:
    """SHA-256 over what decides a verdict: flags, grading, limits (time, memory, output), and every test.

    Limits of memory and output, and what a test sets for itself, count only where they are stated.
    """
    time_limit, *sizes = limits
    fields: list[str | int] = [validator_flags, grading, time_limit or 0]
    for test in tests:
        fields += [test.path, blob_digest(test.input), blob_digest(test.answer)]
    stated = [(name, size) for name, size in zip(("memory", "output"), sizes, strict=True) if size is not None]
    fields += [field for pair in stated for field in pair]
    for test in tests:
        if test.validator_flags or test.arguments:
            fields += ["settings", test.path, test.validator_flags, len(test.arguments), *test.arguments]
    return sha256_fields("package", *fields)
