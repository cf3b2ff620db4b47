"""`python BUNDLE.zip`: proves a campaign's bundle, replays every table in it, and answers another criterion.

    python BUNDLE.zip [--head HEAD] [--no-proof] [--tau N] [--criterion JSON] [--k K] [--json]

Exit code 1 when anything differs, 2 for a wrong option, 3 when all holds but a table could not be replayed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lapledger.consumers.exports.replayer.checks import check_replays
from lapledger.consumers.exports.replayer.facts import PROGRAMS
from lapledger.consumers.exports.replayer.judging import STATUS, estimates
from lapledger.consumers.exports.replayer.known import KERNEL, KEYS, PARTS
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError
from lapledger.consumers.exports.replayer.report import Report
from lapledger.consumers.exports.replayer.tables import check_tables, format_q
from lapledger.ledger.proof.bundles.verifier import proof
from lapledger.ledger.proof.bundles.verifier.bundle_file import BROKEN, BundleFile, collect, unreadable


def requested_table(replayer: Replayer, options: argparse.Namespace) -> dict[str, Any] | None:
    """The table of the criterion on the command line, None where none is given."""
    if options.criterion is None and options.tau is None:
        return None
    stated = _stated(options.criterion or "{}") | ({"tau": options.tau} if options.tau else {})
    judged = replayer.answer(stated, options.calibration)
    return {
        "cut": replayer.bundle.about["cut"],
        "campaign": replayer.bundle.about["campaign"],
        "criterion": stated,
        "missing": sum(problem.missing for problem in judged),
        "estimates": estimates(judged, options.k),
        "verdicts": [
            {
                "program": v.program,
                "problem": problem.problem,
                "status": STATUS[v.status],
                "q": format_q(v),
                "references": v.references,
            }
            for problem in judged
            for v in problem.verdicts
        ],
    }


def _stated(criterion: str) -> dict[str, Any]:
    try:
        stated = json.loads(criterion)
    except json.JSONDecodeError as error:
        raise UnknownQuestionError(str(error)) from None
    if not isinstance(stated, dict):
        raise UnknownQuestionError("it is not a JSON object")
    return stated


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python BUNDLE.zip", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--head", type=proof.head_text, help="a head that you kept: `lap verify --print-head` printed it"
    )
    parser.add_argument("--no-proof", action="store_true", help="only replay")
    parser.add_argument("--criterion", help="criterion to evaluate, as canonical JSON")
    parser.add_argument("--tau", help="p_tau of it")
    parser.add_argument("--calibration", help="id of a calibration in the bundle")
    parser.add_argument("--k", type=int, default=1, help="pass@k")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str], path: str) -> int:
    """Checks and replays; 0 when all holds, 1 when anything differs, 2 for a wrong option, 3 for too few tables."""
    options = _options(arguments)
    report, table = Report(), None
    try:
        replayer = Replayer(BundleFile(path))
    except BROKEN as error:
        report.wrong.append(unreadable(error))
    else:
        _check(replayer, report, options)
        try:
            table = requested_table(replayer, options)
        except UnknownQuestionError as error:
            if not report.wrong:
                sys.stderr.write(f"the criterion cannot be answered: {error}\n")
                return 2
            report.lines.append(f"the criterion cannot be answered: {error}")
        except BROKEN as error:
            report.wrong.append(unreadable(error))
    report.write(table, as_json=options.json)
    return report.code


def _check(replayer: Replayer, report: Report, options: argparse.Namespace) -> None:
    """Runs every check; one that cannot read what it needs is reported, and the others still run."""
    bundle = replayer.bundle
    if not options.no_proof:
        report.proven = True
        for check in _PROOFS:
            _collect(report, check, bundle)
        if options.head:
            _collect(report, lambda bundle: proof.check_head(bundle, options.head), bundle)
    collect(report.wrong, lambda: check_tables(replayer, report))
    collect(report.wrong, lambda: check_replays(replayer, report))


def _collect(report: Report, check: Callable[[BundleFile], Iterable[str]], bundle: BundleFile) -> None:
    collect(report.wrong, lambda: report.wrong.extend(check(bundle)))


def _check_about(bundle: BundleFile) -> Iterator[str]:
    """bundle.json is in a known format, by the scoring engine that is known here, and of a campaign in the bundle."""
    about = bundle.about
    yield from proof.check_about(bundle, KEYS)
    if about.get("kernel", KERNEL) != KERNEL:
        yield f"{proof.MANIFEST}: its kernel is {about['kernel']}; this replayer follows {KERNEL}"
    campaigns = bundle.first("campaign.opened", ("campaign_id",), "campaign_id")
    if "campaign" in about and about["campaign"] not in campaigns:
        yield f"{proof.MANIFEST}: its campaign {about['campaign']} is not in the bundle"


def _check_blobs(bundle: BundleFile) -> Iterator[str]:
    replays = bundle.events("replay.completed", ("verdicts_blob", "flips_blob"))
    columns = [bundle.events("program.added", PROGRAMS)["source_blob"], replays["verdicts_blob"], replays["flips_blob"]]
    return proof.check_blobs(bundle, set(), {digest for column in columns for digest in column.to_pylist()})


_PROOFS: Sequence[Callable[[BundleFile], Iterable[str]]] = (
    _check_about,
    lambda bundle: proof.check_parts(bundle, PARTS),
    *(_check_blobs, proof.check_frames, proof.check_timings, proof.check_cut, proof.check_own_head),
)
