"""`python BUNDLE.zip`: proves the bundle, replays every table in it, and answers another criterion where one is given.

    python BUNDLE.zip [--head WORD] [--no-proof] [--tau N] [--criterion JSON] [--k K] [--json]

Exit code 1 when anything differs, 2 for a wrong word.
"""

import argparse
import hashlib
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from consumers.exports.portable import proof
from consumers.exports.portable.facts import Bundle, Problem, problems
from consumers.exports.portable.judging import WORDS, Judge, Judged, Verdict, differs, estimates
from consumers.exports.portable.mapping import with_stored
from ledger.proof.bundle_verifier import BROKEN

_FIT = ("calibration_id", "source_campaign", "target_campaign", "clock", "estimator", "startup", "a", "b_ns")
_SHOWN = ("maker", "problems", "programs", "passed", "failed", "undecided", "value", "upper_bound")


class UnknownQuestionError(ValueError):
    """A criterion that this replayer cannot answer; the message says why."""


class Replayer:
    """Answers criteria from the facts in a bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.fields: dict[str, Any] = bundle.about["fields"]
        self._loaded: dict[str, list[Problem]] = {}

    def criterion(self, stated: dict[str, Any]) -> dict[str, Any]:
        """Every field of a criterion in canonical form; UnknownQuestionError for one that is not known here."""
        unknown = sorted({*stated} - {*self.fields, "schema"})
        if unknown:
            raise UnknownQuestionError(f"the field {unknown[0]!r} is not known here; known: {', '.join(self.fields)}")
        whole = {**self.fields, **stated}
        if whole["interface"] == "required":
            raise UnknownQuestionError("interface = 'required' asks for sources, which a bundle does not hold")
        return whole

    def answer(self, stated: dict[str, Any], calibration: str | None) -> list[Judged]:
        """The verdicts on every problem."""
        criterion = self.criterion(stated)
        fresh = self._problems(self.bundle.about["campaign"])
        if calibration is not None:
            fit = self._fit(calibration)
            stored = {problem.name: problem for problem in self._problems(fit["source_campaign"])}
            fresh = [with_stored(p, stored[p.name], fit) if p.name in stored else p for p in fresh]
        elif criterion["calibration"] != "none":
            raise UnknownQuestionError("no calibration of this kind is in the bundle; ask with calibration 'none'")
        return [Judge(problem, criterion).judged() for problem in fresh]

    def _problems(self, campaign: str) -> list[Problem]:
        if campaign not in self._loaded:
            self._loaded[campaign] = list(problems(self.bundle, campaign))
        return self._loaded[campaign]

    def _fit(self, calibration: str) -> dict[str, Any]:
        fit = self.bundle.first("calibration.fitted", _FIT, "calibration_id")[calibration]
        for name in self.bundle.kinds():
            if name.startswith("events/calibration.fitted."):
                table = self.bundle.table(name)
                if "power" in table.column_names:
                    powers = dict(zip(table["calibration_id"].to_pylist(), table["power"].to_pylist(), strict=True))
                    fit["power"] = powers.get(calibration, 1.0)
        return fit


def check_tables(replayer: Replayer, told: Callable[[str], None]) -> Iterator[str]:
    """Every stored table comes out again: each criterion's hash, counts, estimates and verdicts."""
    verdicts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in replayer.bundle.table("verdicts.parquet").to_pylist():
        verdicts.setdefault(row["criterion_hash"], {})[row["program_id"]] = row
    for table in replayer.bundle.json("tables.json"):
        name, canonical = table["name"], table["canonical"]
        if hashlib.sha256(canonical.encode()).hexdigest() != table["hash"]:
            yield f"{name}: its criterion does not give its hash"
        try:
            judged = replayer.answer(json.loads(canonical), table["calibration"])
        except UnknownQuestionError as why:
            told(f"not replayed: {name}: {why}")
            continue
        wrong = [*_wrong_estimates(table, judged), *_wrong_verdicts(verdicts.get(table["hash"], {}), judged)]
        told(f"{'replayed' if not wrong else 'DIFFERS'}: {name} ({table['hash'][:12]})")
        yield from (f"{name}: {line}" for line in wrong)


