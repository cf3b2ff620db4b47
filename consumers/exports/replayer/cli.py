"""`python BUNDLE.zip`: proves the bundle, replays every table in it, and answers another criterion where one is given.

    python BUNDLE.zip [--head WORD] [--no-proof] [--tau N] [--criterion JSON] [--k K] [--json]

Exit code 1 when anything differs, 2 for a wrong word, 3 when all holds but a table could not be replayed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lapledger.consumers.exports.replayer import parts, proof
from lapledger.consumers.exports.replayer.checks import check_replays
from lapledger.consumers.exports.replayer.facts import Bundle
from lapledger.consumers.exports.replayer.judging import WORDS, estimates
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError
from lapledger.consumers.exports.replayer.report import Report
from lapledger.consumers.exports.replayer.tables import check_tables, q_words
from lapledger.ledger.proof.bundles.bundle_verifier import BROKEN


def asked_for(replayer: Replayer, words: argparse.Namespace) -> dict[str, Any] | None:
    """The table of the criterion on the command line, None where none is given."""
    if words.criterion is None and words.tau is None:
        return None
    stated = _stated(words.criterion or "{}") | ({"tau": words.tau} if words.tau else {})
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
                "q": q_words(v),
                "references": v.references,
            }
            for v, problem in rows
        ],
    }


def _stated(criterion: str) -> dict[str, Any]:
    try:
        stated = json.loads(criterion)
    except json.JSONDecodeError as error:
        raise UnknownQuestionError(str(error)) from None
    if not isinstance(stated, dict):
        raise UnknownQuestionError("it is no JSON object of names and values")
    return stated


def _words(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python BUNDLE.zip", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--head", help="a head that you kept: `lap verify --print-head` printed it")
    parser.add_argument("--no-proof", action="store_true", help="only replay")
    parser.add_argument("--criterion", help="canonical JSON of a criterion to answer")
    parser.add_argument("--tau", help="p_tau of it")
    parser.add_argument("--calibration", help="id of a calibration in the bundle")
    parser.add_argument("--k", type=int, default=1, help="pass@k")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str], path: str) -> int:
    """Checks and replays; 0 when all holds, 1 when anything differs, 2 for a wrong word, 3 for less than all tables."""
    words = _words(arguments)
    report, table = Report(), None
    try:
        replayer = Replayer(Bundle(path))
    except BROKEN as error:
        report.wrong.append(_unreadable(error))
    else:
        _check(replayer, report, words)
        try:
            table = asked_for(replayer, words)
        except UnknownQuestionError as error:
            if not report.wrong:
                sys.stderr.write(f"the criterion cannot be answered: {error}\n")
                return 2
            report.said.append(f"the criterion cannot be answered: {error}")
        except BROKEN as error:
            report.wrong.append(_unreadable(error))
    report.tell(table, as_json=words.json)
    return report.code


def _check(replayer: Replayer, report: Report, words: argparse.Namespace) -> None:
    """Takes in what every check says; one that cannot read what it needs is told, and the others go on."""
    bundle = replayer.bundle
    if not words.no_proof:
        report.proven = True
        for check in _PROOFS:
            _try(report, lambda check: report.wrong.extend(check(bundle)), on=check)
        if words.head:
            _try(report, lambda head: report.wrong.extend(proof.check_head(bundle, head)), on=words.head)
    for replays in (check_tables, check_replays):
        _try(report, lambda replay: replay(replayer, report), on=replays)


_PROOFS = (
    *(parts.check_about, parts.check_parts, parts.check_blobs),
    *(proof.check_frames, proof.check_timings, proof.check_cut, proof.check_own_head),
)


def _try(report: Report, check: Callable[[Any], None], *, on: Any) -> None:
    try:
        check(on)
    except BROKEN as error:
        line = _unreadable(error)
        report.wrong += [] if line in report.wrong else [line]


def _unreadable(error: BaseException) -> str:
    return f"the bundle cannot be read: {type(error).__name__}: {error}"