def _wrong_estimates(table: dict[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    found = estimates(judged, table["k"])
    if [row["maker"] for row in table["estimates"]] != [row["maker"] for row in found]:
        yield "other makers than in tables.json"
        return
    for told, row in zip(table["estimates"], found, strict=True):
        for name in differs(told, row):
            yield f"{name} of {row['maker']} is {row[name]}, and tables.json says {told.get(name)}"


def _wrong_verdicts(told: dict[str, dict[str, Any]], judged: Sequence[Judged]) -> Iterator[str]:
    found = {v.program: v for one in judged for v in one.verdicts}
    for program in sorted({*told} ^ {*found}):
        yield f"{program}: not in both"
    for program in sorted({*told} & {*found}):
        row, v = told[program], found[program]
        if row["verdict"] != WORDS[v.status] or row["references"] != v.references or not _same_q(row, v):
            yield f"{program}: the verdict is {WORDS[v.status]}, q {_q(v)}, against {v.references} references"


def _same_q(row: dict[str, Any], v: Verdict) -> bool:
    if v.q is None or not row["q_den"]:
        return v.q is None and not row["q_den"]
    return (v.q[0] * row["q_den"], v.q[1] * row["q_den"]) == (row["q_lo"], row["q_hi"])


def _q(v: Verdict) -> str:
    return "unknown" if v.q is None else str(v.q[0]) if v.q[0] == v.q[1] else f"{v.q[0]} to {v.q[1]}"


def asked_for(replayer: Replayer, words: argparse.Namespace) -> dict[str, Any] | None:
    """The table of the criterion on the command line, None where none is given."""
    if words.criterion is None and words.tau is None:
        return None
    stated = json.loads(words.criterion or "{}") | ({"tau": words.tau} if words.tau else {})
    judged = replayer.answer(stated, words.calibration)
    rows = [(v, one.problem) for one in judged for v in one.verdicts]
    return {
        "cut": replayer.bundle.about["cut"],
        "campaign": replayer.bundle.about["campaign"],
        "criterion": stated,
        "missing": sum(one.missing for one in judged),
        "estimates": estimates(judged, words.k),
        "verdicts": [
            {
                "program": v.program,
                "problem": problem,
                "status": WORDS[v.status],
                "q": _q(v),
                "references": v.references,
            }
            for v, problem in rows
        ],
    }


def main(arguments: Sequence[str], path: str) -> int:
    """Checks and replays; 0 when all holds, 1 when anything differs, 2 for a wrong word."""
    parser = argparse.ArgumentParser(prog="python BUNDLE.zip", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--head", help="a head that you kept: `lap verify --head` printed it")
    parser.add_argument("--no-proof", action="store_true", help="only replay")
    parser.add_argument("--criterion", help="canonical JSON of a criterion to answer")
    parser.add_argument("--tau", help="p_tau of it")
    parser.add_argument("--calibration", help="id of a calibration in the bundle")
    parser.add_argument("--k", type=int, default=1, help="pass@k")
    parser.add_argument("--json", action="store_true", help="print JSON")
    words = parser.parse_args(arguments)
    said: list[str] = []
    table, wrong = None, []
    try:
        bundle = Bundle(path)
        replayer = Replayer(bundle)
        if not words.no_proof:
            wrong += _proven(bundle, words.head)
        wrong += check_tables(replayer, said.append)
        table = asked_for(replayer, words)
    except (UnknownQuestionError, json.JSONDecodeError) as error:
        sys.stderr.write(f"the criterion cannot be answered: {error}\n")
        return 2
    except (*BROKEN, zipfile.BadZipFile) as error:
        wrong.append(f"the bundle cannot be read: {type(error).__name__}: {error}")
    _tell(said, wrong, table, as_json=words.json)
    return 1 if wrong else 0


def _proven(bundle: Bundle, head: str | None) -> list[str]:
    checks = (proof.check_parts, proof.check_frames, proof.check_timings)
    wrong = [line for check in checks for line in check(bundle)]
    return [*wrong, *proof.check_head(bundle, head or bundle.about["head"])]


def _tell(said: Sequence[str], wrong: Sequence[str], table: dict[str, Any] | None, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"wrong": list(wrong), "said": list(said), "table": table}, indent=1) + "\n")
        return
    for line in (*said, *(f"WRONG: {line}" for line in wrong)):
        sys.stdout.write(f"{line}\n")
    for row in table["estimates"] if table else ():
        sys.stdout.write("  ".join(f"{name} {row[name]}" for name in _SHOWN) + "\n")
    sys.stdout.write("damaged\n" if wrong else "proven and replayed\n")
